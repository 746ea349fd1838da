//! Connections made and ended: the client makes them (`local`), the server accepts, answers
//! and closes them (`peer`); what local ports allow is in `ports`.

mod local;
pub mod measure;
pub mod peer;
pub mod ports;
mod recorder;
mod result;
mod slot;

use model::measure::{Close, Transport, Wait};

/// What happens on each connection.
#[derive(Debug, Clone, Copy)]
pub struct ConnectShape {
    pub transport: Transport,
    /// 0 for none.
    pub request_bytes: u64,
    /// 0 for none.
    pub response_bytes: u64,
    pub close: Close,
    pub wait: Wait,
    /// When an attempt counts as failed.
    pub timeout_ns: u64,
    /// The server's injected service time.
    pub service_ns: u64,
}
