//! Marks runs that measured nothing, with the reason: zeros would look like results.

use std::collections::BTreeMap;

use model::{
    Nanos, Warning,
    measure::{
        ConnectDocument, ConnectRun, HttpDocument, HttpRun, OffloadDocument, PgDocument, PgRun,
        RedisDocument, RedisRun, RttDocument, RttRun, StreamDocument, StreamRun,
    },
};

use crate::{Error, Measured};

/// A result that may be empty.
pub trait MarkEmptyRuns {
    /// Adds a warning to each run that measured nothing; returns the reason if no run measured
    /// anything.
    fn mark_empty_runs(&mut self) -> Option<Warning>;
}

impl<D: MarkEmptyRuns> Measured<D> {
    /// Adds the warnings, and sets the result's error if no run measured anything. Also returns
    /// whether that is so: then there are no figures to show.
    #[must_use]
    pub fn marked(mut self) -> (Self, bool) {
        let why = self.document.mark_empty_runs();
        let nothing = why.is_some();
        self.broken = self.broken.or(why.map(|why| Error::Environment(why.to_string())));
        (self, nothing)
    }
}

/// A run of any kind; `why_empty` gives the reason if it measured nothing.
trait MeasuredRun {
    fn why_empty(&self, interrupted: bool, rate: Option<u64>) -> Option<Warning>;
    fn warnings(&mut self) -> &mut Vec<Warning>;
}

fn mark<R: MeasuredRun>(runs: &mut [R], interrupted: bool, rate: Option<u64>) -> Option<Warning> {
    let (mut why, mut some) = (None, false);
    let last = runs.len().saturating_sub(1);
    for (n, run) in runs.iter_mut().enumerate() {
        // Only the last run can have been interrupted.
        match run.why_empty(interrupted && n == last, rate) {
            Some(warning) => {
                run.warnings().push(warning.clone());
                why = Some(warning);
            }
            None => some = true,
        }
    }
    match (runs.is_empty(), some) {
        (true, _) => Some(Warning::EndedTooEarly { what: "window".into() }),
        (false, true) => None,
        (false, false) => why,
    }
}

/// The reason if nothing was lost and nothing failed.
fn nothing_measured(what: &str, interrupted: bool, window_ns: Nanos) -> Warning {
    let what = what.to_owned();
    match interrupted {
        true => Warning::EndedTooEarly { what },
        false => Warning::NothingWithinWindow { what, window_ns },
    }
}

/// The reason if the schedule had nothing due in the window.
fn none_due(rate: Option<u64>, what: &str, window_ns: Nanos) -> Option<Warning> {
    let rate_per_s = rate.filter(|r| (*r as f64) * (window_ns.0 as f64) < 2e9)?;
    Some(Warning::NothingDue { rate_per_s, what: what.to_owned(), window_ns })
}

/// The reason if every attempt failed.
fn all_failed(figure: &str, tries: &str, failures: &BTreeMap<String, u64>) -> Option<Warning> {
    let count = failures.values().fold(0u64, |a, n| a.saturating_add(*n));
    (count > 0).then(|| Warning::AllFailed {
        figure: figure.into(),
        tries: tries.into(),
        count,
        causes: failures.keys().cloned().collect(),
        perhaps_tls: false,
    })
}

impl MeasuredRun for RttRun {
    fn why_empty(&self, interrupted: bool, rate: Option<u64>) -> Option<Warning> {
        if self.transactions > 0 {
            return None;
        }
        if self.lost > 0 {
            return Some(Warning::AllRequestsLost { requests: self.lost });
        }
        let due = none_due(rate, "a request", self.window_ns).filter(|_| !interrupted);
        Some(due.unwrap_or_else(|| nothing_measured("response", interrupted, self.window_ns)))
    }

    fn warnings(&mut self) -> &mut Vec<Warning> {
        &mut self.warnings
    }
}

impl MeasuredRun for ConnectRun {
    fn why_empty(&self, interrupted: bool, rate: Option<u64>) -> Option<Warning> {
        if self.connections > 0 {
            return None;
        }
        if let Some(failed) = all_failed("connection", " attempts", &self.failed) {
            return Some(failed);
        }
        let due = none_due(rate, "a connection", self.window_ns).filter(|_| !interrupted);
        Some(due.unwrap_or_else(|| nothing_measured("connection", interrupted, self.window_ns)))
    }

