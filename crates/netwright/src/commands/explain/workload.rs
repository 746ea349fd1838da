//! What can be explained: something that answers so many clients for a while.

use model::{
    CpuId, Nanos,
    explain::Exchange,
    measure::{EndCpu, Quantiles},
};
use stats::decompose::Round;

use crate::exit::Failure;

/// A workload. A new kind is one file that implements this.
pub trait Workload {
    /// Runs it for a window with so many clients in closed loop.
    ///
    /// # Errors
    /// Nothing could be measured.
    fn run(&self, clients: u32, window: Nanos, run: traffic::Run<'_>) -> Result<Observed, Failure>;

    /// The same by schedule, so many a second over all clients; times are from the moment of
    /// sending.
    fn paced(&self, per_s: u64) -> Box<dyn Workload>;

    /// From now on with its threads here on these CPUs.
    fn pin(&mut self, cpus: &[CpuId]);
}

/// What one round saw.
#[derive(Debug, Clone)]
pub struct Observed {
    /// How much in which time.
    pub round: Round,
    /// Its response times.
    pub quantiles: Quantiles,
    /// CPU time of the threads here by transaction.
    pub client_cpu_ns: Option<f64>,
    /// CPU time of the server by transaction, where somebody tells.
    pub server_cpu_ns: Option<f64>,
    /// What one transaction moved.
    pub exchange: Exchange,
    /// What the far end spun on purpose, by its own clock.
    pub injected_ns: Option<f64>,
    /// Where the threads here were.
    pub pinned: Vec<CpuId>,
    /// Time that the hypervisor took from this host.
    pub steal_ns: u64,
    /// The server's address, as it is named to people.
    pub server: String,
    /// What to know of it.
    pub warnings: Vec<String>,
}

/// Warm-up and cool-down around a round: enough to have every flow busy.
pub const WARMUP: Nanos = Nanos(40_000_000);
/// See [`WARMUP`].
pub const COOLDOWN: Nanos = Nanos(5_000_000);

/// What this host spent beside our threads: on a host with nothing else to do, the server.
pub fn others(cpu: &EndCpu) -> Option<f64> {
    let (busy, ours) = (cpu.host_busy_per_unit_ns.known()?, cpu.threads_per_unit_ns.known()?);
    Some((busy - ours).max(0.0))
}

/// The hypervisor's part of a host's time.
pub fn steal(cpu: &EndCpu) -> u64 {
    cpu.host_ns.known().and_then(|h| h.get("steal").copied()).unwrap_or(0)
}
