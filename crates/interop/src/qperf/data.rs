//! Blocking loops on the data socket that can be ended: plain `send` and `recv`, with a timeout
//! (`SO_RCVTIMEO`) that is shortened near the end.

use std::{
    fmt, io,
    os::fd::{AsRawFd, RawFd},
    sync::atomic::{AtomicBool, Ordering},
};

use probe::samples::clock::monotonic_ns;
use traffic::net::sys;

use super::talk::Control;

/// Why a loop ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// The test's time has passed.
    Time,
    /// The data connection was closed or reset.
    Closed,
    /// The control connection was closed or reset.
    Gone,
    /// No data for too long.
    Idle,
    /// This end was told to stop.
    Stopped,
}

impl fmt::Display for Over {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Time => "its time was over",
            Self::Closed => "the client ended it",
            Self::Gone => "the client vanished",
            Self::Idle => "nothing came any more",
            Self::Stopped => "this end was stopped",
        })
    }
}

/// Result of one call.
#[derive(Debug)]
pub enum Got {
    /// Bytes transferred; 0 is an empty datagram or the end of a stream.
    Bytes(usize),
    /// A timeout, or a signal.
    Nothing,
    /// The kernel returned an error.
    Failed,
}

fn got(n: io::Result<usize>) -> Got {
    match n.map_err(|e| e.kind()) {
        Ok(n) => Got::Bytes(n),
        Err(io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Got::Nothing,
        Err(_) => Got::Failed,
    }
}

/// `recv` with timeouts and signals as [`Got::Nothing`].
#[inline]
pub fn receive(fd: RawFd, into: &mut [u8], flags: i32) -> Got {
    got(sys::recv(fd, into, flags))
}

/// `send` without SIGPIPE if the peer is gone.
#[inline]
pub fn send(fd: RawFd, bytes: &[u8], flags: i32) -> Got {
    got(sys::send(fd, bytes, flags))
}

/// Sets the timeout of blocking calls on `fd` (rounded up to the kernel's tick).
pub fn set_tick(fd: RawFd, ns: u64) {
    let us = ns.div_ceil(1000).max(1);
    let tick = libc::timeval {
        tv_sec: (us / 1_000_000) as libc::time_t,
        tv_usec: (us % 1_000_000) as libc::suseconds_t,
    };
    for name in [libc::SO_RCVTIMEO, libc::SO_SNDTIMEO] {
        // If the kernel refuses, the socket sleeps until data arrives or it is closed.
        let _ = sys::set_option(fd, libc::SOL_SOCKET, name, &tick);
    }
}

/// Timeout steps: with this much time left, sleep at most this long.
const STEPS: [(u64, u64); 3] =
    [(100_000_000, 100_000_000), (20_000_000, 20_000_000), (0, 4_000_000)];

/// Monitors one loop: its deadline, the other end, the stop flag.
#[derive(Debug)]
pub struct Watch<'a> {
    fd: RawFd,
    control: &'a Control,
    stop: &'a AtomicBool,
    /// End of the test.
    pub deadline_ns: u64,
    idle_ns: u64,
    heard_ns: u64,
    tick_ns: u64,
}

impl<'a> Watch<'a> {
    pub fn new(
        socket: &impl AsRawFd,
        control: &'a Control,
        stop: &'a AtomicBool,
        deadline_ns: u64,
        idle_ns: u64,
    ) -> Self {
        let fd = socket.as_raw_fd();
        let mut this =
            Self { fd, control, stop, deadline_ns, idle_ns, heard_ns: monotonic_ns(), tick_ns: 0 };
        this.step(this.heard_ns);
        this
    }

    /// Shortens the timeout near the end; almost always a single comparison.
    #[inline]
    fn step(&mut self, now: u64) {
        let left = self.deadline_ns.saturating_sub(now);
        let tick = STEPS.iter().find(|(from, _)| left >= *from).map_or(4_000_000, |s| s.1);
        if tick != self.tick_ns {
            self.tick_ns = tick;
            set_tick(self.fd, tick);
        }
    }

    /// Whether the test continues, by the clock and the stop flag.
    #[inline]
    pub fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::Relaxed) && monotonic_ns() < self.deadline_ns
    }

    /// Handles received data; fails if it arrived too late to count.
    ///
    /// # Errors
    /// The test is over by its time or by the stop flag.
    #[inline]
    pub fn heard(&mut self) -> Result<(), Over> {
        let now = monotonic_ns();
        if now >= self.deadline_ns {
            return Err(Over::Time);
        }
        if self.stop.load(Ordering::Relaxed) {
            return Err(Over::Stopped);
        }
        self.heard_ns = now;
        self.step(now);
        Ok(())
    }

    /// Handles a timeout; fails if the test must end.
    ///
    /// # Errors
    /// Why the test is over: its time, the stop flag, the other end's close, or too long without
    /// data.
    pub fn quiet(&mut self) -> Result<(), Over> {
        let now = monotonic_ns();
        self.step(now);
        if now >= self.deadline_ns {
            Err(Over::Time)
        } else if self.stop.load(Ordering::Relaxed) {
            Err(Over::Stopped)
        } else if self.control.gone() {
            Err(if self.control.says_done() { Over::Closed } else { Over::Gone })
        } else if now - self.heard_ns >= self.idle_ns {
            Err(Over::Idle)
        } else {
            Ok(())
        }
    }
}
