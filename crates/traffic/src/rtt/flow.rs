//! One of several client flows on a thread: its outstanding requests.

use std::{collections::VecDeque, io, os::fd::RawFd};

use model::measure::Transport;

use super::{
    exchange::{answers, read_cpu, stamp_number},
    single::RttShape,
};
use crate::{engine::ran_on::UNKNOWN_CPU, net::sys};

/// A request without its response.
#[derive(Debug, Clone, Copy)]
pub struct PendingRequest {
    /// Start of its round trip; in open loop the schedule's time.
    pub due_ns: u64,
    /// Time of its send call.
    pub sent_ns: u64,
    pub number: u32,
}

#[derive(Debug)]
pub struct Flow {
    pub fd: RawFd,
    /// Outstanding requests, oldest first; allocated for the full queue depth.
    pub asked: VecDeque<PendingRequest>,
    /// Request bytes that the socket had no room for.
    pub unsent: u64,
    /// Whether it waits for send room.
    pub full: bool,
    /// Bytes received of the current response.
    got: u64,
    /// First bytes of the response, which may arrive in pieces.
    head: [u8; 6],
    number: u32,
    /// Open loop: requests of this flow's schedule that were sent.
    pub turns: u64,
}

#[derive(Debug, Clone, Copy)]
pub struct Answer {
    pub asked: PendingRequest,
    pub peer_cpu: u16,
    /// What its round trip is to exclude, nanoseconds ([`RttShape::overrun`]).
    pub overrun_ns: u64,
}

#[derive(Debug)]
pub enum Read {
    /// Bytes were received; they may complete answers.
    Some,
    Nothing,
    End,
    /// The kernel's error of the connection.
    Broken(io::Error),
}

impl Flow {
    pub fn new(fd: RawFd, queue_depth: u32) -> Self {
        Self {
            fd,
            asked: VecDeque::with_capacity(queue_depth as usize),
            unsent: 0,
            full: false,
            got: 0,
            head: [0; 6],
            number: 0,
            turns: 0,
        }
    }

    /// Adds an outstanding request.
    #[inline]
    pub fn expect(&mut self, due_ns: u64, now: u64) {
        self.number = self.number.wrapping_add(1);
        self.asked.push_back(PendingRequest { due_ns, sent_ns: now, number: self.number });
    }

    /// Sends a request; bytes that the socket has no room for stay in `unsent`.
    ///
    /// # Errors
    /// The kernel's error of the connection; of datagrams only that the port is closed.
    pub fn ask(
        &mut self,
        shape: &RttShape,
        request: &mut [u8],
        due_ns: u64,
        now: u64,
    ) -> io::Result<()> {
        self.expect(due_ns, now);
        if shape.transport == Transport::Udp {
            stamp_number(request, self.number);
            return match send(self.fd, request) {
                Ok(_) => Ok(()),
                // Equivalent to a loss on the way; the timeout counts it.
                Err(e) if e.kind() != io::ErrorKind::ConnectionRefused => Ok(()),
                Err(e) => Err(e),
            };
        }
        self.unsent += request.len() as u64;
        self.push(request)
    }

    /// Sends `unsent` bytes while the socket has room.
    ///
    /// # Errors
    /// The kernel's error of the connection; a full socket is none.
    pub fn push(&mut self, request: &[u8]) -> io::Result<()> {
        while self.unsent > 0 {
            let length = (self.unsent).min(request.len() as u64) as usize;
            match send(self.fd, request.get(..length).unwrap_or_default()) {
                Ok(n) => self.unsent -= n as u64,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Reads once and reports every completed answer. `late` counts datagrams that answer no
    /// request.
    pub fn read(
        &mut self,
        shape: &RttShape,
        room: &mut [u8],
        late: &mut u64,
        mut hear: impl FnMut(Answer),
    ) -> Read {
        let n = match sys::recv(self.fd, room, libc::MSG_DONTWAIT) {
            Ok(n) => n,
            Err(e) => {
                return match e.kind() {
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Read::Nothing,
                    _ => Read::Broken(e),
                };
            }
        };
        let bytes = room.get(..n).unwrap_or_default();
        if shape.transport == Transport::Udp {
            match self.answered(shape, bytes) {
                Some(asked) => {
                    let peer_cpu = read_cpu(shape.transport, shape.response_bytes, bytes);
                    hear(Answer { asked, peer_cpu, overrun_ns: 0 });
                }
                None => *late += 1,
            }
            return Read::Some;
        }
        if n == 0 {
            return Read::End;
        }
        self.take(shape, bytes, hear);
        Read::Some
    }

    /// The request that a datagram answers; earlier ones stay outstanding, since UDP may reorder.
    fn answered(&mut self, shape: &RttShape, bytes: &[u8]) -> Option<PendingRequest> {
        if bytes.len() as u64 != shape.response_bytes {
            return None;
        }
        let fits = |a: &PendingRequest| answers(bytes, shape.request_bytes, a.number);
        let at = self.asked.iter().position(fits)?;
        self.asked.remove(at)
    }

    /// Takes bytes of a response stream and reports every completed answer.
    pub fn take(&mut self, shape: &RttShape, mut bytes: &[u8], mut hear: impl FnMut(Answer)) {
        while !bytes.is_empty() {
            let wanted = shape.response_bytes - self.got;
            let length = bytes.len().min(usize::try_from(wanted).unwrap_or(usize::MAX));
            let (mine, rest) = bytes.split_at(length);
            let at = usize::try_from(self.got).unwrap_or(usize::MAX);
            for (to, from) in self.head.iter_mut().skip(at).zip(mine) {
                *to = *from;
            }
            self.got += length as u64;
            bytes = rest;
            if self.got < shape.response_bytes {
                return;
            }
            self.got = 0;
            let head = self.head.get(..shape.response_bytes.min(6) as usize).unwrap_or_default();
            let peer_cpu = match head.len() {
                0 => UNKNOWN_CPU,
                _ => read_cpu(shape.transport, shape.response_bytes, head),
            };
            let overrun_ns = shape.overrun(head);
            // Responses without a request are not counted.
            if let Some(asked) = self.asked.pop_front() {
                hear(Answer { asked, peer_cpu, overrun_ns });
            }
        }
    }
}

fn send(fd: RawFd, bytes: &[u8]) -> io::Result<usize> {
    sys::send(fd, bytes, libc::MSG_DONTWAIT)
}
