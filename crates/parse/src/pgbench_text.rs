//! What `pgbench` prints at the end of a run.
//!
//! **Source**: `printResults` in `pgbench.c` of PostgreSQL 12 to 17.

use model::compare::{BenchmarkFigure as Figure, BenchmarkRun};

use crate::benchmark_runs::{NoRuns, with_figures};

const PROGRAM: &str = "pgbench";

/// The line that begins a result.
const BEGIN: &str = "transaction type: ";

/// The line before the statements of `-r`.
const STATEMENTS: &str = "statement latencies in milliseconds";

/// What is said of a run whose result is incomplete.
const ABORTED: &str = "Run was aborted";

/// All runs of this text; `None` where it is of another program.
pub(crate) fn runs(text: &str) -> Option<Result<Vec<BenchmarkRun>, NoRuns>> {
    let lines: Vec<&str> = text.lines().collect();
    let begins: Vec<usize> = (0..lines.len())
        .filter(|at| lines.get(*at).is_some_and(|l| l.starts_with(BEGIN)))
        .collect();
    let ends = begins.iter().skip(1).copied().chain([lines.len()]);
    let parts: Vec<&[&str]> =
        begins.iter().zip(ends).filter_map(|(from, to)| lines.get(*from..to)).collect();
    if parts.is_empty() {
        return None;
    }
    if lines.iter().any(|l| l.contains(ABORTED)) {
        let why = ABORTED.to_owned();
        return Some(Err(NoRuns::Failed { program: PROGRAM, why }));
    }
    Some(with_figures(PROGRAM, parts.into_iter().map(run).collect()))
}

fn run(lines: &[&str]) -> BenchmarkRun {
    let (mut figures, mut case) = (Vec::new(), Vec::new());
    for line in lines {
        // The statements of `-r` follow, which can hold anything.
        if line.starts_with(STATEMENTS) {
            break;
        }
        let value = |rest: &str| rest.split_whitespace().next()?.parse::<f64>().ok();
        let after = |key: &str| line.strip_prefix(key);
        let ms = |name: &str, ms: f64| Figure::lower(name, "ns", ms * 1e6);
        if let Some(kind) = line.strip_prefix(BEGIN) {
            case.push(kind.trim().to_owned());
        } else if let Some(rest) = after("scaling factor: ") {
            case.push(format!("scale {}", rest.trim()));
        } else if let Some(rest) = after("number of clients: ") {
            case.push(format!("{} clients", rest.trim()));
        } else if let Some(tps) = after("tps = ").and_then(value) {
            // Before PostgreSQL 14 the second line is without the time to connect: it counts.
            figures.retain(|f: &Figure| f.name != "transactions_per_s");
            figures.push(Figure::higher("transactions_per_s", "1/s", tps).main());
        } else if let Some(mean) = after("latency average = ").and_then(value) {
            figures.push(ms("latency_mean_ns", mean).main());
        } else if let Some(deviation) = after("latency stddev = ").and_then(value) {
            figures.push(ms("latency_deviation_ns", deviation));
        } else if let Some(time) = after("average connection time = ").and_then(value) {
            figures.push(ms("connect_mean_ns", time));
        } else if let Some(lag) = after("rate limit schedule lag: avg ").and_then(value) {
            figures.push(ms("schedule_lag_mean_ns", lag));
        } else if let Some(failed) = after("number of failed transactions: ").and_then(value)
            && failed > 0.0
        {
            figures.push(Figure::lower("failed_transactions", "", failed).main());
        }
    }
    BenchmarkRun { program: PROGRAM.into(), case: case.join(", "), started_unix_s: None, figures }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(run: &BenchmarkRun, name: &str) -> Option<f64> {
        run.figures.iter().find(|f| f.name == name).map(|f| f.value)
    }

    #[test]
    fn real_results_are_read() {
        let one = |text: &str| runs(text).unwrap().unwrap().remove(0);
        // pgbench -c 2 -T 1 -r bench (15.18)
        let report = one(include_str!("../tests/seeds/pgbench_text/report"));
        assert_eq!(of(&report, "transactions_per_s"), Some(377.178_076));
        assert_eq!(of(&report, "latency_mean_ns"), Some(5_303_000.0));
        assert_eq!(report.case, "<builtin: TPC-B (sort of)>, scale 1, 2 clients");
        let rate = one(include_str!("../tests/seeds/pgbench_text/rate"));
        assert_eq!(of(&rate, "schedule_lag_mean_ns"), Some(1_456_000.0));
        let connect = one(include_str!("../tests/seeds/pgbench_text/connect"));
        assert_eq!(of(&connect, "connect_mean_ns"), Some(11_924_000.0));
        let two = runs(include_str!("../tests/seeds/pgbench_text/two")).unwrap().unwrap();
        let tps: Vec<_> = two.iter().map(|r| of(r, "transactions_per_s").unwrap()).collect();
        assert_eq!(tps, [1_853.877_385, 2_166.049_343]);
        // PostgreSQL 13 prints two lines.
        let old = "transaction type: x\ntps = 10.5 (including connections establishing)\n\
                   tps = 11.5 (excluding connections establishing)\n";
        assert_eq!(of(&one(old), "transactions_per_s"), Some(11.5));
        assert_eq!(runs("tps = 5"), None);
        let aborted = "transaction type: x\ntps = 0.000000\npgbench: error: Run was aborted; the \
                       above results are incomplete.\n";
        assert!(matches!(runs(aborted), Some(Err(NoRuns::Failed { .. }))));
    }
}
