//! What runs load: for our own tests between both ends, and against servers of any kind.
//!
//! For every measurement:
//!
//! - [`window`], [`conduct`]: the window with its warm-up and cool-down, and the course of a test.
//! - [`schedule`]: when requests are due in open loop.
//! - [`worker_pool`], [`wait`]: the threads of one end, and how they wait for bytes.
//! - [`assignments`]: which CPUs they run on; [`ran_on`], [`looks`]: which they and their packets were on.
//! - [`service_time`]: a service time that is known.
//! - [`rtt_recorder`]: what a thread keeps of its round trips; [`floor`]: what keeping it costs.
//! - [`ends`], [`confidence`]: what stood around a run's rounds, and whether they suffice.
//! - [`measured`]: what a measurement gives back.
//!
//! Against servers that speak another protocol, which a workload brings:
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
//! - [`reach`], [`dial`], [`deadline`]: the server before the first run, sockets on their way to a
//!   server, and how long all that comes before the traffic may take.
//! - [`admitted`], [`backlog`]: what is said of connections that the server did not take, and of a
//!   schedule that was not kept.

pub mod admitted;
pub mod assignments;
pub mod backlog;
pub mod conduct;
pub mod confidence;
pub mod conn;
pub mod connection_counts;
pub mod deadline;
pub mod dial;
pub mod ends;
pub mod event_loop;
pub mod failed;
pub mod floor;
pub mod handshakes;
pub mod intervals;
pub mod link;
pub mod load;
pub mod looks;
pub mod measured;
pub mod pace;
pub mod places;
pub mod protocol;
pub mod ran_on;
pub mod reach;
pub mod recorder;
pub mod rtt_recorder;
pub mod schedule;
pub mod service_time;
pub mod sums;
pub mod wait;
pub mod window;
pub mod worker_pool;
pub mod workers;
