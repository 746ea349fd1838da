//! Waking a thread that sleeps in a system call, without making that call dearer: a signal
//! whose handler does nothing, so that the call ends with `EINTR`. (A timeout on the socket
//! would arm a timer on every sleep.)

use std::{
    sync::{
        Once,
        atomic::{AtomicBool, AtomicI32, Ordering},
    },
    time::Duration,
};

extern "C" fn nothing(_: libc::c_int) {}

/// The real-time signal used; not the first few, which threading libraries use.
fn signal() -> libc::c_int {
    libc::SIGRTMIN() + 5
}

/// Makes the signal harmless; once for the process.
pub fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: a zeroed sigaction is valid; the handler does nothing. No SA_RESTART: the
        // call shall end.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = nothing as *const () as usize;
            libc::sigemptyset(&raw mut action.sa_mask);
            libc::sigaction(signal(), &raw const action, std::ptr::null_mut());
        }
    });
}

/// This thread's id as the kernel has it.
pub fn current_tid() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

/// A thread that others may wake: it says its id when it begins and when it has ended.
#[derive(Debug, Default)]
pub struct Sleeper {
    tid: AtomicI32,
    ended: AtomicBool,
}

impl Sleeper {
    /// The calling thread is the one.
    pub fn begin(&self) -> Running<'_> {
        self.tid.store(current_tid(), Ordering::Release);
        Running(self)
    }

    /// Its thread id; 0 before it has begun.
    pub fn tid(&self) -> i32 {
        self.tid.load(Ordering::Acquire)
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Ends the system call it sleeps in, if it sleeps. It may have been about to: the caller
    /// repeats until it sees the effect.
    pub fn wake(&self) {
        let tid = self.tid();
        if tid != 0 && !self.has_ended() {
            // SAFETY: a signal to a thread of this process; one that ended meanwhile is ESRCH,
            // and should its id have gone to another of our threads, the handler does nothing.
            unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, signal()) };
        }
    }
}

/// While it lives, its thread runs.
pub struct Running<'a>(&'a Sleeper);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.ended.store(true, Ordering::Release);
    }
}

/// Wakes all of them until all have ended.
pub fn end_all<'a>(sleepers: impl Iterator<Item = &'a Sleeper> + Clone) {
    loop {
        let mut left = false;
        for s in sleepers.clone().filter(|s| s.tid() != 0 && !s.has_ended()) {
            left = true;
            s.wake();
        }
        if !left {
            return;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_asleep_in_a_pipe_wakes() {
        install();
        let (here, there) = std::os::unix::net::UnixStream::pair().unwrap();
        let sleeper = Sleeper::default();
        std::thread::scope(|s| {
            let asleep = s.spawn(|| {
                let _running = sleeper.begin();
                use std::os::fd::AsRawFd;
                crate::net::sys::recv(there.as_raw_fd(), &mut [0], 0).map_err(|e| e.kind())
            });
            while sleeper.tid() == 0 {
                std::thread::yield_now();
            }
            end_all([&sleeper].into_iter());
            assert_eq!(asleep.join().unwrap(), Err(std::io::ErrorKind::Interrupted));
        });
        drop(here);
    }
}
