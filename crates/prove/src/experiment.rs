//! Checks a specification, and holds the resulting experiment.

use std::time::Duration;

use model::prove::Design;
use tune::change_request::ChangeRequest;

use crate::{
    ProveError,
    levels::{self, Cell, Factor},
    metric::{self, Metric},
    placeholder,
    spec::{Spec, percent},
    workload::{self, Workload},
};

/// The fewest blocks that allow a verdict.
pub const FEWEST_BLOCKS: usize = 6;

/// The most combinations; more are taken for a mistake.
const MOST_CELLS: usize = 256;

/// The budget of an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Budget {
    Time(Duration),
    Runs(usize),
}

/// A checked experiment, ready to run.
#[derive(Debug, Clone)]
pub struct Experiment {
    /// The specification as written, for the record.
    pub spec: Spec,
    /// The experiment's name: the file's, or the record's.
    pub name: String,
    /// How the factors are combined and compared.
    pub design: Design,
    /// The workload, with placeholders for levels.
    pub workload: Workload,
    /// A command for `sh -c` before each run.
    pub before: Option<String>,
    pub(crate) factors: Vec<Factor>,
    /// Every combination, in the given order; the first factor changes slowest.
    pub(crate) cells: Vec<Cell>,
    /// The metrics; the first that is no guard decides.
    pub metrics: Vec<Metric>,
    /// How long it goes on.
    pub budget: Budget,
    /// The logarithm of the smallest ratio that matters; `None` where none was given.
    pub min_effect: Option<f64>,
    /// The time limit of one run.
    pub timeout: Duration,
}

impl Experiment {
    /// Checks a specification. `name` applies where the specification has none.
    ///
    /// # Errors
    /// The first contradiction, with its key.
    pub fn check(spec: Spec, name: &str) -> Result<Self, ProveError> {
        let bad = ProveError::Spec;
        let workload = workload::of(&spec).map_err(bad)?;
        let (factors, design) = levels::factors(&spec, &workload).map_err(bad)?;
        placeholder::check_workload(&factors, &workload).map_err(bad)?;
        placeholder::check_levels(&factors, &spec).map_err(bad)?;
        let cells = levels::cells(&spec, &factors);
        if cells.len() > MOST_CELLS {
            let fewer = match design {
                Design::Factorial => "; design = \"one-at-a-time\" has far fewer",
                _ => "",
            };
            return Err(bad(format!("{} combinations: at most {MOST_CELLS}{fewer}", cells.len())));
        }
        let metrics = metric::all(&spec, &workload).map_err(bad)?;
        let budget = budget(&spec).map_err(bad)?;
        let needed = 2 * cells.len() * FEWEST_BLOCKS;
        if let Budget::Runs(runs) = budget
            && runs < needed
        {
            return Err(bad(format!(
                "runs = {runs}: {} combinations twice in {FEWEST_BLOCKS} blocks need runs = \
                 {needed} at least",
                cells.len()
            )));
        }
        let text =
            |key: &str, t: &Option<String>| t.as_deref().map(|t| percent(key, t)).transpose();
        let min_effect = text("min_effect", &spec.min_effect).map_err(bad)?;
        let timeout = match &spec.timeout {
            Some(t) => duration("timeout", t).map_err(bad)?,
            None => Duration::from_secs(600),
        };
        Ok(Self {
            name: spec.name.clone().unwrap_or_else(|| name.to_owned()),
            before: spec.before.clone(),
            spec,
            design,
            workload,
            factors,
            cells,
            metrics,
            budget,
            min_effect: min_effect.map(f64::ln_1p),
            timeout,
        })
    }

    /// The budget; `None` where it is invalid, which [`Self::check`] reports.
    pub(crate) fn budget(spec: &Spec) -> Option<Budget> {
        budget(spec).ok()
    }

    /// The kind of measurement: `rtt`, `stream`…; `None` for a command.
    pub fn measures(spec: &Spec) -> Option<String> {
        match workload::of(spec) {
            Ok(Workload::Ours(words)) => words.get(1).cloned(),
            _ => None,
        }
    }

    /// The workload's command line, for people.
    pub fn shown(&self) -> String {
        match &self.workload {
            Workload::Ours(words) => format!("netwright {}", words.join(" ")),
            Workload::Shell(line) => line.clone(),
        }
    }

    /// The metric that decides: the first goal.
    pub(crate) fn goal(&self) -> Option<&Metric> {
        self.metrics.iter().find(|m| m.guard.is_none())
    }

    /// The knobs of each combination, in the order of the combinations.
    pub fn change_requests(&self) -> Vec<Vec<ChangeRequest>> {
        self.cells.iter().map(|c| c.change_requests(&self.factors)).collect()
    }

    /// Commands that set levels, to warn the operator before they run.
    pub fn changes(&self) -> Vec<String> {
        let set = self.factors.iter().flat_map(|f| &f.levels).filter_map(|l| l.set.clone());
        set.map(|s| s.set).collect()
    }

    /// Commands that undo levels.
    pub fn unsets(&self) -> Vec<String> {
        let set = self.factors.iter().flat_map(|f| &f.levels).filter_map(|l| l.set.clone());
        set.map(|s| s.unset).collect()
    }
}

fn budget(spec: &Spec) -> Result<Budget, String> {
    match (&spec.budget, spec.runs) {
        (Some(_), Some(_)) => Err("budget and runs: only one of the two".into()),
        (None, Some(0)) => Err("runs = 0: says nothing".into()),
        (None, Some(n)) => Ok(Budget::Runs(n)),
        (Some(t), None) => Ok(Budget::Time(duration("budget", t)?)),
        (None, None) => Ok(Budget::Time(Duration::from_secs(60))),
    }
}

fn duration(key: &str, text: &str) -> Result<Duration, String> {
    let ns = model::seconds(text).map_err(|e| format!("{key}: {e}"))?;
    match ns.0 {
        0 => Err(format!("{key}: 0 says nothing")),
        ns => Ok(Duration::from_nanos(ns)),
    }
}

#[cfg(test)]
mod tests;
