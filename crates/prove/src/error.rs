//! Why an experiment ended early, named by what can be done about it.

use std::{io, path::Path};

use model::prove::Discarded;

/// Why a run gave no figures, for a line that begins with the workload.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("{0}")]
    Failed(String),
    /// It ended well, but a figure was not in what it printed.
    #[error("{0}")]
    FigureMissing(String),
}

impl From<Fault> for Discarded {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Failed(why) => Self::WorkloadFailed { why },
            Fault::FigureMissing(why) => Self::FigureMissing { why },
        }
    }
}

/// Why an experiment cannot be made, or broke off.
#[derive(Debug, thiserror::Error)]
pub enum ProveError {
    /// The experiment as written makes no sense.
    #[error("{0}")]
    Spec(String),
    /// A file or folder said no.
    #[error("{path}: {source}")]
    File {
        path: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// No thread can be started.
    #[error("cannot start a thread: {0}; see `ulimit -u` and the cgroup's pids.max")]
    Thread(io::Error),
    /// The workload did not run, or its figure could not be read.
    #[error("the workload {0}")]
    Workload(Fault),
    /// A run outlasted what was left of the budget and the budget once more: it hangs, or no such
    /// budget holds it.
    #[error("the workload {0}")]
    Endless(String),
    /// The budget was seen to hold too few blocks.
    #[error("{0}")]
    Budget(String),
    /// A command that sets or undoes a level failed.
    #[error("{0}")]
    Setting(String),
    /// A line of a record is not what was written.
    #[error("{0}")]
    Damaged(String),
    /// A knob could not be set, did not hold, or was not put back.
    #[error(transparent)]
    Tune(#[from] tune::TuneError),
    /// Another experiment is under way with this record.
    #[error("{0}")]
    Busy(String),
}

impl ProveError {
    pub(crate) fn file(path: &Path, source: io::Error) -> Self {
        Self::File { path: path.display().to_string(), source }
    }
}
