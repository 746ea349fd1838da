//! The result of a run in a few words, for a line of the list.

use model::{
    Nanos,
    explain::ExplainDocument,
    fix::FixDocument,
    passive::PassiveDocument,
    prove::ProveDocument,
    tune::Outcome,
    units::{BitsPerSec, grouped},
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{DoctorDocument, doctor::peer, fix, measure, prove, words::many};

/// The result in a few words; empty where the kind or the shape of the document is unknown.
pub fn headline(kind: &str, document: &str) -> String {
    let words = match kind {
        "doctor" => of(document, doctor),
        "doctor-peer" => of(document, peer::headline),
        "explain" => of(document, explain),
        "explain-passive" => of(document, passive),
        "prove" => of(document, |d: &ProveDocument| {
            let effect =
                d.verdict.effect.map(|_| format!(", {} {}", d.goal, prove::effect(&d.verdict)));
            format!("{}{}", prove::headline(d), effect.unwrap_or_default())
        }),
        "fix" => of(document, |d: &FixDocument| fix::head(d).bare()),
        "tune-apply" | "tune-rollback" => {
            of(document, |d: &Outcome| d.notes.first().map(ToString::to_string).unwrap_or_default())
        }
        "measure-pg-init" => of(document, |d: &Value| {
            format!("tables filled, scale {}", d.get("scale").unwrap_or(&Value::Null))
        }),
        "measure-offload" => of(document, measure::offload_headline),
        _ if kind.starts_with("measure-") => of(document, measured),
        _ => None,
    };
    words.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
}

fn of<D: DeserializeOwned>(document: &str, words: impl FnOnce(&D) -> String) -> Option<String> {
    model::json::read(document).ok().map(|d| words(&d))
}

fn doctor(d: &DoctorDocument) -> String {
    let first = d.findings.iter().min_by_key(|f| f.rank);
    match first {
        None => format!("no finding, {} passed", many(d.passed.len(), "rule")),
        Some(f) if d.findings.len() == 1 => format!("{}: {}", f.severity, f.title),
        Some(f) => format!("{}: {} (+{} more)", f.severity, f.title, d.findings.len() - 1),
    }
}

fn explain(d: &ExplainDocument) -> String {
    let parts = d.components.iter().filter_map(|c| {
        let share = c.share.filter(|s| *s >= 0.005)?;
        Some(format!("{} {:.0}%", c.name, 100.0 * share))
    });
    let parts: Vec<String> = parts.collect();
    let open = if d.sum.conclusive { "" } else { "inconclusive, " };
    format!("{open}{}: {}", Nanos(d.sum.measured_ns.max(0.0) as u64), parts.join(", "))
}

fn passive(d: &PassiveDocument) -> String {
    let served = d.classes.first().map(|c| {
        let port = c.port.known().map(|p| format!(" port {p}")).unwrap_or_default();
        format!("{}{port}: {:.0} exchanges/s", c.process, c.exchanges_per_s)
    });
    served.unwrap_or_else(|| "no traffic".into())
}

/// The rate and the times of the first run; how many other runs there were.
fn measured(d: &Value) -> String {
    let runs = d.get("runs").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let Some(run) = runs.first() else { return "nothing was measured".into() };
    let at = |pointer: &str| run.pointer(pointer).and_then(Value::as_f64);
    let mut parts = Vec::new();
    for name in ["p50", "p99"] {
        let time = ["rtt_ns", "latency_ns", "connect_ns"].iter();
        let time = time.filter_map(|key| at(&format!("/{key}/{name}"))).next();
        parts.extend(time.map(|ns| format!("{name} {}", Nanos(ns.max(0.0) as u64))));
    }
    for key in ["transactions_per_s", "connections_per_s"] {
        parts.extend(
            at(&format!("/{key}")).map(|n| format!("{}/s", grouped(n.max(0.0).round() as u64))),
        );
    }
    parts.extend(at("/bits_per_s").map(|n| BitsPerSec(n.max(0.0) as u64).to_string()));
    if runs.len() > 1 {
        parts.push(format!("the first of {}", many(runs.len(), "run")));
    }
    parts.join(", ")
}
