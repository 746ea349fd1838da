//! `redis://`: commands to a Redis server.

use std::collections::BTreeMap;

use model::{
    CpuId, Nanos, Warning,
    explain::Exchange,
    measure::{Pin, RedisSpec},
};
use stats::decompose::Round;
use traffic::{Error, Result};
use workloads::RedisUrl;

use crate::{
    http::not_served,
    server::{Round as Watched, Server},
    workload::{Observed, Workload, cipher, steal},
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
        if let Some(why) = measured.broken {
            return Err(why);
        }
        let done = measured.document.runs.into_iter().next();
        let done = done.ok_or_else(|| Error::Environment("nothing was measured".into()))?;
        let target = &spec.common.target;
        if done.transactions == 0 {
            let why = done.failures.keys().next().cloned();
            return Err(Error::Environment(format!(
                "{target}: no command was answered in {window}{}",
                why.map_or_else(String::new, |w| format!(": {w}"))
            )));
        }
        let anew = done.reopened as f64 / done.transactions as f64;
        let each = done.latency_ns.mean + anew * done.connect_ns.mean;
        let at_once = done.transactions_per_s * each / 1e9;
        if let Some(why) = not_served(clients, at_once, done.window_ns, &done.failures) {
            return Err(Error::Environment(format!("{target}: {why}")));
        }
        let mut warnings = done.warnings;
        if done.tls.is_some() {
            warnings.push(Warning::UnderTls { sslmode: false });
        }
        let server = measured.document.peer.address;
        let took = self.server.took(
            looks,
            &Watched {
                same_host: done.placement.same_host,
                address: &server,
                per_s: done.transactions_per_s,
                cpu: &done.cpu.local,
            },
        );
        warnings.extend(took.why);
        let receives = done.receives as f64 / done.transactions as f64;
        let latency_ns = done.latency_from_send_ns.clone().unwrap_or(done.latency_ns.clone());
        Ok(Observed {
            round: Round {
                clients,
                transactions: done.transactions,
                window_ns: done.window_ns.0 as f64,
                mean_ns: latency_ns.mean,
                disconnected_ns: done.disconnected_ns.map_or(0.0, |ns| ns.0 as f64)
                    / done.transactions as f64,
            },
            client_cpu_ns: done.cpu.local.threads_per_unit_ns.known().copied(),
            server_cpu_ns: took.server_ns,
            others_cpus: took.others_cpus,
            exchange: Exchange {
                request_bytes: done.request_bytes / done.transactions,
                response_bytes: done.response_bytes / done.transactions,
                messages: (1.0 + receives).round() as u32,
                round_trips: 1.0,
                sends: 1.0,
                receives,
                new_connections: anew,
                connect_round_trips: None,
            },
            host_cpu_ns: done.cpu.local.host_busy_per_unit_ns.known().copied(),
            tls_ns: cipher(done.tls.as_ref()),
            receiving: None,
            injected_ns: None,
            pinned: done.placement.local.pinned.clone(),
            steal_ns: steal(&done.cpu.local),
            server,
            statuses: BTreeMap::new(),
            failures: done.failures,
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
