//! A time limit for a whole operation, which a stop flag can end early.
//!
//! A socket's timeout restarts with each byte, so a server that sends one byte now and then is
//! never late. Sockets here do not block; all waits are here, and each step checks the limit and
//! the flag.

use std::{
    io,
    os::fd::RawFd,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use model::Nanos;

use crate::net::now_ns;
use crate::net::sys;

/// Longest wait without a check of the stop flag.
const STEP: Duration = Duration::from_millis(50);

/// The latest end of an operation.
#[derive(Debug, Clone, Copy)]
pub struct Deadline<'a> {
    until_ns: u64,
    limit: Nanos,
    stop: &'a AtomicBool,
}

impl<'a> Deadline<'a> {
    /// A deadline `limit` from now; `stop` ends it at once.
    pub fn after(limit: Duration, stop: &'a AtomicBool) -> Self {
        let limit = Nanos(u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX));
        Self { until_ns: now_ns().saturating_add(limit.0), limit, stop }
    }

    /// A deadline `limit` from now, but not later than this one.
    pub fn at_most(&self, limit: Duration) -> Self {
        let other = Self::after(limit, self.stop);
        if other.until_ns <= self.until_ns { other } else { *self }
    }

    /// The whole time allowed.
    pub fn limit(&self) -> Nanos {
        self.limit
    }

    /// The remaining time.
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`] if none is left, [`io::ErrorKind::Interrupted`] if stopped;
    /// neither has an errno.
    pub fn left(&self) -> io::Result<Duration> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        match self.until_ns.saturating_sub(now_ns()) {
            0 => Err(io::ErrorKind::TimedOut.into()),
            left => Ok(Duration::from_nanos(left)),
        }
    }

    /// The remaining time, at most one step.
    ///
    /// # Errors
    /// As [`Self::left`].
    pub fn step(&self) -> io::Result<Duration> {
        self.left().map(|left| left.min(STEP))
    }

    /// Waits until the descriptor is ready for `events`, or broken.
    ///
    /// # Errors
    /// As [`Self::left`].
    pub fn ready(&self, fd: RawFd, events: libc::c_short) -> io::Result<()> {
        loop {
            let step = self.step()?;
            let mut one = [libc::pollfd { fd, events, revents: 0 }];
            // Rounded up: avoids polling for the last fraction of a millisecond.
            let ms = step.as_micros().div_ceil(1000) as libc::c_int;
            if sys::poll(&mut one, ms).is_ok_and(|n| n > 0) {
                return Ok(());
            }
        }
    }

    /// Whether this error means that the deadline passed.
    pub fn is_late(e: &io::Error) -> bool {
        e.kind() == io::ErrorKind::TimedOut && e.raw_os_error().is_none()
    }

    /// Whether this error means that the deadline was stopped.
    pub fn is_stopped(e: &io::Error) -> bool {
        e.kind() == io::ErrorKind::Interrupted && e.raw_os_error().is_none()
    }
}

#[cfg(test)]
mod tests {
    use std::{io::Write as _, os::fd::AsRawFd as _, os::unix::net::UnixStream, time::Instant};

    use super::*;

    #[test]
    fn bytes_now_and_then_do_not_move_it() {
        let stop = AtomicBool::new(false);
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let begun = Instant::now();
        let deadline = Deadline::after(Duration::from_millis(200), &stop);
        let mut room = [0; 8];
        let end = loop {
            let _ = theirs.write_all(b"x");
            if let Err(e) = deadline.ready(ours.as_raw_fd(), libc::POLLIN) {
                break e;
            }
            let _ = std::io::Read::read(&mut &ours, &mut room);
            std::thread::sleep(Duration::from_millis(20));
        };
        assert!(Deadline::is_late(&end) && !Deadline::is_stopped(&end));
        assert!(begun.elapsed() >= Duration::from_millis(200));
    }

    #[test]
    fn a_part_of_it_ends_with_it_and_both_with_the_stop() {
        let stop = AtomicBool::new(false);
        let whole = Deadline::after(Duration::from_millis(20), &stop);
        assert_eq!(whole.at_most(Duration::from_secs(9)).limit(), Nanos(20_000_000));
        let part = whole.at_most(Duration::from_millis(1));
        assert_eq!(part.limit(), Nanos(1_000_000));
        std::thread::sleep(Duration::from_millis(2));
        assert!(Deadline::is_late(&part.left().unwrap_err()));
        stop.store(true, Ordering::Relaxed);
        assert!(Deadline::is_stopped(&whole.left().unwrap_err()));
    }
}
