//! What `sockperf` prints of its modes `ping-pong`, `under-load` and `throughput`.
//!
//! Its latency is half of the round trip, unless `--full-rtt` is given.
//!
//! **Source**: `client.cpp` of sockperf 3.7.

use model::compare::{BenchmarkFigure as Figure, BenchmarkRun};

use crate::benchmark_runs::{NoRuns, with_figures};

const PROGRAM: &str = "sockperf";

/// All runs of this text; `None` where it is of another program.
pub(crate) fn runs(text: &str) -> Option<Result<Vec<BenchmarkRun>, NoRuns>> {
    if !text.lines().any(|l| l.starts_with("sockperf: ")) {
        return None;
    }
    let plain = without_colours(text);
    let parts = plain.split("== version #").skip(1);
    let runs: Vec<BenchmarkRun> = parts.map(run).collect();
    Some(match runs.is_empty() {
        true => Ok(vec![run(&plain)]).and_then(|one| with_figures(PROGRAM, one)),
        false => with_figures(PROGRAM, runs),
    })
}

fn run(text: &str) -> BenchmarkRun {
    let (mut figures, mut case) = (Vec::new(), String::new());
    // Percentiles come after the line that says what they are of.
    let mut what = "latency";
    for line in text.lines() {
        let words: Vec<&str> = line.trim_start_matches("sockperf: ").split_whitespace().collect();
        let number = |w: &str| w.parse::<f64>().ok();
        match words.as_slice() {
            ["[", "0]", "IP", "=", .., "#", transport] => case = transport.to_ascii_lowercase(),
            ["Summary:", "Latency", "is", us, "usec"] => {
                figures.extend(number(us).map(|us| us_figure("latency_mean_ns", us)));
            }
            ["Summary:", "Round", "trip", "is", us, "usec"] => {
                what = "rtt";
                figures.extend(number(us).map(|us| us_figure("rtt_mean_ns", us)));
            }
            ["Summary:", "Message", "Rate", "is", rate, ..] => figures
                .extend(number(rate).map(|r| Figure::higher("messages_per_s", "1/s", r).main())),
            ["--->", "percentile", percent, "=", us] => {
                let Some((percent, us)) = number(percent).zip(number(us)) else { continue };
                let digits = format!("{percent}").replace('.', "");
                let figure = us_figure(&format!("{what}_p{digits}_ns"), us);
                let main = percent == 50.0 || percent == 99.0;
                figures.push(if main { figure.main() } else { figure });
            }
            ["#", "dropped", "messages", "=", dropped, ..] => figures.extend(
                number(dropped.trim_end_matches(';'))
                    .map(|n| Figure::lower("dropped_messages", "", n)),
            ),
            _ => {}
        }
    }
    BenchmarkRun { program: PROGRAM.into(), case, started_unix_s: None, figures }
}

fn us_figure(name: &str, us: f64) -> Figure {
    Figure::lower(name, "ns", us * 1e3)
}

/// The text without the colours that sockperf writes also into files.
fn without_colours(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain += part.split_once('m').map_or(part, |(_, rest)| rest);
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, name: &str) -> Option<f64> {
        let runs = runs(text).unwrap().unwrap();
        runs[0].figures.iter().find(|f| f.name == name).map(|f| f.value)
    }

    #[test]
    fn every_mode_is_read() {
        // sockperf ping-pong -i 127.0.0.1 -p 11299 -t 1 (sockperf 3.7)
        let udp = include_str!("../tests/seeds/sockperf_text/udp");
        assert_eq!(of(udp, "latency_mean_ns"), Some(14_531.0));
        assert_eq!(of(udp, "latency_p50_ns"), Some(8_480.0));
        assert_eq!(of(udp, "latency_p99_ns"), Some(155_715.0));
        assert_eq!(of(udp, "latency_p999_ns"), Some(860_658.0));
        assert_eq!(of(udp, "dropped_messages"), Some(0.0));
        let tcp = include_str!("../tests/seeds/sockperf_text/tcp");
        assert_eq!(runs(tcp).unwrap().unwrap()[0].case, "tcp");
        let load = include_str!("../tests/seeds/sockperf_text/under_load");
        assert_eq!(of(load, "latency_p50_ns"), Some(36_002.0));
        // sockperf throughput
        let rate = include_str!("../tests/seeds/sockperf_text/throughput");
        assert_eq!(of(rate, "messages_per_s"), Some(81_759.0));
        assert_eq!(runs(&format!("{udp}{tcp}")).unwrap().unwrap().len(), 2);
        assert_eq!(runs("nothing"), None);
        let none = runs("sockperf: ERROR: connect refused\n").unwrap();
        assert_eq!(none, Err(NoRuns::NoFigure { program: "sockperf" }));
    }
}
