//! What the generators for servers of another kind, `http` and `pg`, have in common.
//!
//! - [`admitted`]: what is said of connections that the server did not take.
//! - [`backlog`]: what is said of a schedule that was not kept.
//! - [`deadline`]: how long all that comes before the traffic may take.
//! - [`dial`]: sockets on their way to the server.
//! - [`workers`]: the threads of a round, and what each is to do.
//! - [`fate`]: what became of connections, and of what was to be begun, beside the answers.
//! - [`handshakes`]: TLS handshakes that were made.
//! - [`intervals`]: what came of each second, while it goes on.
//! - [`link`]: a socket, with TLS or without.
//! - [`pace`]: when the next request or transaction may begin.
//! - [`places`]: which of a thread's connections waits for what.
//! - [`sums`]: rounds added up.

pub mod admitted;
pub mod backlog;
pub mod connection_counts;
pub mod deadline;
pub mod dial;
pub mod handshakes;
pub mod intervals;
pub mod link;
pub mod pace;
pub mod places;
pub mod sums;
pub mod workers;
