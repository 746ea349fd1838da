//! qperf 0.4.11 (frozen upstream, as in Debian), both ends: [`serve()`] serves its unmodified
//! clients, [`client_rtt`] and [`client_stream`] measure with its unmodified server.
//!
//! qperf's client prints half of the mean round trip, computed from a message count and ticks of 10
//! ms. Here each round trip is recorded, and reported whole.

mod client;
mod clock;
mod data;
pub(crate) mod fuzzed;
mod limits;
mod local;
mod peer;
mod result;
mod rtt;
mod sender;
mod serve;
mod session;
mod stream;
mod talk;
pub mod wire;

pub use limits::Limits;
pub use rtt::client_rtt;
pub use serve::{Event, listen, serve};
pub use stream::client_stream;
pub use wire::PORT;
