//! The server for unmodified iperf3 clients, many at once.
//!
//! One thread accepts (`accept`): the first 37 bytes of a TCP connection tell whether it is a
//! new client or a stream of one that is known (`registry`); the first datagram of a UDP
//! stream makes a socket of its own (`udp`). Each client has a thread for its control
//! connection (`opening`, `running`; what both know is its `session`) and one for each stream.

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

/// What one client, and all together, may cost.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Tests at once; the next client is told that the server is busy.
    pub clients: usize,
    /// Data connections of all tests.
    pub streams: usize,
    /// Memory for all tests, buffers in the kernel not counted.
    pub memory: Arc<Budget>,
    /// The longest test, with its warm-up; then it is ended, whatever was asked.
    pub duration: Duration,
    /// A test in which nothing moves for so long is ended.
    pub idle: Duration,
    /// How long a client may take for each step before and after its test.
    pub step: Duration,
    /// Connections that have not said yet what they are; the oldest gives way.
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

/// What happens, for a log.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Event {
    Started {
        client: SocketAddr,
        /// `TCP, reverse, 4 streams`.
        what: String,
    },
    /// A test came to its end, and the client has its results.
    Finished {
        client: SocketAddr,
        /// Bytes that came from the client.
        received_bytes: u64,
        /// Bytes that went to it.
        sent_bytes: u64,
        seconds: f64,
    },
    /// A test ended before its time.
    Broken { client: SocketAddr, why: String },
    /// A client got no test, or a stranger was none.
    TurnedAway { client: SocketAddr, why: String },
    /// What a client asked for and this kernel cannot do; the test goes on.
    Warned { client: SocketAddr, what: String },
    /// The server itself has a problem: no file descriptor left.
    Trouble { what: String },
}

#[derive(Debug)]
pub struct Server {
    listeners: Listeners,
}

impl Server {
    /// Binds TCP and UDP on the same ports. Port 0 is any that is free for both. Without an
    /// IPv4 address beside it, `[::]` takes IPv4 too.
    ///
    /// # Errors
    /// When an address cannot be had: in use, not of this host, a port below 1024.
    pub fn bind(listen: &[SocketAddr]) -> Result<Self> {
        Ok(Self { listeners: Listeners::bind(listen)? })
    }

    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.listeners.addresses()
    }

    /// Serves until `stop` is set. Clients in the midst of a test are told then.
    ///
    /// # Errors
    /// When the kernel no longer lets it wait for connections.
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
/// As those.
pub fn serve(
    listen: &[SocketAddr],
    limits: &Limits,
    stop: &AtomicBool,
    on_event: &(dyn Fn(Event) + Sync),
) -> Result<()> {
    Server::bind(listen)?.run(limits, stop, on_event)
}
