//! The documents of `netwright measure … --json` and `netwright explain … --json`, of any version
//! that has the figures.

use model::compare::{BenchmarkFigure as Figure, BenchmarkRun};
use serde_json::Value;

use crate::benchmark_runs::{NoRuns, with_figures};

/// The workloads of `measure`: their kind, their name, and the key of their times.
const WORKLOADS: [(&str, &str, &str); 6] = [
    ("rtt", "netwright measure rtt", "rtt"),
    ("stream", "netwright measure stream", ""),
    ("connect", "netwright measure connect", "connect"),
    ("http", "netwright measure http", "latency"),
    ("pg", "netwright measure pg", "latency"),
    ("redis", "netwright measure redis", "latency"),
];

const EXPLAIN: &str = "netwright explain";

/// The runs of this document, one for each combination of its sizes and flows; `None` where it is
/// of another program.
pub(crate) fn runs(document: &Value) -> Option<Result<Vec<BenchmarkRun>, NoRuns>> {
    document.get("schema_version")?;
    let kind = document.get("kind")?.as_str()?;
    if kind == "explain" {
        return Some(with_figures(EXPLAIN, vec![explained(document)]));
    }
    let (_, program, time) = WORKLOADS.iter().find(|(of, ..)| *of == kind)?;
    let runs = document.get("runs").and_then(Value::as_array)?;
    let run = |run: &Value| BenchmarkRun {
        program: (*program).to_owned(),
        case: case(run),
        started_unix_s: started(document),
        figures: figures(run, time),
    };
    Some(with_figures(program, runs.iter().map(run).collect()))
}

fn started(document: &Value) -> Option<f64> {
    document.get("started_unix_s").and_then(Value::as_f64)
}

fn figures(run: &Value, time: &str) -> Vec<Figure> {
    let at = |pointer: &str| run.pointer(pointer).and_then(Value::as_f64);
    let rates =
        [("transactions_per_s", "1/s"), ("connections_per_s", "1/s"), ("bits_per_s", "bit/s")];
    let mut figures: Vec<Figure> = rates
        .iter()
        .filter_map(|(key, unit)| Some(Figure::higher(*key, unit, at(&format!("/{key}"))?).main()))
        .collect();
    for quantile in ["p50", "p99", "mean", "p90", "p999", "min", "max"] {
        let value = at(&format!("/{time}_ns/{quantile}"));
        let figure = value.map(|ns| Figure::lower(format!("{time}_{quantile}_ns"), "ns", ns));
        let main = matches!(quantile, "p50" | "p99");
        figures.extend(figure.map(|f| if main { f.main() } else { f }));
    }
    let cpu = at("/cpu/local/host_busy_per_unit_ns");
    figures.extend(cpu.map(|ns| Figure::lower("cpu_ns_per_unit", "ns", ns)));
    figures.extend(at("/retransmits").map(|n| Figure::lower("retransmits", "", n)));
    if let Some(failed) = at("/failed").filter(|n| *n > 0.0) {
        figures.push(Figure::lower("failed", "", failed).main());
    }
    figures
}

/// `tcp, 64/64 B, 2 flows, queue depth 4, target 1000/s`
fn case(run: &Value) -> String {
    let text = |key: &str| run.get(key).and_then(Value::as_str).map(str::to_owned);
    let number = |key: &str| run.get(key).and_then(Value::as_f64);
    let sizes = number("request_bytes").zip(number("response_bytes"));
    // Of http these are the bytes of all requests, which are no parameter.
    let sizes = sizes.filter(|_| run.get("statuses").is_none() && run.get("receives").is_none());
    let count = |key: &str, one: &str| {
        number(key).map(|n| format!("{n} {one}{}", if n == 1.0 { "" } else { "s" }))
    };
    let parts = [
        text("transport"),
        text("direction"),
        sizes.map(|(request, response)| format!("{request}/{response} B")),
        number("message_bytes").map(|n| format!("{n} B")),
        count("flows", "flow"),
        count("clients", "client"),
        number("queue_depth").filter(|n| *n > 1.0).map(|n| format!("queue depth {n}")),
        number("pipeline").filter(|n| *n > 1.0).map(|n| format!("pipeline {n}")),
        number("target_per_s").map(|n| format!("target {n}/s")),
    ];
    parts.into_iter().flatten().collect::<Vec<String>>().join(", ")
}

/// The response time and its components.
fn explained(document: &Value) -> BenchmarkRun {
    let at = |pointer: &str| document.pointer(pointer).and_then(Value::as_f64);
    let mut figures = Vec::new();
    for quantile in ["p50", "p99", "mean"] {
        let value = at(&format!("/quantiles/workload_ns/{quantile}"));
        let figure = value.map(|ns| Figure::lower(format!("response_{quantile}_ns"), "ns", ns));
        figures.extend(figure.map(|f| if quantile == "mean" { f } else { f.main() }));
    }
    let components = document.get("components").and_then(Value::as_array);
    for component in components.map(Vec::as_slice).unwrap_or_default() {
        let name = component.get("name").and_then(Value::as_str);
        let ns = component.get("ns").and_then(Value::as_f64);
        let figure = name.zip(ns).map(|(name, ns)| {
            Figure::lower(format!("{}_ns", name.replace(' ', "_")), "ns", ns).main()
        });
        figures.extend(figure);
    }
    let clients = at("/clients").map(|n| format!(", {n} clients")).unwrap_or_default();
    let target = document.get("target").and_then(Value::as_str).unwrap_or_default();
    BenchmarkRun {
        program: EXPLAIN.into(),
        case: format!("{target}{clients}"),
        started_unix_s: started(document),
        figures,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<BenchmarkRun> {
        runs(&serde_json::from_str(text).unwrap()).unwrap().unwrap()
    }

    #[test]
    fn each_workload_has_its_rate_and_its_tail() {
        for (text, case, main) in [
            (
                include_str!("../tests/seeds/netwright_json/rtt"),
                "tcp, 64/64 B, 1 flow",
                &["transactions_per_s", "rtt_p50_ns", "rtt_p99_ns"][..],
            ),
            (
                include_str!("../tests/seeds/netwright_json/stream"),
                "tcp, forward, 131072 B, 1 flow",
                &["bits_per_s"],
            ),
            (
                include_str!("../tests/seeds/netwright_json/connect"),
                "tcp, 0/0 B, 1 flow",
                &["connections_per_s", "connect_p50_ns", "connect_p99_ns"],
            ),
            (
                include_str!("../tests/seeds/netwright_json/http"),
                "tcp, 1 client",
                &["transactions_per_s", "latency_p50_ns", "latency_p99_ns"],
            ),
            (
                include_str!("../tests/seeds/netwright_json/explain"),
                "rtt://127.0.0.1:7499, 1 clients",
                &["response_p50_ns", "response_p99_ns", "network_ns", "service_ns", "client_ns"],
            ),
        ] {
            let run = read(text).remove(0);
            let names: Vec<&str> =
                run.figures.iter().filter(|f| f.main).map(|f| f.name.as_str()).collect();
            assert_eq!((run.case.as_str(), names.as_slice()), (case, main));
            assert!(run.started_unix_s.is_some());
        }
        let sweep = read(include_str!("../tests/seeds/netwright_json/rtt_sweep"));
        assert_eq!(sweep.len(), 2);
        assert_ne!(sweep[0].case, sweep[1].case);
        assert_eq!(runs(&serde_json::json!({"schema_version": 1, "kind": "doctor"})), None);
    }
}
