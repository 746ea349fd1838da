//! Writing a recording: zstd-compressed lines of JSON.
//!
//! Each interval is flushed to the kernel when it is there, so that a killed netwright loses at
//! most the one it was about to write. A new zstd frame begins every [`INTERVALS`] intervals, so
//! that a reader can go to any of them without decoding all before.

use std::{
    fs::File,
    io::{self, Write},
    path::{Path, PathBuf},
};

use model::watch::{WatchHost, WatchRecord};
use serde::Serialize;
use zstd::stream::write::Encoder;

use crate::exit::Failure;

/// Intervals in a frame.
pub const INTERVALS: u32 = 16;

/// zstd's level: 3 compresses an interval of a second in well under a millisecond.
const LEVEL: i32 = 3;

/// A recording in the making.
pub struct Recorder {
    path: PathBuf,
    frame: Option<Encoder<'static, Counted>>,
    in_frame: u32,
    limit: u64,
}

/// How a write went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Went {
    /// The interval is in the file.
    In,
    /// The file is as large as it may be, and closed.
    Full,
}

impl Recorder {
    /// Begins one.
    ///
    /// # Errors
    /// When the file cannot be made, or is there and may not be overwritten.
    pub fn create(path: &Path, force: bool, limit: u64) -> Result<Self, Failure> {
        let mut options = File::options();
        options.write(true);
        match force {
            true => options.create(true).truncate(true),
            false => options.create_new(true),
        };
        let file = options.open(path).map_err(|e| match e.kind() {
            io::ErrorKind::AlreadyExists => Failure::Environment(format!(
                "{}: is there already; --force overwrites it",
                path.display()
            )),
            _ => Failure::io(path, &e),
        })?;
        let frame = Encoder::new(Counted { file, written: 0 }, LEVEL);
        let frame = Some(frame.map_err(|e| Failure::io(path, &e))?);
        Ok(Self { path: path.to_owned(), frame, in_frame: 0, limit })
    }

    /// The first line: whose intervals these are.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn host(&mut self, host: &WatchHost) -> Result<(), Failure> {
        self.line(host)
    }

    /// One more interval.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&mut self, record: &WatchRecord) -> Result<Went, Failure> {
        if self.frame.as_ref().is_none_or(|f| f.get_ref().written >= self.limit) {
            self.finish()?;
            return Ok(Went::Full);
        }
        if self.in_frame == INTERVALS {
            self.next_frame()?;
        }
        self.in_frame += 1;
        self.line(record)?;
        Ok(Went::In)
    }

    /// Ends the file as it should end. Without, everything written is readable all the same.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn finish(&mut self) -> Result<(), Failure> {
        let ended = self.frame.take().map_or(Ok(()), |f| f.finish().map(drop));
        ended.map_err(|e| Failure::io(&self.path, &e))
    }

    fn line(&mut self, line: &impl Serialize) -> Result<(), Failure> {
        let Some(frame) = &mut self.frame else { return Ok(()) };
        let written = serde_json::to_vec(line).map_err(io::Error::from).and_then(|mut json| {
            json.push(b'\n');
            frame.write_all(&json)?;
            frame.flush()
        });
        written.map_err(|e| Failure::io(&self.path, &e))
    }

    fn next_frame(&mut self) -> Result<(), Failure> {
        let Some(frame) = self.frame.take() else { return Ok(()) };
        let next = frame.finish().and_then(|file| Encoder::new(file, LEVEL));
        self.frame = Some(next.map_err(|e| Failure::io(&self.path, &e))?);
        self.in_frame = 0;
        Ok(())
    }
}

/// A file that knows how much went into it.
struct Counted {
    file: File,
    written: u64,
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.file.write(bytes)?;
        self.written += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
