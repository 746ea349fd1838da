//! Whoever started what changes the host: hears of it, and may want an end.

use std::sync::atomic::{AtomicBool, Ordering};

/// The one interface of long work to the program around it.
pub trait Operator: Sync {
    /// Set once an end is wanted.
    fn stop(&self) -> &AtomicBool;

    /// Whether an end is wanted.
    fn wants_end(&self) -> bool {
        self.stop().load(Ordering::Relaxed)
    }

    /// A line on what is done, which the quiet do without.
    fn note(&self, line: &str);

    /// A line that is for the quiet as well: the host is not as it was.
    fn warn(&self, line: &str);

    /// From here on the host is changed and put back: nothing but SIGKILL is to keep us from that.
    fn changing(&self);

    /// What is being done and the share of it, 0 to 1.
    fn progress(&self, what: &str, share: f64);
}
