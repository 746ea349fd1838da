//! What the parsers of benchmarks' files share: runs with figures, or why there are none.

use model::compare::BenchmarkRun;

/// Why a file has no runs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoRuns {
    #[error(
        "is no result of a known program (netwright, pgbench, wrk, iperf3 -J, fio, sockperf, \
         hyperfine) and no table of numbers"
    )]
    UnknownFormat,
    #[error("holds a run of {program} that failed: {why}")]
    Failed { program: &'static str, why: String },
    #[error("is of {program} and has no figure that can be compared")]
    NoFigure { program: &'static str },
    #[error("is no complete JSON: {why}")]
    Json { why: String },
    #[error("is empty")]
    Empty,
}

/// The runs of a program, without those that have no figure.
pub(crate) fn with_figures(
    program: &'static str,
    runs: Vec<BenchmarkRun>,
) -> Result<Vec<BenchmarkRun>, NoRuns> {
    let runs: Vec<BenchmarkRun> = runs
        .into_iter()
        .map(|mut run| {
            run.figures.retain(|f| is_figure(f.value));
            run
        })
        .collect();
    match runs.is_empty() || runs.iter().any(|r| r.figures.is_empty()) {
        true => Err(NoRuns::NoFigure { program }),
        false => Ok(runs),
    }
}

/// A value that ratios can be formed of: 0, or a size from 1e-100 to 1e100.
pub(crate) fn is_figure(value: f64) -> bool {
    value == 0.0 || (1e-100..=1e100).contains(&value.abs())
}
