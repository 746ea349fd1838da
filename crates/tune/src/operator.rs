//! The interface to the user during long work: messages, progress and a request to stop.

use std::sync::atomic::{AtomicBool, Ordering};

/// Implemented by the program that starts long work.
pub trait Operator: Sync {
    /// Set when the user wants to stop.
    fn stop(&self) -> &AtomicBool;

    /// Whether the user wants to stop.
    fn wants_end(&self) -> bool {
        self.stop().load(Ordering::Relaxed)
    }

    /// Prints a status line; suppressed by `--quiet`.
    fn note(&self, line: &str);

    /// Prints a warning, with `--quiet` too: the host is not as it was.
    fn warn(&self, line: &str);

    /// Called before the host is changed and restored: from here on only SIGKILL stops the process
    /// at once.
    fn changing(&self);

    /// Reports the current activity and its share done, 0 to 1.
    fn progress(&self, what: &str, share: f64);
}
