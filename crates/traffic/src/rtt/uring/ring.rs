//! An io_uring instance of one thread, with its sockets and receive buffers.

use std::{io, os::fd::RawFd};

use io_uring::{
    EnterFlags, IoUring, cqueue, opcode, squeue,
    types::{CancelBuilder, Fixed, Timespec},
};
use model::measure::{SPIN_NS, Wait};

use super::buffers::{Buffers, GROUP};
use crate::net::now_ns;

/// Most submissions queued before a call to the kernel.
const MOST_QUEUED: usize = 4096;
/// Size of the completion queue (the kernel's limit is 65,536).
const MOST_COMPLETED: usize = 1 << 16;

/// Operation types, in the upper bits of a completion's user data.
const RECEIVE: u64 = 0;
const QUICK: u64 = 1;
const PATIENT: u64 = 2;

#[derive(Debug, Clone, Copy)]
pub enum Completion {
    /// Bytes arrived, or the end (0), or an error (negative). `more` is whether the kernel
    /// continues to receive on this flow.
    Received { key: usize, result: i32, buffer: Option<u16>, more: bool },
    /// A quick send of `length` bytes failed or was incomplete.
    Interrupted { key: usize, length: u32, result: i32 },
    /// A waiting send ended.
    Sent { key: usize, result: i32 },
}

/// The instance. Fields that the kernel may still write to are dropped after it.
pub struct Ring {
    io: IoUring,
    buffers: Buffers,
}

impl Ring {
    /// An instance for these sockets, with receive buffers of `bytes`.
    ///
    /// Completions run only within our own calls (`DEFER_TASKRUN`), so nothing interrupts the
    /// thread. This needs Linux 6.1, which has all other features used here: multishot receive
    /// (6.0), sends that wait in the kernel until complete, and no completion for a success.
    ///
    /// # Errors
    /// The kernel lacks io_uring or one of these features, or forbids it.
    pub fn new(fds: &[RawFd], bytes: u64) -> io::Result<Self> {
        let queue = |n: usize, most: usize| n.next_power_of_two().clamp(64, most) as u32;
        let io = IoUring::builder()
            .dontfork()
            .setup_clamp()
            .setup_cqsize(queue(fds.len() * 4, MOST_COMPLETED))
            .setup_submit_all()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_taskrun_flag()
            .build(queue(fds.len(), MOST_QUEUED))?;
        let ring = Self { io, buffers: Buffers::new(fds.len(), bytes)? };
        ring.buffers.register(&ring.io.submitter())?;
        ring.io.submitter().register_files(fds)?;
        Ok(ring)
    }

    /// Starts receiving on a flow.
    ///
    /// # Errors
    /// The kernel's error of submitting, where the queue is full.
    pub fn receive(&mut self, key: usize) -> io::Result<()> {
        let entry = opcode::RecvMulti::new(Fixed(key as u32), GROUP).build();
        self.push(entry.user_data(RECEIVE << 60 | key as u64))
    }

    /// Sends at once or not at all; no completion if all was sent.
    ///
    /// # Errors
    /// The kernel's error of submitting, where the queue is full. A failed send is a completion.
    ///
    /// # Safety
    /// The bytes must stay in place until the next call that enters the kernel has returned.
    #[inline]
    pub unsafe fn send_quick(&mut self, key: usize, bytes: &[u8]) -> io::Result<()> {
        let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT | libc::MSG_WAITALL;
        let entry = opcode::Send::new(Fixed(key as u32), bytes.as_ptr(), bytes.len() as u32)
            .flags(flags)
            .build()
            .flags(squeue::Flags::SKIP_SUCCESS)
            .user_data(QUICK << 60 | (bytes.len() as u64) << 28 | key as u64);
        self.push(entry)
    }

    /// Sends when there is room, and reports a completion.
    ///
    /// # Errors
    /// The kernel's error of submitting, where the queue is full. A failed send is a completion.
    ///
    /// # Safety
    /// The bytes must stay in place until the completion, or until this is dropped.
    pub unsafe fn send_patiently(&mut self, key: usize, bytes: &[u8]) -> io::Result<()> {
        let flags = libc::MSG_NOSIGNAL | libc::MSG_WAITALL;
        let entry = opcode::Send::new(Fixed(key as u32), bytes.as_ptr(), bytes.len() as u32)
            .flags(flags)
            .build()
            .user_data(PATIENT << 60 | key as u64);
        self.push(entry)
    }

