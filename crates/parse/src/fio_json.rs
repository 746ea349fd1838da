//! The document of `fio --output-format=json`. Jobs of one document ran side by side: each is a
//! case of its own, and none is a repetition of another.
//!
//! **Source**: `show_thread_status_json` in `stat.c` of fio 3.x.

use model::compare::{BenchmarkFigure as Figure, BenchmarkRun};
use serde_json::Value;

use crate::benchmark_runs::{NoRuns, with_figures};

const PROGRAM: &str = "fio";

/// The runs of this document, one for each job and direction; `None` where it is of another program.
pub(crate) fn runs(document: &Value) -> Option<Result<Vec<BenchmarkRun>, NoRuns>> {
    document.get("fio version")?;
    let jobs = document.get("jobs").and_then(Value::as_array)?;
    let failed = |j: &&Value| j.get("error").and_then(Value::as_i64).is_some_and(|e| e != 0);
    if let Some(job) = jobs.iter().find(failed) {
        let errno = job.get("error").map(ToString::to_string).unwrap_or_default();
        let why = format!("job {} ended with error {errno}", name(job));
        return Some(Err(NoRuns::Failed { program: PROGRAM, why }));
    }
    let started = document.get("timestamp_ms").and_then(Value::as_f64).map(|ms| ms / 1e3);
    let mut runs = Vec::new();
    for (at, job) in jobs.iter().enumerate() {
        let before = jobs.iter().take(at).filter(|j| name(j) == name(job)).count();
        let number = if before > 0 { format!(" #{}", before + 1) } else { String::new() };
        for direction in ["read", "write", "trim"] {
            let side = job.get(direction).unwrap_or(&Value::Null);
            if side.get("total_ios").and_then(Value::as_u64).unwrap_or(0) > 0 {
                let case = format!("{}{number} {direction}", name(job));
                let figures = figures(side);
                runs.push(BenchmarkRun {
                    program: PROGRAM.into(),
                    case,
                    started_unix_s: started,
                    figures,
                });
            }
        }
    }
    Some(with_figures(PROGRAM, runs))
}

fn name(job: &Value) -> &str {
    job.get("jobname").and_then(Value::as_str).unwrap_or_default()
}

fn figures(side: &Value) -> Vec<Figure> {
    let at = |pointer: &str| side.pointer(pointer).and_then(Value::as_f64);
    let time = |name: &str, pointer: &str| at(pointer).map(|ns| Figure::lower(name, "ns", ns));
    let all = [
        at("/iops").map(|n| Figure::higher("ios_per_s", "1/s", n).main()),
        at("/bw_bytes").map(|n| Figure::higher("bytes_per_s", "B/s", n)),
        time("completion_mean_ns", "/clat_ns/mean"),
        time("completion_p50_ns", "/clat_ns/percentile/50.000000").map(Figure::main),
        time("completion_p99_ns", "/clat_ns/percentile/99.000000").map(Figure::main),
        time("completion_p999_ns", "/clat_ns/percentile/99.900000"),
    ];
    all.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<BenchmarkRun> {
        runs(&serde_json::from_str(text).unwrap()).unwrap().unwrap()
    }

    #[test]
    fn jobs_and_directions_are_cases() {
        // fio --name=mixed --rw=randrw --size=4m --bs=4k --runtime=1 --time_based
        //     --output-format=json (fio 3.33)
        let mixed = read(include_str!("../tests/seeds/fio_json/mixed"));
        let cases: Vec<&str> = mixed.iter().map(|r| r.case.as_str()).collect();
        assert_eq!(cases, ["mixed read", "mixed write"]);
        let of = |name: &str| mixed[0].figures.iter().find(|f| f.name == name).unwrap().value;
        assert_eq!(of("ios_per_s"), 4_728.271_728);
        assert_eq!(of("completion_p50_ns"), 108_032.0);
        assert_eq!(of("completion_p99_ns"), 2_473_984.0);
        assert_eq!(mixed[0].started_unix_s, Some(1_795_693_893.179));
        assert_eq!(read(include_str!("../tests/seeds/fio_json/randread")).len(), 1);
        let job = serde_json::json!({"jobname": "j", "read": {"total_ios": 1, "iops": 2.0}});
        let two = serde_json::json!({"fio version": "x", "jobs": [job, job]});
        let two = runs(&two).unwrap().unwrap();
        assert_eq!((two[0].case.as_str(), two[1].case.as_str()), ("j read", "j #2 read"));
        let bad = serde_json::json!({"fio version": "x", "jobs": [{"jobname": "j", "error": 5}]});
        assert!(matches!(runs(&bad), Some(Err(NoRuns::Failed { .. }))));
    }
}
