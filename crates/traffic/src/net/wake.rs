//! Wakes a thread that sleeps in a system call, without making that call slower: a signal with an
//! empty handler ends the call with `EINTR`. (A socket timeout would arm a timer on every sleep.)

use std::{
    sync::{
        Once,
        atomic::{AtomicBool, AtomicI32, Ordering},
    },
    time::Duration,
};

extern "C" fn nothing(_: libc::c_int) {}

/// The real-time signal used; threading libraries use the first few.
fn signal() -> libc::c_int {
    libc::SIGRTMIN() + 5
}

/// Installs the empty handler; once for the process.
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

/// Kernel id of this thread.
pub fn current_tid() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

/// A thread that others can wake: it registers its id when it begins and clears it when it ends.
#[derive(Debug, Default)]
pub struct Sleeper {
    tid: AtomicI32,
    ended: AtomicBool,
}

impl Sleeper {
    /// Registers the calling thread.
    pub fn begin(&self) -> Running<'_> {
        self.tid.store(current_tid(), Ordering::Release);
        Running(self)
    }

    /// Its thread id; 0 before it begins.
    pub fn tid(&self) -> i32 {
        self.tid.load(Ordering::Acquire)
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Interrupts its system call, if it sleeps in one. It may be just about to: the caller repeats
    /// this until it sees the effect.
    pub fn wake(&self) {
        let tid = self.tid();
        if tid != 0 && !self.has_ended() {
            // SAFETY: a signal to a thread of this process; one that ended meanwhile is ESRCH,
            // and should its id have gone to another of our threads, the handler does nothing.
            unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, signal()) };
        }
    }
}

/// Registration of the running thread; ends when dropped.
pub struct Running<'a>(&'a Sleeper);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.ended.store(true, Ordering::Release);
    }
}

/// Wakes all of them repeatedly until all have ended.
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
