//! `pg://`: transactions of a PostgreSQL server.

use model::{
    CpuId, Nanos,
    explain::Exchange,
    measure::{PgRun, PgSpec, Pin},
};
use stats::decompose::Round;

use super::workload::{Observed, Workload, others, steal};
use crate::exit::Failure;

/// What a session's beginning takes of a CPU, generously: a process there and its caches.
const BEGINNING_NS: u64 = 8_000_000;
/// The longest warm-up.
const LONGEST_NS: u64 = 2_000_000_000;

/// libpq's `sslmode=prefer` takes TLS where the server has it, as Debian's has.
const UNDER_TLS: &str = "this is under TLS, and the network alone was measured in clear: what both \
     ends take to encrypt counts as the server's service. sslmode=disable explains the same without";

/// Transactions of a server.
#[derive(Clone)]
pub struct Pg {
    /// Clients that each round replaces.
    pub spec: PgSpec,
    /// The password that stood in the connection string.
    pub password: Option<String>,
}

impl Workload for Pg {
    fn run(&self, clients: u32, window: Nanos, run: traffic::Run<'_>) -> Result<Observed, Failure> {
        let mut spec = self.spec.clone();
        spec.clients = vec![clients];
        spec.common.duration_ns = window;
        spec.common.threads = spec.common.threads.min(clients);
        // Each round has sessions of its own: all of them shall be there when it counts.
        let beginning = BEGINNING_NS.saturating_mul(clients.into()).min(LONGEST_NS);
        spec.common.warmup_ns.0 = spec.common.warmup_ns.0.saturating_add(beginning);
        let measured = traffic::measure_pg(&spec, self.password.as_deref(), None, run)?;
        if let Some(why) = measured.broken {
            return Err(why.into());
        }
        let server = measured.document.peer.address;
        let done = measured.document.runs.into_iter().next();
        let done = done.ok_or_else(|| Failure::Environment("nothing was measured".into()))?;
        if done.transactions == 0 {
            let why = done.failures.keys().next().cloned();
            return Err(Failure::Environment(format!(
                "{server}: no transaction was answered{}",
                why.map_or_else(String::new, |w| format!(": {w}"))
            )));
        }
        let mut warnings = done.warnings.clone();
        if done.failed > 0 {
            warnings.push(format!("{} transactions failed", done.failed));
        }
        if done.tls.is_some() {
            warnings.push(UNDER_TLS.into());
        }
        let latency_ns = done.latency_from_send_ns.clone().unwrap_or(done.latency_ns.clone());
        Ok(Observed {
            round: Round {
                clients,
                transactions: done.transactions,
                window_ns: done.window_ns.0 as f64,
                mean_ns: latency_ns.mean,
            },
            client_cpu_ns: done.cpu.local.threads_per_unit_ns.known().copied(),
            server_cpu_ns: if done.placement.same_host { others(&done.cpu.local) } else { None },
            exchange: exchange(&done),
            injected_ns: None,
            pinned: done.placement.local.pinned.clone(),
            steal_ns: steal(&done.cpu.local),
            server,
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

/// What a transaction moved, in the mean.
fn exchange(done: &PgRun) -> Exchange {
    let each = |n: u64| n as f64 / done.transactions.max(1) as f64;
    let (sends, receives) = (each(done.moved.sends), each(done.moved.receives));
    Exchange {
        request_bytes: each(done.moved.sent_bytes).round() as u64,
        response_bytes: each(done.moved.received_bytes).round() as u64,
        messages: (sends + receives).round() as u32,
        round_trips: each(done.moved.round_trips),
        sends,
        receives,
    }
}
