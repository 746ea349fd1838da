//! One connection under TLS, over a descriptor.

use std::{
    cell::Cell,
    io::{self, IoSlice, Read, Write},
    os::fd::RawFd,
};

use rustls::{HandshakeKind, ProtocolVersion, client::ClientConnection};

use super::{binding, fault::Fault};
use crate::net::now_ns;
use crate::net::sys;

/// Buffer size for the plaintext of one read of `raw` bytes: those bytes, plus a record (16 KiB)
/// begun earlier.
pub const fn room_for(raw: usize) -> usize {
    raw + (32 << 10)
}

/// Result of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    /// Bytes read, 0 if only part of a record arrived.
    Bytes {
        n: usize,
        /// Whether the kernel has no more for now.
        drained: bool,
    },
    /// The other end sends no more.
    End {
        /// Whether the end was announced by TLS; otherwise an attacker may have cut the data short.
        clean: bool,
    },
}

/// Parameters agreed on in the handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Agreed {
    /// TLS version, such as `TLS 1.3`.
    pub version: &'static str,
    /// IANA name of the cipher suite: `TLS_AES_256_GCM_SHA384`.
    pub cipher: &'static str,
    /// Whether an earlier session was resumed.
    pub resumed: bool,
}

/// A TLS connection; begins with the handshake.
#[derive(Debug)]
pub struct TlsConn {
    inner: ClientConnection,
    /// Whether the other end announced its end.
    ended: bool,
}

impl TlsConn {
    pub(super) fn new(inner: ClientConnection) -> Self {
        Self { inner, ended: false }
    }

    /// Continues the handshake as far as the descriptor allows; returns whether it is done. On a
    /// blocking descriptor it continues to the end, or to the timeout.
    ///
    /// # Errors
    /// [`Fault::Tls`]: no agreement, or a bad certificate; [`Fault::Io`] as the kernel says, and if
    /// the other end closed.
    pub fn handshake(&mut self, fd: RawFd, raw: &mut [u8]) -> Result<bool, Fault> {
        loop {
            self.flush(fd)?;
            if !self.inner.is_handshaking() {
                return Ok(true);
            }
            let n = match receive(fd, raw) {
                Ok(0) => return Err(Fault::Io(io::ErrorKind::UnexpectedEof.into())),
                Ok(n) => n,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(e) => return Err(Fault::Io(e)),
            };
            let mut rest = raw.get(..n).unwrap_or_default();
            while !rest.is_empty() {
                self.take(fd, &mut rest)?;
            }
        }
    }

    /// The agreed parameters; `None` before the handshake is done.
    pub fn agreed(&self) -> Option<Agreed> {
        let version = match self.inner.protocol_version()? {
            ProtocolVersion::TLSv1_2 => "TLS 1.2",
            ProtocolVersion::TLSv1_3 => "TLS 1.3",
            other => other.as_str()?,
        };
        let cipher = self.inner.negotiated_cipher_suite()?.suite().as_str()?;
        // Only this library writes 1.3 into the suite's name.
        let cipher = if cipher.starts_with("TLS13_") { of_tls13(cipher) } else { cipher };
        let resumed = self.inner.handshake_kind() == Some(HandshakeKind::Resumed);
        Some(Agreed { version, cipher, resumed })
    }

    /// The `tls-server-end-point` channel binding. `None` before the handshake is done, and if the
    /// server's certificate has none.
    pub fn end_point(&self) -> Option<Vec<u8>> {
        binding::end_point(self.inner.peer_certificates()?.first()?)
    }

    /// Reads available bytes through `raw`, decrypted into `room` (see [`room_for`]).
    ///
    /// # Errors
    /// [`Fault::Io`] with [`io::ErrorKind::WouldBlock`] if nothing is available, and as the kernel
    /// says; [`Fault::Tls`] for bytes that are no TLS or were altered.
    pub fn read(&mut self, fd: RawFd, raw: &mut [u8], room: &mut [u8]) -> Result<Received, Fault> {
        // Data that arrived with the end of the handshake.
        let mut n = self.plain(room)?;
        if n > 0 {
            return Ok(Received::Bytes { n, drained: false });
        }
        if self.ended {
            return Ok(Received::End { clean: true });
        }
        let got = receive(fd, raw).map_err(Fault::Io)?;
        if got == 0 {
            return Ok(Received::End { clean: false });
        }
        let drained = got < raw.len();
        let mut rest = raw.get(..got).unwrap_or_default();
        let begun = now_ns();
        while !rest.is_empty() && !self.ended {
            self.take(fd, &mut rest)?;
            n += self.plain(room.get_mut(n..).unwrap_or_default())?;
        }
        spend(begun);
        // The answer to a key update.
        self.flush(fd)?;
        Ok(Received::Bytes { n, drained })
    }

