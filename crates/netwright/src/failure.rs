//! How a command ends, and why one breaks off, named by who can do something about it.

use std::{fmt, io, path::Path};

use prove::ProveError;
use tune::TuneError;
use view::error::ViewError;

/// How a command ended, when it did not break.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandEnd {
    Yes,
    /// Done, and the answer is no.
    No,
}

/// Why a command ended early, named by who can do something about it.
#[derive(Debug)]
pub enum Failure {
    /// Wrong usage: the one who typed.
    Usage(String),
    /// Not permitted.
    Denied(String),
    /// The environment said no.
    Environment(String),
    /// A bug of ours.
    Bug(String),
    /// The reader of our output went away: not an error.
    ClosedPipe,
}

impl Failure {
    /// What became of a file that was to be read or written.
    pub fn io(path: &Path, e: &io::Error) -> Self {
        let path = path.display();
        match e.kind() {
            io::ErrorKind::BrokenPipe => Self::ClosedPipe,
            io::ErrorKind::PermissionDenied => {
                Self::Denied(format!("{path}: not permitted; run as its owner or as root"))
            }
            io::ErrorKind::NotFound => Self::Environment(format!("{path}: no such file or folder")),
            _ => Self::Environment(format!("{path}: {}", without_number(e))),
        }
    }
}

impl Failure {
    /// A thread that the kernel did not start.
    pub fn thread(e: &io::Error) -> Self {
        let why = without_number(e);
        Self::Environment(format!(
            "cannot start a thread: {why}; see `ulimit -u`, `ulimit -v` and the cgroup's pids.max"
        ))
    }
}

/// The system's word without ` (os error N)`.
fn without_number(e: &io::Error) -> String {
    let text = e.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(why) | Self::Denied(why) | Self::Environment(why) => f.write_str(why),
            Self::Bug(why) => write!(f, "{why}. This is an internal error: {REPORT}"),
            Self::ClosedPipe => f.write_str("the reader went away"),
        }
    }
}

/// What to do about a bug.
const REPORT: &str =
    "please report it with this line, `netwright --version` and, if you can, a snapshot";

impl From<traffic::Error> for Failure {
    fn from(e: traffic::Error) -> Self {
        match e {
            traffic::Error::Usage(why) => Self::Usage(why),
            traffic::Error::Denied(why) => Self::Denied(why),
            traffic::Error::Environment(why) | traffic::Error::Silent(why) => {
                Self::Environment(why)
            }
        }
    }
}

impl From<TuneError> for Failure {
    fn from(e: TuneError) -> Self {
        match e {
            TuneError::Usage(why) => Self::Usage(why),
            TuneError::Denied(why) => Self::Denied(why),
            e @ (TuneError::Absent(_)
            | TuneError::Environment(_)
            | TuneError::Kernel { .. }
            | TuneError::Unread(_)
            | TuneError::Changed(_)
            | TuneError::Journal(_)) => Self::Environment(e.to_string()),
        }
    }
}

impl From<ProveError> for Failure {
    fn from(e: ProveError) -> Self {
        match e {
            ProveError::Spec(why) => Self::Usage(why),
            ProveError::File { path, source } => Self::io(Path::new(&path), &source),
            ProveError::Tune(e) => e.into(),
            e => Self::Environment(e.to_string()),
        }
    }
}

impl From<ViewError> for Failure {
    fn from(e: ViewError) -> Self {
        match e {
            ViewError::Io(path, e) => Self::io(&path, &e),
            ViewError::Exists(path) => Self::Environment(format!(
                "{}: is there already; --force overwrites it",
                path.display()
            )),
            ViewError::Thread(e) => Self::thread(&e),
            ViewError::Recording(why) => Self::Environment(why),
        }
    }
}
