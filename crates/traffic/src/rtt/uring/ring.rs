//! One io_uring instance of one thread, with its sockets and receive buffers.

use std::{io, os::fd::RawFd};

use io_uring::{
    EnterFlags, IoUring, cqueue, opcode, squeue,
    types::{CancelBuilder, Fixed, Timespec},
};
use model::measure::{SPIN_NS, Wait};

use super::buffers::{Buffers, GROUP};
use crate::net::now_ns;

/// Submissions queued before the kernel is told at the latest.
const MOST_QUEUED: usize = 4096;
/// Completions that the kernel may hold for us (its own limit is 65,536).
const MOST_COMPLETED: usize = 1 << 16;

/// What a completion is of; told apart by the upper bits of its user data.
const RECEIVE: u64 = 0;
const QUICK: u64 = 1;
const PATIENT: u64 = 2;

#[derive(Debug, Clone, Copy)]
pub enum Completion {
    /// Bytes came, or the end (none), or an error (negative). `more` is whether the kernel goes
    /// on receiving on this flow.
    Received { key: usize, result: i32, buffer: Option<u16>, more: bool },
    /// A quick send of so many bytes went wrong or was interrupted.
    Interrupted { key: usize, length: u32, result: i32 },
    /// A patient send ended.
    Sent { key: usize, result: i32 },
}

/// The instance. What the kernel may still write to goes after it.
pub struct Ring {
    io: IoUring,
    buffers: Buffers,
}

impl Ring {
    /// For these sockets, with receive buffers of `bytes`.
    ///
    /// Completions are run within our own calls and nowhere else (`DEFER_TASKRUN`), so nothing
    /// interrupts the thread. That takes Linux 6.1, which has all else that is used here:
    /// receiving again and again from one submission (6.0), waiting for room within the kernel
    /// until all is sent, and silence about what went well.
    ///
    /// # Errors
    /// The kernel has no io_uring, or not that one, or forbids it.
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

    /// Receives on a flow from now on.
    pub fn receive(&mut self, key: usize) -> io::Result<()> {
        let entry = opcode::RecvMulti::new(Fixed(key as u32), GROUP).build();
        self.push(entry.user_data(RECEIVE << 60 | key as u64))
    }

    /// Sends at once or not at all, silent when all went.
    ///
    /// # Safety
    /// The bytes stay where they are until the next call that enters the kernel has returned.
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

    /// Sends as soon as there is room, and tells.
    ///
    /// # Safety
    /// The bytes stay where they are until it has told or this is dropped.
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

    /// Hands over what is queued, without awaiting anything.
    pub fn flush(&mut self) -> io::Result<()> {
        self.enter(0, EnterFlags::empty())
    }

    /// Hands over what is queued and awaits completions in the given way. Interrupted, or
    /// spinning in vain, it returns with nothing.
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
            // Nothing to hand over and nothing to run: the queue says so without a call.
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
            // Interrupted; or short of memory or room, for the moment.
            Err((Some(libc::EINTR | libc::EAGAIN | libc::EBUSY), _)) => Ok(()),
            Err((_, e)) => Err(e),
        }
    }

    /// The next completion that is there.
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

    /// See [`Buffers::bytes`].
    #[inline]
    pub fn bytes(&self, buffer: u16, length: usize) -> &[u8] {
        self.buffers.bytes(buffer, length)
    }

    /// See [`Buffers::give`].
    #[inline]
    pub fn give(&mut self, buffer: u16) {
        self.buffers.give(buffer);
    }
}

impl Drop for Ring {
    /// Nothing is under way in the kernel afterwards: it neither reads nor writes our memory,
    /// and closing a socket closes it.
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
