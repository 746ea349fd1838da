//! A program's number and time of runs, as the kernel counts them on request.

use std::{io, os::fd::OwnedFd};

use aya::sys::{Stats, enable_stats};

/// What the kernel counted for one program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunStats {
    pub runs: u64,
    /// Nanoseconds, about 65 a run of them the counting's own.
    pub time_ns: u64,
}

/// Has the kernel count until the descriptor is closed; a crash closes it, too.
///
/// # Errors
/// Not permitted, or a kernel before 5.8.
pub fn on() -> io::Result<OwnedFd> {
    enable_stats(Stats::RunTime).map_err(io::Error::other)
}

/// `BPF_OBJ_GET_INFO_BY_FD` of the kernel's `bpf.h`.
const GET_INFO: libc::c_long = 15;

/// The first 224 bytes of `struct bpf_prog_info`; `run_time_ns` and `run_cnt` are at 192 and 200
/// since Linux 5.1. A kernel before that fills in less and leaves zeros.
#[repr(C, align(8))]
struct Info([u64; 28]);

/// `union bpf_attr` for it.
#[repr(C, align(8))]
struct Request {
    fd: u32,
    length: u32,
    info: u64,
}

/// What was counted for the program of this descriptor until now.
pub fn of(fd: i32) -> Option<RunStats> {
    let mut info = Info([0; 28]);
    let request = Request {
        fd: u32::try_from(fd).ok()?,
        length: u32::try_from(size_of::<Info>()).ok()?,
        info: std::ptr::from_mut(&mut info) as u64,
    };
    // SAFETY: the kernel reads the request and writes at most `length` bytes to `info`; both
    // outlive the call.
    let done =
        unsafe { libc::syscall(libc::SYS_bpf, GET_INFO, &raw const request, size_of::<Request>()) };
    let [time_ns, runs] = [info.0.get(24)?, info.0.get(25)?];
    (done == 0).then_some(RunStats { runs: *runs, time_ns: *time_ns })
}
