//! An experiment as it is written in a file. [`crate::Experiment::check`] judges it.

use std::collections::BTreeSet;

use model::{CpuSet, prove::ProveNote};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ProveError;

/// Reads a file's text.
///
/// **Errors**: the place and what is wrong there, in one line.
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
    /// What it is called [default: the file's name].
    pub name: Option<String>,
    /// A measurement of ours: `measure rtt db1 --duration 500ms`. `{FACTOR}` stands for the
    /// factor's level.
    pub workload: Option<String>,
    /// Or a command of the user's, for `sh -c`.
    pub command: Option<String>,
    /// A command before each run, for `sh -c`.
    pub before: Option<String>,
    /// How long all may take: `60s`.
    pub budget: Option<String>,
    /// Or how many runs all may take.
    pub runs: Option<usize>,
    /// Differences smaller than this do not matter: `2%`.
    pub min_effect: Option<String>,
    /// What the order of the runs is drawn from [default: the clock].
    pub seed: Option<u64>,
    /// Whether what moves interrupts and frequencies by itself is stopped meanwhile.
    #[serde(default)]
    pub freeze_host: bool,
    /// How long one run may take [default: 10m].
    pub timeout: Option<String>,
    /// How several factors are combined: `full-factorial`, or `one-at-a-time` [default: the
    /// former].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub design: Option<String>,
    #[serde(default, rename = "factor")]
    pub factors: Vec<FactorSpec>,
    /// Or: where both ends run, every pair.
    pub placement: Option<PlacementSpec>,
    /// What is looked at [default: what the measurement is about].
    #[serde(default, rename = "metric")]
    pub metrics: Vec<MetricSpec>,
}

impl Spec {
    /// Where another one differs, each place in words: `budget: "60s" there, "30s" here`.
    pub fn differences(&self, here: &Self) -> Vec<String> {
        let mut found = Vec::new();
        let value = |of| serde_json::to_value(of).unwrap_or_default();
        differ("", &value(self), &value(here), &mut found);
        found
    }
}

/// Goes down to the places themselves.
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

/// A value in few words.
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

/// Something that is varied.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FactorSpec {
    /// Its name; `{NAME}` in the workload stands for the level [default: the knob's].
    #[serde(default)]
    pub name: String,
    /// Its levels, the first being what the others are compared with.
    pub levels: Vec<LevelSpec>,
    /// A knob of `netwright tune`: each level is a value of it, `now` is the one that it has.
    pub knob: Option<String>,
    /// Appended to the workload at each level; `{level}` stands for it.
    pub args: Option<String>,
    /// A command that sets a level, for `sh -c`; `{level}` stands for it.
    pub set: Option<String>,
    /// The command that undoes it.
    pub unset: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum LevelSpec {
    Name(String),
    /// A number, which is also its name.
    Number(i64),
    /// The same with a point in it.
    Fraction(f64),
    /// With what it does of its own.
    Full(FullLevelSpec),
}

/// A level with what it does of its own.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FullLevelSpec {
    pub name: String,
    /// Appended to the workload.
    pub args: Option<String>,
    /// A command that sets it.
    pub set: Option<String>,
    /// The command that undoes it.
    pub unset: Option<String>,
    /// Knobs of `netwright tune` that it sets: `KNOB=VALUE`.
    #[serde(default)]
    pub change: Vec<String>,
}

/// Instead of CPUs: one of each class.
pub const CLASSES: &str = "classes";

/// A placement matrix: where the workload runs (`--cpu` of a measurement of ours, `{cpu}` in a
/// command), beside where the server runs or where a NIC's interrupts go.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlacementSpec {
    /// CPUs of the workload: `0-3`, or `classes` for one of each class.
    pub cpus: String,
    /// CPUs of the server: `--peer-cpu` of a measurement of ours, `{peer_cpu}` in a command.
    pub peer_cpus: Option<String>,
    /// CPUs that take the interrupts of `nic`, set by `irq.affinity` of `netwright tune`.
    pub irq_cpus: Option<String>,
    /// The NIC whose interrupts classes are told against.
    pub nic: Option<String>,
    /// What was chosen for the classes of this host: not to be written, but in the record.
    #[serde(default, rename = "assignment", skip_serializing_if = "Vec::is_empty")]
    pub assignments: Vec<Assignment>,
    /// Why the columns are what they are; likewise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<String>,
    /// What the budget does not hold; likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<ProveNote>,
}

impl PlacementSpec {
    /// Whether a host's topology is needed to know which CPUs are meant.
    pub fn by_class(&self) -> bool {
        let classes = |text: &str| text.trim() == CLASSES;
        let others = [&self.peer_cpus, &self.irq_cpus];
        classes(&self.cpus) || others.into_iter().flatten().any(|t| classes(t))
    }
}

/// One placement: a CPU for the workload at a place of the other end or of the interrupts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Assignment {
    /// How it stands to the other.
    pub class: String,
    pub cpu: u32,
    /// The other CPU, as it stands in the columns.
    pub beside: String,
}

/// A figure of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetricSpec {
    pub name: String,
    /// Where it is in the JSON that the workload prints: `runs.0.rtt_ns.p50`.
    pub json: Option<String>,
    /// Or: the first group of this regular expression in what it prints.
    pub regex: Option<String>,
    /// Or: its exit code.
    #[serde(default)]
    pub exit_code: bool,
    /// Or: how many seconds it ran.
    #[serde(default)]
    pub time: bool,
    /// `higher` or `lower`.
    pub better: String,
    /// Whether it only must not get worse.
    #[serde(default)]
    pub guard: bool,
    /// A guard's limit: it must be shown to get worse by less than this, `10%`.
    pub limit: Option<String>,
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

/// The factor of a change: as it is against changed.
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

/// `NAME=PATH:lower[:guard]`, `NAME=/REGEX/:higher`, `NAME=exit:lower`, `NAME=time:lower`.
///
/// # Errors
/// It is no such line.
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
    fn what_differs_is_told_by_its_place() {
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
