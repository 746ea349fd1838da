//! `http://`: requests to any server.

use model::{
    CpuId, Nanos,
    explain::Exchange,
    measure::{HttpSpec, Pin},
};
use stats::decompose::Round;

use super::workload::{Observed, UNDER_TLS, Workload, cipher, others, steal};
use crate::exit::Failure;

/// Requests to a server.
#[derive(Debug, Clone)]
pub struct Http {
    /// One URL, and flows that each round replaces.
    pub spec: HttpSpec,
}

impl Workload for Http {
    fn run(&self, clients: u32, window: Nanos, run: traffic::Run<'_>) -> Result<Observed, Failure> {
        let mut spec = self.spec.clone();
        spec.flows = vec![clients];
        spec.common.duration_ns = window;
        spec.common.threads = spec.common.threads.min(clients);
        let measured = traffic::measure_http(&spec, None, run)?;
        if let Some(why) = measured.broken {
            return Err(why.into());
        }
        let done = measured.document.runs.into_iter().next();
        let done = done.ok_or_else(|| Failure::Environment("nothing was measured".into()))?;
        if done.transactions == 0 {
            let why = done.failures.keys().next().cloned();
            return Err(Failure::Environment(format!(
                "{}: no request was answered in {window}{}",
                spec.common.target,
                why.map_or_else(String::new, |w| format!(": {w}"))
            )));
        }
        let mut warnings = done.warnings;
        if done.failed > 0 {
            warnings.push(format!("{} requests failed", done.failed));
        }
        if done.tls.is_some() {
            warnings.push(UNDER_TLS.into());
        }
        let same_host = done.placement.same_host;
        let receives = done.receives as f64 / done.transactions as f64;
        let latency_ns = done.latency_from_send_ns.clone().unwrap_or(done.latency_ns.clone());
        Ok(Observed {
            round: Round {
                clients,
                transactions: done.transactions,
                window_ns: done.window_ns.0 as f64,
                mean_ns: latency_ns.mean,
            },
            client_cpu_ns: done.cpu.local.threads_per_unit_ns.known().copied(),
            server_cpu_ns: if same_host { others(&done.cpu.local) } else { None },
            exchange: Exchange {
                request_bytes: done.request_bytes / done.transactions,
                response_bytes: done.response_bytes / done.transactions,
                messages: (1.0 + receives).round() as u32,
                round_trips: 1.0,
                // One at a time is on its way: each is handed over by a call of its own.
                sends: 1.0,
                receives,
            },
            host_cpu_ns: done.cpu.local.host_busy_per_unit_ns.known().copied(),
            tls_ns: cipher(done.tls.as_ref()),
            receiving: None,
            injected_ns: None,
            pinned: done.placement.local.pinned.clone(),
            steal_ns: steal(&done.cpu.local),
            server: measured.document.peer.address,
            quantiles: latency_ns,
            warnings,
        })
    }

    fn paced(&self, per_s: u64) -> Box<dyn Workload> {
        let mut this = self.clone();
        this.spec.rate_per_s = Some(per_s);
        Box::new(this)
    }

    fn pin(&mut self, cpus: &[CpuId]) {
        if !cpus.is_empty() {
            self.spec.common.pin = Pin::List(cpus.iter().copied().collect());
        }
    }
}
