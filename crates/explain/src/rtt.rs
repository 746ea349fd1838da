//! `rtt://`: a server of ours with a given service time; without a service time it is the network
//! alone.

use model::{
    CpuId, Nanos,
    explain::Exchange,
    measure::{Pin, Quantiles, RttRun, RttSpec},
};
use stats::{decompose::Round, predict::Receiving};
use traffic::{Error, Result, Secret};

use crate::workload::{Observed, Workload, steal};

/// Request and response with a server of ours.
#[derive(Debug, Clone)]
pub struct Rtt {
    /// One size; each round sets the number of flows.
    pub spec: RttSpec,
    /// The server's secret; `None` where it demands none.
    pub secret: Option<Secret>,
    /// Round trips that equal one transaction of the workload; all figures are multiplied by it.
    pub trips: f64,
}

impl Rtt {
    /// Makes the server compute this long in total for a transaction; the result does not include
    /// it.
    pub fn computing(&self, service: Nanos) -> Self {
        let mut this = self.clone();
        this.spec.service_ns = Some(Nanos((service.0 as f64 / self.trips) as u64));
        this
    }
}

/// Quantiles of a transaction of `trips` round trips, less the service time that each was asked to
/// take. Exact for the mean; for quantiles it assumes that the trips of a transaction are alike.
fn times(q: &Quantiles, service: Nanos, trips: f64) -> Quantiles {
    let less = |value: u64| (value.saturating_sub(service.0) as f64 * trips).round() as u64;
    Quantiles {
        count: (q.count as f64 / trips) as u64,
        min: less(q.min),
        p50: less(q.p50),
        p75: less(q.p75),
        p90: less(q.p90),
        p99: less(q.p99),
        p999: less(q.p999),
        p9999: less(q.p9999),
        max: less(q.max),
        mean: (q.mean - service.0 as f64) * trips,
        // Standard deviation of independent trips.
        sd: q.sd * trips.sqrt(),
    }
}

impl Workload for Rtt {
    fn run(&self, clients: u32, window: Nanos, run: traffic::Run<'_>) -> Result<Observed> {
        let mut spec = self.spec.clone();
        spec.flows = vec![clients];
        spec.common.duration_ns = window;
        spec.common.threads = spec.common.threads.min(clients);
        spec.peer_threads = spec.peer_threads.map(|n| n.min(clients));
        let measured = traffic::measure_rtt(&spec, self.secret.as_ref(), run)?;
        if let Some(why) = measured.broken {
            return Err(why);
        }
        let done = measured.document.runs.into_iter().next();
        let done = done.filter(|r| r.transactions > 0).ok_or_else(|| {
            Error::Environment(format!("{}: nothing was answered", spec.common.target))
        })?;
        let (peer, trips) = (done.cpu.peer.known(), self.trips);
        let rtt_ns = done.rtt_from_send_ns.clone().unwrap_or_else(|| done.rtt_ns.clone());
        // The requested service time is not part of the network. What it took longer is not in the
        // round trips (`RttSpec::service_ns`).
        let service = spec.service_ns.unwrap_or_default();
        Ok(Observed {
            round: Round {
                clients,
                transactions: ((done.transactions as f64 / trips) as u64).max(1),
                window_ns: done.window_ns.0 as f64,
                mean_ns: (rtt_ns.mean - service.0 as f64) * trips,
                disconnected_ns: 0.0,
            },
            client_cpu_ns: done.cpu.local.threads_per_unit_ns.known().map(|ns| ns * trips),
            server_cpu_ns: peer.and_then(|p| p.threads_per_unit_ns.known()).map(|ns| ns * trips),
            exchange: Exchange {
                request_bytes: done.request_bytes,
                response_bytes: done.response_bytes,
                messages: 2,
                round_trips: trips,
                sends: 1.0,
                receives: 1.0,
                new_connections: 0.0,
                connect_round_trips: None,
            },
            host_cpu_ns: done.cpu.local.host_busy_per_unit_ns.known().map(|ns| ns * trips),
            receiving: receiving(&done, trips),
            injected_ns: done.peer_service_ns.map(|ns| ns * trips),
            pinned: done.placement.local.pinned.clone(),
            steal_ns: steal(&done.cpu.local),
            server: spec.common.target,
            quantiles: times(&rtt_ns, service, trips),
            warnings: done.warnings,
            ..Observed::default()
        })
    }

    fn paced(&self, per_s: u64) -> Box<dyn Workload> {
        let mut this = self.clone();
        this.spec.rate_per_s = Some(per_s);
        Box::new(this)
    }

    fn beside(&self, mine: Observed, workload: &Observed) -> Observed {
        let trips = workload.exchange.round_trips.max(1.0);
        mine.times(trips / self.trips)
    }

    fn pin(&mut self, cpus: &[CpuId]) {
        self.spec.common.pin = Pin::List(cpus.iter().copied().collect());
    }
}

/// A CPU with a smaller share of the packets than this did not receive.
const RECEIVES: f64 = 0.05;

/// The CPU time of receiving on the server's host.
fn receiving(done: &RttRun, trips: f64) -> Option<Receiving> {
    let (peer, host) = (&done.placement.peer, done.cpu.peer.known()?.host_ns.known()?);
    let looks: u64 = peer.received_on.values().sum();
    let many = |n: &&u64| **n as f64 >= looks as f64 * RECEIVES;
    let cpus = peer.received_on.values().filter(many).count();
    let ns = *host.get("softirq")? + host.get("irq").copied().unwrap_or(0);
    (!done.placement.same_host && looks > 0).then_some(Receiving {
        ns: ns as f64 / done.transactions as f64 * trips,
        cpus: u32::try_from(cpus).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_excludes_the_service_time_of_each_of_its_round_trips() {
        let q = Quantiles { p50: 90_500, mean: 91_000.0, ..Quantiles::default() };
        let network = times(&q, Nanos(60_000), 2.0);
        assert_eq!((network.p50, network.mean), (61_000, 62_000.0));
    }
}
