//! Records the watched intervals in a file, where requested.

use std::{
    io,
    path::{Path, PathBuf},
};

use model::watch::{WatchHost, WatchRecord};
use probe::watch::recorder::{Recorder, WriteResult};

use crate::error::{Result, ViewError};

/// The file of a recording; does nothing where none was requested.
pub struct RecordingFile {
    recorder: Option<Recorder>,
    path: PathBuf,
    full: String,
}

impl RecordingFile {
    /// Creates its file, where one was requested.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn create(path: Option<&Path>, force: bool, limit: u64) -> Result<Self> {
        let Some(path) = path else {
            return Ok(Self { recorder: None, path: PathBuf::new(), full: String::new() });
        };
        let full = format!(
            "{}: the recording is full and ends here, within {} bytes; --record-limit \
             raises that",
            path.display(),
            limit
        );
        let recorder = Recorder::create(path, force, limit).map_err(|e| not_made(path, e))?;
        Ok(Self { recorder: Some(recorder), path: path.to_owned(), full })
    }

    /// Writes the host's facts, which come before its intervals.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn host(&mut self, host: &WatchHost) -> Result<()> {
        let written = self.recorder.as_mut().map_or(Ok(()), |r| r.host(host));
        written.map_err(|e| ViewError::io(&self.path, e))
    }

    /// Writes an interval. A full recording is closed; returns the message about that, and watching
    /// goes on.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&mut self, record: &WatchRecord) -> Result<Option<&str>> {
        let Some(recorder) = &mut self.recorder else { return Ok(None) };
        match recorder.write(record).map_err(|e| ViewError::io(&self.path, e))? {
            WriteResult::In => Ok(None),
            WriteResult::Full => {
                if recorder.intervals() == 0 {
                    self.full.push_str(" (not even one interval fits)");
                }
                self.recorder = None;
                Ok(Some(&self.full))
            }
        }
    }

    /// Completes the file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(&mut self) -> Result<()> {
        let ended = self.recorder.as_mut().map_or(Ok(()), Recorder::finish);
        ended.map_err(|e| ViewError::io(&self.path, e))
    }
}

fn not_made(path: &Path, e: io::Error) -> ViewError {
    match e.kind() {
        io::ErrorKind::AlreadyExists => ViewError::Exists(path.to_owned()),
        _ => ViewError::io(path, e),
    }
}
