//! A host in one file, for diagnosis on another machine: every source as it was read, with a
//! manifest.
//!
//! Unpacked (`tar --zstd -x`) it has the layout of the host's own root, for `--root DIR` and for
//! other tools (`HWLOC_FSROOT=DIR lstopo`).

mod name;
pub mod redact;
mod related_files;
mod write;

pub use name::archive_name;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicBool},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use model::{Facts, SCHEMA_VERSION, Samples, snapshot::Manifest};

use crate::{
    Root,
    facts::{self, Request},
    root::{
        Limits,
        record::{Recorder, Recording},
    },
    samples,
};

/// What to record and how to write it.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Which processes to look at.
    pub request: Request,
    /// Record the counters over this window too.
    pub window: Option<Duration>,
    /// How often to read the counters within the window.
    pub readings: u32,
    /// Replace addresses, names, MACs and command lines, see [`redact`].
    pub redact: Option<redact::Key>,
    /// Replace a file that is there.
    pub overwrite: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    pub path: PathBuf,
    pub files: usize,
    /// Bytes of those files.
    pub bytes: u64,
    /// Bytes of the archive.
    pub archive_bytes: u64,
    /// Readings of the counters in it.
    pub samples: usize,
    /// Reads that failed other than by absence, by path with the kernel's error number.
    pub errors: Vec<(String, i32)>,
}

/// Why there is no snapshot; one line.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The file is there already.
    #[error("{}: exists; choose another name or say --force to replace it", path.display())]
    Exists { path: PathBuf },
    /// It cannot be written.
    #[error("{}: {why}", path.display())]
    NotWritten { path: PathBuf, why: String },
}

/// What one run saw, and the recording of it.
#[derive(Debug)]
pub struct CapturedRun {
    /// Every source that was read.
    pub recording: Recording,
    /// The archive's manifest: when and by which version it was taken, and which reads failed.
    pub manifest: Manifest,
    /// The facts that were collected while recording; the recording gives the same.
    pub facts: Facts,
    /// The samples, if a window was asked for.
    pub samples: Option<Samples>,
}

/// Records the live host to the file `out`, which only its owner may read.
///
/// # Errors
/// The file exists (unless [`Options::overwrite`]) or cannot be written. Where possible this is
/// detected before the window; no partial file remains.
pub fn take(
    options: &Options,
    out: &Path,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(f64),
) -> Result<Summary, SnapshotError> {
    let file = write::Pending::create(out, options.overwrite)?;
    let mut taken = record(options, stop, progress);
    if let Some(key) = &options.redact {
        redact::recording(&mut taken, key);
    }
    file.write(&taken.recording, &taken.manifest)
}

/// Records the live host.
pub fn record(options: &Options, stop: &AtomicBool, progress: &mut dyn FnMut(f64)) -> CapturedRun {
    let taken_at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let recorder = Arc::new(Recorder::default());
    let root = Root::recording(recorder.clone());
    let facts = facts::collect(&root, &options.request);
    let samples = options.window.and_then(|window| {
        let options = samples::Options {
            window,
            readings: options.readings.min(affordable(&recorder)),
            pids: facts.processes.iter().map(|p| p.pid).collect(),
            sockets: samples::Sockets::All,
        };
        samples::take(&root, &options, stop, progress).ok()
    });
    related_files::read(&root);
    let mut recording = recorder.take();
    only_known_variables(&mut recording);
    let manifest = Manifest {
        schema_version: SCHEMA_VERSION,
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        taken_at_unix_s: taken_at.as_secs(),
        redacted: false,
        errors: std::mem::take(&mut recording.errors),
        listings: std::mem::take(&mut recording.listings),
        samples: std::mem::take(&mut recording.samples),
    };
    CapturedRun { recording, manifest, facts, samples }
}

/// How many readings of the counters fit into an archive. Nearly all of one is
/// `/proc/interrupts`: 47 MB with 1,024 CPUs and 4,096 interrupts.
fn affordable(recorder: &Recorder) -> u32 {
    let one = recorder.size("/proc/interrupts").unwrap_or(0).saturating_add(1 << 20);
    u32::try_from(Limits::default().total_bytes / 2 / one).unwrap_or(u32::MAX).max(2)
}

/// An environment holds passwords, and a reader looks for a variable or two. The others are not
/// even recorded.
fn only_known_variables(recording: &mut Recording) {
    let known = [&b"container="[..], b"IRQBALANCE_"];
    let of_process = |place: &str| place.starts_with("/proc/") && place.ends_with("/environ");
    for (_, bytes) in recording.files.iter_mut().filter(|(place, _)| of_process(place)) {
        let kept: Vec<&[u8]> = bytes
            .split(|&b| b == 0)
            .filter(|variable| known.iter().any(|k| variable.starts_with(k)))
            .collect();
        *bytes = kept.join(&0);
    }
}

#[cfg(test)]
mod tests;