    /// Whether the other end announced its end.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Takes bytes to send, up to its buffer limit; [`Self::flush`] sends them.
    pub fn accept(&mut self, bytes: &[u8]) -> usize {
        let begun = now_ns();
        let n = self.inner.writer().write(bytes).unwrap_or(0);
        spend(begun);
        n
    }

    /// Whether taken bytes are not sent yet.
    pub fn is_unsent(&self) -> bool {
        self.inner.wants_write()
    }

    /// Sends taken bytes; returns whether all were sent.
    ///
    /// # Errors
    /// [`Fault::Io`] as the kernel says.
    pub fn flush(&mut self, fd: RawFd) -> Result<bool, Fault> {
        while self.inner.wants_write() {
            match self.inner.write_tls(&mut To(fd)) {
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(Fault::Io(e)),
            }
        }
        Ok(true)
    }

    fn take(&mut self, fd: RawFd, rest: &mut &[u8]) -> Result<(), Fault> {
        if self.inner.read_tls(rest).map_err(Fault::Io)? == 0 {
            return Err(Fault::Io(io::ErrorKind::InvalidData.into()));
        }
        match self.inner.process_new_packets() {
            Ok(state) => self.ended |= state.peer_has_closed(),
            Err(e) => {
                // Sends the other end the alert with the reason.
                let _ = self.flush(fd);
                return Err(Fault::Tls(e));
            }
        }
        Ok(())
    }

    fn plain(&mut self, room: &mut [u8]) -> Result<usize, Fault> {
        let mut n = 0;
        loop {
            let Some(left) = room.get_mut(n..).filter(|l| !l.is_empty()) else { return Ok(n) };
            match self.inner.reader().read(left) {
                Ok(0) => return Ok(n),
                Ok(more) => n += more,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(n),
                Err(e) => return Err(Fault::Io(e)),
            }
        }
    }
}

fn of_tls13(cipher: &'static str) -> &'static str {
    match cipher {
        "TLS13_AES_128_GCM_SHA256" => "TLS_AES_128_GCM_SHA256",
        "TLS13_AES_256_GCM_SHA384" => "TLS_AES_256_GCM_SHA384",
        "TLS13_CHACHA20_POLY1305_SHA256" => "TLS_CHACHA20_POLY1305_SHA256",
        other => other,
    }
}

/// Reads available bytes from the kernel.
///
/// # Errors
/// As the kernel says.
pub fn receive(fd: RawFd, room: &mut [u8]) -> io::Result<usize> {
    loop {
        match sys::recv(fd, room, 0) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// A socket writer that never raises SIGPIPE.
struct To(RawFd);

impl Write for To {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        // SAFETY: an IoSlice has the shape of an iovec, and the kernel only reads what it tells
        // of; a zeroed msghdr is valid.
        let sent = unsafe {
            let mut message: libc::msghdr = std::mem::zeroed();
            message.msg_iov = parts.as_ptr().cast_mut().cast();
            message.msg_iovlen = parts.len() as _;
            libc::sendmsg(self.0, &raw const message, libc::MSG_NOSIGNAL)
        };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

thread_local! {
    /// Cipher time of this thread so far.
    static SPENT_NS: Cell<u64> = const { Cell::new(0) };
}

fn spend(begun: u64) {
    SPENT_NS.set(SPENT_NS.get().saturating_add(now_ns().saturating_sub(begun)));
}

/// Nanoseconds that this thread spent on encryption and decryption since the last call, without
/// handshakes and system calls.
pub fn take_spent_ns() -> u64 {
    SPENT_NS.take()
}
