//! Reading a recording, from its beginning or at any interval.

use std::{
    io::{self, BufRead, BufReader, Read},
    path::{Path, PathBuf},
};

use model::watch::{RECORDING_VERSION, SCHEMA_VERSION, WatchHost, WatchRecord};
use probe::given;
use serde::de::IgnoredAny;
use zstd::stream::read::Decoder;

use crate::exit::Failure;

/// No larger file is read: it is kept in memory as it is.
const LARGEST: u64 = 1 << 30;
/// No longer line is read: 1,024 CPUs and ten thousand processes take a tenth of it.
const LONGEST_LINE: u64 = 64 << 20;
/// A recording unpacks to no more than this and [`MOST_PACKED`] times its size: a small file that
/// unpacks to gigabytes is none.
const SMALL: u64 = 64 << 20;
/// The best that zstd makes of a frame of like intervals is a tenth of it.
const MOST_PACKED: u64 = 1_000;
/// Bytes of intervals that are kept at hand, as they are written: parsed they take many times that.
const KEPT: usize = 32 << 20;

/// A recording, and where its intervals are.
pub struct Recording {
    path: PathBuf,
    bytes: Vec<u8>,
    /// Whose intervals these are.
    pub host: WatchHost,
    frames: Vec<Frame>,
    damage: Option<String>,
    near: Near,
}

/// Intervals that follow one another, as lines.
#[derive(Default)]
struct Near {
    first: usize,
    lines: Vec<Vec<u8>>,
    bytes: usize,
}

impl Near {
    fn get(&self, number: usize) -> Option<&[u8]> {
        self.lines.get(number.checked_sub(self.first)?).map(Vec::as_slice)
    }

    fn push(&mut self, line: Vec<u8>) {
        self.bytes += line.len();
        self.lines.push(line);
    }
}

/// One zstd frame.
struct Frame {
    offset: usize,
    /// The number of its first interval.
    first: usize,
    intervals: usize,
}

impl Recording {
    /// Reads a file through once, to know its intervals.
    ///
    /// # Errors
    /// When it is no recording, or not one interval of it can be read.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let bytes = contents(path)?;
        let most = SMALL.saturating_add(MOST_PACKED.saturating_mul(bytes.len() as u64));
        let mut scan = Scan { left: most, ..Scan::default() };
        let mut offset = 0;
        while let Some(rest) = bytes.get(offset..).filter(|rest| !rest.is_empty()) {
            match scan.frame(rest, offset) {
                Some(left) if left < rest.len() => offset = bytes.len() - left,
                _ => break,
            }
        }
        let no = |why: &str| Failure::Environment(format!("{}: {why}", path.display()));
        let damage = scan.damage;
        let Some(host) = scan.host else {
            return Err(no("not a recording of netwright watch --record"));
        };
        if host.recording_version > RECORDING_VERSION {
            return Err(no("recorded by a later netwright; use that one, or a later one"));
        }
        if scan.intervals == 0 {
            let why = damage.as_deref().unwrap_or("it ends before its first");
            return Err(no(&format!("no interval can be read: {why}")));
        }
        Ok(Self {
            path: path.to_owned(),
            bytes,
            host,
            frames: scan.frames,
            damage,
            near: Near::default(),
        })
    }

    /// How many intervals can be read.
    pub fn len(&self) -> usize {
        self.frames.last().map_or(0, |f| f.first + f.intervals)
    }

    /// What is wrong with the file behind its last interval, if anything is: one line.
    pub fn damage(&self) -> Option<String> {
        let why = self.damage.as_ref()?;
        let readable = self.len();
        Some(format!(
            "{}: {why}; its first {readable} intervals were readable and shown",
            self.path.display()
        ))
    }

    /// The interval of this number, from 0.
    ///
    /// # Errors
    /// When there is none, or it is not one that this netwright understands.
    pub fn get(&mut self, number: usize) -> Result<WatchRecord, Failure> {
        let no = |why: String| {
            Failure::Environment(format!("{}: interval {number}: {why}", self.path.display()))
        };
        let at = self.frames.partition_point(|f| f.first + f.intervals <= number);
        let frame = self.frames.get(at).ok_or_else(|| no("there is none".into()))?;
        if self.near.get(number).is_none() {
            let rest = self.bytes.get(frame.offset..).unwrap_or_default();
            self.near = near(rest, frame, at == 0, number).map_err(no)?;
        }
        let text = self.near.get(number).ok_or_else(|| no("there is none".into()))?;
        let record: WatchRecord = serde_json::from_slice(text)
            .map_err(|e| no(format!("not one that this netwright understands: {e}")))?;
        match record.interval.schema_version {
            v if v > SCHEMA_VERSION => Err(no("recorded by a later netwright".into())),
            _ => Ok(record),
        }
    }
}

