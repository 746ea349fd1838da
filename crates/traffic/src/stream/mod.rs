//! Bulk data in one direction or both.
//!
//! `measure` runs one combination of sizes and flows after the other; `stream_window` conducts a
//! run. Both ends are a `side`: threads that send (`send`), receive (`receive`) or, with several
//! flows each, do both (`many`). Other threads read their counters by flow (`shared_counts`).
//! Figures are the receiver's, on its own clock.

pub(crate) mod datagram;
mod lowat;
mod many;
pub(crate) mod measure;
pub mod modes;
mod pace;
mod part;
pub(crate) mod peer;
pub(crate) mod receive;
mod result;
mod send;
mod series;
pub(crate) mod shared_counts;
mod side;
pub(crate) mod stream_window;
pub mod tcp_info;
mod zerocopy;

use model::measure::{Direction, Transport, Wait, ZeroCopy};

/// Parameters of one end of a stream.
#[derive(Debug, Clone, Copy)]
pub struct StreamShape {
    pub transport: Transport,
    /// Direction as seen from the client.
    pub direction: Direction,
    /// Whether this is the client.
    pub local: bool,
    pub message_bytes: usize,
    /// Bits per second over all flows of one direction.
    pub rate_bps: Option<u64>,
    /// Flows of one direction.
    pub flows: u32,
    pub zerocopy: Option<ZeroCopy>,
    pub skip_receive_copy: bool,
    pub wait: Wait,
}

impl StreamShape {
    /// Whether a flow sends from the client to the server.
    pub fn goes_forward(&self, index: u32) -> bool {
        match self.direction {
            Direction::Forward => true,
            Direction::Reverse => false,
            Direction::Both => index.is_multiple_of(2),
        }
    }

    /// Whether this end sends on a flow.
    pub fn sends(&self, index: u32) -> bool {
        self.goes_forward(index) == self.local
    }

    /// Whether the transport is a byte stream without message boundaries.
    pub fn bytes(&self) -> bool {
        self.transport != Transport::Udp
    }

    /// Number of connections of all directions.
    pub fn connections(&self) -> u32 {
        match self.direction {
            Direction::Both => self.flows.saturating_mul(2),
            _ => self.flows,
        }
    }
}
