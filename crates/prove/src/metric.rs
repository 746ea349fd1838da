//! Metrics: which figure of a run is read, where it is, and which direction is better.

use model::prove::Direction;
use regex_lite::Regex;
use stats::trial::decide::GuardMetric;

use crate::{
    spec::{MetricSpec, Spec, percent},
    workload::Workload,
};

/// A metric, and what the experiment wants of it.
#[derive(Debug, Clone)]
pub struct Metric {
    pub name: String,
    pub(crate) source: Source,
    /// Which direction is better.
    pub direction: Direction,
    /// `Some` for a guard, which must only not get worse; with its limit.
    pub guard: Option<GuardMetric>,
}

/// Where a figure is found in a run.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    Json(String),
    Regex(Regex),
    ExitCode,
    Time,
}

impl Source {
    pub(crate) fn check(m: &MetricSpec) -> Result<Self, String> {
        let whose = |e: String| format!("metric {}: {e}", m.name);
        match (&m.json, &m.regex, m.exit_code, m.time) {
            (Some(path), None, false, false) => Ok(Self::Json(pointer(path))),
            (None, Some(regex), false, false) => match Regex::new(regex) {
                Ok(r) if r.captures_len() >= 2 => Ok(Self::Regex(r)),
                Ok(_) => Err(whose(format!("`{regex}`: has no group (…) around the figure"))),
                Err(e) => Err(whose(format!("`{regex}`: {e}"))),
            },
            (None, None, true, false) => Ok(Self::ExitCode),
            (None, None, false, true) => Ok(Self::Time),
            _ => Err(whose("one of json, regex, exit_code, time".into())),
        }
    }
}

/// The metrics of an experiment: those written, or those of the measurement's kind.
///
/// # Errors
/// A contradiction, with the metric's name.
pub(crate) fn all(spec: &Spec, workload: &Workload) -> Result<Vec<Metric>, String> {
    let written = match (spec.metrics.as_slice(), workload) {
        ([], Workload::Ours(words)) => of_ours(words.get(1).map_or("", String::as_str)),
        (written, _) => written.to_vec(),
    };
    if written.is_empty() {
        return Err("metric: a command needs one: name, better, and json, regex, exit_code or \
                    time"
            .into());
    }
    let metrics: Vec<Metric> = written.iter().map(one).collect::<Result<_, _>>()?;
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

fn one(m: &MetricSpec) -> Result<Metric, String> {
    let direction = match m.better.as_str() {
        "higher" => Direction::HigherIsBetter,
        "lower" => Direction::LowerIsBetter,
        other => return Err(format!("metric {}: better = `{other}`: higher or lower", m.name)),
    };
    let limit = m.limit.as_deref().map(|l| percent("limit", l)).transpose()?;
    if limit.is_some() && !m.guard {
        return Err(format!("metric {}: limit is for a guard", m.name));
    }
    // On a logarithmic scale a decrease by a share is a longer way than an increase by it.
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

/// `runs[0].rtt_ns.p50` or `runs.0.rtt_ns.p50` as a JSON pointer, RFC 6901.
fn pointer(path: &str) -> String {
    if path.starts_with('/') {
        return path.to_owned();
    }
    let dotted = path.trim_start_matches('$').replace('[', ".").replace(']', "");
    dotted.split('.').filter(|p| !p.is_empty()).map(|p| format!("/{p}")).collect()
}

/// The operator's goal for a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goal {
    /// More work in the same time.
    Throughput,
    P99,
    /// Less CPU time of this host for the same work.
    Cpu,
}

/// A measurement's metrics for a goal, with those of its other goals as guards; empty where it has
/// no such figure.
pub fn for_goal(what: &str, goal: Goal) -> Vec<MetricSpec> {
    let metric = |name: &str, at: &str, better: &str| MetricSpec {
        name: name.into(),
        json: Some(format!("runs.0.{at}")),
        better: better.into(),
        ..MetricSpec::default()
    };
    let rate = match what {
        "stream" => metric("bits_per_s", "bits_per_s", "higher"),
        "connect" => metric("connections_per_s", "connections_per_s", "higher"),
        _ => metric("transactions_per_s", "transactions_per_s", "higher"),
    };
    let tail = match what {
        "rtt" => Some(metric("rtt_p99_ns", "rtt_ns.p99", "lower")),
        "connect" => Some(metric("connect_p99_ns", "connect_ns.p99", "lower")),
        "http" | "pg" | "redis" => Some(metric("latency_p99_ns", "latency_ns.p99", "lower")),
        _ => None,
    };
    let cpu = metric("cpu_ns_per_unit", "cpu.local.host_busy_per_unit_ns", "lower");
    let guard = |m: MetricSpec| MetricSpec { guard: true, ..m };
    match (goal, tail) {
        (Goal::Throughput, tail) => [rate].into_iter().chain(tail.map(guard)).collect(),
        (Goal::P99, Some(tail)) => vec![tail, guard(rate)],
        (Goal::P99, None) => vec![],
        (Goal::Cpu, tail) => [cpu, guard(rate)].into_iter().chain(tail.map(guard)).collect(),
    }
}

/// The default metrics of a measurement: its goal, with the tail as a guard.
fn of_ours(what: &str) -> Vec<MetricSpec> {
    let metric = |name: &str, at: &str, better: &str, guard| MetricSpec {
        name: name.into(),
        json: Some(format!("runs.0.{at}")),
        better: better.into(),
        guard,
        ..MetricSpec::default()
    };
    match what {
        "rtt" => vec![
            metric("rtt_p50_ns", "rtt_ns.p50", "lower", false),
            metric("rtt_p99_ns", "rtt_ns.p99", "lower", true),
        ],
        "stream" => vec![metric("bits_per_s", "bits_per_s", "higher", false)],
        "connect" => vec![metric("connect_p50_ns", "connect_ns.p50", "lower", false)],
        "http" | "pg" | "redis" => vec![
            metric("transactions_per_s", "transactions_per_s", "higher", false),
            metric("latency_p99_ns", "latency_ns.p99", "lower", true),
        ],
        _ => vec![],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_measurement_with_a_latency_has_metrics_and_a_tail() {
        for what in ["rtt", "connect", "http", "pg", "redis"] {
            assert!(of_ours(what).iter().any(|m| !m.guard), "{what} has no goal");
            let tail = for_goal(what, Goal::P99);
            assert!(tail.first().is_some_and(|m| m.name.ends_with("_p99_ns")), "{what}: {tail:?}");
        }
        let of_redis = of_ours("redis");
        let at: Vec<&str> = of_redis.iter().filter_map(|m| m.json.as_deref()).collect();
        assert_eq!(at, ["runs.0.transactions_per_s", "runs.0.latency_ns.p99"]);
    }
}
