//! What the intervals showed, and the page that a scrape gets of it.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use ::metrics::{
    Scrape, families,
    probes::ProbeTotals,
    text::{self, Format},
    totals::Totals,
};
use model::{
    Facts, Finding, Reading, Samples, measure::Quantiles, tune::Status, watch::WatchRecord,
};
use probe::{Root, samples::since_boot};
use tune::{Host, Store, status};

use super::Own;

/// Counters of this age are not read again, so that many scrapers cannot keep a CPU busy.
const FRESH: Duration = Duration::from_millis(100);

/// All that is collected; every clone is the same one.
#[derive(Clone)]
pub struct Collected(Arc<Inside>);

struct Inside {
    state: Mutex<State>,
    /// Counters since boot, as the last scrape read them. Held while they are read: one scrape at a time.
    counters: Mutex<Option<(Instant, Reading<Samples>)>>,
    root: Root,
    own: Own,
    journal: Option<PathBuf>,
}

struct State {
    totals: Totals,
    findings: Reading<Vec<Finding>>,
    facts: Reading<Facts>,
    changes: Reading<Status>,
    probes: Vec<ProbeTotals>,
}

impl Collected {
    /// Empty until the first [`Collected::add`] and [`Collected::renew`].
    pub fn new(processes: usize, journal: Option<PathBuf>) -> Self {
        let state = State {
            totals: Totals::new(processes),
            findings: Reading::absent("no interval is over yet"),
            facts: Reading::absent("not read yet"),
            changes: Reading::absent("not read yet"),
            probes: vec![],
        };
        Self(Arc::new(Inside {
            state: Mutex::new(state),
            counters: Mutex::new(None),
            root: Root::live(),
            own: Own::begin(),
            journal,
        }))
    }

    /// Adds an interval to the sums; its findings replace those before.
    pub fn add(&self, record: WatchRecord) {
        let mut state = lock(&self.0.state);
        state.totals.add(&record.interval);
        state.findings = Reading::Known(record.findings);
    }

    /// Takes new facts, and reads which changes are in force; returns whether these are others than
    /// before.
    pub fn renew(&self, facts: Option<Facts>) -> bool {
        let store = Store::of(self.0.journal.clone());
        let changes = match status::status(&Host::live(), &store, None) {
            Ok(status) => Reading::Known(status),
            Err(e) => Reading::denied(e.to_string()),
        };
        let mut state = lock(&self.0.state);
        let before = std::mem::replace(&mut state.changes, changes);
        if let Some(facts) = facts {
            state.facts = Reading::Known(facts);
        }
        before.is_known() && before != state.changes
    }

    /// The targets of probes, in the order of [`Collected::probed`].
    pub fn probes(&self, targets: impl Iterator<Item = String>) {
        lock(&self.0.state).probes = targets.map(ProbeTotals::new).collect();
    }

    /// A probe of the n-th target ended; `None`: without an answer.
    pub fn probed(&self, n: usize, round_trips: Option<Quantiles>) {
        if let Some(probe) = lock(&self.0.state).probes.get_mut(n) {
            probe.add(round_trips);
        }
    }

    /// Why it is not known which changes are in force; `None` where it is.
    pub fn no_changes(&self) -> Option<String> {
        lock(&self.0.state).changes.why_not().map(str::to_owned)
    }

    /// The page for one scrape.
    pub fn page(&self, format: Format) -> String {
        let mut counters = lock(&self.0.counters);
        if counters.as_ref().is_none_or(|(read, _)| read.elapsed() >= FRESH) {
            let now = since_boot::counters_now(&self.0.root);
            let now = now.map_or_else(|| Reading::absent("no time since boot"), Reading::Known);
            *counters = Some((Instant::now(), now));
        }
        let none = Reading::absent("not read");
        let samples = counters.as_ref().map_or(&none, |(_, samples)| samples);
        let state = lock(&self.0.state);
        let scrape = Scrape {
            samples: samples.as_ref(),
            totals: &state.totals,
            facts: state.facts.as_ref(),
            findings: state.findings.as_ref().map(Vec::as_slice),
            changes: state.changes.as_ref(),
            probes: &state.probes,
            process: self.0.own.process(&self.0.root),
            version: env!("CARGO_PKG_VERSION"),
        };
        text::page(&families(&scrape), format)
    }
}

/// What a panic of another thread left is complete: each change of it is one statement.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
