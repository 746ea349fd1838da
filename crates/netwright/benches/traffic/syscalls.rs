//! Counts system calls and round trips by kernel tracepoints, which do not slow down the traffic as
//! a tracer would.
//!
//! `raw_syscalls:sys_enter` counts system calls. `tcp:tcp_rcv_space_adjust` counts pieces of a
//! stream that the kernel hands to a thread. With one outstanding request of 1 B on each flow,
//! every response is one piece. This holds for `recv` and for io_uring, which makes no system call
//! for a message.

use std::{
    fs, io,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    time::{Duration, Instant},
};

use crate::{process::Process, room::named};

/// Counters of the threads of both ends.
pub struct Calls {
    /// System calls of both ends.
    calls: Vec<OwnedFd>,
    /// Responses that the client received.
    trips: Vec<OwnedFd>,
    since: Instant,
}

pub struct Counted {
    /// System calls of both ends.
    pub calls: u64,
    pub trips: u64,
    pub time: Duration,
}

const TRACING: &str = "/sys/kernel/tracing";
const PERF_TYPE_TRACEPOINT: u32 = 2;
const PERF_EVENT_IOC_RESET: libc::c_ulong = 0x2403;

/// The beginning of the kernel's `struct perf_event_attr` (its first published size).
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    rest: [u64; 6],
}

impl Calls {
    /// Opens the counters for the present threads of both ends.
    pub fn of(local: &Process, peer: &Process) -> io::Result<Self> {
        let open = |event: u64, threads: &[i32]| -> io::Result<Vec<OwnedFd>> {
            threads.iter().map(|t| counter(event, *t)).collect()
        };
        let (enter, piece) = (event("raw_syscalls/sys_enter")?, event("tcp/tcp_rcv_space_adjust")?);
        let local = local.threads()?;
        let mut calls = open(enter, &local)?;
        calls.extend(open(enter, &peer.threads()?)?);
        Ok(Self { calls, trips: open(piece, &local)?, since: Instant::now() })
    }

    /// Sets all counters to 0: counting starts here.
    pub fn clear(&mut self) -> io::Result<()> {
        self.since = Instant::now();
        for fd in self.calls.iter().chain(&self.trips) {
            // SAFETY: takes no argument that it would read.
            if unsafe { libc::ioctl(fd.as_raw_fd(), PERF_EVENT_IOC_RESET as _, 0) } != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    }

    /// The counts since the start.
    pub fn counted(&self) -> io::Result<Counted> {
        let (calls, trips) = (sum(&self.calls)?, sum(&self.trips)?);
        let time = self.since.elapsed();
        if trips < 1000 {
            return Err(io::Error::other(format!("only {trips} round trips while counting")));
        }
        Ok(Counted { calls, trips, time })
    }
}

impl Counted {
    /// System calls of both ends for a round trip.
    pub fn per_trip(&self) -> f64 {
        self.calls as f64 / self.trips as f64
    }

    /// Round trips a second.
    pub fn trips_per_s(&self) -> f64 {
        self.trips as f64 / self.time.as_secs_f64()
    }
}

/// The kernel's number for a tracepoint.
fn event(name: &str) -> io::Result<u64> {
    let path = format!("{TRACING}/events/{name}/id");
    let text = fs::read_to_string(&path)
        .map_err(|e| named(&format!("{path} (needs root and tracefs mounted there)"), &e))?;
    text.trim().parse().map_err(|_| io::Error::other(format!("{path} holds no number")))
}

fn counter(id: u64, thread: i32) -> io::Result<OwnedFd> {
    let attributes = Attributes {
        kind: PERF_TYPE_TRACEPOINT,
        size: size_of::<Attributes>() as u32,
        config: id,
        ..Attributes::default()
    };
    // SAFETY: the attributes outlive the call and tell their size.
    let fd = unsafe {
        libc::syscall(libc::SYS_perf_event_open, &raw const attributes, thread, -1, -1, 8u64)
    };
    if fd < 0 {
        return Err(named("perf_event_open", &io::Error::last_os_error()));
    }
    // SAFETY: the kernel just gave us this descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

fn sum(counters: &[OwnedFd]) -> io::Result<u64> {
    let mut all = 0;
    for fd in counters {
        let mut value = 0u64;
        // SAFETY: eight bytes are written to a variable of eight bytes.
        let n = unsafe { libc::read(fd.as_raw_fd(), (&raw mut value).cast(), 8) };
        if n != 8 {
            return Err(io::Error::last_os_error());
        }
        all += value;
    }
    Ok(all)
}
