//! An experiment that makes sense: what was written, checked.

use std::time::Duration;

use model::{
    CpuSet, Nanos,
    prove::{Design, Direction},
};
use stats::trial::decide::GuardMetric;
use tune::change_request::ChangeRequest;

use crate::{
    ProveError, braces,
    conduct::FEWEST_BLOCKS,
    figure::{self, Source},
    levels::{self, Cell, Factor},
    spec::{MetricSpec, Spec},
    words,
};

/// More combinations than this are no experiment but a mistake.
const MOST_CELLS: usize = 256;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Workload {
    /// A measurement of ours, its words.
    Ours(Vec<String>),
    /// A command for `sh -c`.
    Shell(String),
}

/// A figure of a run, and what is wanted of it.
#[derive(Debug, Clone)]
pub struct Metric {
    pub name: String,
    pub(crate) source: Source,
    /// Which way it is good.
    pub direction: Direction,
    /// Whether it only must not get worse.
    pub guard: Option<GuardMetric>,
}

/// How long it goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Budget {
    Time(Duration),
    Runs(usize),
}

/// What is to be done.
#[derive(Debug, Clone)]
pub struct Experiment {
    /// What was written, for the record.
    pub spec: Spec,
    /// What it is called.
    pub name: String,
    /// What is compared how.
    pub design: Design,
    /// What is run, before levels fill it in.
    pub workload: Workload,
    /// For `sh -c` before each run.
    pub before: Option<String>,
    pub(crate) factors: Vec<Factor>,
    /// Every combination, in the order given, the first factor changing slowest.
    pub(crate) cells: Vec<Cell>,
    /// What is looked at; the first goal decides.
    pub metrics: Vec<Metric>,
    /// How long it goes on.
    pub budget: Budget,
    /// The logarithm of the smallest ratio that matters.
    pub min_effect: Option<f64>,
    /// How long one run may take.
    pub timeout: Duration,
}

