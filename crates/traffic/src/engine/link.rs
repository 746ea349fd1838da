//! A socket to a server, with TLS or without.

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

/// Room for what a thread receives at a time, from whichever connection.
#[derive(Debug)]
pub struct Rooms {
    raw: Vec<u8>,
    /// Without TLS; unused where there is none.
    plain: Vec<u8>,
}

impl Rooms {
    /// For so many bytes at a time.
    pub fn new(bytes: usize, tls: bool) -> Self {
        let plain = if tls { room_for(bytes) } else { 0 };
        Self { raw: vec![0; bytes], plain: vec![0; plain] }
    }
}

/// A socket, or the place of one.
#[derive(Debug, Default)]
pub struct Link {
    socket: Option<Socket>,
    tls: Option<Box<TlsConn>>,
}

impl Link {
    /// Of a socket, without TLS so far.
    pub fn new(socket: Socket) -> Self {
        Self { socket: Some(socket), tls: None }
    }

    pub fn socket(&self) -> Option<&Socket> {
        self.socket.as_ref()
    }

    /// Its descriptor; −1 where it has none.
    #[inline]
    pub fn fd(&self) -> RawFd {
        self.socket.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }

    /// Whether connecting went well; the errno if not.
    pub fn outcome(&self) -> Result<(), i32> {
        match self.socket.as_ref().map(Socket::take_error) {
            Some(Ok(None)) => Ok(()),
            Some(Ok(Some(e)) | Err(e)) => Err(e.raw_os_error().unwrap_or(0)),
            None => Err(libc::ENOTCONN),
        }
    }

    /// Begins TLS on a connection that is established.
    ///
    /// # Errors
    /// As [`Tls::begin`].
    pub fn shake(&mut self, tls: &Tls) -> Result<(), Fault> {
        self.tls = Some(Box::new(tls.begin()?));
        Ok(())
    }

    /// Goes on with the handshake; what was agreed on once it is done.
    ///
    /// # Errors
    /// As [`TlsConn::handshake`].
    pub fn shaken(&mut self, rooms: &mut Rooms) -> Result<Option<Agreed>, Fault> {
        let fd = self.fd();
        let Some(tls) = &mut self.tls else { return Ok(None) };
        Ok(if tls.handshake(fd, &mut rooms.raw)? { tls.agreed() } else { None })
    }

    /// A whole handshake on a connection that is established.
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
    /// As [`Self::send`]; [`Fault::Io`] of [`Deadline::left`], and of
    /// [`io::ErrorKind::WriteZero`] where TLS takes nothing any more.
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

    /// Whether TLS has taken bytes that the kernel has not.
    #[inline]
    pub fn is_unsent(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.is_unsent())
    }

    /// TLS, where it is spoken.
    #[inline]
    pub fn tls(&mut self) -> Option<&mut TlsConn> {
        self.tls.as_deref_mut()
    }

    /// What the kernel has for us, and those bytes in the rooms.
    ///
    /// # Errors
    /// As the kernel says, or TLS.
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

    /// Whether the server said, under TLS, that it sends no more.
    #[inline]
    pub fn has_ended(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.has_ended())
    }

    /// Sends bytes as far as the kernel takes them; how many it, or TLS, took.
    ///
    /// # Errors
    /// As the kernel says.
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
            // After a handshake that failed it takes nothing any more.
            if !tls.flush(fd)? || sent == bytes.len() || n == 0 {
                return Ok(sent);
            }
        }
    }
}

fn send(fd: RawFd, bytes: &[u8]) -> io::Result<usize> {
    sys::send(fd, bytes, 0)
}
