//! Provided receive buffers: the kernel takes one for each piece of a stream, and it is returned
//! after reading (`IORING_REGISTER_PBUF_RING`, Linux 5.19).

use std::{
    io,
    ptr::{self, NonNull},
    sync::atomic::{AtomicU16, Ordering},
};

use io_uring::{Submitter, types::BufRingEntry};

/// The id of the only buffer group of a ring.
pub const GROUP: u16 = 0;

/// Limit in bytes for all buffers of a thread.
const MOST_BYTES: usize = 8 << 20;

/// Number of buffers, and the size of each in bytes.
fn shape(flows: usize, bytes: u64) -> (usize, usize) {
    let size = bytes.clamp(64, 64 << 10) as usize;
    let mut count = flows.clamp(16, 1 << 15).next_power_of_two();
    while count > 16 && count * size > MOST_BYTES {
        count /= 2;
    }
    (count, size)
}

/// Total size of the buffers in bytes.
pub fn room_bytes(flows: usize, bytes: u64) -> usize {
    let (count, size) = shape(flows, bytes);
    count * size
}

/// The buffers and the ring that provides them.
#[derive(Debug)]
pub struct Buffers {
    map: NonNull<u8>,
    map_bytes: usize,
    /// Number of buffers, a power of two.
    count: u16,
    size: usize,
    /// Offset of the first buffer.
    data: usize,
    tail: u16,
}

impl Buffers {
    /// Buffers for `flows` pieces of `bytes` at once, within bounds.
    ///
    /// # Errors
    /// No memory is left.
    pub fn new(flows: usize, bytes: u64) -> io::Result<Self> {
        let (count, size) = shape(flows, bytes);
        let data = (count * size_of::<BufRingEntry>()).next_multiple_of(4096);
        let map_bytes = data + count * size;
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE);
        // SAFETY: a new mapping, anywhere.
        let map = unsafe {
            libc::mmap(ptr::null_mut(), map_bytes, access, kind | libc::MAP_ANONYMOUS, -1, 0)
        };
        if map == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let map = NonNull::new(map.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        let mut all = Self { map, map_bytes, count: count as u16, size, data, tail: 0 };
        (0..all.count).for_each(|n| all.give(n));
        Ok(all)
    }

    /// Registers the buffers with the kernel.
    ///
    /// # Errors
    /// The kernel lacks the feature, or memory for it.
    pub fn register(&self, to: &Submitter<'_>) -> io::Result<()> {
        // SAFETY: the mapping lives until after the io_uring instance is gone (see `Ring`).
        unsafe { to.register_buf_ring_with_flags(self.map.as_ptr() as u64, self.count, GROUP, 0) }?;
        self.publish();
        Ok(())
    }

    fn ring(&self) -> *mut BufRingEntry {
        self.map.as_ptr().cast()
    }

    /// Returns a buffer; the kernel sees it after the next [`Self::publish`].
    #[inline]
    pub fn give(&mut self, buffer: u16) {
        let at = usize::from(self.tail & (self.count - 1));
        let buffer = buffer & (self.count - 1);
        let address =
            self.map.as_ptr() as u64 + (self.data + usize::from(buffer) * self.size) as u64;
        // SAFETY: `at` is below the count of entries of the mapping, which is ours; the kernel
        // does not read an entry beyond the tail. The tail lies within the first entry, in a
        // field that these do not touch.
        unsafe {
            let entry = &mut *self.ring().add(at);
            entry.set_addr(address);
            entry.set_len(self.size as u32);
            entry.set_bid(buffer);
        }
        self.tail = self.tail.wrapping_add(1);
    }

    /// Makes returned buffers available to the kernel.
    #[inline]
    pub fn publish(&self) {
        // SAFETY: the tail lies within the mapping, aligned, and the kernel reads it atomically.
        let tail = unsafe { AtomicU16::from_ptr(BufRingEntry::tail(self.ring()).cast_mut()) };
        tail.store(self.tail, Ordering::Release);
    }

    /// The first `length` bytes of a buffer that the kernel filled.
    #[inline]
    pub fn bytes(&self, buffer: u16, length: usize) -> &[u8] {
        let buffer = usize::from(buffer & (self.count - 1));
        // SAFETY: within the mapping, which is initialised (zeroed) memory; the kernel does not
        // write to a buffer between handing it over and getting it back.
        unsafe {
            let begin = self.map.as_ptr().add(self.data + buffer * self.size);
            std::slice::from_raw_parts(begin, length.min(self.size))
        }
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        // SAFETY: our mapping, of this length; nothing refers to it any more.
        unsafe { libc::munmap(self.map.as_ptr().cast(), self.map_bytes) };
    }
}