/// The file, if it is one that can be read and kept.
fn contents(path: &Path) -> Result<Vec<u8>, Failure> {
    let failed = |e: &io::Error| Failure::io(path, e);
    given::read(path, LARGEST).map_err(|e| failed(&e))
}

type Lines<'a> = BufReader<Decoder<'static, &'a [u8]>>;

fn lines(rest: &[u8]) -> io::Result<Lines<'_>> {
    Ok(BufReader::with_capacity(1 << 16, Decoder::with_buffer(rest)?.single_frame()))
}

/// The next whole line; none at the frame's end.
fn line(lines: &mut Lines<'_>, into: &mut Vec<u8>) -> Result<bool, String> {
    into.clear();
    let read = lines.by_ref().take(LONGEST_LINE).read_until(b'\n', into);
    match read {
        Ok(0) => Ok(false),
        Ok(_) if into.ends_with(b"\n") => Ok(true),
        Ok(n) if n as u64 == LONGEST_LINE => Err("a line is too long for an interval".into()),
        Ok(_) => Err("it ends within an interval".into()),
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Err("it was cut off".into()),
        Err(_) => Err("it is damaged".into()),
    }
}

/// What reading through finds.
#[derive(Default)]
struct Scan {
    host: Option<WatchHost>,
    frames: Vec<Frame>,
    intervals: usize,
    damage: Option<String>,
    /// Bytes that it may still unpack to.
    left: u64,
}

impl Scan {
    /// Reads a frame; gives how many bytes are left behind it, or nothing where reading ends.
    fn frame(&mut self, rest: &[u8], offset: usize) -> Option<usize> {
        let first = self.intervals;
        let mut lines = lines(rest).ok()?;
        let ended = self.intervals_of(&mut lines);
        let intervals = self.intervals - first;
        if intervals > 0 {
            self.frames.push(Frame { offset, first, intervals });
        }
        match ended {
            Ok(()) => Some(lines.into_inner().finish().len()),
            Err(why) => {
                self.damage = Some(why);
                None
            }
        }
    }

    fn intervals_of(&mut self, lines: &mut Lines<'_>) -> Result<(), String> {
        let mut text = vec![];
        while line(lines, &mut text)? {
            let left = self.left.checked_sub(text.len() as u64);
            self.left = left.ok_or("it unpacks to more than a recording of its size can hold")?;
            if self.host.is_none() {
                let host = serde_json::from_slice(&text);
                self.host = Some(host.map_err(|_| "its first line is not a host's".to_owned())?);
            } else {
                let json = serde_json::from_slice::<IgnoredAny>(&text);
                json.map_err(|_| format!("what follows interval {} is damaged", self.intervals))?;
                self.intervals += 1;
            }
        }
        Ok(())
    }
}

