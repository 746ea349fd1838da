//! Ctrl-C, SIGTERM, and a terminal that hangs up: the first ends the window early, the second
//! ends the program.

use std::sync::atomic::{AtomicBool, Ordering};

static STOP: AtomicBool = AtomicBool::new(false);

extern "C" fn on_signal(_: libc::c_int) {
    // Storing to an atomic is all that a signal handler may do here.
    STOP.store(true, Ordering::Relaxed);
}

/// What ends a window early.
const SIGNALS: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// While it lives, the first of [`SIGNALS`] sets [`Window::stop`] instead of ending the
/// process; the second does what it did before (`SA_RESETHAND`).
pub struct Window {
    before: [libc::sigaction; 3],
}

impl Window {
    /// Listens from now on. A signal that was ignored (a job in a script's background) stays so.
    pub fn open() -> Self {
        Self { before: SIGNALS.map(listen) }
    }

    /// What [`Window::stop`] gives, where somebody else holds the window.
    pub fn stopped() -> &'static AtomicBool {
        &STOP
    }

    /// Set by the first Ctrl-C.
    pub fn stop(&self) -> &'static AtomicBool {
        &STOP
    }

    /// Whether it was cut short.
    pub fn was_cut_short(&self) -> bool {
        STOP.load(Ordering::Relaxed)
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        for (signal, before) in SIGNALS.iter().zip(&self.before) {
            // SAFETY: gives back what the kernel gave us.
            unsafe {
                libc::sigaction(*signal, before, std::ptr::null_mut());
            }
        }
    }
}

/// Listens to a signal, and gives what was done about it before.
fn listen(signal: libc::c_int) -> libc::sigaction {
    // SAFETY: zeroed sigactions are valid, the handler only stores to an atomic.
    unsafe {
        let mut before: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut before);
        if before.sa_sigaction != libc::SIG_IGN {
            let mut ours: libc::sigaction = std::mem::zeroed();
            ours.sa_sigaction = on_signal as *const () as usize;
            ours.sa_flags = libc::SA_RESETHAND;
            libc::sigemptyset(&mut ours.sa_mask);
            libc::sigaction(signal, &ours, std::ptr::null_mut());
        }
        before
    }
}
