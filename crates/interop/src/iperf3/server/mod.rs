//! The server for unmodified iperf3 clients, many at once.
//!
//! One thread accepts (`accept`). The first 37 bytes of a TCP connection show whether it is a new
//! client or a stream of a known one (`registry`); the first datagram of a UDP stream creates a
//! socket for it (`udp`). Each client has a thread for its control connection (`opening`,
//! `running`, with shared state in `session`), and one for each stream.

mod accept;
mod listen;
mod opening;
mod registry;
mod report;
mod running;
mod session;
mod udp;

use std::{
    net::SocketAddr,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use listen::Listeners;
use traffic::{Result, budget::Budget};

/// Limits for each client and for all clients together.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Concurrent tests; a further client gets the busy error.
    pub clients: usize,
    /// Data connections of all tests together.
    pub streams: usize,
    /// Memory of all tests together, without kernel buffers.
    pub memory: Arc<Budget>,
    /// Longest test including its warm-up; longer ones are ended.
    pub duration: Duration,
    /// A test without any data for this long is ended.
    pub idle: Duration,
    /// Timeout for each step of a client before and after its test.
    pub step: Duration,
    /// Most unidentified connections; a further one replaces the oldest.
    pub strangers: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            clients: 64,
            streams: 1024,
            memory: Arc::new(Budget::new(512 << 20)),
            duration: Duration::from_secs(3600),
            idle: Duration::from_secs(60),
            step: Duration::from_secs(10),
            strangers: 1024,
        }
    }
}

/// An event for the log.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Event {
    Started {
        client: SocketAddr,
        /// Description, such as `TCP, reverse, 4 streams`.
        what: String,
    },
    /// A test was completed, and the client has its results.
    Finished {
        client: SocketAddr,
        /// Bytes received from the client.
        received_bytes: u64,
        /// Bytes sent to the client.
        sent_bytes: u64,
        seconds: f64,
    },
    /// A test ended early.
    Broken { client: SocketAddr, why: String },
    /// A client was refused, or a connection was not iperf3.
    TurnedAway { client: SocketAddr, why: String },
    /// This kernel lacks something that the client requested; the test continues.
    Warned { client: SocketAddr, what: String },
    /// The server has a problem itself, such as no descriptor left.
    Trouble { what: String },
}

#[derive(Debug)]
pub struct Server {
    listeners: Listeners,
}

impl Server {
    /// Binds TCP and UDP on the same ports. Port 0 selects one that is free for both. `[::]` also
    /// accepts IPv4, unless an IPv4 address is listed too.
    ///
    /// # Errors
    /// An address cannot be bound: in use, not on this host, or a port below 1024.
    pub fn bind(listen: &[SocketAddr]) -> Result<Self> {
        Ok(Self { listeners: Listeners::bind(listen)? })
    }

    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.listeners.addresses()
    }

    /// Serves until `stop` is set. Clients with a running test are informed then.
    ///
    /// # Errors
    /// The kernel fails to wait for connections.
    pub fn run(
        &self,
        limits: &Limits,
        stop: &AtomicBool,
        on_event: &(dyn Fn(Event) + Sync),
    ) -> Result<()> {
        accept::run(&self.listeners, limits, stop, on_event)
    }
}

/// [`Server::bind`] and [`Server::run`].
///
/// # Errors
/// Errors of either.
pub fn serve(
    listen: &[SocketAddr],
    limits: &Limits,
    stop: &AtomicBool,
    on_event: &(dyn Fn(Event) + Sync),
) -> Result<()> {
    Server::bind(listen)?.run(limits, stop, on_event)
}
