//! Makes one `SIOCETHTOOL` call, with a buffer that the kernel cannot overrun.
//!
//! For some commands (`ETHTOOL_GSTRINGS`, `ETHTOOL_GSTATS`) most kernels write as much as they have
//! *now*, whatever length we gave, and the count may have grown since we asked for it. So the
//! buffer ends at a page without access: an answer that does not fit is `EFAULT`, and never
//! overwrites our memory.

use std::os::unix::net::UnixDatagram;
use std::{io, os::fd::AsRawFd, ptr::NonNull};

/// Room for an answer: 32,000 statistics with their names (32 bytes each). A multiple of every
/// page size there is.
pub const ROOM: usize = 1 << 20;
/// The part without access: one page of the largest size.
const GUARD: usize = 64 << 10;
/// What is cleared before each call: more than any command's fixed part.
const CLEARED: usize = 4096;

/// A socket to ask through and memory for the answer.
pub struct Exchange {
    socket: UnixDatagram,
    memory: NonNull<u8>,
}

impl Exchange {
    /// Opens a socket in this process's network namespace; needs no capability.
    ///
    /// # Errors
    /// The errno when there is no socket or memory to be had.
    pub fn open() -> Result<Self, i32> {
        // Any socket carries the ioctl; this family is in every kernel.
        let socket = UnixDatagram::unbound().map_err(|e| e.raw_os_error().unwrap_or(libc::EIO))?;
        Ok(Self { socket, memory: map()? })
    }

    /// Sends `request` for the interface `nic` and gives the memory as the kernel left it. The
    /// fixed part of an answer is cleared before, what follows is valid only as far as the
    /// answer's own header says.
    ///
    /// # Errors
    /// The kernel's errno; `ENODEV` for a name no interface can have.
    pub fn call(&mut self, nic: &str, request: &[u8]) -> Result<&[u8], i32> {
        // SAFETY: all zeroes is a valid `ifreq`.
        let mut ifr: libc::ifreq = unsafe { std::mem::zeroed() };
        if nic.is_empty() || nic.len() >= ifr.ifr_name.len() || nic.contains('\0') {
            return Err(libc::ENODEV);
        }
        for (to, from) in ifr.ifr_name.iter_mut().zip(nic.bytes()) {
            *to = from as libc::c_char;
        }
        if request.len() > CLEARED {
            return Err(libc::E2BIG);
        }
        // SAFETY: the mapping has `ROOM` writable bytes, `request` is no longer than `CLEARED`
        // (below `ROOM`) and cannot overlap memory that only this struct knows.
        unsafe {
            self.memory.as_ptr().write_bytes(0, CLEARED);
            self.memory.as_ptr().copy_from_nonoverlapping(request.as_ptr(), request.len());
        }
        ifr.ifr_ifru.ifru_data = self.memory.as_ptr().cast();
        // SAFETY: `ifr` outlives the call. The kernel writes upwards from `memory` only, and
        // whatever length it chooses, the inaccessible pages behind `ROOM` stop it.
        let done =
            unsafe { libc::ioctl(self.socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut ifr) };
        if done < 0 {
            return Err(last_errno());
        }
        // SAFETY: `ROOM` readable bytes, initialised by the mapping; borrowed from `self`, so
        // that no other call changes them meanwhile.
        Ok(unsafe { std::slice::from_raw_parts(self.memory.as_ptr(), ROOM) })
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping that `map` made; nothing borrows it any more.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), ROOM + GUARD) };
    }
}

/// `ROOM` zeroed bytes with `GUARD` inaccessible ones behind.
fn map() -> Result<NonNull<u8>, i32> {
    // SAFETY: a fresh private mapping of no file.
    let at = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            ROOM + GUARD,
            libc::PROT_NONE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if at == libc::MAP_FAILED {
        return Err(last_errno());
    }
    // SAFETY: the first `ROOM` bytes of the mapping just made.
    if unsafe { libc::mprotect(at, ROOM, libc::PROT_READ | libc::PROT_WRITE) } != 0 {
        let errno = last_errno();
        // SAFETY: the mapping just made, unused.
        unsafe { libc::munmap(at, ROOM + GUARD) };
        return Err(errno);
    }
    NonNull::new(at.cast()).ok_or(libc::ENOMEM)
}

fn last_errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_cannot_write_past_the_room() {
        let exchange = Exchange::open().unwrap();
        let mut pipe = [0; 2];
        // SAFETY: two descriptors fit.
        assert_eq!(unsafe { libc::pipe(pipe.as_mut_ptr()) }, 0);
        // SAFETY: writes 64 bytes of ours into the pipe; then lets the kernel write them to the
        // last 16 bytes of the room and on into the guard, which it must refuse.
        unsafe {
            assert_eq!(libc::write(pipe[1], [7u8; 64].as_ptr().cast(), 64), 64);
            let end = exchange.memory.as_ptr().add(ROOM - 16);
            let n = libc::read(pipe[0], end.cast(), 64);
            assert!(n < 64, "{n} bytes went past the end");
            libc::close(pipe[0]);
            libc::close(pipe[1]);
        }
    }

    #[test]
    fn names_no_interface_can_have_are_no_device() {
        let mut exchange = Exchange::open().unwrap();
        for name in ["", "sixteen-letters!", "a\0b", "no-such-nic-xyz"] {
            assert_eq!(
                exchange.call(name, &3u32.to_ne_bytes()).err(),
                Some(libc::ENODEV),
                "{name:?}"
            );
        }
    }
}
