//! The load engine: for netwright's own tests, and for servers of other protocols.
//!
//! For every measurement:
//!
//! - [`window`], [`conduct`]: the window with its warm-up and cool-down, and the course of a test.
//! - [`schedule`]: when requests are due in open loop.
//! - [`worker_pool`], [`wait`]: the threads of one end, and how they wait for data.
//! - [`assignments`]: CPU assignment; [`ran_on`], [`rx_cpu_samples`]: the CPUs that threads ran on
//!   and packets were received on.
//! - [`service_time`]: a simulated service time.
//! - [`rtt_recorder`]: a thread's record of round trips; [`floor`]: the cost of recording.
//! - [`ends`], [`confidence`]: the context of a run's rounds, and whether the rounds suffice.
//! - [`measured`]: the return value of a measurement.
//!
//! For servers of other protocols, which a workload implements:
//!
//! - [`protocol`]: the interface between a protocol and the event loop.
//! - [`event_loop`]: one thread's connections on one epoll: connects, begins due requests, times
//!   out.
//! - [`conn`], [`link`], [`places`]: a connection, its socket, and queues of waiting connections.
//! - [`pace`]: when the next request or transaction may begin.
//! - [`recorder`], [`failed`], [`handshakes`], [`connection_counts`]: a thread's record.
//! - [`load`]: parameters of all workloads, and runs over numbers of connections.
//! - [`workers`]: the threads of a round and their tasks.
//! - [`intervals`]: results of each interval while a run goes on.
//! - [`sums`]: totals over rounds.
//! - [`reach`], [`dial`], [`deadline`]: finding the server, connecting to it, and the time limit
//!   for both.
//! - [`admitted`], [`backlog`]: warnings on connections that the server refused, and on a schedule
//!   that was not kept.

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
pub mod measured;
pub mod pace;
pub mod places;
pub mod protocol;
pub mod ran_on;
pub mod reach;
pub mod recorder;
pub mod rtt_recorder;
pub mod rx_cpu_samples;
pub mod schedule;
pub mod service_time;
pub mod sums;
pub mod wait;
pub mod window;
pub mod worker_pool;
pub mod workers;
