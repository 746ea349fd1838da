//! One pgbench run as a round: counters of both hosts before and after, and pgbench's report and
//! log.

use std::{
    fs::File,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use model::{
    CpuSet, Nanos, Reading, Warning,
    measure::{Common, EndCpu, PgRun, PgSpec, TlsRun},
};
use traffic::{
    Error, ErrorContext, Result,
    client::Peer,
    engine::{
        assignments::Assignments,
        backlog::Late,
        conduct::Run,
        load::OneRun,
        measured::BATCH_NS,
        sums::Sums,
        workers::{WorkerTask, Workers},
    },
    host,
    net::now_ns,
};

use super::{
    Tool,
    child::{self, Over},
    command::{self, Logs},
    log::{self, Columns},
    reported::{self, Reported},
};
use crate::pg::{
    protocol::PgShape,
    recorder::{PgRecorder, RecorderSpec},
    result,
};

/// How much longer than requested pgbench may run: for its connections and its last transactions.
const GRACE_NS: u64 = 60_000_000_000;
const NOT_ASKED: &str = "pgbench's threads are not asked";
const NOT_REPORTED: &str = "pgbench does not tell";

/// Inputs of a pgbench run.
#[derive(Clone, Copy)]
pub struct By<'a> {
    pub tool: &'a Tool,
    pub spec: &'a PgSpec,
    pub clients: u32,
    pub shape: &'a PgShape,
    pub seed: u64,
    pub observer: Option<&'a Peer>,
    /// Options for waiting, from [`conducted`].
    pub conducted: &'a Common,
    pub assignments: &'a Assignments,
    pub same_host: bool,
    /// The password from the connection string.
    pub password: Option<&'a str>,
    /// TLS parameters of our own session: pgbench uses the same string.
    pub tls: Option<&'a TlsRun>,
}

/// Runs pgbench once.
///
/// # Errors
/// It cannot be started, or gave no result.
pub fn one(by: &By<'_>, run: Run<'_>) -> Result<OneRun<PgRun>> {
    let folder = Logs::new()?;
    let over = Mutex::new(None);
    let longer = by.conducted.duration_ns.0 as f64 / by.spec.common.duration_ns.0.max(1) as f64;
    let progress = |what: &str, share: f64| (run.progress)(what, (share * longer).min(1.0));
    let mut round = by.workers().work(
        Run::new(run.stop, &progress),
        &format!("pgbench, {}", result::clients_text(by.clients)),
        || by.recorder(),
        |duty, _| {
            let outcome = by.child(duty, &folder);
            match outcome {
                Ok(ended) => *over.lock().unwrap_or_else(PoisonError::into_inner) = ended,
                Err(why) => duty.pool.break_off(why),
            }
        },
    )?;
    let over = over.into_inner().unwrap_or_else(PoisonError::into_inner);
    let Some(over) = over else {
        let ended = Error::Environment("pgbench was ended before it began".into());
        return Err(round.broken.unwrap_or(ended));
    };
    let read = |name| std::fs::read_to_string(folder.file(name)).unwrap_or_default();
    let (error, warnings) = reported::complaints(&read("err"));
    let reported = reported::read(&read("out"));
    let start_ns = round.course.start_ns;
    let logged = log::read(&folder.logs(), Columns::of(by.spec), start_ns, || by.recorder())?;
    round.recorders = logged.recorders;
    round.course.window_ns = window(by.spec, reported.as_ref(), logged.spans_ns);
    let mut broken = round.broken.take();
    if !over.status.success() && !over.by_us {
        let why = error.unwrap_or_else(|| format!("it ended by {}", over.status));
        let names: Vec<&str> = by.spec.scripts.iter().map(|s| s.name.as_str()).collect();
        let why = reported::with_name(&why, &names);
        broken = Some(Error::Environment(format!("pgbench: {why}")));
    }
    let mut sums = Sums::new(by.recorder());
    sums.add(None, &round);
    sums.window_ns = round.course.window_ns;
    sums.interrupted = over.by_us || broken.is_some();
    if sums.all.requests.latency.count() + sums.all.requests.failures() == 0
        && let Some(why) = broken
    {
        return Err(why);
    }
    let interrupted = sums.interrupted;
    let run = by.finished(&sums, &over, reported.unwrap_or_default(), warnings);
    Ok(OneRun { run, interrupted, broken })
}

/// The duration for the rate: from pgbench's report, else from its log.
fn window(spec: &PgSpec, reported: Option<&Reported>, spans_ns: u64) -> u64 {
    let rate =
        reported.and_then(|t| if spec.connect_each { t.per_s_with } else { t.per_s_without });
    match (reported, rate) {
        (Some(reported), Some(rate)) if rate > 0.0 && reported.processed > 0 => {
            (reported.processed as f64 / rate * 1e9).round() as u64
        }
        _ => spans_ns,
    }
}

