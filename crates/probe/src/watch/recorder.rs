//! Writing a recording: zstd-compressed lines of JSON.
//!
//! Each interval is flushed to the kernel when it is there, so that a killed netwright loses at
//! most the one it was about to write. A new zstd frame begins every [`INTERVALS`] intervals, so
//! that a reader can go to any of them without decoding all before.

use std::{
    fs::File,
    io::{self, Write},
    path::Path,
};

use model::watch::{WatchHost, WatchRecord};
use serde::Serialize;
use zstd::stream::write::Encoder;

/// Intervals in a frame.
pub const INTERVALS: u32 = 16;

/// zstd's level: 3 compresses an interval of a second in well under a millisecond.
const LEVEL: i32 = 3;

/// What the end of a frame takes at most; kept free so that there is always room for it.
const FRAME_END: u64 = 16;

/// A recording in the making.
pub struct Recorder {
    file: File,
    written: u64,
    limit: u64,
    /// What is compressed lies in the encoder's buffer until it is known to fit. None: full.
    frame: Option<Encoder<'static, Vec<u8>>>,
    /// Lines of the frame that are in the file.
    in_frame: u32,
    intervals: u64,
}

/// How a write went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteResult {
    /// The line is in the file.
    In,
    /// The line would have made the file larger than it may be: it is closed without it.
    Full,
}

impl Recorder {
    /// Begins one.
    ///
    /// # Errors
    /// The file cannot be made; `AlreadyExists` where it is there and may not be overwritten.
    pub fn create(path: &Path, force: bool, limit: u64) -> io::Result<Self> {
        let mut options = File::options();
        options.write(true);
        match force {
            true => options.create(true).truncate(true),
            false => options.create_new(true),
        };
        let (file, frame) = (options.open(path)?, Some(new_frame()?));
        Ok(Self { file, written: 0, limit, frame, in_frame: 0, intervals: 0 })
    }

    /// Writes the first line: the host of the intervals.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn host(&mut self, host: &WatchHost) -> io::Result<()> {
        self.line(host).map(drop)
    }

    /// One more interval.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&mut self, record: &WatchRecord) -> io::Result<WriteResult> {
        let went = self.line(record)?;
        self.intervals += u64::from(went == WriteResult::In);
        Ok(went)
    }

    /// How many intervals are in the file.
    pub fn intervals(&self) -> u64 {
        self.intervals
    }

    /// Completes the file. Without this everything written is still readable.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(&mut self) -> io::Result<()> {
        let ended = self.end_frame();
        self.frame = None;
        ended
    }

    fn line(&mut self, line: &impl Serialize) -> io::Result<WriteResult> {
        if self.in_frame == INTERVALS {
            self.end_frame()?;
            self.frame = Some(new_frame()?);
        }
        let Some(frame) = &mut self.frame else { return Ok(WriteResult::Full) };
        let mut json = serde_json::to_vec(line)?;
        json.push(b'\n');
        frame.write_all(&json)?;
        frame.flush()?;
        let more = frame.get_ref().len() as u64;
        if self.written + more + FRAME_END > self.limit {
            // The line goes; what was there before it is whole without.
            frame.get_mut().clear();
            self.end_frame()?;
            self.frame = None;
            return Ok(WriteResult::Full);
        }
        self.in_frame += 1;
        self.commit()?;
        Ok(WriteResult::In)
    }

    /// Puts what is compressed into the file.
    fn commit(&mut self) -> io::Result<()> {
        let Some(frame) = &mut self.frame else { return Ok(()) };
        let bytes = std::mem::take(frame.get_mut());
        self.file.write_all(&bytes)?;
        self.written += bytes.len() as u64;
        Ok(())
    }

    /// Ends the frame, if anything of it is in the file.
    fn end_frame(&mut self) -> io::Result<()> {
        if self.in_frame == 0 {
            return Ok(());
        }
        self.in_frame = 0;
        let Some(frame) = &mut self.frame else { return Ok(()) };
        frame.do_finish()?;
        self.commit()
    }
}

fn new_frame() -> io::Result<Encoder<'static, Vec<u8>>> {
    Encoder::new(Vec::new(), LEVEL)
}

#[cfg(test)]
mod tests {
    use model::watch::test_data;

    use super::*;
    use crate::watch::recording::Recording;

    /// What fits into this many bytes: how many intervals, and how large the file became.
    fn recorded(limit: u64, of: u64) -> (u64, u64, Result<usize, String>) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r.zst");
        let mut recorder = Recorder::create(&path, false, limit).unwrap();
        recorder.host(&test_data::host(2, 1)).unwrap();
        for turn in 0..of {
            let interval = test_data::interval(2, turn);
            match recorder.write(&WatchRecord { interval, findings: vec![] }).unwrap() {
                WriteResult::In => {}
                WriteResult::Full => break,
            }
        }
        recorder.finish().unwrap();
        let read = Recording::read("r.zst".into(), std::fs::read(&path).unwrap());
        let read = read.map(|r| {
            assert_eq!(r.damage(), None, "what is in the file is whole");
            r.len()
        });
        (recorder.intervals(), std::fs::metadata(&path).unwrap().len(), read)
    }

    #[test]
    fn a_file_is_never_larger_than_its_limit_and_whole() {
        let (all, size, _) = recorded(u64::MAX, 50);
        assert_eq!(all, 50);
        let mut last = 0;
        for part in 1..=40 {
            let limit = size * part / 40;
            let (intervals, size, read) = recorded(limit, 50);
            assert!(size <= limit, "{size} bytes where {limit} are the limit");
            assert!(intervals >= last, "more room, fewer intervals");
            if intervals > 0 {
                assert_eq!(read, Ok(usize::try_from(intervals).unwrap()));
            }
            last = intervals;
        }
        assert!(last >= 48, "the room is used: {last} of 50 in nearly all of it");
        let (intervals, size, _) = recorded(1, 3);
        assert_eq!((intervals, size), (0, 0), "not one byte too many");
    }
}
