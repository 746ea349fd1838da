//! Results of `measure` as text: the request, a line for each run, and around it placement, CPU
//! time and warnings.
//!
//! What all runs have in common stands once above the table. A remark about several runs stands
//! once below it.

mod connect;
mod cpu;
mod ends;
mod head;
mod http;
mod intervals;
pub(crate) mod numbers;
mod offload;
mod pg;
mod redis;
mod rest;
mod rtt;
mod runs;
mod served;
mod stream;
mod sweep;

use model::{
    Nanos, Warning,
    measure::{
        BothCpu, BothEvidence, ConnectRun, HttpRun, PgRun, Placement, RedisRun, RttRun, StreamRun,
        Wait,
    },
};

pub use connect::text as connect;
pub use http::text as http;
pub use offload::{headline as offload_headline, text as offload};
pub use pg::{pg_init, text as pg};
pub use redis::text as redis;
pub use rtt::text as rtt;
pub use stream::text as stream;

/// What the text needs of every kind of run.
trait Run {
    fn placement(&self) -> &Placement;
    fn cpu(&self) -> &BothCpu;
    fn evidence(&self) -> &BothEvidence;
    fn warnings(&self) -> &[Warning];
    fn waits(&self) -> (Wait, Wait);
    fn threads(&self) -> u32;
    fn window(&self) -> Nanos;
    fn trimmed(&self) -> Nanos;
    /// The count that this run's CPU time is divided by.
    fn units(&self) -> u64;
    /// Whether this run and the previous one are the two directions of one window, with the same
    /// CPU time and counters.
    fn is_one_with(&self, before: &Self) -> bool;
}

macro_rules! run {
    ($name:ty, $units:ident, $peer_wait:ident, $is_one:expr) => {
        impl Run for $name {
            fn placement(&self) -> &Placement {
                &self.placement
            }
            fn cpu(&self) -> &BothCpu {
                &self.cpu
            }
            fn evidence(&self) -> &BothEvidence {
                &self.evidence
            }
            fn warnings(&self) -> &[Warning] {
                &self.warnings
            }
            fn waits(&self) -> (Wait, Wait) {
                (self.wait, self.$peer_wait)
            }
            fn threads(&self) -> u32 {
                self.threads
            }
            fn window(&self) -> Nanos {
                self.window_ns
            }
            fn trimmed(&self) -> Nanos {
                self.trimmed_ns
            }
            fn units(&self) -> u64 {
                self.$units
            }
            fn is_one_with(&self, before: &Self) -> bool {
                $is_one(self, before)
            }
        }
    };
}

run!(RttRun, transactions, peer_wait, |_, _| false);
run!(StreamRun, bytes, peer_wait, other_way);
run!(ConnectRun, connections, peer_wait, |_, _| false);
// A foreign server does not report how it waits.
run!(HttpRun, transactions, wait, |_, _| false);
run!(PgRun, transactions, wait, |_, _| false);
run!(RedisRun, transactions, wait, |_, _| false);

/// The reverse run of a bidirectional stream follows the forward run.
fn other_way(this: &StreamRun, before: &StreamRun) -> bool {
    this.direction != before.direction
        && this.window_ns.0.abs_diff(before.window_ns.0) < before.window_ns.0 / 2
        && this.cpu == before.cpu
        && this.evidence == before.evidence
}

#[cfg(test)]
mod tests;
