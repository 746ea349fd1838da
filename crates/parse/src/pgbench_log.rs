//! The log that `pgbench -l` writes: a line for each transaction, or for each interval with
//! `--aggregate-interval`. A file is one run, for transactions of one run resemble one another.
//!
//! **Source**: `doLog` in `pgbench.c` of PostgreSQL 12 to 17.

use model::compare::{BenchmarkFigure as Figure, BenchmarkRun};

/// Before this second of 1970's count no log was written, and no client has such a number.
const FIRST_EPOCH: f64 = 1e9;

/// The run of this log; `None` where it is something else.
pub(crate) fn run(text: &str) -> Option<BenchmarkRun> {
    let first: f64 = text.split_whitespace().next()?.parse().ok()?;
    if first >= FIRST_EPOCH { intervals(text) } else { transactions(text) }
}

fn run_of(case: &str, started: f64, figures: Vec<Figure>) -> BenchmarkRun {
    BenchmarkRun {
        program: "pgbench -l".into(),
        case: case.into(),
        started_unix_s: Some(started),
        figures,
    }
}

/// `client transaction latency_us script epoch_s epoch_us [schedule_lag_us] [retries]`
fn transactions(text: &str) -> Option<BenchmarkRun> {
    let (mut latencies, mut ended, mut failed) = (Vec::new(), Vec::new(), 0.0);
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [client, number, latency, script, seconds, micros, ..] = words.as_slice() else {
            return None;
        };
        let whole = [client, number, script, micros].map(|w| w.parse::<u64>().ok());
        let [Some(_), Some(_), Some(_), Some(micros)] = whole else { return None };
        let seconds: f64 = seconds.parse().ok().filter(|s| *s >= FIRST_EPOCH)?;
        match *latency {
            "skipped" | "failed" | "serialization" | "deadlock" => failed += 1.0,
            us => {
                latencies.push(us.parse::<u64>().ok()? as f64 * 1e3);
                ended.push(seconds + micros as f64 / 1e6);
            }
        }
    }
    latencies.sort_unstable_by(f64::total_cmp);
    let count = latencies.len();
    let first = ended.iter().copied().fold(f64::INFINITY, f64::min);
    let last = ended.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let quantile = |q: f64| {
        let rank = (q * count as f64).ceil().max(1.0) as usize;
        latencies.get(rank - 1).copied()
    };
    let mean = latencies.iter().sum::<f64>() / count.max(1) as f64;
    let ns = |name, value| Figure::lower(name, "ns", value);
    let mut figures = vec![
        ns("latency_p50_ns", quantile(0.5)?).main(),
        ns("latency_p99_ns", quantile(0.99)?).main(),
        ns("latency_mean_ns", mean),
    ];
    if last > first {
        // From the end of the first transaction to that of the last.
        let rate = (count - 1) as f64 / (last - first);
        figures.push(Figure::higher("transactions_per_s", "1/s", rate).main());
    }
    if failed > 0.0 {
        figures.push(Figure::lower("failed_transactions", "", failed).main());
    }
    Some(run_of("", first, figures))
}

/// `epoch_s transactions sum_latency_us sum_of_squares min_us max_us …`
fn intervals(text: &str) -> Option<BenchmarkRun> {
    let (mut starts, mut counts, mut sum) = (Vec::new(), Vec::new(), 0.0);
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [start, count, latency, _, _, _, ..] = words.as_slice() else { return None };
        starts.push(start.parse::<f64>().ok().filter(|s| *s >= FIRST_EPOCH)?);
        counts.push(count.parse::<u64>().ok()? as f64);
        sum += latency.parse::<u64>().ok()? as f64 * 1e3;
    }
    let (first, last) = (*starts.first()?, *starts.last()?);
    let all: f64 = counts.iter().sum();
    if all == 0.0 {
        return None;
    }
    let mut figures = vec![Figure::lower("latency_mean_ns", "ns", sum / all).main()];
    // The first and the last interval are not whole.
    let whole = counts.get(1..counts.len().saturating_sub(1)).unwrap_or_default();
    let step = (last - first) / (starts.len() - 1).max(1) as f64;
    if !whole.is_empty() && step > 0.0 {
        let rate = whole.iter().sum::<f64>() / (whole.len() as f64 * step);
        figures.push(Figure::higher("transactions_per_s", "1/s", rate).main());
    }
    Some(run_of("", first, figures))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(run: &BenchmarkRun, name: &str) -> Option<f64> {
        run.figures.iter().find(|f| f.name == name).map(|f| f.value)
    }

    #[test]
    fn a_line_for_each_transaction() {
        let text = "0 1 1000 0 1795693927 0\n1 1 3000 0 1795693927 500000 20\n\
                    0 2 2000 0 1795693928 0\n0 3 skipped 0 1795693929 0\n";
        let run = run(text).unwrap();
        assert_eq!(of(&run, "latency_p50_ns"), Some(2e6));
        assert_eq!(of(&run, "latency_p99_ns"), Some(3e6));
        assert_eq!(of(&run, "latency_mean_ns"), Some(2e6));
        assert_eq!(of(&run, "transactions_per_s"), Some(2.0));
        assert_eq!(of(&run, "failed_transactions"), Some(1.0));
        assert_eq!(run.started_unix_s, Some(1_795_693_927.0));
    }

    #[test]
    fn real_logs_are_read() {
        // pgbench -S -c 1 -t 300 -l bench (15.18); sort -n of its third column
        let run1 = run(include_str!("../tests/seeds/pgbench_log/select")).unwrap();
        assert!(of(&run1, "transactions_per_s").unwrap() > 100.0);
        // pgbench -S -c 2 -T 3 -l --aggregate-interval=1 bench
        let run2 = run(include_str!("../tests/seeds/pgbench_log/aggregate")).unwrap();
        let mean = 1e3 * (1_058_359.0 + 1_987_554.0 + 1_988_938.0) / (2657.0 + 4636.0 + 4221.0);
        assert!((of(&run2, "latency_mean_ns").unwrap() / mean - 1.0).abs() < 1e-12);
        assert_eq!(of(&run2, "transactions_per_s"), Some(4636.0));
        for none in
            ["", "1 2 3", "0 1 x 0 1795693927 0", "1.5\n2.5\n", "0 1 skipped 0 1795693927 0"]
        {
            assert_eq!(run(none), None, "{none:?}");
        }
    }
}
