//! `http://`: requests to any server.

use std::collections::BTreeMap;

use model::{
    CpuId, Nanos,
    explain::Exchange,
    measure::{HttpSpec, Pin},
};
use stats::decompose::Round;

use super::{
    server::{Round as Watched, Server},
    workload::{Observed, UNDER_TLS, Workload, cipher, steal},
};
use crate::exit::Failure;

/// Requests to a server.
#[derive(Debug, Clone)]
pub struct Http {
    /// One URL, and flows that each round replaces.
    pub spec: HttpSpec,
    /// Who answers.
    pub server: Server,
}

/// Fewer than this share of the clients, in the mean, is not all of them.
const MOST_OF_THEM: f64 = 0.8;

/// Why not all clients took part: `at_once` were served in the mean, the rate by the response time
/// (Little's law), and the others failed.
fn not_served(
    clients: u32,
    at_once: f64,
    failed: u64,
    failures: &BTreeMap<String, u64>,
) -> Option<String> {
    let (words, _) = failures.iter().max_by_key(|(_, n)| **n)?;
    // Some fail anywhere; each of those that are never served fails again and again.
    let (missing, few) =
        (f64::from(clients) - at_once, at_once < f64::from(clients) * MOST_OF_THEM);
    (few && failed as f64 >= missing.max(1.0)).then(|| {
        format!(
            "of {clients} clients {at_once:.0} were served at once, in the mean; {failed} requests failed: \
             {words}"
        )
    })
}

impl Workload for Http {
    fn run(&self, clients: u32, window: Nanos, run: traffic::Run<'_>) -> Result<Observed, Failure> {
        let mut spec = self.spec.clone();
        spec.flows = vec![clients];
        spec.common.duration_ns = window;
        spec.common.threads = spec.common.threads.min(clients);
        let (measured, looks) =
            self.server.watched(run, |run| traffic::measure_http(&spec, None, run));
        let measured = measured?;
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
        let at_once = done.transactions_per_s * done.latency_ns.mean / 1e9;
        if let Some(why) = not_served(clients, at_once, done.failed, &done.failures) {
            return Err(Failure::Environment(format!("{}: {why}", spec.common.target)));
        }
        let mut warnings = done.warnings;
        if done.failed > 0 {
            warnings.push(format!("{} requests failed", done.failed));
        }
        if done.tls.is_some() {
            warnings.push(UNDER_TLS.into());
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
            },
            client_cpu_ns: done.cpu.local.threads_per_unit_ns.known().copied(),
            server_cpu_ns: took.server_ns,
            others_cpus: took.others_cpus,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_that_are_refused_again_and_again_are_told_from_a_request_that_fails() {
        let words = "closed by the server before its response".to_owned();
        let failures = |n| BTreeMap::from([(words.clone(), n)]);
        let why = not_served(64, 40.0, 338, &failures(338)).unwrap();
        assert!(why.contains("of 64 clients 40 were served") && why.contains(&words), "{why}");
        assert_eq!(not_served(64, 63.0, 338, &failures(338)), None, "all work, and some fail");
        assert_eq!(not_served(64, 40.0, 3, &failures(3)), None, "fewer failures than are missing");
        assert_eq!(not_served(64, 40.0, 0, &BTreeMap::new()), None, "slow for itself");
    }
}
