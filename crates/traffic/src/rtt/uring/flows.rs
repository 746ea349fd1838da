//! Flows on an io_uring: pending sends, combined in one call, and received bytes.

use std::{io, os::fd::RawFd};

use model::measure::Wait;

use super::ring::{Completion, Ring};

#[derive(Debug, Clone, Copy, Default)]
struct FlowState {
    /// Bytes to send that no send was queued for.
    unsent: u64,
    /// Whether it is in the list of flows to send on next.
    pending_send: bool,
    /// Whether the socket was full: the next send waits for room in the kernel.
    full: bool,
    /// Whether a waiting send is in progress; nothing else is sent meanwhile.
    sending: bool,
    closed: bool,
}

/// Event on a flow.
#[derive(Debug)]
pub enum FlowEvent {
    /// Bytes in a buffer, which the caller must read and return.
    Bytes { key: usize, buffer: u16, length: usize },
    /// The other end closed.
    End,
    /// The kernel's error of the connection.
    Broken { why: io::Error },
}

/// All flows of a thread. Each sends the same message repeatedly.
pub struct UringFlows {
    /// Declared first, so dropped before the payload that it may be sending.
    ring: Ring,
    flows: Vec<FlowState>,
    pending_sends: Vec<u32>,
    /// Complete messages of all flows, one after the other.
    payload: Box<[u8]>,
    message: u64,
    /// Whether each flow has at most one send in progress, because `flush` is called between
    /// events.
    careful: bool,
}

impl UringFlows {
    /// Flows on these sockets: messages of `incoming` bytes are received, of `outgoing` bytes sent,
    /// up to `queue_depth` at once.
    ///
    /// # Errors
    /// As [`Ring::new`].
    pub fn new(fds: &[RawFd], incoming: u64, outgoing: u64, queue_depth: u32) -> io::Result<Self> {
        let several = |bytes: u64| (bytes * u64::from(queue_depth)).min(256 << 10).max(bytes);
        // Messages are sent together only if several arrived together.
        let batch = (several(outgoing) / outgoing.max(1)).max(1);
        let mut all = Self {
            ring: Ring::new(fds, several(incoming))?,
            flows: vec![FlowState::default(); fds.len()],
            pending_sends: Vec::with_capacity(fds.len()),
            payload: vec![0; (batch * outgoing) as usize].into_boxed_slice(),
            message: outgoing.max(1),
            careful: false,
        };
        (0..fds.len()).try_for_each(|key| all.ring.receive(key))?;
        Ok(all)
    }

    /// Allows calls of [`Self::flush`] between two events.
    pub fn careful(mut self) -> Self {
        self.careful = true;
        self
    }

    /// The payload messages, for writing.
    pub fn messages(&mut self) -> impl Iterator<Item = &mut [u8]> {
        self.payload.chunks_mut(self.message as usize)
    }

    /// Queues this many more messages for sending.
    #[inline]
    pub fn enqueue(&mut self, key: usize, messages: u64) {
        let Some(flow) = self.flows.get_mut(key).filter(|l| !l.closed) else { return };
        flow.unsent += messages * self.message;
        if !flow.pending_send && !flow.sending {
            flow.pending_send = true;
            self.pending_sends.push(key as u32);
        }
    }

    /// Sends queued messages and waits for events.
    ///
    /// # Errors
    /// As the kernel says.
    #[inline]
    pub fn exchange(&mut self, wait: Wait) -> io::Result<()> {
        self.queue()?;
        self.ring.wait(wait)
    }

    /// Sends queued messages.
    ///
    /// # Errors
    /// As the kernel says.
    pub fn flush(&mut self) -> io::Result<()> {
        self.queue()?;
        self.ring.flush()
    }

    #[inline]
    fn queue(&mut self) -> io::Result<()> {
        let mut pending = std::mem::take(&mut self.pending_sends);
        let queued = pending.iter().try_for_each(|key| self.send(*key as usize));
        pending.clear();
        self.pending_sends = pending;
        queued
    }

