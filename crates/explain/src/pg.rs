//! `pg://`: transactions of a PostgreSQL server.

use std::{cell::Cell, collections::BTreeMap, sync::atomic::Ordering};

use model::{
    CpuId, Nanos, Warning,
    explain::Exchange,
    measure::{PgRun, PgSpec, Pin},
};
use stats::decompose::Round;
use traffic::{Error, Result};

use crate::{
    server::{Round as Watched, Server},
    workload::{Observed, Workload, cipher, steal},
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
    /// Measures a round. Where it is empty without failures, its sessions were not ready: it tries
    /// again with more time for them to begin.
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
            if let Some(why) = measured.broken {
                return Err(why);
            }
            let server = measured.document.peer.address;
            let done = measured.document.runs.into_iter().next();
            let done = done.ok_or_else(|| Error::Environment("nothing was measured".into()))?;
            if done.transactions > 0 {
                let each = done.connect_ns.max / u64::from(clients.max(1));
                self.beginning_ns.set(one.max(each).min(LONGEST_NS));
                return Ok((server, done));
            }
            if done.failed > 0 || all == LONGEST_NS || run.stop.load(Ordering::Relaxed) {
                let why = done.failures.keys().next().cloned();
                return Err(Error::Environment(format!(
                    "{server}: no transaction was answered in {window}{}",
                    why.map_or_else(String::new, |w| format!(": {w}"))
                )));
            }
            self.beginning_ns.set(one.saturating_mul(4).min(LONGEST_NS));
        }
    }
}

impl Workload for Pg {
    fn run(&self, clients: u32, window: Nanos, run: traffic::Run<'_>) -> Result<Observed> {
        let (done, looks) = self.server.watched(run, |run| self.measured(clients, window, run));
        let (server, done) = done?;
        let took = self.server.took(
            looks,
            &Watched {
                same_host: done.placement.same_host,
                address: &server,
                per_s: done.transactions_per_s,
                cpu: &done.cpu.local,
            },
        );
        if let Some(why) = not_admitted(&done, clients) {
            return Err(Error::Environment(format!("{server}: {why}")));
        }
        let mut warnings = done.warnings.clone();
        if done.tls.is_some() {
            // libpq's `sslmode=prefer` uses TLS where the server has it, as Debian's has.
            warnings.push(Warning::UnderTls { sslmode: true });
        }
        warnings.extend(took.why);
        let latency_ns = done.latency_from_send_ns.clone().unwrap_or(done.latency_ns.clone());
        Ok(Observed {
            round: Round {
                clients,
                transactions: done.transactions,
                window_ns: done.window_ns.0 as f64,
                mean_ns: latency_ns.mean,
                disconnected_ns: 0.0,
            },
            client_cpu_ns: done.cpu.local.threads_per_unit_ns.known().copied(),
            server_cpu_ns: took.server_ns,
            others_cpus: took.others_cpus,
            exchange: exchange(&done)?,
            host_cpu_ns: done.cpu.local.host_busy_per_unit_ns.known().copied(),
            tls_ns: cipher(done.tls.as_ref()),
            receiving: None,
            injected_ns: None,
            pinned: done.placement.local.pinned.clone(),
            steal_ns: steal(&done.cpu.local),
            server,
            statuses: BTreeMap::new(),
            failures: done.failures.clone(),
            quantiles: latency_ns,
            warnings,
        })
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
        if !cpus.is_empty() {
            self.spec.common.pin = Pin::List(cpus.iter().copied().collect());
        }
    }
}

/// Why not all clients took part: a session was refused. The result is then of fewer clients than
/// asked for.
fn not_admitted(done: &PgRun, clients: u32) -> Option<String> {
    let sessions = done.connect_ns.count;
    let (words, _) = done.failures.iter().max_by_key(|(_, n)| **n)?;
    (sessions < clients.into()).then(|| {
        let fewer = match sessions {
            0 => String::new(),
            n => format!("; explain no more than it admits: --flows {n}"),
        };
        format!("{sessions} of {clients} clients got in, the others heard: {words}{fewer}")
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