/// The intervals around `wanted` in its frame, no more than can be kept.
fn near(rest: &[u8], frame: &Frame, with_host: bool, wanted: usize) -> Result<Near, String> {
    let mut lines = lines(rest).map_err(|e| e.to_string())?;
    let mut text = vec![];
    if with_host {
        line(&mut lines, &mut text)?;
    }
    let mut kept = Near { first: frame.first, ..Near::default() };
    for number in frame.first..frame.first + frame.intervals {
        if !line(&mut lines, &mut text)? {
            break;
        }
        if kept.bytes + text.len() > KEPT {
            if kept.get(wanted).is_some() {
                break;
            }
            kept = Near { first: number, ..Near::default() };
        }
        kept.push(std::mem::take(&mut text));
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use model::watch::generated;
    use ratatui::{buffer::Buffer, layout::Rect};

    use super::*;
    use crate::{
        commands::watch::recorder::Recorder,
        view::{Screen, ViewState, draw},
    };

    #[test]
    fn any_interval_of_several_frames_can_be_had_in_any_order() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r.zst");
        let mut recorder = Recorder::create(&path, false, u64::MAX).unwrap();
        recorder.host(&generated::host(2, 1)).unwrap();
        let record =
            |turn| WatchRecord { interval: generated::interval(2, turn), findings: vec![] };
        for turn in 0..40 {
            recorder.write(&record(turn)).unwrap();
        }
        // Not finished: the last frame is open, as after a kill.
        let mut recording = Recording::open(&path).unwrap();
        assert_eq!(recording.len(), 40);
        assert!(recording.damage().unwrap().contains("cut off"));
        for number in [39, 0, 16, 15, 31, 32, 7] {
            assert_eq!(recording.get(number).unwrap(), record(number as u64), "{number}");
        }
        assert!(recording.get(40).is_err());
        recorder.finish().unwrap();
        assert!(Recording::open(&path).unwrap().damage().is_none());
    }

    #[test]
    fn a_small_file_that_unpacks_to_gigabytes_is_read_within_bounds() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("bomb.zst");
        let record = WatchRecord { interval: generated::interval(2, 1), findings: vec![] };
        let mut line = serde_json::to_string(&record).unwrap();
        line.push_str(&" ".repeat(1 << 20));
        line.push('\n');
        let mut z = zstd::Encoder::new(std::fs::File::create(&path).unwrap(), 3).unwrap();
        let host = serde_json::to_string(&generated::host(2, 1)).unwrap() + "\n";
        io::Write::write_all(&mut z, host.as_bytes()).unwrap();
        for _ in 0..2_000 {
            io::Write::write_all(&mut z, line.as_bytes()).unwrap();
        }
        z.finish().unwrap();
        assert!(path.metadata().unwrap().len() < 1 << 20, "a small file");
        let started = std::time::Instant::now();
        let mut recording = Recording::open(&path).unwrap();
        assert!(recording.damage().unwrap().contains("unpacks to more"));
        assert!(recording.len() < 1_500, "{}", recording.len());
        for number in [0, recording.len() - 1, 40, 39] {
            assert_eq!(recording.get(number).unwrap(), record, "{number}");
            assert!(recording.near.bytes <= KEPT);
        }
        assert!(started.elapsed() < std::time::Duration::from_secs(60), "{:?}", started.elapsed());
    }

    /// A recording of an earlier netwright stays readable: a new field of the model needs a
    /// default. (`scripts/record-softirq` makes this one again.)
    #[test]
    fn the_committed_recording_is_read_and_drawn() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings/softirq.zst");
        let mut recording = Recording::open(&path).unwrap();
        assert_eq!((recording.len(), recording.damage()), (10, None));
        let host = recording.host.clone();
        // It has what netwright has learned since the first recordings.
        let last = recording.get(9).unwrap().interval;
        let payers = last.payers.known().unwrap();
        assert!(
            payers.iter().any(|p| p.process == model::Reading::Known("netwright".into())),
            "{payers:?}"
        );
        assert!(last.waits.known().is_some_and(|w| !w.is_empty()));
        assert!(last.messages.known().is_some_and(|m| !m.is_empty()));
        assert!(last.observer.attach_ns.is_known());
        let state = ViewState::new(Default::default(), None);
        for number in 0..10 {
            let record = recording.get(number).unwrap();
            for (width, height) in [(80, 24), (200, 60)] {
                let area = Rect::new(0, 0, width, height);
                let mut buffer = Buffer::empty(area);
                let screen =
                    Screen { host: &host, record: Some(&record), state: &state, colour: true };
                draw(&screen, area, &mut buffer);
                let text: String = buffer.content().iter().map(|c| c.symbol()).collect();
                assert!(text.contains("SSSSSSSS"), "system calls pay on loopback: {text}");
            }
        }
    }
}