    #[inline]
    fn send(&mut self, key: usize) -> io::Result<()> {
        let Some(flow) = self.flows.get_mut(key) else { return Ok(()) };
        flow.pending_send = false;
        if flow.closed || flow.sending || flow.unsent == 0 {
            return Ok(());
        }
        // Continues within a message if the last send ended there.
        let into = (self.message - flow.unsent % self.message) % self.message;
        let rest = self.payload.get(into as usize..).unwrap_or_default();
        let length = (rest.len() as u64).min(flow.unsent);
        let bytes = rest.get(..length as usize).unwrap_or_default();
        if self.careful || flow.full || length < flow.unsent {
            flow.sending = true;
            // SAFETY: the payload stays where it is until after the ring is dropped.
            unsafe { self.ring.send_patiently(key, bytes) }
        } else {
            flow.unsent = 0;
            // SAFETY: as above.
            unsafe { self.ring.send_quick(key, bytes) }
        }
    }

    /// The next event.
    ///
    /// # Errors
    /// As the kernel says.
    #[inline]
    pub fn next(&mut self) -> io::Result<Option<FlowEvent>> {
        while let Some(done) = self.ring.next() {
            let event = match done {
                Completion::Received { key, result, buffer, more } => {
                    self.received(key, result, buffer, more)?
                }
                Completion::Interrupted { key, length, result } => {
                    self.interrupted(key, length, result)
                }
                Completion::Sent { key, result } => self.sent(key, result),
            };
            if event.is_some() {
                return Ok(event);
            }
        }
        Ok(None)
    }

    #[inline]
    fn received(
        &mut self,
        key: usize,
        result: i32,
        buffer: Option<u16>,
        more: bool,
    ) -> io::Result<Option<FlowEvent>> {
        let closed = self.flows.get(key).is_none_or(|l| l.closed);
        if let (true, Some(buffer), false) = (result > 0, buffer, closed) {
            if !more {
                self.ring.receive(key)?;
            }
            return Ok(Some(FlowEvent::Bytes { key, buffer, length: result as usize }));
        }
        if let Some(buffer) = buffer {
            self.ring.give(buffer);
        }
        Ok(match result {
            _ if closed => None,
            0 => self.close(key, None),
            r if again(r) || r == -libc::ENOBUFS || r > 0 => {
                if !more {
                    self.ring.receive(key)?;
                }
                None
            }
            r => self.close(key, Some(r)),
        })
    }

    /// Handles an incomplete quick send: the rest waits for room.
    #[cold]
    fn interrupted(&mut self, key: usize, length: u32, result: i32) -> Option<FlowEvent> {
        let flow = self.flows.get_mut(key).filter(|l| !l.closed)?;
        if result < 0 && !again(result) {
            return self.close(key, Some(result));
        }
        flow.unsent += u64::from(length.saturating_sub(result.max(0) as u32));
        flow.full = true;
        self.enqueue(key, 0);
        None
    }

    #[cold]
    fn sent(&mut self, key: usize, result: i32) -> Option<FlowEvent> {
        let flow = self.flows.get_mut(key).filter(|l| !l.closed)?;
        (flow.sending, flow.full) = (false, false);
        if result < 0 && !again(result) {
            return self.close(key, Some(result));
        }
        flow.unsent = flow.unsent.saturating_sub(result.max(0) as u64);
        if flow.unsent > 0 {
            self.enqueue(key, 0);
        }
        None
    }

    #[cold]
    fn close(&mut self, key: usize, result: Option<i32>) -> Option<FlowEvent> {
        if let Some(flow) = self.flows.get_mut(key) {
            flow.closed = true;
        }
        Some(match result {
            None => FlowEvent::End,
            Some(r) => FlowEvent::Broken { why: io::Error::from_raw_os_error(-r) },
        })
    }

    /// The first `length` bytes of a buffer, see [`super::buffers::Buffers::bytes`].
    #[inline]
    pub fn bytes(&self, buffer: u16, length: usize) -> &[u8] {
        self.ring.bytes(buffer, length)
    }

    /// Returns a buffer to the kernel, see [`super::buffers::Buffers::give`].
    #[inline]
    pub fn give(&mut self, buffer: u16) {
        self.ring.give(buffer);
    }
}

fn again(result: i32) -> bool {
    result == -libc::EAGAIN || result == -libc::EINTR
}
