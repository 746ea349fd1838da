//! `http://`: requests to any server.

use std::collections::BTreeMap;

use model::{
    CpuId, Nanos, Warning,
    explain::Exchange,
    measure::{HttpSpec, Pin, TlsRun},
    warning::PERHAPS_TLS,
};
use stats::decompose::Round;
use traffic::{Error, Result};

use crate::{
    server::{Round as Watched, Server},
    workload::{Observed, Workload, cipher, steal},
};

/// Requests to a server.
#[derive(Debug, Clone)]
pub struct Http {
    /// One URL; each round sets the number of flows.
    pub spec: HttpSpec,
    pub server: Server,
}

/// Below this mean share of active clients, not all took part.
const MOST_OF_THEM: f64 = 0.8;
/// How long a refused client waits before it tries again.
const REST_NS: f64 = 10e6;

/// Why not all clients took part. Little's law gives the mean number of clients in service or
/// connecting; failures took the others' time.
pub fn not_served(
    clients: u32,
    at_once: f64,
    window: Nanos,
    failures: &BTreeMap<String, u64>,
) -> Option<String> {
    let (words, _) = failures.iter().max_by_key(|(_, n)| **n)?;
    let failed: u64 = failures.values().sum();
    let (missing, few) =
        (f64::from(clients) - at_once, at_once < f64::from(clients) * MOST_OF_THEM);
    // A few failures always occur. A client that is never served fails again and again, and waits
    // in between. Half of the missing time is enough, as a refusal takes time itself.
    let rested = failed as f64 * REST_NS / window.0.max(1) as f64;
    (few && rested >= missing / 2.0).then(|| {
        format!(
            "of {clients} clients {at_once:.0} were served at once, in the mean; {failed} requests failed: \
             {words}"
        )
    })
}

/// Round trips of a new connection before its first request: the handshakes of TCP and of TLS 1.3,
/// or the two of TLS 1.2 (RFC 8446, section 2; RFC 5246, section 7.3). Sessions are never resumed
/// here. A Unix socket has no round trip; on another path it would.
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
        if let Some(why) = measured.broken {
            return Err(why);
        }
        let done = measured.document.runs.into_iter().next();
        let done = done.ok_or_else(|| Error::Environment("nothing was measured".into()))?;
        if done.transactions == 0 {
            let why = done.failures.keys().next().cloned();
            return Err(Error::Environment(format!(
                "{}: no request was answered in {window}{}{}",
                spec.common.target,
                why.map_or_else(String::new, |w| format!(": {w}")),
                if done.warnings.contains(&Warning::PerhapsTls) { PERHAPS_TLS } else { "" }
            )));
        }
        let anew = done.reopened as f64 / done.transactions as f64;
        let handshake = done.tls_handshake_ns.as_ref().map_or(0.0, |q| q.mean);
        let each = done.latency_ns.mean + anew * (done.connect_ns.mean + handshake);
        let at_once = done.transactions_per_s * each / 1e9;
        if let Some(why) = not_served(clients, at_once, done.window_ns, &done.failures) {
            return Err(Error::Environment(format!("{}: {why}", spec.common.target)));
        }
        // The statuses of all rounds together are reported elsewhere.
        let mut warnings = done.warnings;
        warnings.retain(|warning| !matches!(warning, Warning::Statuses { .. }));
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
                // One request at a time is on its way: each is sent by its own call.
                sends: 1.0,
                receives,
                new_connections: anew,
                connect_round_trips: Some(connect_round_trips(done.tls.as_ref())),
            },
            host_cpu_ns: done.cpu.local.host_busy_per_unit_ns.known().copied(),
            tls_ns: cipher(done.tls.as_ref()),
            receiving: None,
            injected_ns: None,
            pinned: done.placement.local.pinned.clone(),
            steal_ns: steal(&done.cpu.local),
            server,
            statuses: done.statuses,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_that_are_refused_again_and_again_are_told_from_a_request_that_fails() {
        let words = "closed by the server before its response".to_owned();
        let failures = |n| BTreeMap::from([(words.clone(), n)]);
        let window = Nanos(200_000_000);
        let why = not_served(64, 40.0, window, &failures(338)).unwrap();
        assert!(why.contains("of 64 clients 40 were served") && why.contains(&words), "{why}");
        assert_eq!(not_served(64, 63.0, window, &failures(338)), None, "all work, and some fail");
        assert_eq!(not_served(64, 40.0, window, &failures(3)), None, "fewer than are missing");
        assert_eq!(not_served(64, 40.0, window, &BTreeMap::new()), None, "slow for itself");
        let why = not_served(1, 0.4, window, &failures(1));
        assert_eq!(why, None, "one that takes long until it asks again, and failed once");
    }
}