    #[inline]
    fn push(&mut self, entry: squeue::Entry) -> io::Result<()> {
        // SAFETY: sockets are registered, memory is the callers' and `Buffers`' promise.
        while unsafe { self.io.submission().push(&entry) }.is_err() {
            self.enter(0, EnterFlags::empty())?;
        }
        Ok(())
    }

    /// Submits queued operations without waiting.
    ///
    /// # Errors
    /// The kernel's error of submitting.
    pub fn flush(&mut self) -> io::Result<()> {
        self.enter(0, EnterFlags::empty())
    }

    /// Submits queued operations and waits for completions in the given way. If interrupted, or
    /// after spinning in vain, returns with none.
    ///
    /// # Errors
    /// The kernel's error of submitting or waiting; a signal is none.
    #[inline]
    pub fn wait(&mut self, wait: Wait) -> io::Result<()> {
        self.buffers.publish();
        let spin_ns = match wait {
            Wait::Block | Wait::BusyPoll => return self.enter(1, EnterFlags::GETEVENTS),
            Wait::Spin => 0,
            Wait::SpinThenBlock => SPIN_NS.0,
        };
        let mut begun = None;
        loop {
            // Nothing to submit and nothing to run: the queue shows this without a call.
            let idle = {
                let queue = self.io.submission();
                queue.is_empty() && !queue.taskrun() && !queue.cq_overflow()
            };
            if !idle {
                self.enter(0, EnterFlags::GETEVENTS)?;
            }
            if spin_ns == 0 || !self.io.completion().is_empty() {
                return Ok(());
            }
            let now = now_ns();
            if now - *begun.get_or_insert(now) >= spin_ns {
                return self.enter(1, EnterFlags::GETEVENTS);
            }
            std::hint::spin_loop();
        }
    }

    #[inline]
    fn enter(&mut self, least: u32, flags: EnterFlags) -> io::Result<()> {
        let queued = self.io.submission().len() as u32;
        // SAFETY: no argument is given.
        let done = unsafe {
            self.io.submitter().enter::<libc::sigset_t>(queued, least, flags.bits(), None)
        };
        match done.map_err(|e| (e.raw_os_error(), e)) {
            Ok(_) => Ok(()),
            // Interrupted, or a temporary shortage of memory or room.
            Err((Some(libc::EINTR | libc::EAGAIN | libc::EBUSY), _)) => Ok(()),
            Err((_, e)) => Err(e),
        }
    }

    /// The next completion, if any.
    #[inline]
    pub fn next(&mut self) -> Option<Completion> {
        let entry = self.io.completion().next()?;
        let (data, result, flags) = (entry.user_data(), entry.result(), entry.flags());
        let key = (data & 0xfff_ffff) as usize;
        Some(match data >> 60 {
            RECEIVE => Completion::Received {
                key,
                result,
                buffer: cqueue::buffer_select(flags),
                more: cqueue::more(flags),
            },
            QUICK => Completion::Interrupted { key, length: (data >> 28) as u32, result },
            _ => Completion::Sent { key, result },
        })
    }

    /// The first `length` bytes of a buffer, see [`Buffers::bytes`].
    #[inline]
    pub fn bytes(&self, buffer: u16, length: usize) -> &[u8] {
        self.buffers.bytes(buffer, length)
    }

    /// Returns a buffer to the kernel, see [`Buffers::give`].
    #[inline]
    pub fn give(&mut self, buffer: u16) {
        self.buffers.give(buffer);
    }
}

impl Drop for Ring {
    /// Afterwards no operation is in progress: the kernel neither reads nor writes our memory, and
    /// closing a socket takes effect.
    fn drop(&mut self) {
        let submitter = self.io.submitter();
        let most = Timespec::new().sec(1);
        let _ = submitter.register_sync_cancel(Some(most), CancelBuilder::any());
        let _ = self.enter(0, EnterFlags::GETEVENTS);
        let submitter = self.io.submitter();
        let _ = submitter.unregister_files();
        let _ = submitter.unregister_buf_ring(GROUP);
    }
}
