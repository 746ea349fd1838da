//! One connection: its socket, what is to be sent on it, and the messages that come.

use std::{
    io,
    os::fd::{AsRawFd, RawFd},
};

use bytes::{Buf, BytesMut};
use socket2::Socket;

use super::{
    client::Client,
    login::{Credentials, Login, Refused, Step},
    plan::Plan,
    wire::{Frames, Next},
};

/// How far a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Closed,
    Connecting,
    LoggingIn,
    Open,
}

/// What the bytes that came mean.
#[derive(Debug, PartialEq, Eq)]
pub enum Heard {
    /// Nothing yet.
    Nothing,
    /// The server takes queries from now on.
    LoggedIn,
    /// It does not let us in.
    Refused(Refused),
    /// The client may go on.
    Some,
    /// It is no PostgreSQL.
    Bad(&'static str),
}

/// A connection, or the place of one.
#[derive(Debug)]
pub struct Conn {
    socket: Option<Socket>,
    pub phase: Phase,
    /// When it began to connect.
    pub begun_ns: u64,
    pub out: BytesMut,
    frames: Frames,
    login: Login,
    pub client: Client,
    /// Transactions that were over on this connection.
    pub settled: u64,
    /// Until when the script sleeps; 0 where it does not.
    pub wake_ns: u64,
}

impl Conn {
    /// A place without a connection.
    pub fn new(client: Client) -> Self {
        Self {
            socket: None,
            phase: Phase::Closed,
            begun_ns: 0,
            out: BytesMut::with_capacity(4096),
            frames: Frames::default(),
            login: Login::default(),
            client,
            settled: 0,
            wake_ns: 0,
        }
    }

    /// Its descriptor; −1 where it has none.
    pub fn fd(&self) -> RawFd {
        self.socket.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }

    /// Takes a socket that is connecting since then.
    pub fn take(&mut self, socket: Socket, begun_ns: u64) {
        (self.socket, self.phase, self.begun_ns) = (Some(socket), Phase::Connecting, begun_ns);
        (self.settled, self.wake_ns) = (0, 0);
        self.out.clear();
        self.frames.reset();
        self.login = Login::default();
        self.client.forget();
    }

    /// Whether connecting went well; the errno if not.
    pub fn outcome(&self) -> Result<(), i32> {
        match self.socket.as_ref().map(Socket::take_error) {
            Some(Ok(None)) => Ok(()),
            Some(Ok(Some(e)) | Err(e)) => Err(e.raw_os_error().unwrap_or(0)),
            None => Err(libc::ENOTCONN),
        }
    }

    /// Begins the session.
    pub fn greet(&mut self, who: &Credentials) {
        self.phase = Phase::LoggingIn;
        self.out.extend_from_slice(&who.startup);
    }

    /// Closes, telling the server where it listens.
    pub fn close(&mut self) {
        if self.phase == Phase::Open {
            self.out.clear();
            postgres_protocol::message::frontend::terminate(&mut self.out);
            let _ = self.push();
        }
        (self.socket, self.phase) = (None, Phase::Closed);
    }

    /// Hands over what is to be sent, as far as the kernel takes it.
    #[inline]
    pub fn push(&mut self) -> io::Result<()> {
        let fd = self.fd();
        while !self.out.is_empty() {
            // SAFETY: the bytes outlive the call and their length is given.
            let n = unsafe {
                libc::send(fd, self.out.as_ptr().cast(), self.out.len(), libc::MSG_NOSIGNAL)
            };
            if n >= 0 {
                if let Some(running) = &mut self.client.running {
                    running.moved.sent(n as usize);
                }
                match n as usize {
                    n if n == self.out.len() => self.out.clear(),
                    n => self.out.advance(n),
                }
                continue;
            }
            let e = io::Error::last_os_error();
            match e.kind() {
                io::ErrorKind::WouldBlock => return Ok(()),
                io::ErrorKind::Interrupted => {}
                _ => return Err(e),
            }
        }
        Ok(())
    }

    /// What the kernel has for us.
    #[inline]
    pub fn receive(&self, room: &mut [u8]) -> io::Result<usize> {
        loop {
            // SAFETY: the room outlives the call and its length is given.
            let n = unsafe { libc::recv(self.fd(), room.as_mut_ptr().cast(), room.len(), 0) };
            if n >= 0 {
                return Ok(n as usize);
            }
            let e = io::Error::last_os_error();
            if e.kind() != io::ErrorKind::Interrupted {
                return Err(e);
            }
        }
    }

    /// Bytes that came; tells of each statement that is answered, with the time it was sent.
    #[inline]
    pub fn took(
        &mut self,
        mut bytes: &[u8],
        who: &Credentials,
        plan: &Plan,
        mut answered: impl FnMut(usize, u64),
    ) -> Heard {
        let mut heard = Heard::Nothing;
        if let Some(running) = &mut self.client.running {
            running.moved.received(bytes.len());
        }
        loop {
            let Self { frames, client, .. } = self;
            let login = self.phase == Phase::LoggingIn;
            let next = frames.next(&mut bytes, |kind| login || client.wants(kind));
            let (kind, body) = match next {
                Next::More => return heard,
                Next::Bad(why) => return Heard::Bad(why),
                Next::Whole(kind, body) => (kind, body),
                Next::Kept(kind) => (kind, frames.kept()),
                Next::Passed(kind) => (kind, &[][..]),
            };
            if login {
                match self.login.take(kind, body, who, &mut self.out) {
                    Ok(Step::More) => {}
                    Ok(Step::Ready) => {
                        self.phase = Phase::Open;
                        heard = Heard::LoggedIn;
                    }
                    Err(why) => return Heard::Refused(why),
                }
                continue;
            }
            if let Err(why) = client.take(kind, body, plan, &mut answered) {
                return Heard::Bad(why);
            }
            if heard == Heard::Nothing {
                heard = Heard::Some;
            }
        }
    }
}
