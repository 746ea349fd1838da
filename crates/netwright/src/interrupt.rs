//! Handles Ctrl-C, Ctrl-\, SIGTERM and a hangup. The first signal ends the window early; the second
//! ends the program, unless it is changing the host.

use std::sync::atomic::{AtomicBool, Ordering};

static STOP: AtomicBool = AtomicBool::new(false);

/// Whether the host is being changed, and restored at the end.
static CHANGING: AtomicBool = AtomicBool::new(false);

/// The line for a further signal while the host is changed.
const BUSY: &[u8] =
    b"netwright: ending, and the host is put back; wait (after kill -9 `netwright tune \
rollback --unfinished` does it)\n";

/// The signal handler. It uses only async-signal-safe means: atomics, write(2), signal(2),
/// raise(3).
extern "C" fn on_signal(signal: libc::c_int) {
    if !STOP.swap(true, Ordering::Relaxed) {
        return;
    }
    // SAFETY: all three are async-signal-safe; the bytes are constant.
    unsafe {
        if CHANGING.load(Ordering::Relaxed) {
            libc::write(libc::STDERR_FILENO, BUSY.as_ptr().cast(), BUSY.len());
        } else {
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
        }
    }
}

/// Ignores a signal from now on.
pub fn ignore(signal: libc::c_int) {
    // SAFETY: ignoring a signal touches no memory of ours.
    unsafe { libc::signal(signal, libc::SIG_IGN) };
}

/// The signals that end a window early.
const SIGNALS: [libc::c_int; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// While it lives, the first of [`SIGNALS`] sets [`Window::stop`] instead of ending the process.
/// The second one ends it, or, after [`Window::changing`], prints that the host is being restored.
pub struct Window {
    before: [libc::sigaction; SIGNALS.len()],
}

impl Window {
    /// Installs the handlers. A signal that was ignored (a job in a script's background) stays
    /// ignored.
    pub fn open() -> Self {
        Self { before: SIGNALS.map(listen) }
    }

    /// From here on the host is changed and restored: only SIGKILL ends the process.
    pub fn changing(&self) {
        CHANGING.store(true, Ordering::Relaxed);
    }

    /// The flag of [`Window::stop`], for code without the window.
    pub fn stopped() -> &'static AtomicBool {
        &STOP
    }

    /// Set by the first Ctrl-C.
    pub fn stop(&self) -> &'static AtomicBool {
        &STOP
    }

    /// Whether a signal came.
    pub fn was_interrupted(&self) -> bool {
        STOP.load(Ordering::Relaxed)
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        CHANGING.store(false, Ordering::Relaxed);
        for (signal, before) in SIGNALS.iter().zip(&self.before) {
            // SAFETY: restores actions that the kernel returned.
            unsafe {
                libc::sigaction(*signal, before, std::ptr::null_mut());
            }
        }
    }
}

/// Installs the handler of a signal; returns the earlier action.
fn listen(signal: libc::c_int) -> libc::sigaction {
    // SAFETY: zeroed sigactions are valid; the handler is async-signal-safe.
    unsafe {
        let mut before: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut before);
        if before.sa_sigaction != libc::SIG_IGN {
            let mut ours: libc::sigaction = std::mem::zeroed();
            ours.sa_sigaction = on_signal as *const () as usize;
            libc::sigemptyset(&mut ours.sa_mask);
            libc::sigaction(signal, &ours, std::ptr::null_mut());
        }
        before
    }
}
