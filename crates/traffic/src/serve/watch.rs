//! Waits for a test's sockets.

use std::{
    io,
    os::fd::RawFd,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use crate::{Error, Result, net::sys};

/// Waits for sockets, while checking for a lost client and for the server's stop flag.
#[derive(Debug)]
pub struct Watch<'a> {
    pub control: RawFd,
    pub stop: &'a AtomicBool,
}

pub const OUT_OF_TURN: &str = "a message out of turn";

/// Interval of checking `stop`.
pub const LOOK: Duration = Duration::from_millis(50);

impl Watch<'_> {
    /// Returns when one of the sockets is readable, or after `most`.
    ///
    /// # Errors
    /// The client closed the control connection, or the server is stopping.
    pub fn wait(&self, fds: &[RawFd], most: Duration) -> Result<()> {
        let until = Instant::now() + most;
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return Err(Error::Environment("the server is being stopped".into()));
            }
            let left = until.saturating_duration_since(Instant::now());
            let all: Vec<RawFd> = fds.iter().copied().chain([self.control]).collect();
            let ready = poll(&all, left.min(LOOK));
            if let (Some(true), Some(why)) = (ready.last(), self.over()) {
                return Err(Error::Environment(why.into()));
            }
            if left.is_zero() || ready.iter().take(fds.len()).any(|r| *r) {
                return Ok(());
            }
        }
    }

    /// Peeks for an end, an error, or data. No data is expected now; left unread, it would keep us
    /// from sleeping.
    fn over(&self) -> Option<&'static str> {
        match sys::recv(self.control, &mut [0], libc::MSG_PEEK | libc::MSG_DONTWAIT) {
            Ok(1..) => Some(OUT_OF_TURN),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => None,
            _ => Some("the client went away"),
        }
    }
}

/// For each descriptor, whether it is readable or has failed, after at most `most`.
pub fn poll(fds: &[RawFd], most: Duration) -> Vec<bool> {
    let mut all: Vec<libc::pollfd> =
        fds.iter().map(|fd| libc::pollfd { fd: *fd, events: libc::POLLIN, revents: 0 }).collect();
    let ms = i32::try_from(most.as_millis()).unwrap_or(i32::MAX).max(1);
    let _ = sys::poll(&mut all, ms);
    all.iter().map(|p| p.revents != 0).collect()
}
