//! One connection slot: its socket and its state.

use socket2::Socket;

use super::link::Link;
use crate::net::{
    now_ns,
    tls::{Tls, fault::Fault},
};

/// State of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Closed,
    Connecting,
    /// Connected; the request for TLS was sent.
    Asking,
    /// Connected; TLS handshake in progress.
    Shaking,
    /// The protocol's own greeting.
    Greeting,
    Open,
    /// Answered; the server is about to close.
    Lingering,
}

/// A connection slot; `S` is the protocol's state.
#[derive(Debug)]
pub struct Conn<S> {
    pub link: Link,
    pub phase: Phase,
    /// Time of the call of `connect`.
    pub begun_ns: u64,
    /// Time since when the server's Unix socket queue has been full.
    pub full_ns: Option<u64>,
    /// Time when it was connected and the handshake began.
    pub shaking_ns: u64,
    /// Requests answered on this connection.
    pub answered: u64,
    /// Whether the last answer announced the close.
    pub closing: bool,
    /// End of its sleep; 0 if it does not sleep.
    pub wake_ns: u64,
    /// Time of the last answer on any connection of this slot.
    pub last_ns: u64,
    /// Time since when the slot has no usable connection; `None` if it has one.
    pub away_since_ns: Option<u64>,
    pub state: S,
}

impl<S> Conn<S> {
    /// A slot without a connection.
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

    /// Takes a socket that began to connect at `begun_ns`.
    pub(super) fn take(&mut self, socket: Socket, begun_ns: u64) {
        (self.link, self.phase, self.begun_ns) = (Link::new(socket), Phase::Connecting, begun_ns);
        (self.answered, self.wake_ns) = (0, 0);
        (self.closing, self.full_ns) = (false, None);
    }

    /// Closes the socket; the protocol keeps the unanswered requests.
    pub(super) fn close(&mut self) {
        (self.link, self.phase) = (Link::default(), Phase::Closed);
        self.away_since_ns.get_or_insert_with(now_ns);
    }

    /// Begins TLS on an established connection.
    pub(super) fn shake(&mut self, tls: &Tls) -> Result<(), Fault> {
        self.phase = Phase::Shaking;
        self.link.shake(tls)
    }
}
