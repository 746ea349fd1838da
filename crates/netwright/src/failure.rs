//! How a command ends. Errors are named after the person who can help.

use std::{fmt, io, path::Path};

use history::HistoryError;
use lint::LintError;
use prove::ProveError;
use tune::TuneError;
use view::error::ViewError;

/// The answer of a command that completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandEnd {
    Yes,
    /// The command completed, and its answer is no: exit code 1.
    No,
}

/// Why a command ended early; each variant has its exit code.
#[derive(Debug)]
pub enum Failure {
    /// Wrong usage: the person who typed can help.
    Usage(String),
    /// A permission is missing: root, or another user, can help.
    Denied(String),
    /// The system refused, or something is missing.
    Environment(String),
    /// A bug of netwright.
    Bug(String),
    /// The reader of our output closed it: not an error.
    ClosedPipe,
}

impl Failure {
    /// A failure to read or write a file.
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
    /// The kernel refused to start a thread.
    pub fn thread(e: &io::Error) -> Self {
        let why = without_number(e);
        Self::Environment(format!(
            "cannot start a thread: {why}; see `ulimit -u`, `ulimit -v` and the cgroup's pids.max"
        ))
    }
}

/// The system's message without ` (os error N)`.
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

/// The advice to report a bug.
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

impl From<LintError> for Failure {
    fn from(e: LintError) -> Self {
        match e {
            LintError::Read { path, source } => Self::io(&path, &source),
            e @ LintError::NoText { .. } => Self::Usage(e.to_string()),
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

impl From<HistoryError> for Failure {
    fn from(e: HistoryError) -> Self {
        match e {
            e @ HistoryError::Denied { .. } => Self::Denied(e.to_string()),
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
            ViewError::Listen(address, e) => {
                let why = format!("cannot listen on {address}: {}", without_number(&e));
                match e.kind() {
                    io::ErrorKind::PermissionDenied => Self::Denied(why),
                    _ => Self::Environment(why),
                }
            }
            ViewError::Thread(e) => Self::thread(&e),
            ViewError::Recording(why) => Self::Environment(why),
        }
    }
}
