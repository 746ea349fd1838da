//! The document of `iperf3 -J`.
//!
//! **Source**: `iperf_json_finish` in `iperf_api.c` of iperf 3.0 to 3.17.

use model::compare::{BenchmarkFigure as Figure, BenchmarkRun};
use serde_json::Value;

use crate::benchmark_runs::{NoRuns, with_figures};

const PROGRAM: &str = "iperf3";

/// The run of this document; `None` where it is of another program.
pub(crate) fn runs(document: &Value) -> Option<Result<Vec<BenchmarkRun>, NoRuns>> {
    let version = document.pointer("/start/version")?.as_str()?;
    if !version.starts_with("iperf 3") {
        return None;
    }
    if let Some(why) = document.get("error").and_then(Value::as_str) {
        return Some(Err(NoRuns::Failed { program: PROGRAM, why: why.to_owned() }));
    }
    Some(with_figures(PROGRAM, vec![run(document)]))
}

fn run(document: &Value) -> BenchmarkRun {
    let at = |pointer: &str| document.pointer(pointer).and_then(Value::as_f64);
    let figure =
        |figure: fn(String, &'static str, f64) -> Figure, name: &str, unit, pointer: &str| {
            at(pointer).map(|value| figure(name.to_owned(), unit, value))
        };
    let lower = |name: String, unit, value| Figure::lower(name, unit, value);
    let higher = |name: String, unit, value| Figure::higher(name, unit, value);
    let received = ["sum_received", "sum"].map(|s| format!("/end/{s}/bits_per_second"));
    let rate = received.iter().find_map(|p| figure(higher, "bits_per_s", "bit/s", p));
    let udp =
        |f: Figure| if document.pointer("/end/sum/jitter_ms").is_some() { f.main() } else { f };
    let mut figures: Vec<Figure> = rate.map(Figure::main).into_iter().collect();
    figures.extend(
        figure(
            higher,
            "reverse_bits_per_s",
            "bit/s",
            "/end/sum_received_bidir_reverse/bits_per_second",
        )
        .map(Figure::main),
    );
    figures.extend(figure(lower, "retransmits", "", "/end/sum_sent/retransmits"));
    let jitter = at("/end/sum/jitter_ms").map(|ms| lower("jitter_ns".into(), "ns", ms * 1e6));
    figures.extend(jitter.map(udp));
    figures.extend(figure(lower, "lost_percent", "%", "/end/sum/lost_percent").map(udp));
    let cpu = "/end/cpu_utilization_percent";
    figures.extend(figure(lower, "local_cpu_percent", "%", &format!("{cpu}/host_total")));
    figures.extend(figure(lower, "peer_cpu_percent", "%", &format!("{cpu}/remote_total")));
    BenchmarkRun {
        program: PROGRAM.into(),
        case: case(document.pointer("/start/test_start").unwrap_or(&Value::Null)),
        started_unix_s: at("/start/timestamp/timesecs"),
        figures,
    }
}

/// `tcp, 4 streams, reverse, target 50000000 bit/s`
fn case(test: &Value) -> String {
    let number = |key: &str| test.get(key).and_then(Value::as_u64).filter(|n| *n > 0);
    let protocol = test.get("protocol").and_then(Value::as_str).map(str::to_ascii_lowercase);
    let parts = [
        protocol,
        number("num_streams").filter(|n| *n > 1).map(|n| format!("{n} streams")),
        number("reverse").map(|_| "reverse".into()),
        number("bidir").map(|_| "both directions".into()),
        number("target_bitrate").map(|n| format!("target {n} bit/s")),
    ];
    parts.into_iter().flatten().collect::<Vec<String>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<BenchmarkRun>, NoRuns> {
        runs(&serde_json::from_str(text).unwrap()).unwrap()
    }

    #[test]
    fn real_documents_are_read() {
        let of = |run: &BenchmarkRun, name: &str| {
            run.figures.iter().find(|f| f.name == name).map(|f| (f.value, f.main))
        };
        // iperf3 -c 127.0.0.1 -t 1 -J (iperf 3.12)
        let tcp = &read(include_str!("../tests/seeds/iperf3_json/tcp")).unwrap()[0];
        assert_eq!(of(tcp, "bits_per_s"), Some((6_398_546_135.068_837, true)));
        assert_eq!(of(tcp, "retransmits"), Some((6.0, false)));
        assert_eq!((tcp.case.as_str(), tcp.started_unix_s), ("tcp", Some(1_795_693_873.0)));
        let reverse = &read(include_str!("../tests/seeds/iperf3_json/reverse")).unwrap()[0];
        assert_eq!(reverse.case, "tcp, reverse");
        // iperf3 -u -b 50M
        let udp = &read(include_str!("../tests/seeds/iperf3_json/udp")).unwrap()[0];
        assert_eq!(of(udp, "bits_per_s"), Some((50_050_935.103_076_76, true)));
        assert_eq!(of(udp, "lost_percent"), Some((0.0, true)));
        assert_eq!(udp.case, "udp, target 50000000 bit/s");
        // Without a server
        let refused = read(include_str!("../tests/seeds/iperf3_json/refused"));
        let why = "unable to connect to server: Connection refused".to_owned();
        assert_eq!(refused, Err(NoRuns::Failed { program: "iperf3", why }));
        assert_eq!(runs(&serde_json::json!({"start": {"version": "x"}})), None);
    }
}
