//! What a round of HTTP, Redis or PostgreSQL observed. The runs of all three name the same figures alike.

use std::collections::BTreeMap;

use model::{
    Nanos, Warning,
    explain::Exchange,
    measure::{EndCpu, Placement, Quantiles, TlsRun},
};
use probe::serving::Spent;
use stats::decompose::Round;
use traffic::{Error, Result};

use crate::{
    server::{Round as Watched, Server},
    workload::{Observed, steal},
};

/// Fewer than this share of the clients, in the mean, is not all of them.
pub const MOST_OF_THEM: f64 = 0.8;
/// A client that is refused rests for so long before it tries again.
const REST_NS: f64 = 10e6;

/// The figures of a run that become an [`Observed`]; `served!` takes them out of it.
pub struct Served {
    pub transactions: u64,
    pub per_s: f64,
    pub window_ns: Nanos,
    /// From the moment of sending.
    pub latency_ns: Quantiles,
    /// How long clients had no connection, all together; `None` where that is not counted.
    pub disconnected_ns: Option<Nanos>,
    /// CPU time of this host.
    pub cpu: EndCpu,
    pub placement: Placement,
    pub tls: Option<TlsRun>,
    /// Whether TLS was not asked for: libpq's `sslmode=prefer` takes it where the server has it, as
    /// Debian's has.
    pub sslmode: bool,
    /// HTTP's responses by status.
    pub statuses: BTreeMap<u16, u64>,
    /// What failed, by why.
    pub failures: BTreeMap<String, u64>,
    pub warnings: Vec<Warning>,
}

/// The [`Served`] of a run, without what not every kind counts.
macro_rules! served {
    ($run:ident) => {
        $crate::served::Served {
            transactions: $run.transactions,
            per_s: $run.transactions_per_s,
            window_ns: $run.window_ns,
            latency_ns: $run.latency_from_send_ns.unwrap_or($run.latency_ns),
            disconnected_ns: None,
            cpu: $run.cpu.local,
            placement: $run.placement,
            tls: $run.tls,
            sslmode: false,
            statuses: Default::default(),
            failures: $run.failures,
            warnings: $run.warnings,
        }
    };
}
pub(crate) use served;

impl Served {
    /// All that the round of so many clients observed, with what the server at this address took of
    /// this host's CPUs between two looks at it.
    pub fn observed(
        self,
        clients: u32,
        exchange: Exchange,
        server: &Server,
        address: String,
        looks: Option<(Spent, Spent)>,
    ) -> Observed {
        let round = Watched {
            same_host: self.placement.same_host,
            address: &address,
            per_s: self.per_s,
            cpu: &self.cpu,
        };
        let took = server.took(looks, &round);
        let mut warnings = self.warnings;
        if self.tls.is_some() {
            warnings.push(Warning::UnderTls { sslmode: self.sslmode });
        }
        warnings.extend(took.why);
        Observed {
            round: Round {
                clients,
                transactions: self.transactions,
                window_ns: self.window_ns.0 as f64,
                mean_ns: self.latency_ns.mean,
                disconnected_ns: self.disconnected_ns.map_or(0.0, |ns| ns.0 as f64)
                    / self.transactions as f64,
            },
            client_cpu_ns: self.cpu.threads_per_unit_ns.known().copied(),
            server_cpu_ns: took.server_ns,
            others_cpus: took.others_cpus,
            exchange,
            host_cpu_ns: self.cpu.host_busy_per_unit_ns.known().copied(),
            tls_ns: self.tls.and_then(|tls| Some(tls.cipher_per_unit_ns? as f64)),
            pinned: self.placement.local.pinned,
            steal_ns: steal(&self.cpu),
            server: address,
            statuses: self.statuses,
            failures: self.failures,
            quantiles: self.latency_ns,
            warnings,
            ..Observed::default()
        }
    }
}

/// The one run of a round.
///
/// # Errors
/// It broke off, or there is none.
pub fn only<R>(runs: Vec<R>, broken: Option<Error>) -> Result<R> {
    match (broken, runs.into_iter().next()) {
        (Some(why), _) => Err(why),
        (None, Some(run)) => Ok(run),
        (None, None) => Err(Error::Environment("nothing was measured".into())),
    }
}

/// Nothing was answered: the first reason that requests failed for, and what else may be.
pub fn unanswered(
    server: &str,
    what: &str,
    window: Nanos,
    failures: &BTreeMap<String, u64>,
    hint: &str,
) -> Error {
    let why = failures.keys().next().map_or_else(String::new, |why| format!(": {why}"));
    Error::Environment(format!("{server}: no {what} was answered in {window}{why}{hint}"))
}

/// What a request moved where each connection has one at a time: each is handed over by a call of its
/// own. The `bytes` are all requests' and all responses'; so many connections were `reopened` for them.
pub fn one_at_a_time(
    transactions: u64,
    bytes: (u64, u64),
    receives: u64,
    reopened: u64,
) -> Exchange {
    let receives = receives as f64 / transactions as f64;
    Exchange {
        request_bytes: bytes.0 / transactions,
        response_bytes: bytes.1 / transactions,
        messages: (1.0 + receives).round() as u32,
        round_trips: 1.0,
        sends: 1.0,
        receives,
        new_connections: reopened as f64 / transactions as f64,
        connect_round_trips: None,
    }
}

/// Why not all clients took part: in the mean so many were served or connected anew at once, the rate
/// by the time of both (Little's law), and failures took the others' time.
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
    // Some fail anywhere; each of those that are never served fails again and again, and rests. Half
    // of the others' time is enough: it takes a while to be refused.
    let rested = failed as f64 * REST_NS / window.0.max(1) as f64;
    (few && rested >= missing / 2.0).then(|| {
        format!(
            "of {clients} clients {at_once:.0} were served at once, in the mean; {failed} requests failed: \
             {words}"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_that_are_refused_again_and_again_are_distinguished_from_a_request_that_fails() {
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
