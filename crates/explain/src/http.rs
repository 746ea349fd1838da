//! `http://`: requests to any server.

use model::{
    CpuId, Nanos, Warning,
    explain::Exchange,
    measure::{HttpSpec, Pin, TlsRun},
    warning::PERHAPS_TLS,
};
use traffic::{Error, Result};

use crate::{
    served::{Served, not_served, one_at_a_time, only, served, unanswered},
    server::Server,
    workload::{Observed, Workload},
};

/// Requests to a server.
#[derive(Debug, Clone)]
pub struct Http {
    /// One URL; each round sets the number of flows.
    pub spec: HttpSpec,
    pub server: Server,
}

/// How often a new connection waits for the other end before it can be asked: TCP's handshake, and that of
/// TLS 1.3, or the two round trips of TLS 1.2 (RFC 8446, section 2; RFC 5246, section 7.3). No session is taken up
/// again here. On a Unix socket it does not wait; elsewhere it will.
fn connect_round_trips(tls: Option<&TlsRun>) -> f64 {
    1.0 + match tls {
        None => 0.0,
        Some(tls) if tls.version == "TLS 1.2" => 2.0,
        Some(_) => 1.0,
    }
}

impl Workload for Http {
    fn run(&self, clients: u32, window: Nanos, run: traffic::Run<'_>) -> Result<Observed> {
        let mut spec = self.spec.clone();
        spec.flows = vec![clients];
        spec.common.duration_ns = window;
        spec.common.threads = spec.common.threads.min(clients);
        let (measured, looks) =
            self.server.watched(run, |run| workloads::measure_http(&spec, None, run));
        let measured = measured?;
        let address = measured.document.peer.address;
        let done = only(measured.document.runs, measured.broken)?;
        let (target, n) = (&spec.common.target, done.transactions);
        if n == 0 {
            let hint = if done.warnings.contains(&Warning::PerhapsTls) { PERHAPS_TLS } else { "" };
            return Err(unanswered(target, "request", window, &done.failures, hint));
        }
        let handshake = done.tls_handshake_ns.as_ref().map_or(0.0, |q| q.mean);
        let anew = done.reopened as f64 / n as f64;
        let each = done.latency_ns.mean + anew * (done.connect_ns.mean + handshake);
        let at_once = done.transactions_per_s * each / 1e9;
        if let Some(why) = not_served(clients, at_once, done.window_ns, &done.failures) {
            return Err(Error::Environment(format!("{target}: {why}")));
        }
        let bytes = (done.request_bytes, done.response_bytes);
        let exchange = Exchange {
            connect_round_trips: Some(connect_round_trips(done.tls.as_ref())),
            ..one_at_a_time(n, bytes, done.receives, done.reopened)
        };
        let mut served = Served {
            disconnected_ns: done.disconnected_ns,
            statuses: done.statuses,
            ..served!(done)
        };
        // Of the statuses of all rounds more is said than of each.
        served.warnings.retain(|warning| !matches!(warning, Warning::Statuses { .. }));
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
