//! Exit codes, and the one line that goes with each.

use std::{fmt, io, path::Path, process::ExitCode};

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

/// Prints the one line that a failure deserves, and gives the exit code.
pub fn code(result: Result<CommandEnd, Failure>) -> ExitCode {
    let failure = match result {
        Ok(CommandEnd::Yes) | Err(Failure::ClosedPipe) => return ExitCode::SUCCESS,
        Ok(CommandEnd::No) => return ExitCode::from(1),
        Err(failure) => failure,
    };
    crate::output::note(&failure.to_string());
    ExitCode::from(match failure {
        Failure::Usage(_) => 2,
        Failure::Denied(_) => 3,
        Failure::Environment(_) => 4,
        Failure::Bug(_) | Failure::ClosedPipe => 5,
    })
}

/// Makes a panic one line and exit code 5. Ends the process in the hook itself, for the release
/// build aborts after it.
pub fn on_panic() {
    std::panic::set_hook(Box::new(|info| {
        let what = info
            .payload()
            .downcast_ref::<&str>()
            .map(|s| (*s).to_owned())
            .or_else(|| info.payload().downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "panic".to_owned());
        let at = info.location().map(|l| format!(" at {}:{}", l.file(), l.line()));
        let one_line = what.split_whitespace().collect::<Vec<_>>().join(" ");
        let bug = Failure::Bug(format!("{one_line}{}", at.unwrap_or_default()));
        crate::output::note(&bug.to_string());
        std::process::exit(5);
    }));
}
