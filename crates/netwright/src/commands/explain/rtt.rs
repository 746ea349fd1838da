//! `rtt://`: a far end of ours, with the service time that it was given; and the same without
//! any, which is the network alone.

use model::{
    CpuId, Nanos,
    explain::Exchange,
    measure::{Pin, Quantiles, RttSpec},
};
use stats::decompose::Round;
use traffic::Secret;

use super::workload::{Observed, Workload, steal};
use crate::exit::Failure;

/// Request and response with a far end of ours.
#[derive(Debug, Clone)]
pub struct Rtt {
    /// One size, and flows that each round replaces.
    pub spec: RttSpec,
    /// What the far end demands.
    pub secret: Option<Secret>,
}

impl Rtt {
    /// Has the far end compute so long before each response; what it did is taken off again.
    pub fn computing(&self, service: Nanos) -> Self {
        let mut this = self.clone();
        this.spec.service_ns = Some(service);
        this
    }
}

/// All of them by so much less.
fn less(q: &Quantiles, ns: f64) -> Quantiles {
    let less = |value: u64| value.saturating_sub(ns.round() as u64);
    Quantiles {
        count: q.count,
        min: less(q.min),
        p50: less(q.p50),
        p90: less(q.p90),
        p99: less(q.p99),
        p999: less(q.p999),
        p9999: less(q.p9999),
        max: less(q.max),
        mean: q.mean - ns,
    }
}

impl Workload for Rtt {
    fn run(&self, clients: u32, window: Nanos, run: traffic::Run<'_>) -> Result<Observed, Failure> {
        let mut spec = self.spec.clone();
        spec.flows = vec![clients];
        spec.common.duration_ns = window;
        spec.common.threads = spec.common.threads.min(clients);
        let measured = traffic::measure_rtt(&spec, self.secret.as_ref(), run)?;
        if let Some(why) = measured.broken {
            return Err(why.into());
        }
        let done = measured.document.runs.into_iter().next();
        let done = done.filter(|r| r.transactions > 0).ok_or_else(|| {
            Failure::Environment(format!("{}: nothing was answered", spec.common.target))
        })?;
        let peer = done.cpu.peer.known();
        // What it was told to spin is no part of the network.
        let told = match spec.service_ns {
            Some(_) => done.peer_service_ns.unwrap_or(0.0),
            None => 0.0,
        };
        Ok(Observed {
            round: Round {
                clients,
                transactions: done.transactions,
                window_ns: done.window_ns.0 as f64,
                mean_ns: done.rtt_ns.mean - told,
            },
            client_cpu_ns: done.cpu.local.threads_per_unit_ns.known().copied(),
            server_cpu_ns: peer.and_then(|p| p.threads_per_unit_ns.known().copied()),
            exchange: Exchange {
                request_bytes: done.request_bytes,
                response_bytes: done.response_bytes,
                messages: 2,
            },
            injected_ns: done.peer_service_ns,
            pinned: done.placement.local.pinned.clone(),
            steal_ns: steal(&done.cpu.local),
            quantiles: less(&done.rtt_ns, told),
            warnings: done.warnings,
        })
    }

    fn pin(&mut self, cpus: &[CpuId]) {
        if !cpus.is_empty() {
            self.spec.common.pin = Pin::List(cpus.iter().copied().collect());
        }
    }
}