    fn warnings(&mut self) -> &mut Vec<Warning> {
        &mut self.warnings
    }
}

impl MeasuredRun for HttpRun {
    fn why_empty(&self, interrupted: bool, rate: Option<u64>) -> Option<Warning> {
        if self.transactions > 0 {
            return None;
        }
        if let Some(mut failed) = all_failed("response", " requests", &self.failures) {
            if let Warning::AllFailed { perhaps_tls, .. } = &mut failed {
                *perhaps_tls = self.warnings.contains(&Warning::PerhapsTls);
            }
            return Some(failed);
        }
        let due = none_due(rate, "a request", self.window_ns).filter(|_| !interrupted);
        Some(due.unwrap_or_else(|| nothing_measured("response", interrupted, self.window_ns)))
    }

    fn warnings(&mut self) -> &mut Vec<Warning> {
        &mut self.warnings
    }
}

impl MeasuredRun for PgRun {
    fn why_empty(&self, interrupted: bool, rate: Option<u64>) -> Option<Warning> {
        if self.transactions > 0 {
            return None;
        }
        if let Some(failed) = all_failed("transaction", "", &self.failures) {
            return Some(failed);
        }
        let due = none_due(rate, "a transaction", self.window_ns).filter(|_| !interrupted);
        Some(due.unwrap_or_else(|| nothing_measured("transaction", interrupted, self.window_ns)))
    }

    fn warnings(&mut self) -> &mut Vec<Warning> {
        &mut self.warnings
    }
}

impl MeasuredRun for RedisRun {
    fn why_empty(&self, interrupted: bool, rate: Option<u64>) -> Option<Warning> {
        if self.transactions > 0 {
            return None;
        }
        if let Some(failed) = all_failed("reply", " commands", &self.failures) {
            return Some(failed);
        }
        let due = none_due(rate, "a command", self.window_ns).filter(|_| !interrupted);
        Some(due.unwrap_or_else(|| nothing_measured("reply", interrupted, self.window_ns)))
    }

    fn warnings(&mut self) -> &mut Vec<Warning> {
        &mut self.warnings
    }
}

impl MeasuredRun for StreamRun {
    fn why_empty(&self, interrupted: bool, _: Option<u64>) -> Option<Warning> {
        if self.bytes > 0 {
            return None;
        }
        match self.datagrams.as_ref().filter(|d| d.lost > 0) {
            Some(d) => Some(Warning::AllDatagramsLost { datagrams: d.lost }),
            None => Some(nothing_measured("byte", interrupted, self.window_ns)),
        }
    }

    fn warnings(&mut self) -> &mut Vec<Warning> {
        &mut self.warnings
    }
}

impl MarkEmptyRuns for RttDocument {
    fn mark_empty_runs(&mut self) -> Option<Warning> {
        mark(&mut self.runs, self.interrupted, self.request.rate_per_s)
    }
}

impl MarkEmptyRuns for ConnectDocument {
    fn mark_empty_runs(&mut self) -> Option<Warning> {
        mark(&mut self.runs, self.interrupted, self.request.rate_per_s)
    }
}

impl MarkEmptyRuns for HttpDocument {
    fn mark_empty_runs(&mut self) -> Option<Warning> {
        mark(&mut self.runs, self.interrupted, self.request.rate_per_s)
    }
}

impl MarkEmptyRuns for PgDocument {
    fn mark_empty_runs(&mut self) -> Option<Warning> {
        mark(&mut self.runs, self.interrupted, self.request.rate_per_s)
    }
}

impl MarkEmptyRuns for OffloadDocument {
    fn mark_empty_runs(&mut self) -> Option<Warning> {
        self.rows.is_empty().then(|| Warning::EndedTooEarly { what: "probe".into() })
    }
}

impl MarkEmptyRuns for RedisDocument {
    fn mark_empty_runs(&mut self) -> Option<Warning> {
        mark(&mut self.runs, self.interrupted, self.request.rate_per_s)
    }
}

impl MarkEmptyRuns for StreamDocument {
    fn mark_empty_runs(&mut self) -> Option<Warning> {
        mark(&mut self.runs, self.interrupted, None)
    }
}
