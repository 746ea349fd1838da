//! One connection: what was asked on it, what of that is sent, and what came back.

use std::{collections::VecDeque, io, os::fd::RawFd};

use socket2::Socket;

use super::response::{Answer, Fed, Parser};
use crate::{
    net::{
        now_ns,
        tls::{Tls, fault::Fault},
    },
    served::link::Link,
};

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

/// How far a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Closed,
    Connecting,
    /// Connected; TLS is being agreed on.
    Shaking,
    Open,
    /// Answered; the server is about to close.
    Lingering,
}

/// A connection, or the place of one.
#[derive(Debug)]
pub struct Conn {
    pub link: Link,
    pub phase: Phase,
    /// When it began to connect.
    pub begun_ns: u64,
    /// Since when the queue of the server's Unix socket has no place for it.
    pub full_ns: Option<u64>,
    /// When it was connected and the handshake began.
    pub shaking_ns: u64,
    /// Under way, the oldest first.
    pub asked: VecDeque<PendingRequest>,
    /// How many of them are wholly sent, and the bytes sent of the one that follows.
    written: usize,
    offset: usize,
    pub parser: Parser,
    /// Bytes of the response that is coming.
    bytes: u64,
    /// Whole responses on this connection.
    pub answered: u64,
    /// The last response said that no other follows.
    pub closing: bool,
    /// When the last whole response came, on whichever connection.
    pub last_ns: u64,
    /// Since when this place has no connection that can be asked; `None` where it has one.
    pub away_since_ns: Option<u64>,
}

impl Conn {
    /// A place without a connection.
    pub fn new(pipeline: u32, is_head: bool) -> Self {
        Self {
            link: Link::default(),
            phase: Phase::Closed,
            begun_ns: 0,
            full_ns: None,
            shaking_ns: 0,
            asked: VecDeque::with_capacity(pipeline as usize),
            written: 0,
            offset: 0,
            parser: Parser::new(is_head),
            bytes: 0,
            answered: 0,
            closing: false,
            last_ns: 0,
            away_since_ns: Some(0),
        }
    }

    /// Takes a socket that is connecting since then.
    pub fn take(&mut self, socket: Socket, begun_ns: u64) {
        (self.link, self.phase, self.begun_ns) = (Link::new(socket), Phase::Connecting, begun_ns);
        (self.written, self.offset, self.bytes, self.answered) = (0, 0, 0, 0);
        (self.closing, self.full_ns) = (false, None);
        self.parser.reset();
    }

    /// Closes; what was asked and not answered stays.
    pub fn close(&mut self) {
        (self.link, self.phase) = (Link::default(), Phase::Closed);
        self.away_since_ns.get_or_insert_with(now_ns);
        for asked in &mut self.asked {
            asked.first_ns = 0;
        }
    }

    /// Whether a response has begun and is not whole.
    pub fn is_within(&self) -> bool {
        self.bytes > 0
    }

    /// Begins TLS on a connection that was just established.
    ///
    /// # Errors
    /// As [`Tls::begin`].
    pub fn shake(&mut self, tls: &Tls, now: u64) -> Result<(), Fault> {
        self.link.shake(tls)?;
        (self.phase, self.shaking_ns) = (Phase::Shaking, now);
        Ok(())
    }

    /// Hands over what was asked and is not sent, as far as the kernel takes it.
    ///
    /// # Errors
    /// As the kernel says.
    pub fn push(&mut self, requests: &[Vec<u8>]) -> Result<(), Fault> {
        match self.link.tls() {
            Some(_) => self.push_tls(requests),
            None => self.push_plain(requests).map_err(Fault::Io),
        }
    }

    fn push_tls(&mut self, requests: &[Vec<u8>]) -> Result<(), Fault> {
        let fd = self.link.fd();
        let Some(tls) = self.link.tls() else { return Ok(()) };
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

    fn push_plain(&mut self, requests: &[Vec<u8>]) -> io::Result<()> {
        let fd = self.link.fd();
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

    /// Bytes that came `now`; tells of each whole response. Bytes behind one that says it is the
    /// last are passed over.
    ///
    /// # Errors
    /// Why they are no responses to what was asked.
    #[inline]
    pub fn took(
        &mut self,
        bytes: &[u8],
        now: u64,
        mut whole: impl FnMut(&PendingRequest, Answer, u64),
    ) -> Result<(), &'static str> {
        let mut at = 0;
        while let Some(rest) = bytes.get(at..).filter(|r| !r.is_empty() && !self.closing) {
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
                Fed::Whole(answer) => self.whole(answer, &mut whole),
            }
        }
        Ok(())
    }

    /// The connection ended: what lasts until then is whole.
    pub fn ended(&mut self, mut whole: impl FnMut(&PendingRequest, Answer, u64)) {
        if let Some(answer) = self.parser.end() {
            self.whole(answer, &mut whole);
        }
    }

    #[inline]
    fn whole(&mut self, answer: Answer, tell: &mut impl FnMut(&PendingRequest, Answer, u64)) {
        let Some(asked) = self.asked.pop_front() else { return };
        // Answered before it was wholly sent: what follows in the stream would be its rest.
        let early = self.written == 0;
        self.closing |= early || !answer.keep;
        self.written = self.written.saturating_sub(1);
        self.answered += 1;
        tell(&asked, answer, std::mem::take(&mut self.bytes));
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
