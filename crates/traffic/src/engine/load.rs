//! Parameters that all workloads share, and their runs, one for each number of connections.

use std::sync::atomic::{AtomicBool, Ordering};

use model::{Nanos, measure::Common};

use crate::{Error, Result};

/// Largest pipeline depth; more is a mistake.
const MOST_PIPELINE: u32 = 1024;

/// Parameters of any workload; `what` is its word for requests, in the plural and as its option.
#[derive(Debug, Clone, Copy)]
pub struct Load<'a> {
    pub common: &'a Common,
    pub flows: &'a [u32],
    pub pipeline: u32,
    /// Whether each request uses a new connection.
    pub one_each: bool,
    pub rate_per_s: Option<u64>,
    pub total: Option<u64>,
    pub interval_ns: Option<Nanos>,
    pub timeout_ns: Nanos,
    pub what: &'static str,
    pub option: &'static str,
}

impl Load<'_> {
    /// Checks the parameters for contradictions.
    ///
    /// # Errors
    /// [`Error::Usage`], with the option to drop.
    pub fn check(&self) -> Result<()> {
        let Self { common, pipeline, what, option, .. } = *self;
        let usage = |why: String| Err(Error::Usage(why));
        if self.flows.is_empty() || common.threads == 0 {
            return usage("no number of flows or threads is given".into());
        }
        if let Some(few) = self.flows.iter().find(|f| **f < common.threads) {
            return usage(format!(
                "{few} flow{} cannot keep {} threads busy; give at least as many flows",
                if *few == 1 { "" } else { "s" },
                common.threads
            ));
        }
        if !(1..=MOST_PIPELINE).contains(&pipeline) {
            return usage(format!("--pipeline {pipeline}: from 1 to {MOST_PIPELINE}"));
        }
        if self.one_each && pipeline > 1 {
            return usage(
                "each new connection carries one; leave out --pipeline or --new-connections".into(),
            );
        }
        if self.total.is_some() && common.confidence_per_mille.is_some() {
            return usage(format!(
                "a number of {what} is one round; leave out {option} or --precision"
            ));
        }
        if self.rate_per_s == Some(0) || self.total == Some(0) {
            return usage(format!("no {what} are asked for"));
        }
        if self.interval_ns.is_some_and(|i| i.0 < 100_000_000) {
            return usage("an interval of at least 100ms is needed".into());
        }
        if self.timeout_ns.0 < 1_000_000 {
            return usage(format!("a time limit below 1ms fails {what} that only wait their turn"));
        }
        Ok(())
    }
}

/// One run and its end.
pub struct OneRun<R> {
    pub run: R,
    /// Whether it ended early.
    pub interrupted: bool,
    pub broken: Option<Error>,
}

/// The runs so far.
pub struct Sweep<R> {
    pub runs: Vec<R>,
    pub interrupted: bool,
    /// Why the last run failed or could not begin.
    pub broken: Option<Error>,
}

/// Runs once for each number of connections, until one fails or `stop` is set.
pub fn sweep<R>(
    numbers: &[u32],
    stop: &AtomicBool,
    mut one: impl FnMut(u32) -> Result<OneRun<R>>,
) -> Sweep<R> {
    let mut all = Sweep { runs: vec![], interrupted: false, broken: None };
    for &number in numbers {
        if stop.load(Ordering::Relaxed) || all.broken.is_some() {
            break;
        }
        match one(number) {
            Ok(OneRun { run, interrupted, broken }) => {
                all.interrupted |= interrupted;
                all.broken = broken;
                all.runs.push(run);
            }
            Err(e) => all.broken = Some(e),
        }
    }
    all.interrupted |= all.broken.is_some() || stop.load(Ordering::Relaxed);
    all
}
