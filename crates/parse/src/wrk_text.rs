//! What `wrk` and `wrk2` print. Percentiles only with `--latency`.
//!
//! **Source**: `wrk.c`, `units.c` of wrk 4.1 and wrk2.

use model::compare::{BenchmarkFigure as Figure, BenchmarkRun};

use crate::benchmark_runs::{NoRuns, with_figures};

const PROGRAM: &str = "wrk";

/// All runs of this text; `None` where it is of another program.
pub(crate) fn runs(text: &str) -> Option<Result<Vec<BenchmarkRun>, NoRuns>> {
    let lines: Vec<&str> = text.lines().collect();
    let begins: Vec<usize> = lines
        .iter()
        .enumerate()
        .filter(|(_, l)| l.starts_with("Running ") && l.contains(" test @ "))
        .map(|(at, _)| at)
        .collect();
    let ends = begins.iter().skip(1).copied().chain([lines.len()]);
    let parts = begins.iter().zip(ends).filter_map(|(from, to)| lines.get(*from..to));
    let runs: Vec<BenchmarkRun> = parts.map(run).collect();
    (!runs.is_empty()).then(|| with_figures(PROGRAM, runs))
}

fn run(lines: &[&str]) -> BenchmarkRun {
    let mut figures = Vec::new();
    let mut case = String::new();
    let mut corrected = false;
    for line in lines {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["Running", _, "test", "@", url, ..] => case = (*url).to_owned(),
            [threads, "threads", "and", connections, "connections"] => {
                case += &format!(", {threads} threads, {connections} connections");
            }
            // The second line of this name is wrk2's histogram of times without correction.
            ["Latency", "Distribution", ..] if corrected => break,
            ["Latency", "Distribution", ..] => corrected = true,
            ["Latency", mean, ..] => figures.extend(time("latency_mean_ns", mean)),
            // wrk2's table of the whole histogram.
            ["Detailed", "Percentile", ..] => corrected = true,
            ["Requests/sec:", rate] => figures.extend(
                rate.parse().ok().map(|r| Figure::higher("requests_per_s", "1/s", r).main()),
            ),
            ["Transfer/sec:", rate] => {
                figures.extend(bytes(rate).map(|r| Figure::higher("bytes_per_s", "B/s", r)));
            }
            ["Socket", "errors:", counts @ ..] => {
                let count = |w: &&str| w.trim_end_matches(',').parse::<f64>().ok();
                let sum = counts.iter().filter_map(count).sum();
                figures.push(Figure::lower("socket_errors", "", sum).main());
            }
            ["Non-2xx", "or", "3xx", "responses:", count] => figures.extend(
                count.parse().ok().map(|n| Figure::lower("failed_responses", "", n).main()),
            ),
            [share, value] if share.ends_with('%') => figures.extend(percentile(share, value)),
            _ => {}
        }
    }
    BenchmarkRun { program: PROGRAM.into(), case, started_unix_s: None, figures }
}

fn percentile(share: &str, value: &str) -> Option<Figure> {
    let percent: f64 = share.trim_end_matches('%').parse().ok()?;
    let digits = format!("{percent}").replace('.', "");
    let figure = time(&format!("latency_p{digits}_ns"), value)?;
    let main = percent == 50.0 || percent == 99.0;
    Some(if main { figure.main() } else { figure })
}

fn time(name: &str, text: &str) -> Option<Figure> {
    let units = [("us", 1e3), ("ms", 1e6), ("s", 1e9), ("m", 60e9), ("h", 3600e9)].into_iter();
    scaled(text, units).map(|ns| Figure::lower(name, "ns", ns))
}

fn bytes(text: &str) -> Option<f64> {
    let units = ["B", "KB", "MB", "GB", "TB"].into_iter().zip([
        1.0,
        1024.0,
        1048576.0,
        1073741824.0,
        1099511627776.0,
    ]);
    scaled(text, units)
}

fn scaled(text: &str, mut units: impl Iterator<Item = (&'static str, f64)>) -> Option<f64> {
    let at = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at_checked(at)?;
    let (_, scale) = units.find(|(name, _)| *name == unit)?;
    number.parse::<f64>().ok().map(|n| n * scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(run: &BenchmarkRun, name: &str) -> Option<f64> {
        run.figures.iter().find(|f| f.name == name).map(|f| f.value)
    }

    #[test]
    fn a_real_run_with_its_distribution() {
        // wrk -t1 -c4 -d2s --latency http://127.0.0.1:8299/ (wrk 4.1.0)
        let text = include_str!("../tests/seeds/wrk_text/latency");
        let run = &runs(text).unwrap().unwrap()[0];
        for (name, value) in [
            ("requests_per_s", 828.96),
            ("latency_mean_ns", 5.96e6),
            ("latency_p50_ns", 3.96e6),
            ("latency_p99_ns", 46.33e6),
            ("bytes_per_s", 314.91 * 1024.0),
        ] {
            let found = of(run, name).unwrap();
            assert!((found / value - 1.0).abs() < 1e-9, "{name} {found}");
        }
        assert_eq!(run.case, "http://127.0.0.1:8299/, 1 threads, 4 connections");
        let two = format!("{text}\nSocket errors: connect 0, read 2, write 0, timeout 3\n{text}");
        let two = runs(&two).unwrap().unwrap();
        assert_eq!(
            (two.len(), of(&two[0], "socket_errors"), of(&two[1], "socket_errors")),
            (2, Some(5.0), None)
        );
    }

    #[test]
    fn no_latency_option_no_percentile_and_nothing_of_others() {
        let run = &runs(include_str!("../tests/seeds/wrk_text/plain")).unwrap().unwrap()[0];
        assert_eq!((of(run, "latency_p99_ns"), of(run, "requests_per_s")), (None, Some(863.42)));
        assert_eq!(runs("Running fast"), None);
        let broken = runs("Running 1s test @ http://h/\nunable to connect").unwrap();
        assert_eq!(broken, Err(NoRuns::NoFigure { program: "wrk" }));
    }
}
