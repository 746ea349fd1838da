//! An experiment as written in a file. [`crate::Experiment::check`] validates it.

use std::collections::BTreeSet;

use model::{CpuSet, prove::ProveNote};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ProveError;

/// Parses a file's text.
///
/// # Errors
/// The place and the mistake, on one line.
pub fn parse(text: &str) -> Result<Spec, String> {
    toml::from_str(text).map_err(|e: toml::de::Error| {
        let line = e
            .span()
            .map_or(1, |s| text.get(..s.start).map_or(1, |before| before.lines().count().max(1)));
        let why = e.message().split_whitespace().collect::<Vec<_>>().join(" ");
        format!("line {line}: {why}")
    })
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// The experiment's name [default: the file's].
    pub name: Option<String>,
    /// A measurement of ours: `measure rtt db1 --duration 500ms`. `{FACTOR}` is replaced by the
    /// factor's level.
    pub workload: Option<String>,
    /// Or a command, for `sh -c`.
    pub command: Option<String>,
    /// A command before each run, for `sh -c`.
    pub before: Option<String>,
    /// The time budget of all runs: `60s`.
    pub budget: Option<String>,
    /// Or the number of all runs.
    pub runs: Option<usize>,
    /// Differences smaller than this do not matter: `2%`.
    pub min_effect: Option<String>,
    /// Seed of the random order of runs [default: the clock].
    pub seed: Option<u64>,
    /// Whether to stop irqbalance and fix CPU frequencies during the experiment.
    #[serde(default)]
    pub freeze_host: bool,
    /// The time limit of one run [default: 10m].
    pub timeout: Option<String>,
    /// How several factors are combined: `full-factorial` (default) or `one-at-a-time`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub design: Option<String>,
    #[serde(default, rename = "factor")]
    pub factors: Vec<FactorSpec>,
    /// Or a placement: the CPUs of both ends, every pair.
    pub placement: Option<PlacementSpec>,
    /// The metrics [default: those of the measurement].
    #[serde(default, rename = "metric")]
    pub metrics: Vec<MetricSpec>,
}

impl Spec {
    /// The differences from another specification, one text each: `budget: "60s" there, "30s"
    /// here`.
    pub fn differences(&self, here: &Self) -> Vec<String> {
        let mut found = Vec::new();
        let value = |of| serde_json::to_value(of).unwrap_or_default();
        differ("", &value(self), &value(here), &mut found);
        found
    }
}

/// Descends to the values that differ.
fn differ(at: &str, there: &Value, here: &Value, into: &mut Vec<String>) {
    match (there, here) {
        (Value::Object(there), Value::Object(here)) => {
            let keys: BTreeSet<&String> = there.keys().chain(here.keys()).collect();
            for key in keys {
                let of = |o: &Map<String, Value>| o.get(key).cloned().unwrap_or(Value::Null);
                let at = if at.is_empty() { key.clone() } else { format!("{at}.{key}") };
                differ(&at, &of(there), &of(here), into);
            }
        }
        (Value::Array(there), Value::Array(here)) if there.len() == here.len() => {
            for (i, (there, here)) in there.iter().zip(here).enumerate() {
                differ(&format!("{at}[{i}]"), there, here, into);
            }
        }
        (there, here) if there != here => {
            into.push(format!("{at}: {} there, {} here", shown(there), shown(here)));
        }
        _ => {}
    }
}

/// A value as short text.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "nothing".into(),
        value => {
            let text = value.to_string();
            let end = text.char_indices().nth(60).map(|(at, _)| at);
            end.and_then(|at| text.get(..at)).map_or(text.clone(), |cut| format!("{cut}…"))
        }
    }
}

/// A factor of the experiment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FactorSpec {
    /// The factor's name; `{NAME}` in the workload is replaced by the level [default: the knob].
    #[serde(default)]
    pub name: String,
    /// Its levels; the others are compared with the first.
    pub levels: Vec<LevelSpec>,
    /// A knob of `netwright tune`: each level is a value of it, and `now` is its present value.
    pub knob: Option<String>,
    /// Arguments appended to the workload at each level; `{level}` is replaced.
    pub args: Option<String>,
    /// A command that sets a level, for `sh -c`; `{level}` is replaced.
    pub set: Option<String>,
    /// The command that undoes the level.
    pub unset: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum LevelSpec {
    Name(String),
    /// A whole number, which is also the level's name.
    Number(i64),
    /// A number with a decimal point.
    Fraction(f64),
    /// A level with arguments, commands or knobs.
    Full(FullLevelSpec),
}

/// A level with its own arguments, commands or knobs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FullLevelSpec {
    pub name: String,
    /// What the factor's placeholder stands for at this level [default: the name].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Arguments appended to the workload.
    pub args: Option<String>,
    /// A command that sets the level.
    pub set: Option<String>,
    /// The command that undoes the level.
    pub unset: Option<String>,
    /// Knobs of `netwright tune` that it sets: `KNOB=VALUE`.
    #[serde(default)]
    pub change: Vec<String>,
}

/// Value of a CPU list that asks for one CPU of each class.
pub const CLASSES: &str = "classes";

