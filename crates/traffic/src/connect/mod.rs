//! Connections made and ended: the client makes them (`local`), the server accepts, answers and
//! closes them (`peer`). `ports` computes the limit of local ports.

mod local;
pub mod measure;
pub mod peer;
pub mod ports;
mod recorder;
mod result;
mod slot;

use model::measure::{Close, Transport, Wait};

/// The exchange on each connection.
#[derive(Debug, Clone, Copy)]
pub struct ConnectShape {
    pub transport: Transport,
    /// Request size in bytes; 0 sends no request.
    pub request_bytes: u64,
    /// Response size in bytes; 0 expects no response.
    pub response_bytes: u64,
    pub close: Close,
    pub wait: Wait,
    /// Timeout after which an attempt counts as failed.
    pub timeout_ns: u64,
    /// Service time that the server adds before each response.
    pub service_ns: u64,
}
