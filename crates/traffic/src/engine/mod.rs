//! What runs load against servers of any kind; a workload brings its protocol.
//!
//! - [`protocol`]: what a protocol is to the event loop.
//! - [`event_loop`]: one thread's connections on one epoll: connects, begins what is due, gives up.
//! - [`conn`], [`link`], [`places`]: a connection, its socket, and which of them waits for what.
//! - [`pace`]: when the next request or transaction may begin.
//! - [`recorder`], [`failed`], [`handshakes`], [`connection_counts`]: what a thread keeps.
//! - [`load`]: what every workload is asked, and its runs over numbers of connections.
//! - [`workers`]: the threads of a round, and what each is to do.
//! - [`intervals`]: what came of each second, while it goes on.
//! - [`sums`]: rounds added up.
//! - [`reach`], [`dial`], [`deadline`]: the server before the first run, sockets on their way to a server, and how long all that comes before the
//!   traffic may take.
//! - [`admitted`], [`backlog`]: what is said of connections that the server did not take, and of a
//!   schedule that was not kept.

pub mod admitted;
pub mod backlog;
pub mod conn;
pub mod connection_counts;
pub mod deadline;
pub mod dial;
pub mod event_loop;
pub mod failed;
pub mod handshakes;
pub mod intervals;
pub mod link;
pub mod load;
pub mod pace;
pub mod places;
pub mod protocol;
pub mod reach;
pub mod recorder;
pub mod sums;
pub mod workers;
