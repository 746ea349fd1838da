//! A socket to a server, with or without TLS.

use std::{
    io,
    os::fd::{AsRawFd, RawFd},
};

use socket2::Socket;

use super::deadline::Deadline;
use crate::net::sys;
use crate::net::tls::{
    Tls,
    conn::{Agreed, Received, TlsConn, receive, room_for},
    fault::Fault,
};

/// Receive buffers of a thread, shared by its connections.
#[derive(Debug)]
pub struct Rooms {
    raw: Vec<u8>,
    /// Decrypted bytes; unused without TLS.
    plain: Vec<u8>,
}

impl Rooms {
    /// Buffers for reads of this many bytes.
    pub fn new(bytes: usize, tls: bool) -> Self {
        let plain = if tls { room_for(bytes) } else { 0 };
        Self { raw: vec![0; bytes], plain: vec![0; plain] }
    }
}

/// A socket, or an empty slot.
#[derive(Debug, Default)]
pub struct Link {
    socket: Option<Socket>,
    tls: Option<Box<TlsConn>>,
}

impl Link {
    /// A link on a socket, without TLS so far.
    pub fn new(socket: Socket) -> Self {
        Self { socket: Some(socket), tls: None }
    }

    pub fn socket(&self) -> Option<&Socket> {
        self.socket.as_ref()
    }

    /// Its descriptor; −1 if there is none.
    #[inline]
    pub fn fd(&self) -> RawFd {
        self.socket.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }

    /// Result of connecting: the errno on failure.
    ///
    /// # Errors
    /// The errno of the attempt; `ENOTCONN` without a socket.
    pub fn outcome(&self) -> Result<(), i32> {
        match self.socket.as_ref().map(Socket::take_error) {
            Some(Ok(None)) => Ok(()),
            Some(Ok(Some(e)) | Err(e)) => Err(e.raw_os_error().unwrap_or(0)),
            None => Err(libc::ENOTCONN),
        }
    }

    /// Begins TLS on an established connection.
    ///
    /// # Errors
    /// As [`Tls::begin`].
    pub fn shake(&mut self, tls: &Tls) -> Result<(), Fault> {
        self.tls = Some(Box::new(tls.begin()?));
        Ok(())
    }

    /// Continues the handshake; returns the TLS parameters once it is done.
    ///
    /// # Errors
    /// As [`TlsConn::handshake`].
    pub fn shaken(&mut self, rooms: &mut Rooms) -> Result<Option<Agreed>, Fault> {
        let fd = self.fd();
        let Some(tls) = &mut self.tls else { return Ok(None) };
        Ok(if tls.handshake(fd, &mut rooms.raw)? { tls.agreed() } else { None })
    }

    /// Completes a handshake on an established connection, within a deadline.
    ///
    /// # Errors
    /// As [`Self::shake`] and [`Self::shaken`]; [`Fault::Io`] of [`Deadline::left`].
    pub fn shake_within(
        &mut self,
        tls: &Tls,
        rooms: &mut Rooms,
        deadline: &Deadline<'_>,
    ) -> Result<Agreed, Fault> {
        self.shake(tls)?;
        loop {
            if let Some(agreed) = self.shaken(rooms)? {
                return Ok(agreed);
            }
            let unsent = if self.is_unsent() { libc::POLLOUT } else { 0 };
            deadline.ready(self.fd(), libc::POLLIN | unsent).map_err(Fault::Io)?;
        }
    }

    /// Sends all bytes.
    ///
    /// # Errors
    /// As [`Self::send`]; [`Fault::Io`] of [`Deadline::left`], and [`io::ErrorKind::WriteZero`] if
    /// TLS accepts no more bytes.
    pub fn send_within(&mut self, mut bytes: &[u8], deadline: &Deadline<'_>) -> Result<(), Fault> {
        loop {
            let n = self.send(bytes)?;
            bytes = bytes.get(n..).unwrap_or_default();
            let unsent = self.is_unsent();
            match (bytes.is_empty(), unsent) {
                (true, false) => return Ok(()),
                (false, false) if self.tls.is_some() => {
                    return Err(Fault::Io(io::ErrorKind::WriteZero.into()));
                }
                _ => deadline.ready(self.fd(), libc::POLLOUT).map_err(Fault::Io)?,
            }
        }
    }

    /// Whether TLS holds bytes that the kernel has not taken.
    #[inline]
    pub fn is_unsent(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.is_unsent())
    }

    /// The TLS connection, if TLS is used.
    #[inline]
    pub fn tls(&mut self) -> Option<&mut TlsConn> {
        self.tls.as_deref_mut()
    }

    /// Receives available bytes into the buffers.
    ///
    /// # Errors
    /// Errors of the kernel or of TLS.
    #[inline]
    pub fn receive<'r>(&mut self, rooms: &'r mut Rooms) -> Result<(Received, &'r [u8]), Fault> {
        let fd = self.fd();
        let (received, from) = match &mut self.tls {
            None => {
                let n = receive(fd, &mut rooms.raw).map_err(Fault::Io)?;
                let drained = n < rooms.raw.len();
                let bytes = Received::Bytes { n, drained };
                (if n == 0 { Received::End { clean: true } } else { bytes }, &rooms.raw)
            }
            Some(tls) => (tls.read(fd, &mut rooms.raw, &mut rooms.plain)?, &rooms.plain),
        };
        let n = if let Received::Bytes { n, .. } = received { n } else { 0 };
        Ok((received, from.get(..n).unwrap_or_default()))
    }

    /// Whether the server sent the TLS close notification.
    #[inline]
    pub fn has_ended(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.has_ended())
    }

    /// Sends bytes without blocking; returns how many were taken.
    ///
    /// # Errors
    /// Errors of the kernel or of TLS.
    #[inline]
    pub fn send(&mut self, bytes: &[u8]) -> Result<usize, Fault> {
        let fd = self.fd();
        let mut sent = 0;
        let Some(tls) = &mut self.tls else {
            while let Some(rest) = bytes.get(sent..).filter(|r| !r.is_empty()) {
                match send(fd, rest) {
                    Ok(n) => sent += n,
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    Err(e) => return Err(Fault::Io(e)),
                }
            }
            return Ok(sent);
        };
        loop {
            let n = tls.accept(bytes.get(sent..).unwrap_or_default());
            sent += n;
            // After a failed handshake TLS accepts nothing.
            if !tls.flush(fd)? || sent == bytes.len() || n == 0 {
                return Ok(sent);
            }
        }
    }
}

fn send(fd: RawFd, bytes: &[u8]) -> io::Result<usize> {
    sys::send(fd, bytes, 0)
}
