//! The document of `hyperfine --export-json`: each time of a command is a run.
//!
//! **Source**: `benchmark_result.rs` of hyperfine 1.15 to 1.19.

use model::compare::{BenchmarkFigure as Figure, BenchmarkRun};
use serde_json::Value;

use crate::benchmark_runs::{NoRuns, with_figures};

const PROGRAM: &str = "hyperfine";

/// The runs of this document; `None` where it is of another program.
pub(crate) fn runs(document: &Value) -> Option<Result<Vec<BenchmarkRun>, NoRuns>> {
    let results = document.get("results")?.as_array()?;
    let is_one = |r: &Value| r.get("command").is_some() && r.get("mean").is_some();
    if results.is_empty() || !results.iter().all(is_one) {
        return None;
    }
    let mut runs = Vec::new();
    for result in results {
        let command = result.get("command").and_then(Value::as_str).unwrap_or_default();
        let times = result.get("times").and_then(Value::as_array).map(Vec::as_slice);
        let seconds = times.unwrap_or_default().iter().filter_map(Value::as_f64);
        runs.extend(seconds.map(|s| BenchmarkRun {
            program: PROGRAM.into(),
            case: command.into(),
            started_unix_s: None,
            figures: vec![Figure::lower("time_ns", "ns", s * 1e9).main()],
        }));
    }
    Some(with_figures(PROGRAM, runs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_is_a_run() {
        // hyperfine -N --export-json two.json --runs 10 'sleep 0.01' 'sleep 0.02' (1.15.0)
        let text = include_str!("../tests/seeds/hyperfine_json/two");
        let runs1 = runs(&serde_json::from_str(text).unwrap()).unwrap().unwrap();
        let of = |case: &str| runs1.iter().filter(|r| r.case == case).count();
        assert_eq!((of("sleep 0.01"), of("sleep 0.02"), runs1.len()), (10, 10, 20));
        assert!((runs1[0].figures[0].value - 16_787_503.0).abs() < 1.0);
        assert_eq!(runs(&serde_json::json!({"results": [{"x": 1}]})), None);
        let mean = serde_json::json!({"results": [{"command": "a", "mean": 1.0}]});
        assert_eq!(runs(&mean), Some(Err(NoRuns::NoFigure { program: "hyperfine" })));
    }
}
