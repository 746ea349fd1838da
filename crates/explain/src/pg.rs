//! `pg://`: transactions of a PostgreSQL server.

use std::{cell::Cell, collections::BTreeMap, sync::atomic::Ordering};

use model::{
    CpuId, Nanos,
    explain::Exchange,
    measure::{PgRun, PgSpec, Pin},
};
use traffic::{Error, Result};

use crate::{
    served::{MOST_OF_THEM, Served, only, served, unanswered},
    server::Server,
    workload::{Observed, Workload},
};

/// CPU time to begin a session, a generous estimate: a process and its caches. A longer time seen
/// in a round replaces it.
pub const BEGINNING_NS: u64 = 8_000_000;
const LONGEST_NS: u64 = 2_000_000_000;

/// Transactions of a server.
#[derive(Clone)]
pub struct Pg {
    /// Each round sets the number of clients.
    pub spec: PgSpec,
    /// The password from the connection string.
    pub password: Option<String>,
    /// The longest observed time to begin a session.
    pub beginning_ns: Cell<u64>,
    pub server: Server,
}

impl Pg {
    /// Measures a round. Where sessions were not ready, though none was refused, it tries again with
    /// more time for them to begin.
    fn measured(
        &self,
        clients: u32,
        window: Nanos,
        run: traffic::Run<'_>,
    ) -> Result<(String, PgRun)> {
        let mut spec = self.spec.clone();
        spec.clients = vec![clients];
        spec.common.duration_ns = window;
        spec.common.threads = spec.common.threads.min(clients);
        loop {
            let one = self.beginning_ns.get();
            let all = one.saturating_mul(clients.into()).min(LONGEST_NS);
            spec.common.warmup_ns.0 = self.spec.common.warmup_ns.0.saturating_add(all);
            let measured = workloads::measure_pg(&spec, self.password.as_deref(), None, run)?;
            let server = measured.document.peer.address;
            let done = only(measured.document.runs, measured.broken)?;
            let last = all == LONGEST_NS || run.stop.load(Ordering::Relaxed);
            let ready = done.connect_ns.count >= clients.into() || !done.refused.is_empty();
            if done.transactions > 0 && (ready || last) {
                let each = done.connect_ns.max / u64::from(clients.max(1));
                self.beginning_ns.set(one.max(each).min(LONGEST_NS));
                return Ok((server, done));
            }
            if done.failed > 0 || last {
                return Err(unanswered(&server, "transaction", window, &done.failures, ""));
            }
            self.beginning_ns.set(one.saturating_mul(4).min(LONGEST_NS));
        }
    }
}

impl Workload for Pg {
    fn run(&self, clients: u32, window: Nanos, run: traffic::Run<'_>) -> Result<Observed> {
        let (done, looks) = self.server.watched(run, |run| self.measured(clients, window, run));
        let (address, done) = done?;
        if let Some(why) = not_admitted(done.connect_ns.count, clients, &done.refused) {
            return Err(Error::Environment(format!("{address}: {why}")));
        }
        let exchange = exchange(&done)?;
        let served = Served { sslmode: true, ..served!(done) };
        Ok(served.observed(clients, exchange, &self.server, address, looks))
    }

    fn paced(&self, per_s: u64) -> Box<dyn Workload> {
        let mut this = self.clone();
        this.spec.rate_per_s = Some(per_s);
        Box::new(this)
    }

    fn delayed(&self, by: Nanos) -> Option<Box<dyn Workload>> {
        let mut this = self.clone();
        this.spec.answer_delay_ns = by;
        Some(Box::new(this))
    }

    fn pin(&mut self, cpus: &[CpuId]) {
        self.spec.common.pin = Pin::List(cpus.iter().copied().collect());
    }
}

/// Why not all clients took part: a session was refused, or too many did not begin in time. The result
/// is then of fewer clients than asked for. A refusal may take longer than a round, so those before the
/// window count as well. Of a thousand sessions a few may be late.
fn not_admitted(sessions: u64, clients: u32, refused: &BTreeMap<String, u64>) -> Option<String> {
    let least = match refused.is_empty() {
        true => f64::from(clients) * MOST_OF_THEM,
        false => clients.into(),
    };
    ((sessions as f64) < least).then(|| {
        let why = match refused.iter().max_by_key(|(_, n)| **n) {
            Some((words, _)) => format!("the others heard: {words}"),
            None => format!("the others had no answer in {}", Nanos(LONGEST_NS)),
        };
        let fewer = match sessions {
            0 => String::new(),
            n => format!("; explain no more than it admits: --flows {n}"),
        };
        format!("{sessions} of {clients} clients got in, {why}{fewer}")
    })
}

/// The messages and bytes of a transaction, mean values.
fn exchange(done: &PgRun) -> Result<Exchange> {
    let moved = done
        .moved
        .known()
        .ok_or_else(|| Error::Environment("what a transaction moves was not counted".to_owned()))?;
    if moved.sends == 0 {
        return Err(Error::Usage(
            "no transaction sent the server a statement, so there is no network in its time; give a --script \
             with one in it, such as SELECT 1;"
                .into(),
        ));
    }
    let each = |n: u64| n as f64 / done.transactions.max(1) as f64;
    let (sends, receives) = (each(moved.sends), each(moved.receives));
    Ok(Exchange {
        request_bytes: each(moved.sent_bytes).round() as u64,
        response_bytes: each(moved.received_bytes).round() as u64,
        messages: (sends + receives).round() as u32,
        round_trips: each(moved.round_trips),
        sends,
        receives,
        new_connections: each(done.reconnects),
        connect_round_trips: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_counts_for_any_client_and_a_late_session_only_among_few() {
        let refused = BTreeMap::from([("53300: sorry".to_owned(), 1)]);
        let none = BTreeMap::new();
        assert_eq!(not_admitted(8, 8, &refused), None, "admitted when it tried again");
        let why = not_admitted(999, 1000, &refused).unwrap_or_default();
        assert!(why.starts_with("999 of 1000") && why.contains("53300: sorry"), "{why}");
        assert_eq!(not_admitted(999, 1000, &none), None);
        let why = not_admitted(3, 8, &none).unwrap_or_default();
        assert!(why.starts_with("3 of 8") && why.contains("no answer in 2 s"), "{why}");
    }
}
