//! `redis://`: commands to a Redis server.

use model::{
    CpuId, Nanos,
    measure::{Pin, RedisSpec},
};
use traffic::{Error, Result};
use workloads::RedisUrl;

use crate::{
    served::{Served, not_served, one_at_a_time, only, served, unanswered},
    server::Server,
    workload::{Observed, Workload},
};

/// Commands to a server.
#[derive(Debug, Clone)]
pub struct Redis {
    /// Each round sets the number of flows.
    pub spec: RedisSpec,
    pub url: RedisUrl,
    /// The password for a URL without one.
    pub password: Option<String>,
    pub server: Server,
}

impl Workload for Redis {
    fn run(&self, clients: u32, window: Nanos, run: traffic::Run<'_>) -> Result<Observed> {
        let mut spec = self.spec.clone();
        spec.flows = vec![clients];
        spec.common.duration_ns = window;
        spec.common.threads = spec.common.threads.min(clients);
        let (measured, looks) = self.server.watched(run, |run| {
            workloads::measure_redis(&spec, &self.url, self.password.as_deref(), None, run)
        });
        let measured = measured?;
        let address = measured.document.peer.address;
        let done = only(measured.document.runs, measured.broken)?;
        let (target, n) = (&spec.common.target, done.transactions);
        if n == 0 {
            return Err(unanswered(target, "command", window, &done.failures, ""));
        }
        let anew = done.reopened as f64 / n as f64;
        let each = done.latency_ns.mean + anew * done.connect_ns.mean;
        let at_once = done.transactions_per_s * each / 1e9;
        if let Some(why) = not_served(clients, at_once, done.window_ns, &done.failures) {
            return Err(Error::Environment(format!("{target}: {why}")));
        }
        let bytes = (done.request_bytes, done.response_bytes);
        let exchange = one_at_a_time(n, bytes, done.receives, done.reopened);
        let served = Served { disconnected_ns: done.disconnected_ns, ..served!(done) };
        Ok(served.observed(clients, exchange, &self.server, address, looks))
    }

    fn paced(&self, per_s: u64) -> Box<dyn Workload> {
        let mut this = self.clone();
        this.spec.rate_per_s = Some(per_s);
        Box::new(this)
    }

    fn pin(&mut self, cpus: &[CpuId]) {
        self.spec.common.pin = Pin::List(cpus.iter().copied().collect());
    }
}