impl Experiment {
    /// Judges what was written. `name` is what it is called when it does not say.
    ///
    /// **Errors**: the first thing that makes no sense, by its key.
    pub fn check(spec: Spec, name: &str) -> Result<Self, ProveError> {
        let bad = ProveError::Spec;
        let workload = workload(&spec).map_err(bad)?;
        let (factors, design) = levels::factors(&spec, &workload).map_err(bad)?;
        braces::marks(&factors, &workload).map_err(bad)?;
        braces::unfilled(&factors, &spec).map_err(bad)?;
        let cells = levels::cells(&spec, &factors);
        if cells.len() > MOST_CELLS {
            let fewer = match design {
                Design::Factorial => "; design = \"one-at-a-time\" has far fewer",
                _ => "",
            };
            return Err(bad(format!("{} combinations: at most {MOST_CELLS}{fewer}", cells.len())));
        }
        let metrics = metrics(&spec, &workload).map_err(bad)?;
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

    /// How long it is to go on; `None` where that makes no sense, which [`Self::check`] says.
    pub(crate) fn budget(spec: &Spec) -> Option<Budget> {
        budget(spec).ok()
    }

    /// What kind of measurement of ours is run: `rtt`, `stream`…; `None` for a command.
    pub fn measures(spec: &Spec) -> Option<String> {
        match workload(spec) {
            Ok(Workload::Ours(words)) => words.get(1).cloned(),
            _ => None,
        }
    }

    /// What is run, for people.
    pub fn shown(&self) -> String {
        match &self.workload {
            Workload::Ours(words) => format!("netwright {}", words.join(" ")),
            Workload::Shell(line) => line.clone(),
        }
    }

    /// The figure that decides: the first goal.
    pub(crate) fn goal(&self) -> Option<&Metric> {
        self.metrics.iter().find(|m| m.guard.is_none())
    }

    /// What each combination asks of `tune`, in the order of the combinations.
    pub fn change_requests(&self) -> Vec<Vec<ChangeRequest>> {
        self.cells.iter().map(|c| c.change_requests(&self.factors)).collect()
    }

    /// Commands that are run to set levels, for a warning before.
    pub fn changes(&self) -> Vec<String> {
        let set = self.factors.iter().flat_map(|f| &f.levels).filter_map(|l| l.set.clone());
        set.map(|s| s.set).collect()
    }

    /// Commands that undo its levels.
    pub fn unsets(&self) -> Vec<String> {
        let set = self.factors.iter().flat_map(|f| &f.levels).filter_map(|l| l.set.clone());
        set.map(|s| s.unset).collect()
    }
}

fn workload(spec: &Spec) -> Result<Workload, String> {
    match (&spec.workload, &spec.command) {
        (Some(_), Some(_)) => Err("workload and command: only one of the two".into()),
        (None, None) => Err("workload (a measurement of ours) or command is missing".into()),
        (None, Some(line)) if line.trim().is_empty() => Err("command: is empty".into()),
        (None, Some(line)) => Ok(Workload::Shell(line.clone())),
        (Some(line), None) => {
            let mut words = words::split(line).map_err(|e| format!("workload: {e}"))?;
            if words.first().is_some_and(|w| w == "netwright") {
                words.remove(0);
            }
            words::url(&mut words);
            if words.first().map(String::as_str) != Some("measure") || words.len() < 3 {
                return Err(format!(
                    "workload: `{line}` is no `measure rtt|stream|connect|http|pg TARGET` and \
                     no rtt://HOST, stream://, connect://, http:// or pg://; another program is a `command`"
                ));
            }
            if !words.iter().any(|w| w == "--json") {
                words.push("--json".into());
            }
            Ok(Workload::Ours(words))
        }
    }
}

fn metrics(spec: &Spec, workload: &Workload) -> Result<Vec<Metric>, String> {
    let written = match (spec.metrics.as_slice(), workload) {
        ([], Workload::Ours(words)) => figure::of_ours(words.get(1).map_or("", String::as_str)),
        (written, _) => written.to_vec(),
    };
    if written.is_empty() {
        return Err("metric: a command needs one: name, better, and json, regex, exit_code or \
                    time"
            .into());
    }
    let metrics: Vec<Metric> = written.iter().map(metric).collect::<Result<_, _>>()?;
    for (i, m) in metrics.iter().enumerate() {
        if metrics.iter().skip(i + 1).any(|n| n.name == m.name) {
            return Err(format!("metric {}: is there twice", m.name));
        }
    }
    match metrics.iter().any(|m| m.guard.is_none()) {
        true => Ok(metrics),
        false => Err("metric: all are guards; one must be a goal".into()),
    }
}

fn metric(m: &MetricSpec) -> Result<Metric, String> {
    let direction = match m.better.as_str() {
        "higher" => Direction::HigherIsBetter,
        "lower" => Direction::LowerIsBetter,
        other => return Err(format!("metric {}: better = `{other}`: higher or lower", m.name)),
    };
    let limit = m.limit.as_deref().map(|l| percent("limit", l)).transpose()?;
    if limit.is_some() && !m.guard {
        return Err(format!("metric {}: limit is for a guard", m.name));
    }
    // So much less is a longer way on the scale of logarithms than so much more.
    let limit = limit.map(|l| match direction {
        Direction::LowerIsBetter => l.ln_1p(),
        Direction::HigherIsBetter => -(-l.min(0.99)).ln_1p(),
    });
    let source = Source::check(m)?;
    Ok(Metric {
        name: m.name.clone(),
        source,
        direction,
        guard: m.guard.then_some(GuardMetric { limit }),
    })
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

/// `2%` as 0.02.
pub(crate) fn percent(key: &str, text: &str) -> Result<f64, String> {
    let number = text.trim().strip_suffix('%').and_then(|n| n.trim().parse::<f64>().ok());
    match number.filter(|n| n.is_finite() && *n > 0.0 && *n <= 1000.0) {
        Some(n) => Ok(n / 100.0),
        None => Err(format!("{key}: `{text}`: a share such as 2% is needed")),
    }
}

/// The CPUs of a placement, one by one.
pub(crate) fn cpus(key: &str, text: &str) -> Result<Vec<String>, String> {
    let set = cpu_set(key, text).map_err(|why| format!("placement.{why}"))?;
    Ok(set.iter().map(|c| c.to_string()).collect())
}

/// The CPUs of a placement.
pub(crate) fn cpu_set(key: &str, text: &str) -> Result<CpuSet, String> {
    let set: CpuSet = text.trim().parse().map_err(|e| format!("{key}: {e}"))?;
    match set.is_empty() {
        true => Err(format!("{key}: names no CPU")),
        false => Ok(set),
    }
}

/// How long a measurement of ours goes on by its own `--duration`; `None` for a command.
pub(crate) fn run_takes(spec: &Spec) -> Option<Duration> {
    /// What `measure` does unless it is told otherwise.
    const UNTOLD: Nanos = Nanos(5_000_000_000);
    let Ok(Workload::Ours(words)) = workload(spec) else { return None };
    let at = |(i, word): (usize, &String)| match word.strip_prefix("--duration") {
        Some("") => words.get(i + 1).cloned(),
        Some(rest) => rest.strip_prefix('=').map(str::to_owned),
        None => None,
    };
    let said = words.iter().enumerate().find_map(at);
    let takes = said.map_or(Some(UNTOLD), |text| model::seconds(&text).ok())?;
    Some(Duration::from_nanos(takes.0))
}

#[cfg(test)]
mod tests;
