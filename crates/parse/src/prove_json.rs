//! The runs of an experiment of `netwright prove`: its document, or its record. The level of a run
//! is its case; runs that were discarded are left out.

use model::{
    compare::{BenchmarkFigure, BenchmarkRun},
    prove::{Direction, Run},
};
use serde::Deserialize;
use serde_json::Value;

use crate::benchmark_runs::{NoRuns, with_figures};

const PROGRAM: &str = "netwright prove";

/// The runs of a document; `None` where it is something else.
pub(crate) fn document(document: &Value) -> Option<Result<Vec<BenchmarkRun>, NoRuns>> {
    document.get("verdict")?;
    let levels: Vec<&str> = document.get("levels")?.as_array()?.iter().map(level_name).collect();
    let runs = document.get("runs")?.as_array()?;
    let metrics = document.get("metrics").and_then(Value::as_array);
    let direction = |name: &str| {
        let own =
            metrics?.iter().find(|m| m.get("metric").and_then(Value::as_str) == Some(name))?;
        Direction::deserialize(own.get("direction")?).ok()
    };
    let runs = runs.iter().filter_map(|r| Run::deserialize(r).ok()).collect();
    Some(read(runs, &levels, started(document), direction))
}

/// The runs of a record, a line each; `None` where it is something else.
pub(crate) fn record(lines: &[Value]) -> Option<Result<Vec<BenchmarkRun>, NoRuns>> {
    let begun = lines.first()?.get("begun")?;
    let spec = begun.get("spec").unwrap_or(&Value::Null);
    let factor = spec.pointer("/factor/0/levels").and_then(Value::as_array);
    let several = spec.pointer("/factor/1").is_some() || factor.is_none();
    let named: Vec<String> = factor.into_iter().flatten().map(level_text).collect();
    // The combinations of several factors have no names in a record.
    let levels: Vec<&str> = match several {
        true => vec![],
        false => named.iter().map(String::as_str).collect(),
    };
    let metrics = spec.get("metric").and_then(Value::as_array);
    let direction = |name: &str| {
        let own = metrics?.iter().find(|m| m.get("name").and_then(Value::as_str) == Some(name))?;
        match own.get("better").and_then(Value::as_str)? {
            "higher" => Some(Direction::HigherIsBetter),
            "lower" => Some(Direction::LowerIsBetter),
            _ => None,
        }
    };
    let runs = lines.iter().filter_map(|l| Run::deserialize(l.get("run")?).ok()).collect();
    Some(read(runs, &levels, started(begun), direction))
}

fn level_name(level: &Value) -> &str {
    level.get("level").and_then(Value::as_str).unwrap_or_default()
}

/// A level of an experiment file: a text, a number, or a table with its name.
fn level_text(level: &Value) -> String {
    let name = level.get("name").and_then(Value::as_str).or(level.as_str());
    name.map_or_else(|| level.to_string(), str::to_owned)
}

fn started(of: &Value) -> Option<f64> {
    of.get("started_unix_s").and_then(Value::as_f64)
}

fn read(
    runs: Vec<Run>,
    levels: &[&str],
    started: Option<f64>,
    direction: impl Fn(&str) -> Option<Direction>,
) -> Result<Vec<BenchmarkRun>, NoRuns> {
    let mut elapsed_s = 0.0;
    let mut all = Vec::new();
    for run in runs {
        let at = started.map(|s| s + elapsed_s);
        elapsed_s += run.took_s;
        if run.discarded.is_some() {
            continue;
        }
        let level = levels.get(run.level).map(|l| (*l).to_owned());
        let figures = run.figures.into_iter().map(|(name, value)| BenchmarkFigure {
            direction: direction(&name).or_else(|| by_unit(&name)),
            unit: if name.ends_with("_ns") { "ns" } else { "" },
            main: true,
            name,
            value,
        });
        all.push(BenchmarkRun {
            program: PROGRAM.into(),
            case: level.unwrap_or_else(|| format!("level {}", run.level.saturating_add(1))),
            started_unix_s: at,
            figures: figures.collect(),
        });
    }
    with_figures(PROGRAM, all)
}

/// The direction of one of netwright's metrics, by the unit that ends its name.
fn by_unit(name: &str) -> Option<Direction> {
    match name {
        n if n.ends_with("_per_s") => Some(Direction::HigherIsBetter),
        n if n.ends_with("_ns") => Some(Direction::LowerIsBetter),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_and_its_record_have_the_same_runs() {
        // netwright prove --workload 'measure rtt …' --level '--flows 1' --level '--flows 2'
        //     --runs 28 --record rec.jsonl --json
        let text = include_str!("../tests/seeds/prove_json/document");
        let of_document = document(&serde_json::from_str(text).unwrap()).unwrap().unwrap();
        let text = include_str!("../tests/seeds/prove_json/record");
        let lines: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        let of_record = record(&lines).unwrap().unwrap();
        assert_eq!(of_document, of_record);
        assert_eq!(of_record.len(), 28);
        let first = |level: &str| of_record.iter().filter(|r| r.case == level).count();
        assert_eq!((first("--flows 1"), first("--flows 2")), (14, 14));
        let names: Vec<&str> = of_record[0].figures.iter().map(|f| f.name.as_str()).collect();
        assert_eq!(names, ["rtt_p50_ns", "rtt_p99_ns"]);
        assert!(of_record[1].started_unix_s > of_record[0].started_unix_s);
    }
}
