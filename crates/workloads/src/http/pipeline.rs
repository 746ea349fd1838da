//! One connection: what was asked on it, what of that is sent, and what came back.

use std::{collections::VecDeque, io, os::fd::RawFd};

use traffic::{engine::link::Link, net::tls::fault::Fault};

use super::response::{Answer, Fed, Parser};

/// Requests handed to the kernel in one call.
const AT_ONCE: usize = 16;

/// A request under way.
#[derive(Debug, Clone, Copy)]
pub struct PendingRequest {
    /// From when it counts: the schedule's time in open loop, else the moment of sending.
    pub due_ns: u64,
    /// When it was handed over for sending, the last time if it was retransmitted.
    pub sent_ns: u64,
    /// When the response's first byte came; 0 before.
    pub first_ns: u64,
    /// Which of the requests it is.
    pub which: usize,
}

/// The requests under way on a connection.
#[derive(Debug)]
pub struct Pipeline {
    /// The oldest first.
    pub asked: VecDeque<PendingRequest>,
    /// How many of them are wholly sent, and the bytes sent of the one that follows.
    written: usize,
    offset: usize,
    pub parser: Parser,
    /// Bytes of the response that is coming.
    bytes: u64,
}

impl Pipeline {
    /// Of so many requests at most.
    pub fn new(most: u32, is_head: bool) -> Self {
        Self {
            asked: VecDeque::with_capacity(most as usize),
            written: 0,
            offset: 0,
            parser: Parser::new(is_head),
            bytes: 0,
        }
    }

    /// For a new connection: every request that has no response is unsent.
    pub fn reset(&mut self) {
        (self.written, self.offset, self.bytes) = (0, 0, 0);
        self.parser.reset();
        for asked in &mut self.asked {
            asked.first_ns = 0;
        }
    }

    /// Whether a response has begun and is not whole.
    pub fn is_within(&self) -> bool {
        self.bytes > 0
    }

    /// Whether a request is not wholly sent.
    #[inline]
    pub fn is_unsent(&self) -> bool {
        self.written < self.asked.len()
    }

    /// Hands over what was asked and is not sent, as far as the kernel takes it.
    ///
    /// # Errors
    /// As the kernel says.
    pub fn push(&mut self, link: &mut Link, requests: &[Vec<u8>]) -> Result<(), Fault> {
        let fd = link.fd();
        let Some(tls) = link.tls() else {
            return self.push_plain(fd, requests).map_err(Fault::Io);
        };
        loop {
            // As many as it takes, so that they go in one call.
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

    /// Bytes that came `now`; tells of each whole response, until one says that it is the last:
    /// bytes behind that are passed over.
    ///
    /// # Errors
    /// Why they are no responses to what was asked.
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

    /// The connection ended: what lasts until then is whole. Whether that was the last response.
    pub fn ended(&mut self, mut whole: impl FnMut(&PendingRequest, Answer, u64)) -> bool {
        self.parser.end().is_some_and(|answer| self.whole(answer, &mut whole))
    }

    /// Whether it is the last.
    #[inline]
    fn whole(
        &mut self,
        answer: Answer,
        tell: &mut impl FnMut(&PendingRequest, Answer, u64),
    ) -> bool {
        let Some(asked) = self.asked.pop_front() else { return false };
        // Answered before it was wholly sent: what follows in the stream would be its rest.
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
