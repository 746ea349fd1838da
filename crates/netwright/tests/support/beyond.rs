//! Open-loop runs below and beyond a known capacity, and the output that each generator must have.

use super::looks::in_most_looks;
use serde_json::Value;

/// Runs one measurement with these additional arguments; returns its document.
pub type Measure<'a> = &'a (dyn Fn(&[&str]) -> Value + Sync);

fn run(measure: Measure<'_>, more: &[&str]) -> Value {
    let args = [&["--duration", "600ms"], more].concat();
    measure(&args)["runs"][0].clone()
}

fn number(of: &Value, key: &str) -> f64 {
    of[key].as_f64().unwrap_or_else(|| panic!("no {key}: {of}"))
}

/// Runs `measure` with this many connections. The server sleeps for each answer, so it cannot
/// answer more than `most_per_s`; `at_once` requests are in progress at the edges of the window.
pub fn open_loop_keeps_to_its_capacity(most_per_s: f64, at_once: f64, measure: Measure<'_>) {
    let half = (most_per_s / 2.0).round().to_string();
    let kept = in_most_looks(|| {
        let below = run(measure, &["--rate", &half]);
        let due = most_per_s / 2.0 * number(&below, "window_ns") / 1e9;
        (number(&below, "transactions") - due).abs() <= at_once + 2.0
            && number(&below, "schedule_lag_ns") < 1e8
            && !below["warnings"].to_string().contains("schedule")
    });
    assert!(kept, "half of the capacity is the rate that was asked for");
    for times in [2.0, 10.0, 1000.0] {
        let rate = most_per_s * times;
        let mut seen = vec![];
        let like = in_most_looks(|| {
            // Both runs at the same time: other load affects both equally.
            let (open, closed) = std::thread::scope(|both| {
                let closed = both.spawn(|| run(measure, &[]));
                let open = run(measure, &["--rate", &rate.round().to_string()]);
                (open, closed.join().expect("the closed loop"))
            });
            beyond(&open, most_per_s, rate, at_once);
            let per_s = |of: &Value| number(of, "transactions_per_s");
            let ratio = per_s(&open) / per_s(&closed);
            seen.push(ratio);
            (0.9..1.1).contains(&ratio)
        });
        assert!(
            like,
            "asked for {times} times the capacity it is not the closed loop's rate: {seen:?}"
        );
    }
}

/// Checks that hold on a busy machine too.
fn beyond(open: &Value, most_per_s: f64, rate: f64, at_once: f64) {
    let window_s = number(open, "window_ns") / 1e9;
    let answered = number(open, "transactions");
    assert!(answered > 0.0 && answered <= most_per_s * window_s + at_once, "{open}");
    // Its lag is the answers that it did not get, since before the window.
    let behind_s = number(open, "schedule_lag_ns") / 1e9;
    assert!(behind_s >= window_s * (1.0 - most_per_s / rate) * 0.9, "{open}");
    assert!(number(open, "not_started") > 0.9 * window_s * (rate - most_per_s), "{open}");
    // Coordinated omission: latencies from the schedule are long, those from sending far shorter.
    let (times, sent) = match open["latency_ns"].is_object() {
        true => ("latency_ns", "latency_from_send_ns"),
        false => ("rtt_ns", "rtt_from_send_ns"),
    };
    let last_s = window_s * (1.0 - most_per_s / rate);
    assert!(number(&open[times], "max") >= last_s * 0.25e9, "{open}");
    assert!(number(&open[times], "p50") > number(&open[sent], "p50"), "{open}");
    let said = open["warnings"].to_string();
    assert!(said.contains("was not reached") && !said.contains("longer --duration"), "{said}");
}
