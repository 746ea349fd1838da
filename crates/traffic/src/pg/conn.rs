//! One connection: its socket, what is to be sent on it, and the messages that come.

use std::io;

use bytes::{Buf, BytesMut};
use socket2::Socket;

use super::{
    client::Client,
    login::{Credentials, Login, Refused, Step},
    plan::Plan,
    wire::{ASK_FOR_TLS, Frames, Next},
};
use crate::{
    net::{
        now_ns,
        tls::{conn::receive, fault::Fault},
    },
    served::link::Link,
};

/// How far a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Closed,
    Connecting,
    /// Connected; TLS was asked for.
    Asking,
    /// TLS is being agreed on.
    Shaking,
    LoggingIn,
    Open,
}

/// What the bytes that came mean.
#[derive(Debug, PartialEq, Eq)]
pub enum Heard {
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
    pub link: Link,
    pub phase: Phase,
    /// When it began to connect.
    pub begun_ns: u64,
    /// When it was connected and TLS was asked for.
    pub shaking_ns: u64,
    pub out: BytesMut,
    frames: Frames,
    login: Login,
    pub client: Client,
    /// Transactions that were over on this connection.
    pub settled: u64,
    /// Until when the script sleeps; 0 where it does not.
    pub wake_ns: u64,
    /// When the last answer came, on whichever connection.
    pub last_ns: u64,
    /// Since when the client has no session; `None` where it has one.
    pub away_since_ns: Option<u64>,
}

impl Conn {
    /// A place without a connection.
    pub fn new(client: Client) -> Self {
        Self {
            link: Link::default(),
            phase: Phase::Closed,
            begun_ns: 0,
            shaking_ns: 0,
            out: BytesMut::with_capacity(4096),
            frames: Frames::default(),
            login: Login::default(),
            client,
            settled: 0,
            wake_ns: 0,
            last_ns: 0,
            away_since_ns: Some(0),
        }
    }

    /// Takes a socket that is connecting since then.
    pub fn take(&mut self, socket: Socket, begun_ns: u64) {
        (self.link, self.phase, self.begun_ns) = (Link::new(socket), Phase::Connecting, begun_ns);
        (self.settled, self.wake_ns) = (0, 0);
        self.out.clear();
        self.frames.reset();
        self.client.forget();
    }

    /// Asks for TLS.
    ///
    /// # Errors
    /// As the kernel says.
    pub fn ask(&mut self, now: u64) -> Result<(), Fault> {
        (self.phase, self.shaking_ns) = (Phase::Asking, now);
        // A new socket has room for eight bytes.
        self.link.send(&ASK_FOR_TLS).map(|_| ())
    }

    /// What the server says to that: nothing yet, or whether it speaks TLS. Its one byte is taken
    /// alone: what one between would put behind it is not of the server's.
    ///
    /// # Errors
    /// As the kernel says; [`io::ErrorKind::UnexpectedEof`] where it closed.
    pub fn asked(&mut self) -> Result<Option<bool>, Fault> {
        let mut answer = [0];
        match receive(self.link.fd(), &mut answer) {
            Ok(0) => Err(Fault::Io(io::ErrorKind::UnexpectedEof.into())),
            Ok(_) => Ok(Some(answer == *b"S")),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(e) => Err(Fault::Io(e)),
        }
    }

    pub fn greet(&mut self, who: &Credentials) {
        self.phase = Phase::LoggingIn;
        self.login = match self.link.tls() {
            None => Login::default(),
            Some(tls) => Login::over_tls(tls.end_point()),
        };
        self.out.extend_from_slice(&who.startup);
    }

    /// Closes, telling the server where it listens.
    pub fn close(&mut self) {
        if self.phase == Phase::Open {
            self.out.clear();
            postgres_protocol::message::frontend::terminate(&mut self.out);
            let _ = self.push();
        }
        (self.link, self.phase) = (Link::default(), Phase::Closed);
        self.away_since_ns.get_or_insert_with(now_ns);
    }

    /// Hands over what is to be sent, as far as the kernel takes it.
    ///
    /// # Errors
    /// As the kernel says.
    #[inline]
    pub fn push(&mut self) -> Result<(), Fault> {
        if self.out.is_empty() && self.link.tls().is_none() {
            return Ok(());
        }
        let n = self.link.send(&self.out)?;
        if let Some(running) = self.client.running.as_mut().filter(|_| n > 0) {
            running.moved.sent(n);
        }
        match n {
            n if n == self.out.len() => self.out.clear(),
            n => self.out.advance(n),
        }
        Ok(())
    }

    /// Whether something may be left to be sent.
    #[inline]
    pub fn has_more(&mut self) -> bool {
        !self.out.is_empty() || self.link.tls().is_some()
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
        if let Some(running) = self.client.running.as_mut().filter(|_| !bytes.is_empty()) {
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
