//! System calls counted by the kernel (`raw_syscalls:sys_enter`), which unlike a tracer leaves
//! the traffic as it is.

use std::{
    fs, io,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
};

use crate::{process::Process, room::named};

/// Counters of both ends.
pub struct Calls {
    all: Vec<OwnedFd>,
    /// The near end's sends: one for each round trip.
    sends: Vec<OwnedFd>,
}

const TRACING: &str = "/sys/kernel/tracing";
const PERF_TYPE_TRACEPOINT: u32 = 2;
const PERF_EVENT_IOC_RESET: libc::c_ulong = 0x2403;
const PERF_EVENT_IOC_SET_FILTER: libc::c_ulong = 0x4008_2406;

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
    /// Of the threads that both have now.
    pub fn of(near: &Process, far: &Process) -> io::Result<Self> {
        let path = format!("{TRACING}/events/raw_syscalls/sys_enter/id");
        let text = fs::read_to_string(&path)
            .map_err(|e| named(&format!("{path} (needs root and tracefs mounted there)"), &e))?;
        let id = text.trim().parse().map_err(|_| io::Error::other("a tracepoint without id"))?;
        let (near, far) = (near.threads()?, far.threads()?);
        let open = |threads: &[i32]| -> io::Result<Vec<OwnedFd>> {
            threads.iter().map(|t| counter(id, *t)).collect()
        };
        let mut all = open(&near)?;
        all.extend(open(&far)?);
        let sends = open(&near)?;
        let numbers = [
            libc::SYS_sendto,
            libc::SYS_sendmsg,
            libc::SYS_sendmmsg,
            libc::SYS_write,
            libc::SYS_writev,
        ];
        let filter = numbers.map(|n| format!("id == {n}")).join(" || ") + "\0";
        for fd in &sends {
            // SAFETY: the text ends with a zero and outlives the call.
            if unsafe {
                libc::ioctl(fd.as_raw_fd(), PERF_EVENT_IOC_SET_FILTER as _, filter.as_ptr())
            } != 0
            {
                return Err(named("filtering system calls", &io::Error::last_os_error()));
            }
        }
        Ok(Self { all, sends })
    }

    /// Counts from here on.
    pub fn clear(&mut self) -> io::Result<()> {
        for fd in self.all.iter().chain(&self.sends) {
            // SAFETY: takes no argument that it would read.
            if unsafe { libc::ioctl(fd.as_raw_fd(), PERF_EVENT_IOC_RESET as _, 0) } != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    }

    /// System calls of both ends for each send of the near end.
    pub fn per_trip(&self) -> io::Result<f64> {
        let (sends, all) = (sum(&self.sends)?, sum(&self.all)?);
        if sends < 1000 {
            return Err(io::Error::other(format!("only {sends} round trips while counting")));
        }
        Ok(all as f64 / sends as f64)
    }
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
