//! Why an experiment ended early; each variant stands for a different remedy.

use std::{io, path::Path};

use model::prove::Discarded;

/// Why a run gave no figures, as the end of a line that begins with the workload.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("{0}")]
    Failed(String),
    /// The run ended well, but its output lacks a figure.
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

/// Why an experiment cannot be made, or was broken off.
#[derive(Debug, thiserror::Error)]
pub enum ProveError {
    /// The experiment's file or flags contradict themselves or lack something.
    #[error("{0}")]
    Spec(String),
    /// A file or folder cannot be read or written.
    #[error("{path}: {source}")]
    File {
        path: String,
        /// The error of the kernel for that path.
        source: io::Error,
    },
    /// No thread can be started.
    #[error("cannot start a thread: {0}; see `ulimit -u` and the cgroup's pids.max")]
    Thread(io::Error),
    /// The workload did not run, or its figure could not be read.
    #[error("the workload {0}")]
    Workload(Fault),
    /// A run took longer than twice the rest of the budget: the workload hangs, or the budget is
    /// far too small.
    #[error("the workload {0}")]
    Endless(String),
    /// The budget turned out to hold too few blocks.
    #[error("{0}")]
    Budget(String),
    /// A command that sets or undoes a level failed.
    #[error("{0}")]
    Setting(String),
    /// A line of a record is damaged.
    #[error("{0}")]
    Damaged(String),
    /// A knob could not be set, changed by itself, or could not be restored.
    #[error(transparent)]
    Tune(#[from] tune::TuneError),
    /// Another process is writing this record.
    #[error("{0}")]
    Busy(String),
}

impl ProveError {
    pub(crate) fn file(path: &Path, source: io::Error) -> Self {
        Self::File { path: path.display().to_string(), source }
    }
}
