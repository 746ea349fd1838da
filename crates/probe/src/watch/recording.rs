//! Reads a recording, from its beginning or at any interval.

use std::io::{self, BufRead, BufReader, Read};

use model::watch::{RECORDING_VERSION, SCHEMA_VERSION, WatchHost, WatchRecord};
use serde::de::IgnoredAny;
use zstd::stream::read::Decoder;

/// No longer line is read: 1,024 CPUs and ten thousand processes take a tenth of it.
const LONGEST_LINE: u64 = 64 << 20;
/// A recording may unpack to at most this size, and to at most [`MOST_PACKED`] times its own: a
/// small file that unpacks to gigabytes is refused.
const SMALL: u64 = 64 << 20;
/// The best that zstd makes of a frame of like intervals is a tenth of it.
const MOST_PACKED: u64 = 1_000;
/// Bytes of intervals that are kept at hand, as they are written: parsed they take many times that.
const KEPT: usize = 32 << 20;

/// A recording, and where its intervals are.
#[derive(Debug)]
pub struct Recording {
    name: String,
    bytes: Vec<u8>,
    /// The host of the intervals.
    pub host: WatchHost,
    frames: Vec<Frame>,
    damage: Option<String>,
    local: IntervalLines,
}

/// Intervals that follow one another, as lines.
#[derive(Debug, Default)]
struct IntervalLines {
    first: usize,
    lines: Vec<Vec<u8>>,
    bytes: usize,
}

impl IntervalLines {
    fn get(&self, number: usize) -> Option<&[u8]> {
        self.lines.get(number.checked_sub(self.first)?).map(Vec::as_slice)
    }

    fn push(&mut self, line: Vec<u8>) {
        self.bytes += line.len();
        self.lines.push(line);
    }
}

#[derive(Debug)]
struct Frame {
    offset: usize,
    /// The number of its first interval.
    first: usize,
    intervals: usize,
}

impl Recording {
    /// Reads a file's bytes through once, to know its intervals. The name is for people.
    ///
    /// # Errors
    /// When it is no recording, or not one interval of it can be read; one line.
    pub fn read(name: String, bytes: Vec<u8>) -> Result<Self, String> {
        let most = SMALL.saturating_add(MOST_PACKED.saturating_mul(bytes.len() as u64));
        let mut scan = Scan { left: most, ..Scan::default() };
        let mut offset = 0;
        while let Some(rest) = bytes.get(offset..).filter(|rest| !rest.is_empty()) {
            match scan.frame(rest, offset) {
                Some(left) if left < rest.len() => offset = bytes.len() - left,
                _ => break,
            }
        }
        let no = |why: &str| format!("{name}: {why}");
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
        Ok(Self { name, bytes, host, frames: scan.frames, damage, local: IntervalLines::default() })
    }

    /// How many intervals can be read.
    #[expect(clippy::len_without_is_empty, reason = "one without intervals is none")]
    pub fn len(&self) -> usize {
        self.frames.last().map_or(0, |f| f.first + f.intervals)
    }

    /// What is wrong with the file behind its last interval, if anything is: one line.
    pub fn damage(&self) -> Option<String> {
        let why = self.damage.as_ref()?;
        let readable = self.len();
        Some(format!(
            "{}: {why}; its first {readable} intervals were readable and shown",
            self.name
        ))
    }

    /// The interval of this number, from 0.
    ///
    /// # Errors
    /// There is none, or this netwright does not understand it.
    pub fn get(&mut self, number: usize) -> Result<WatchRecord, String> {
        let no = |why: String| format!("{}: interval {number}: {why}", self.name);
        let at = self.frames.partition_point(|f| f.first + f.intervals <= number);
        let frame = self.frames.get(at).ok_or_else(|| no("there is none".into()))?;
        if self.local.get(number).is_none() {
            let rest = self.bytes.get(frame.offset..).unwrap_or_default();
            self.local = local(rest, frame, at == 0, number).map_err(no)?;
        }
        let text = self.local.get(number).ok_or_else(|| no("there is none".into()))?;
        let record: WatchRecord = model::json::read(text)
            .map_err(|e| no(format!("not one that this netwright understands: {e}")))?;
        match record.interval.schema_version {
            v if v > SCHEMA_VERSION => Err(no("recorded by a later netwright".into())),
            _ => Ok(record),
        }
    }
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
                let host = model::json::read(&text);
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
fn local(
    rest: &[u8],
    frame: &Frame,
    with_host: bool,
    wanted: usize,
) -> Result<IntervalLines, String> {
    let mut lines = lines(rest).map_err(|e| e.to_string())?;
    let mut text = vec![];
    if with_host {
        line(&mut lines, &mut text)?;
    }
    let mut kept = IntervalLines { first: frame.first, ..IntervalLines::default() };
    for number in frame.first..frame.first + frame.intervals {
        if !line(&mut lines, &mut text)? {
            break;
        }
        if kept.bytes + text.len() > KEPT {
            if kept.get(wanted).is_some() {
                break;
            }
            kept = IntervalLines { first: number, ..IntervalLines::default() };
        }
        kept.push(std::mem::take(&mut text));
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use model::watch::test_data;

    use super::*;

    #[test]
    fn a_small_file_that_unpacks_to_gigabytes_is_read_within_bounds() {
        let record = WatchRecord { interval: test_data::interval(2, 1), findings: vec![] };
        let mut line = serde_json::to_string(&record).unwrap();
        line.push_str(&" ".repeat(1 << 20));
        line.push('\n');
        let mut z = zstd::Encoder::new(vec![], 3).unwrap();
        let host = serde_json::to_string(&test_data::host(2, 1)).unwrap() + "\n";
        io::Write::write_all(&mut z, host.as_bytes()).unwrap();
        for _ in 0..2_000 {
            io::Write::write_all(&mut z, line.as_bytes()).unwrap();
        }
        let bytes = z.finish().unwrap();
        assert!(bytes.len() < 1 << 20, "a small file");
        let started = std::time::Instant::now();
        let mut recording = Recording::read("bomb".into(), bytes).unwrap();
        assert!(recording.damage().unwrap().contains("unpacks to more"));
        assert!(recording.len() < 1_500, "{}", recording.len());
        for number in [0, recording.len() - 1, 40, 39] {
            assert_eq!(recording.get(number).unwrap(), record, "{number}");
            assert!(recording.local.bytes <= KEPT);
        }
        assert!(started.elapsed() < std::time::Duration::from_secs(60), "{:?}", started.elapsed());
    }
}
