//! One connection: what is to be sent on it, and the messages that come.

use bytes::{Buf, BytesMut};
use traffic::{engine::link::Link, net::tls::fault::Fault};

use super::{
    client::Client,
    login::{Credentials, Login, Refused, Step},
    plan::Plan,
    wire::{Frames, Next},
};

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

/// A client and its session at the server.
#[derive(Debug)]
pub struct SessionState {
    pub out: BytesMut,
    frames: Frames,
    login: Login,
    pub client: Client,
}

impl SessionState {
    /// Without a session.
    pub fn new(client: Client) -> Self {
        Self {
            out: BytesMut::with_capacity(4096),
            frames: Frames::default(),
            login: Login::default(),
            client,
        }
    }

    /// As on a new connection, which knows of nothing.
    pub fn reset(&mut self) {
        self.out.clear();
        self.frames.reset();
        self.client.forget();
    }

    /// Begins a session.
    pub fn greet(&mut self, link: &mut Link, who: &Credentials) {
        self.login = match link.tls() {
            None => Login::default(),
            Some(tls) => Login::over_tls(tls.end_point()),
        };
        self.out.extend_from_slice(&who.startup);
    }

    /// Hands over what is to be sent, as far as the kernel takes it.
    ///
    /// # Errors
    /// As the kernel says, or TLS.
    #[inline]
    pub fn push(&mut self, link: &mut Link) -> Result<(), Fault> {
        let n = link.send(&self.out)?;
        if let Some(running) = self.client.running.as_mut().filter(|_| n > 0) {
            running.moved.sent(n);
        }
        match n {
            n if n == self.out.len() => self.out.clear(),
            n => self.out.advance(n),
        }
        Ok(())
    }

    /// Bytes that came, `greeting` before the session is there; tells of each statement that is
    /// answered, with the time it was sent.
    #[inline]
    pub fn took(
        &mut self,
        greeting: bool,
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
            let login = greeting && heard != Heard::LoggedIn;
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
                    Ok(Step::Ready) => heard = Heard::LoggedIn,
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
