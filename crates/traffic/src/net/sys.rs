//! System calls on raw descriptors, for loops whose sockets another part owns.

use std::{
    io,
    os::fd::{AsRawFd, RawFd},
};

fn count(n: isize) -> io::Result<usize> {
    usize::try_from(n).map_err(|_| io::Error::last_os_error())
}

/// `recv`: returns the bytes received.
///
/// # Errors
/// As the kernel says; `WouldBlock` and `Interrupted` are among them.
#[inline]
pub fn recv(fd: RawFd, into: &mut [u8], flags: i32) -> io::Result<usize> {
    // SAFETY: the buffer outlives the call and its length is given.
    count(unsafe { libc::recv(fd, into.as_mut_ptr().cast(), into.len(), flags) })
}

/// `recvmsg` with control messages: returns the bytes received and the bytes of control messages.
///
/// # Errors
/// As the kernel says; `WouldBlock` and `Interrupted` are among them.
pub fn recv_control(
    fd: RawFd,
    into: &mut [u8],
    control: &mut [u8],
    flags: i32,
) -> io::Result<(usize, usize)> {
    let mut part = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    // SAFETY: a `msghdr` of zeros is valid; both buffers and the array of one part outlive the call
    // and their lengths are given.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = control.len() as _;
        let n = count(libc::recvmsg(fd, &raw mut message, flags))?;
        Ok((n, message.msg_controllen as usize))
    }
}

/// `send` without SIGPIPE: returns the bytes that the kernel took.
///
/// # Errors
/// As the kernel says; `WouldBlock` and `Interrupted` are among them.
#[inline]
pub fn send(fd: RawFd, bytes: &[u8], flags: i32) -> io::Result<usize> {
    let flags = flags | libc::MSG_NOSIGNAL;
    // SAFETY: the buffer outlives the call and its length is given.
    count(unsafe { libc::send(fd, bytes.as_ptr().cast(), bytes.len(), flags) })
}

/// `sendfile` of the first `length` bytes of a file: returns the bytes that the kernel took.
///
/// # Errors
/// As the kernel says.
#[inline]
pub fn send_file(fd: RawFd, file: &impl AsRawFd, length: usize) -> io::Result<usize> {
    let mut offset: libc::off_t = 0;
    // SAFETY: the offset outlives the call.
    count(unsafe { libc::sendfile(fd, file.as_raw_fd(), &raw mut offset, length) })
}

/// `poll`: returns the number of ready descriptors after at most `ms` milliseconds, -1 for no
/// limit.
///
/// # Errors
/// As the kernel says; `Interrupted` is among them.
#[inline]
pub fn poll(fds: &mut [libc::pollfd], ms: i32) -> io::Result<usize> {
    // SAFETY: the array outlives the call and its length is given.
    let n = unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, ms) };
    usize::try_from(n).map_err(|_| io::Error::last_os_error())
}

/// Makes calls on it return `WouldBlock` instead of sleeping.
pub fn set_nonblocking(fd: RawFd) {
    // SAFETY: takes numbers only.
    unsafe { libc::fcntl(fd, libc::F_SETFL, libc::fcntl(fd, libc::F_GETFL) | libc::O_NONBLOCK) };
}

/// Sets an option whose value has the layout that the kernel expects for `level` and `name`.
///
/// # Errors
/// As the kernel says.
pub fn set_option<T: Copy>(fd: RawFd, level: i32, name: i32, value: &T) -> io::Result<()> {
    let (value, size) = (std::ptr::from_ref(value).cast(), size_of::<T>() as libc::socklen_t);
    // SAFETY: the value outlives the call and its size is given.
    match unsafe { libc::setsockopt(fd, level, name, value, size) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Values of which any bits are valid.
///
/// # Safety
/// Implemented by nothing else.
pub unsafe trait Plain: Copy {}

// SAFETY: numbers.
unsafe impl Plain for i32 {}
// SAFETY: numbers.
unsafe impl Plain for [u8; 16] {}

/// Reads an option; returns the bytes that the kernel wrote.
///
/// # Errors
/// As the kernel says.
pub fn option<T: Plain>(fd: RawFd, level: i32, name: i32, into: &mut T) -> io::Result<usize> {
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes and says how many.
    match unsafe {
        libc::getsockopt(fd, level, name, std::ptr::from_mut(into).cast(), &raw mut length)
    } {
        0 => Ok(length as usize),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Pins this thread to one CPU.
///
/// # Errors
/// As the kernel says; `EINVAL` for a CPU that no set of `sched_setaffinity(2)`'s wrapper holds.
pub fn pin_thread(cpu: u32) -> io::Result<()> {
    use rustix::thread::{CpuSet, sched_setaffinity};
    let cpu = usize::try_from(cpu).ok().filter(|c| *c < CpuSet::MAX_CPU);
    let cpu = cpu.ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
    let mut set = CpuSet::new();
    set.set(cpu);
    Ok(sched_setaffinity(None, &set)?)
}