/// A placement matrix: the workload's CPUs beside the server's, or beside those of a NIC's
/// interrupts. The workload's CPU is `--cpu` of a measurement of ours, `{cpu}` in a command.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlacementSpec {
    /// CPUs of the workload: `0-3`, or `classes` for one of each class.
    pub cpus: String,
    /// CPUs of the server: `--peer-cpu` of a measurement of ours, `{peer_cpu}` in a command.
    pub peer_cpus: Option<String>,
    /// CPUs that take the interrupts of `nic`, set by `irq.affinity` of `netwright tune`.
    pub irq_cpus: Option<String>,
    /// The NIC whose interrupts the classes are relative to.
    pub nic: Option<String>,
    /// The CPUs chosen for classes on this host. Netwright fills it in for the record.
    #[serde(default, rename = "assignment", skip_serializing_if = "Vec::is_empty")]
    pub assignments: Vec<Assignment>,
    /// The reasons for the columns; also filled in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<String>,
    /// The placements that the budget does not hold; also filled in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<ProveNote>,
}

impl PlacementSpec {
    /// Whether the specification needs a host's topology to name its CPUs.
    pub fn by_class(&self) -> bool {
        let classes = |text: &str| text.trim() == CLASSES;
        let others = [&self.peer_cpus, &self.irq_cpus];
        classes(&self.cpus) || others.into_iter().flatten().any(|t| classes(t))
    }
}

/// One placement: a CPU of the workload beside a column (the other end, or interrupts).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Assignment {
    /// The workload's class relative to the column.
    pub class: String,
    pub cpu: u32,
    /// The column's CPUs, as text.
    pub beside: String,
}

/// A metric of the experiment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetricSpec {
    pub name: String,
    /// JSON path in the workload's output: `runs.0.rtt_ns.p50`.
    pub json: Option<String>,
    /// Or a regular expression; its first group is the value.
    pub regex: Option<String>,
    /// Or the exit code.
    #[serde(default)]
    pub exit_code: bool,
    /// Or the duration of the run, seconds.
    #[serde(default)]
    pub time: bool,
    /// The better direction: `higher` or `lower`.
    pub better: String,
    /// Whether it is a guard, which must only not get worse.
    #[serde(default)]
    pub guard: bool,
    /// The guard's limit: it must be shown to get worse by less than this, `10%`.
    pub limit: Option<String>,
}

/// A percentage as a share: `2%` is 0.02.
pub(crate) fn percent(key: &str, text: &str) -> Result<f64, String> {
    let number = text.trim().strip_suffix('%').and_then(|n| n.trim().parse::<f64>().ok());
    match number.filter(|n| n.is_finite() && *n > 0.0 && *n <= 1000.0) {
        Some(n) => Ok(n / 100.0),
        None => Err(format!("{key}: `{text}`: a share such as 2% is needed")),
    }
}

/// The CPUs of a placement's list, each as text.
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

/// The factor of an A/B experiment on knobs: `now` against changed.
pub fn of_changes(change: &[String]) -> FactorSpec {
    let level = |name: String, change: &[String]| {
        LevelSpec::Full(FullLevelSpec { name, change: change.to_vec(), ..FullLevelSpec::default() })
    };
    FactorSpec {
        name: "change".into(),
        levels: vec![level("as it is".into(), &[]), level(change.join(", "), change)],
        ..FactorSpec::default()
    }
}

/// Parses `NAME=PATH:lower[:guard]`, `NAME=/REGEX/:higher`, `NAME=exit:lower` or `NAME=time:lower`.
///
/// # Errors
/// It has none of these forms.
pub fn metric(text: &str) -> Result<MetricSpec, ProveError> {
    let bad = || {
        ProveError::Spec(format!(
            "--metric {text}: NAME=WHERE:higher or :lower, with WHERE a path in JSON, /REGEX/, \
             exit_code or time"
        ))
    };
    let (name, rest) = text.split_once('=').ok_or_else(bad)?;
    let (rest, guard) = match rest.strip_suffix(":guard") {
        Some(rest) => (rest, true),
        None => (rest, false),
    };
    let (place, better) = rest.rsplit_once(':').ok_or_else(bad)?;
    let regex = place.strip_prefix('/').and_then(|p| p.strip_suffix('/'));
    let json = (regex.is_none() && place != "exit_code" && place != "time").then_some(place);
    Ok(MetricSpec {
        name: name.into(),
        json: json.map(str::to_owned),
        regex: regex.map(str::to_owned),
        exit_code: place == "exit_code",
        time: place == "time",
        better: better.into(),
        guard,
        limit: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_reported_by_its_place() {
        let text = "command = \"w\"\nbudget = \"60s\"\n[[factor]]\nname = \"v\"\nlevels = [1, 2]\n";
        let spec = parse(text).unwrap();
        assert!(spec.differences(&spec).is_empty());
        let other = text.replace("\"60s\"", "\"30s\"").replace("[1, 2]", "[1, 3]");
        assert_eq!(
            spec.differences(&parse(&other).unwrap()),
            ["budget: \"60s\" there, \"30s\" here", "factor[0].levels[1]: 2 there, 3 here"]
        );
        let more = parse(&text.replace("[1, 2]", "[1, 2, 3]")).unwrap();
        assert_eq!(spec.differences(&more), ["factor[0].levels: [1,2] there, [1,2,3] here"]);
        let none = parse(&text.replace("budget = \"60s\"\n", "")).unwrap();
        assert_eq!(spec.differences(&none), ["budget: \"60s\" there, nothing here"]);
    }
}
