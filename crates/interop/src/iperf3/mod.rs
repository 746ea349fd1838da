//! The protocol of iperf3, in both roles, for programs that cannot be changed.
//!
//! A control connection (`wire`) carries states, the parameters of a test (`params`) and
//! both ends' results (`results`). The data moves on connections of its own, one thread for
//! each (`flow`). [`serve`] is the server, for many clients at once; [`client()`] the
//! near one.

mod client;
mod flow;
pub(crate) mod fuzzed;
mod params;
mod results;
mod server;
pub(crate) mod sock;
mod wire;

pub use client::client;
pub use server::{Event, Limits, Server, serve};

/// The port that iperf3 uses when none is named.
pub const PORT: u16 = 5201;
