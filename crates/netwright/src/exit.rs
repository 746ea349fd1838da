//! Exit codes, and the error line of each.

use std::process::ExitCode;

use crate::{
    failure::{CommandEnd, Failure},
    output::note,
};

/// Prints the line of a failure, and returns the exit code.
pub fn code(result: Result<CommandEnd, Failure>) -> ExitCode {
    if let Err(failure) = &result
        && !matches!(failure, Failure::ClosedPipe)
    {
        note(&failure.to_string());
    }
    ExitCode::from(number(&result))
}

/// The exit code of a command's end.
pub fn number(end: &Result<CommandEnd, Failure>) -> u8 {
    match end {
        Ok(CommandEnd::Yes) | Err(Failure::ClosedPipe) => 0,
        Ok(CommandEnd::No) => 1,
        Err(Failure::Usage(_)) => 2,
        Err(Failure::Denied(_)) => 3,
        Err(Failure::Environment(_)) => 4,
        Err(Failure::Bug(_)) => 5,
    }
}

/// Turns a panic into one line and exit code 5. The hook itself ends the process, as the release
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
        note(&bug.to_string());
        std::process::exit(5);
    }));
}
