//! One connection, or the place of one: its socket and how far it is.

use socket2::Socket;

use super::link::Link;
use crate::net::{
    now_ns,
    tls::{Tls, fault::Fault},
};

/// How far a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Closed,
    Connecting,
    /// Connected; TLS was asked for.
    Asking,
    /// Connected; TLS is being agreed on.
    Shaking,
    /// The protocol's own beginning: who we are.
    Greeting,
    Open,
    /// Answered; the server is about to close.
    Lingering,
}

/// A connection, or the place of one; `S` is what the protocol keeps of it.
#[derive(Debug)]
pub struct Conn<S> {
    pub link: Link,
    pub phase: Phase,
    /// When it began to connect.
    pub begun_ns: u64,
    /// Since when the queue of the server's Unix socket has no room for it.
    pub full_ns: Option<u64>,
    /// When it was connected and the handshake began.
    pub shaking_ns: u64,
    /// Requests that were answered on this connection.
    pub answered: u64,
    /// The last answer said that no other follows.
    pub closing: bool,
    /// Until when it is to sleep; 0 where it is not.
    pub wake_ns: u64,
    /// When the last answer came, on whichever connection.
    pub last_ns: u64,
    /// Since when this place has no connection that can be asked; `None` where it has one.
    pub away_since_ns: Option<u64>,
    pub state: S,
}

impl<S> Conn<S> {
    /// A place without a connection.
    pub fn new(state: S) -> Self {
        Self {
            link: Link::default(),
            phase: Phase::Closed,
            begun_ns: 0,
            full_ns: None,
            shaking_ns: 0,
            answered: 0,
            closing: false,
            wake_ns: 0,
            last_ns: 0,
            away_since_ns: Some(0),
            state,
        }
    }

    /// Takes a socket that is connecting since then.
    pub(super) fn take(&mut self, socket: Socket, begun_ns: u64) {
        (self.link, self.phase, self.begun_ns) = (Link::new(socket), Phase::Connecting, begun_ns);
        (self.answered, self.wake_ns) = (0, 0);
        (self.closing, self.full_ns) = (false, None);
    }

    /// Closes; what was asked and not answered stays with the protocol.
    pub(super) fn close(&mut self) {
        (self.link, self.phase) = (Link::default(), Phase::Closed);
        self.away_since_ns.get_or_insert_with(now_ns);
    }

    /// Begins TLS on a connection that is established.
    pub(super) fn shake(&mut self, tls: &Tls) -> Result<(), Fault> {
        self.phase = Phase::Shaking;
        self.link.shake(tls)
    }
}
