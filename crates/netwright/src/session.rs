//! The operator of a running command: interrupts, progress, notes and warnings.

use std::sync::{Mutex, atomic::AtomicBool};

use tune::operator::Operator;

use crate::{
    args::TalkArgs,
    interrupt::Window,
    output::{Progress, note},
};

/// While it lives, Ctrl-C sets a flag instead of ending the process, and progress is shown.
pub struct Session {
    window: Window,
    quiet: bool,
    bar: Mutex<Progress>,
}

impl Session {
    /// Installs the signal handlers.
    pub fn open(talk: &TalkArgs) -> Self {
        let bar = Mutex::new(Progress::new(talk.quiet, ""));
        Self { window: Window::open(), quiet: talk.quiet, bar }
    }
}

impl Operator for Session {
    fn stop(&self) -> &'static AtomicBool {
        self.window.stop()
    }

    fn note(&self, line: &str) {
        if !self.quiet {
            note(line);
        }
    }

    fn warn(&self, line: &str) {
        note(line);
    }

    fn changing(&self) {
        self.window.changing();
    }

    fn progress(&self, what: &str, share: f64) {
        if let Ok(mut bar) = self.bar.lock() {
            bar.rename(what);
            bar.show(share);
        }
    }
}

/// Prints notes and warnings for commands in which a signal ends the process as usual.
pub struct Listener {
    pub quiet: bool,
}

impl Operator for Listener {
    fn stop(&self) -> &AtomicBool {
        Window::stopped()
    }

    fn note(&self, line: &str) {
        if !self.quiet {
            note(line);
        }
    }

    fn warn(&self, line: &str) {
        note(line);
    }

    fn changing(&self) {}

    fn progress(&self, _: &str, _: f64) {}
}
