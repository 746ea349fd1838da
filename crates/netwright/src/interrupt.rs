//! Ctrl-C: the first ends the window early, the second ends the program.

use std::sync::atomic::{AtomicBool, Ordering};

static STOP: AtomicBool = AtomicBool::new(false);

extern "C" fn on_signal(_: libc::c_int) {
    // Storing to an atomic is all that a signal handler may do here.
    STOP.store(true, Ordering::Relaxed);
}

/// While it lives, the first SIGINT sets [`Window::stop`] instead of ending the process; the
/// second does what it did before (`SA_RESETHAND`).
pub struct Window {
    before: libc::sigaction,
}

impl Window {
    /// Listens from now on. A SIGINT that was ignored (a job in a script's background) stays so.
    pub fn open() -> Self {
        // SAFETY: zeroed sigactions are valid, the handler only stores to an atomic.
        let before = unsafe {
            let mut before: libc::sigaction = std::mem::zeroed();
            libc::sigaction(libc::SIGINT, std::ptr::null(), &mut before);
            if before.sa_sigaction != libc::SIG_IGN {
                let mut ours: libc::sigaction = std::mem::zeroed();
                ours.sa_sigaction = on_signal as *const () as usize;
                ours.sa_flags = libc::SA_RESETHAND;
                libc::sigemptyset(&mut ours.sa_mask);
                libc::sigaction(libc::SIGINT, &ours, std::ptr::null_mut());
            }
            before
        };
        Self { before }
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
        // SAFETY: gives back what the kernel gave us.
        unsafe {
            libc::sigaction(libc::SIGINT, &self.before, std::ptr::null_mut());
        }
    }
}
