//! What the generators for servers of another kind, `http` and `pg`, have in common.
//!
//! - [`dial`]: sockets on their way to the server.
//! - [`crew`]: the threads of a round, and what each is to do.
//! - [`pace`]: when the next request or transaction may begin.
//! - [`places`]: which of a thread's connections waits for what.
//! - [`sums`]: rounds added up.

pub mod crew;
pub mod dial;
pub mod pace;
pub mod places;
pub mod sums;
