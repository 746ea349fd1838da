//! The iperf3 protocol in both roles, compatible with the unmodified program.
//!
//! A control connection (`wire`) carries states, the parameters of a test (`params`) and both ends'
//! results (`results`). The data uses separate connections, with one thread for each (`flow`).
//! [`serve`] is the server, for many clients at once; [`client()`] is the client.

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

/// The TCP port of an iperf3 server without `-p`.
pub const PORT: u16 = 5201;
