//! One connection: its pending output and its incoming messages.

use bytes::{Buf, BytesMut};
use traffic::{engine::link::Link, net::tls::fault::Fault};

use super::{
    client::Client,
    login::{Credentials, Login, Refused, Step},
    plan::Plan,
    wire::{Frames, Next},
};

/// Meaning of received bytes.
#[derive(Debug, PartialEq, Eq)]
pub enum Heard {
    Nothing,
    /// The server accepts queries from now on.
    LoggedIn,
    /// The server refuses the login.
    Refused(Refused),
    /// The client may continue.
    Some,
    /// Not the PostgreSQL protocol.
    Bad(&'static str),
}

/// A client and the state of its connection.
#[derive(Debug)]
pub struct SessionState {
    pub out: BytesMut,
    frames: Frames,
    login: Login,
    pub client: Client,
}

impl SessionState {
    /// Initial state, before any connection is made.
    pub fn new(client: Client) -> Self {
        Self {
            out: BytesMut::with_capacity(4096),
            frames: Frames::default(),
            login: Login::default(),
            client,
        }
    }

    /// Resets the state for a new connection.
    pub fn reset(&mut self) {
        self.out.clear();
        self.frames.reset();
        self.client.forget();
    }

    /// Queues the startup message and begins the login.
    pub fn greet(&mut self, link: &mut Link, who: &Credentials) {
        self.login = match link.tls() {
            None => Login::default(),
            Some(tls) => Login::over_tls(tls.end_point()),
        };
        self.out.extend_from_slice(&who.startup);
    }

    /// Sends pending output, as far as the kernel takes it.
    ///
    /// # Errors
    /// Errors of the kernel or of TLS.
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

    /// Takes received bytes, `greeting` before the login is done; reports each answered statement
    /// with its send time.
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
