//! Requests of one connection: queued, sent and answered.

use std::{collections::VecDeque, io, os::fd::RawFd};

use traffic::{engine::link::Link, net::tls::fault::Fault};

use super::response::{Answer, Fed, Parser};

/// Most requests passed to the kernel in one call.
const AT_ONCE: usize = 16;

/// A request without a complete response.
#[derive(Debug, Clone, Copy)]
pub struct PendingRequest {
    /// Start of its latency: the schedule's time in open loop, else the time of sending.
    pub due_ns: u64,
    /// Time it was sent; if it was sent again on a new connection, the last time.
    pub sent_ns: u64,
    /// Time of the response's first byte; 0 before that.
    pub first_ns: u64,
    /// Index of its request bytes.
    pub which: usize,
}

/// Outstanding requests of a connection.
#[derive(Debug)]
pub struct Pipeline {
    /// Outstanding requests, the oldest first.
    pub asked: VecDeque<PendingRequest>,
    /// Number of requests sent completely, and bytes sent of the next one.
    written: usize,
    offset: usize,
    pub parser: Parser,
    /// Bytes received of the current response.
    bytes: u64,
}

impl Pipeline {
    /// A pipeline of at most this many requests.
    pub fn new(most: u32, is_head: bool) -> Self {
        Self {
            asked: VecDeque::with_capacity(most as usize),
            written: 0,
            offset: 0,
            parser: Parser::new(is_head),
            bytes: 0,
        }
    }

    /// Prepares for a new connection: every unanswered request must be sent again.
    pub fn reset(&mut self) {
        (self.written, self.offset, self.bytes) = (0, 0, 0);
        self.parser.reset();
        for asked in &mut self.asked {
            asked.first_ns = 0;
        }
    }

    /// Whether a response has begun and is incomplete.
    pub fn is_within(&self) -> bool {
        self.bytes > 0
    }

    /// Whether a request is not completely sent.
    #[inline]
    pub fn is_unsent(&self) -> bool {
        self.written < self.asked.len()
    }

    /// Sends queued requests, as far as the kernel takes them.
    ///
    /// # Errors
    /// As the kernel says.
    pub fn push(&mut self, link: &mut Link, requests: &[Vec<u8>]) -> Result<(), Fault> {
        let fd = link.fd();
        let Some(tls) = link.tls() else {
            return self.push_plain(fd, requests).map_err(Fault::Io);
        };
        loop {
            // As many as the kernel may take, in one call.
            while let Some(asked) = self.asked.get(self.written) {
                let bytes = requests.get(asked.which).and_then(|r| r.get(self.offset..));
                let bytes = bytes.unwrap_or_default();
                let n = tls.accept(bytes);
                if n < bytes.len() {
                    self.offset += n;
                    break;
                }
                (self.written, self.offset) = (self.written + 1, 0);
            }
            if !tls.flush(fd)? || self.written >= self.asked.len() {
                return Ok(());
            }
        }
    }

    fn push_plain(&mut self, fd: RawFd, requests: &[Vec<u8>]) -> io::Result<()> {
        while self.written < self.asked.len() {
            let empty = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
            let (mut parts, mut n, mut whole) = ([empty; AT_ONCE], 0, 0);
            for (asked, part) in self.asked.iter().skip(self.written).zip(&mut parts) {
                let from = if n == 0 { self.offset } else { 0 };
                let bytes = requests.get(asked.which).and_then(|r| r.get(from..));
                let bytes = bytes.unwrap_or_default();
                part.iov_base = bytes.as_ptr().cast_mut().cast();
                part.iov_len = bytes.len();
                whole += bytes.len();
                n += 1;
            }
            let sent = send(fd, &mut parts, n);
            if sent < 0 {
                let e = io::Error::last_os_error();
                return match e.kind() {
                    io::ErrorKind::WouldBlock => Ok(()),
                    io::ErrorKind::Interrupted => continue,
                    _ => Err(e),
                };
            }
            if sent as usize == whole {
                (self.written, self.offset) = (self.written + n, 0);
            } else {
                self.partly(sent as usize, requests);
            }
        }
        Ok(())
    }

    #[cold]
    fn partly(&mut self, mut sent: usize, requests: &[Vec<u8>]) {
        while let Some(asked) = self.asked.get(self.written) {
            let left = requests.get(asked.which).map_or(0, Vec::len) - self.offset;
            if sent < left {
                self.offset += sent;
                return;
            }
            sent -= left;
            (self.written, self.offset) = (self.written + 1, 0);
        }
    }

    /// Takes bytes received at `now`; reports each complete response, up to one that closes the
    /// connection. Bytes after that are ignored.
    ///
    /// # Errors
    /// Why the bytes are no valid responses.
    #[inline]
    pub fn took(
        &mut self,
        bytes: &[u8],
        now: u64,
        closing: &mut bool,
        mut whole: impl FnMut(&PendingRequest, Answer, u64),
    ) -> Result<(), &'static str> {
        let mut at = 0;
        while let Some(rest) = bytes.get(at..).filter(|r| !r.is_empty() && !*closing) {
            let Some(front) = self.asked.front_mut() else {
                return Err("it sent more than was asked for");
            };
            if front.first_ns == 0 {
                front.first_ns = now;
            }
            let (n, fed) = self.parser.feed(rest);
            at += n;
            self.bytes += n as u64;
            match fed {
                Fed::More => {}
                Fed::Bad(why) => return Err(why),
                Fed::Whole(answer) => *closing |= self.whole(answer, &mut whole),
            }
        }
        Ok(())
    }

    /// Handles the end of the connection, which completes a response without a length. Returns
    /// whether it closed the connection.
    pub fn ended(&mut self, mut whole: impl FnMut(&PendingRequest, Answer, u64)) -> bool {
        self.parser.end().is_some_and(|answer| self.whole(answer, &mut whole))
    }

    /// Completes a response; returns whether the connection closes.
    #[inline]
    fn whole(
        &mut self,
        answer: Answer,
        tell: &mut impl FnMut(&PendingRequest, Answer, u64),
    ) -> bool {
        let Some(asked) = self.asked.pop_front() else { return false };
        // Answered before it was completely sent: the stream would continue with its remainder.
        let early = self.written == 0;
        self.written = self.written.saturating_sub(1);
        tell(&asked, answer, std::mem::take(&mut self.bytes));
        early || !answer.keep
    }
}

fn send(fd: RawFd, parts: &mut [libc::iovec; AT_ONCE], n: usize) -> isize {
    let [first, ..] = parts;
    // SAFETY: parts point into requests that outlive the call, which does not write to them; a
    // zeroed msghdr is valid.
    unsafe {
        if n == 1 {
            return libc::send(fd, first.iov_base, first.iov_len, libc::MSG_NOSIGNAL);
        }
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = parts.as_mut_ptr();
        message.msg_iovlen = n as _;
        libc::sendmsg(fd, &raw const message, libc::MSG_NOSIGNAL)
    }
}