impl By<'_> {
    fn workers(&self) -> Workers<'_> {
        Workers {
            common: self.conducted,
            assignments: self.assignments,
            observer: self.observer,
            connections: self.clients,
            rate_per_s: None,
            // The window ends with the last transaction.
            total: Some(1),
            interval_ns: None,
        }
    }

    fn recorder(&self) -> PgRecorder {
        let kept = RecorderSpec {
            open_loop: self.spec.rate_per_s.is_some(),
            scripts: self.shape.plan.scripts.len(),
            statements: 0,
        };
        PgRecorder::new(kept, BATCH_NS)
    }

    /// Runs it within the window; `None` if the window never opened.
    fn child(&self, duty: &WorkerTask<'_>, folder: &Logs) -> Result<Option<Over>> {
        while duty.window.start_ns() == u64::MAX {
            if duty.pool.stopping() {
                return Ok(None);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let cpus: CpuSet = self.assignments.cpus.iter().copied().collect();
        if !self.assignments.cpus.is_empty() {
            // It inherits this thread's affinity.
            host::pin::set(&cpus)?;
        }
        let mut command = command::command(self.spec, self.tool, self.clients, self.seed, folder)?;
        if let Some(password) = self.password {
            command.env("PGPASSWORD", password);
        }
        let file = |name| File::create(folder.file(name)).doing(|| "pgbench's output");
        let begun = now_ns();
        let over = child::run(command, file("out")?, file("err")?, || {
            duty.pool.stopping() || now_ns().saturating_sub(begun) > self.max_time_ns()
        })?;
        Ok(Some(over))
    }

    fn max_time_ns(&self) -> u64 {
        self.spec.common.duration_ns.0.saturating_add(GRACE_NS)
    }

    fn finished(
        &self,
        sums: &Sums<PgRecorder>,
        over: &Over,
        reported: Reported,
        warnings: Vec<String>,
    ) -> PgRun {
        let transactions = sums.all.requests.latency.count();
        // The snapshots enclose all of pgbench, including connecting: its transactions are all
        // there are.
        let spec = PgSpec { transactions: Some(transactions), ..self.spec.clone() };
        let mut run =
            result::pg_run(&spec, self.clients, self.shape, self.assignments, self.same_host, sums);
        run.tls_handshake_ns = None;
        run.tls = self.tls.cloned();
        run.statements = Reading::absent(NOT_REPORTED);
        run.moved = Reading::absent(NOT_REPORTED);
        run.placement.local.migrations = Reading::absent(NOT_ASKED);
        run.placement.local.ran_on.clear();
        run.cpu.local = host::per_unit(used(run.cpu.local, over), transactions);
        self.rates(&mut run, &reported);
        if let Some(rate_per_s) = self.spec.rate_per_s {
            run.not_started = Reading::absent(NOT_REPORTED);
            run.warnings.extend(self.late(rate_per_s, &run, &reported));
        }
        run.warnings.extend(warnings.into_iter().map(|text| Warning::Pgbench { text }));
        if self.spec.connect_each && self.spec.rate_per_s.is_none() {
            // With a schedule both measure from before the connection.
            run.warnings.push(Warning::PgbenchWithoutConnection);
        }
        if over.by_us {
            run.warnings.push(Warning::PgbenchEnded);
        } else if reported.processed != transactions {
            let reported = reported.processed;
            run.warnings.push(Warning::PgbenchCountsDiffer { reported, logged: transactions });
        }
        run
    }

    /// A warning if the schedule was not kept.
    fn late(&self, rate_per_s: u64, run: &PgRun, reported: &Reported) -> Option<Warning> {
        let late = Late {
            places: "--flows",
            rate_per_s,
            per_s: run.transactions_per_s,
            at_once: self.clients.into(),
            lag_ns: reported.lag_ns,
            window_ns: run.window_ns.0,
        };
        late.warning("pgbench")
    }

    /// Adds pgbench's rates with and without connection time.
    fn rates(&self, run: &mut PgRun, reported: &Reported) {
        let (n, window) = (run.transactions as f64, run.window_ns.0 as f64);
        let rate = |ns: f64| n * 1e9 / ns.max(1.0);
        match (self.spec.connect_each, reported.connecting_ns, reported.each_connection_ns) {
            (false, Some(connecting), _) => {
                run.transactions_per_s_with_connecting = rate(window + connecting);
            }
            (false, None, _) => {
                run.transactions_per_s_with_connecting =
                    reported.per_s_with.unwrap_or(run.transactions_per_s);
            }
            (true, _, Some(each)) => {
                let spent = each * n / f64::from(self.clients.max(1));
                run.transactions_per_s_without_connecting =
                    rate((window - spent).max(window / 1000.0));
            }
            (true, _, None) => {
                run.transactions_per_s_without_connecting =
                    reported.per_s_without.unwrap_or(run.transactions_per_s);
            }
        }
    }
}

/// Replaces the waiting thread's CPU time by pgbench's.
fn used(cpu: EndCpu, over: &Over) -> EndCpu {
    let all = Reading::Known(over.user_ns.saturating_add(over.system_ns));
    EndCpu {
        threads_ns: all.clone(),
        threads_user_ns: Reading::Known(over.user_ns),
        threads_system_ns: Reading::Known(over.system_ns),
        process_ns: all,
        voluntary_switches: Reading::Known(over.voluntary_switches),
        involuntary_switches: Reading::Known(over.involuntary_switches),
        ..cpu
    }
}

/// Options for waiting: one thread, no warm-up, and time for pgbench to end by itself.
pub fn conducted(common: &Common) -> Common {
    Common {
        threads: 1,
        warmup_ns: Nanos(0),
        cooldown_ns: Nanos(0),
        duration_ns: Nanos(common.duration_ns.0.saturating_add(GRACE_NS)),
        ..common.clone()
    }
}
