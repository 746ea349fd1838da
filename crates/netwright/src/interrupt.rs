//! Ctrl-C, Ctrl-\, SIGTERM, and a terminal that hangs up: the first ends the window early, the second
//! ends the program, unless it is changing the host.

use std::sync::atomic::{AtomicBool, Ordering};

static STOP: AtomicBool = AtomicBool::new(false);

/// Whether the host is changed, and put back at the end.
static CHANGING: AtomicBool = AtomicBool::new(false);

/// What a further signal is told then.
const BUSY: &[u8] =
    b"netwright: ending, and the host is put back; wait (after kill -9 `netwright tune \
rollback --unfinished` does it)\n";

/// Does only what a signal handler may: atomics, write(2), signal(2), raise(3).
extern "C" fn on_signal(signal: libc::c_int) {
    if !STOP.swap(true, Ordering::Relaxed) {
        return;
    }
    // SAFETY: all three may be called in a handler; the bytes are a constant's.
    unsafe {
        if CHANGING.load(Ordering::Relaxed) {
            libc::write(libc::STDERR_FILENO, BUSY.as_ptr().cast(), BUSY.len());
        } else {
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
        }
    }
}

/// A signal is nothing to us from now on.
pub fn ignore(signal: libc::c_int) {
    // SAFETY: ignoring a signal touches no memory of ours.
    unsafe { libc::signal(signal, libc::SIG_IGN) };
}

/// What ends a window early.
const SIGNALS: [libc::c_int; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// While it lives, the first of [`SIGNALS`] sets [`Window::stop`] instead of ending the
/// process; the second ends it, or, from [`Window::changing`] on, says that the host is put back.
pub struct Window {
    before: [libc::sigaction; SIGNALS.len()],
}

impl Window {
    /// Listens from now on. A signal that was ignored (a job in a script's background) stays so.
    pub fn open() -> Self {
        Self { before: SIGNALS.map(listen) }
    }

    /// From here on the host is changed and put back: nothing but SIGKILL is to keep us from that.
    pub fn changing(&self) {
        CHANGING.store(true, Ordering::Relaxed);
    }

    /// What [`Window::stop`] gives, where somebody else holds the window.
    pub fn stopped() -> &'static AtomicBool {
        &STOP
    }

    /// Set by the first Ctrl-C.
    pub fn stop(&self) -> &'static AtomicBool {
        &STOP
    }

    /// Whether it was interrupted.
    pub fn was_interrupted(&self) -> bool {
        STOP.load(Ordering::Relaxed)
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        CHANGING.store(false, Ordering::Relaxed);
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
    // SAFETY: zeroed sigactions are valid; the handler does what one may do.
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
