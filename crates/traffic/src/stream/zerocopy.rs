//! Sending without a copy: from a memory file (`sendfile`), or from pages that the kernel pins
//! (`MSG_ZEROCOPY`, since 4.14). For pinned pages, the socket's error queue reports each completion
//! and whether the kernel copied after all.
//!
//! **Source**: the kernel's `Documentation/networking/msg_zerocopy.rst`.

use std::{
    io::{self, Write},
    os::fd::{AsRawFd, OwnedFd, RawFd},
};

use super::shared_counts::{SharedCounts, add};
use crate::net::options;
use crate::net::sys;

const SO_ZEROCOPY: i32 = 60;
const SO_EE_ORIGIN_ZEROCOPY: u8 = 5;
const SO_EE_CODE_ZEROCOPY_COPIED: u8 = 1;
/// Number of sends between two readings of the error queue.
pub const REAP_EVERY: u32 = 16;

/// Enables `MSG_ZEROCOPY` on a socket.
///
/// # Errors
/// The kernel or the transport does not support it.
pub fn enable(fd: &impl AsRawFd) -> io::Result<()> {
    options::set(fd, libc::SOL_SOCKET, SO_ZEROCOPY, 1)
}

/// As the kernel lays it out (`struct sock_extended_err` of `include/uapi/linux/errqueue.h`).
#[repr(C)]
#[derive(Clone, Copy)]
struct ExtendedError {
    errno: u32,
    origin: u8,
    kind: u8,
    code: u8,
    pad: u8,
    /// First send that the completion covers.
    info: u32,
    data: u32,
}

/// Buffer for a control message with an [`ExtendedError`] and an address.
#[repr(C, align(8))]
struct Room([u8; 128]);

/// Reads all available completions; returns the number of sends that they complete.
pub fn reap(fd: RawFd, counts: &SharedCounts) -> u64 {
    let mut all = 0;
    while let Some((sends, copied)) = one(fd) {
        all += sends;
        add(&counts.completed, sends);
        if copied {
            add(&counts.copied, sends);
        }
    }
    all
}

fn one(fd: RawFd) -> Option<(u64, bool)> {
    let mut room = Room([0; 128]);
    // SAFETY: a zeroed header is valid; control buffer and header outlive the call, and the
    // control messages are walked with the C library's macros within the length the kernel set.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_control = room.0.as_mut_ptr().cast();
        message.msg_controllen = room.0.len() as _;
        let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
        if libc::recvmsg(fd, &raw mut message, flags) < 0 {
            return None;
        }
        let mut at = libc::CMSG_FIRSTHDR(&raw const message);
        while !at.is_null() {
            let kind = ((*at).cmsg_level, (*at).cmsg_type);
            let whole = (*at).cmsg_len as usize
                >= libc::CMSG_LEN(size_of::<ExtendedError>() as u32) as usize;
            let ours = kind == (libc::SOL_IP, libc::IP_RECVERR)
                || kind == (libc::SOL_IPV6, libc::IPV6_RECVERR);
            if ours && whole {
                let e = libc::CMSG_DATA(at).cast::<ExtendedError>().read_unaligned();
                if e.origin == SO_EE_ORIGIN_ZEROCOPY && e.errno == 0 {
                    let sends = u64::from(e.data.wrapping_sub(e.info)) + 1;
                    return Some((sends, e.code & SO_EE_CODE_ZEROCOPY_COPIED != 0));
                }
            }
            at = libc::CMSG_NXTHDR(&raw const message, at);
        }
    }
    Some((0, false))
}

/// A memory file with these bytes.
///
/// # Errors
/// As the kernel says (`memfd_create`, since 3.17).
pub fn file_of(bytes: &[u8]) -> io::Result<OwnedFd> {
    let fd = rustix::fs::memfd_create(c"netwright", rustix::fs::MemfdFlags::CLOEXEC)?;
    let mut file = std::fs::File::from(fd);
    file.write_all(bytes)?;
    Ok(file.into())
}

/// Sends from the start of a file.
///
/// # Errors
/// As the kernel says.
#[inline]
pub fn send_file(fd: RawFd, file: &OwnedFd, length: usize) -> io::Result<usize> {
    sys::send_file(fd, file, length)
}
