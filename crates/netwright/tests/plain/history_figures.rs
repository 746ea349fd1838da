//! `history diff`: its figures beside values that the test put into the runs.

use std::{path::Path, process::Command};

use history::{Record, Store};
use serde_json::{Value, json};

use crate::support::NETWRIGHT;

/// A real result of `measure rtt`.
const RESULT: &str = include_str!("../../../page/tests/documents/rtt.json");

/// The result with this median, its interval, and this rate.
fn result(p50: f64, interval: (f64, f64), rate: f64) -> String {
    let mut document: Value = serde_json::from_str(RESULT).unwrap();
    let run = &mut document["runs"][0];
    run["rtt_ns"]["p50"] = p50.into();
    run["rtt_p50_interval_ns"]["value"] = p50.into();
    run["rtt_p50_interval_ns"]["low"] = interval.0.into();
    run["rtt_p50_interval_ns"]["high"] = interval.1.into();
    run["transactions_per_s"] = rate.into();
    document.to_string()
}

fn record(n: u64, tag: &str, document: String) -> Record {
    let (kind, tag) = ("measure-rtt".to_owned(), tag.to_owned());
    Record { ended_unix_ms: n, kind, tag, document, facts: "{}".into(), ..Record::default() }
}

fn figure(store: &Path, before: &str, after: &str, metric: &str) -> Value {
    let mut command = Command::new(NETWRIGHT);
    command.args(["history", "diff", before, after, "--json", "--store"]).arg(store);
    let out = command.output().unwrap();
    assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stderr));
    let document: Value = serde_json::from_slice(&out.stdout).unwrap();
    let figures = document["figures"].as_array().unwrap();
    figures.iter().find(|f| f["metric"] == metric).unwrap_or_else(|| panic!("{figures:#?}")).clone()
}

#[test]
fn a_difference_of_two_groups_is_the_one_that_was_put_in() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("h.sqlite");
    let mut store = Store::open(&path).unwrap();
    for n in 0..8 {
        // The rate wanders alike on both sides, the median is a fifth larger after.
        let (p50, rate) = (100_000.0 + 100.0 * n as f64, 20_000.0 + 7.0 * (n % 4) as f64);
        let interval = (p50 - 50.0, p50 + 50.0);
        store.add(&record(2 * n, "before", result(p50, interval, rate))).unwrap();
        store.add(&record(2 * n + 1, "after", result(1.2 * p50, interval, rate))).unwrap();
    }
    drop(store);
    let p50 = figure(&path, "tag:before", "tag:after", "rtt_p50_ns");
    assert_eq!((&p50["runs_before"], &p50["runs_after"]), (&json!(8), &json!(8)));
    let of = |key: &str| p50[key].as_f64().unwrap();
    assert!((of("before") - 100_350.0).abs() < 1e-6, "the median of the eight: {p50}");
    assert!((of("after") - 120_420.0).abs() < 1e-6, "{p50}");
    assert!((of("change") - 0.2).abs() < 1e-9, "{p50}");
    assert_eq!(p50["verdict"], "worse", "a longer time");
    let back = figure(&path, "tag:after", "tag:before", "rtt_p50_ns");
    assert!((back["change"].as_f64().unwrap() + 1.0 / 6.0).abs() < 1e-9, "{back}");
    assert_eq!(back["verdict"], "better");
    let rate = figure(&path, "tag:before", "tag:after", "transactions_per_s");
    assert_eq!(rate["change"], json!(0.0));
    assert_eq!(rate["verdict"], "no_difference_shown");
}

#[test]
fn of_two_single_runs_their_intervals_decide() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("h.sqlite");
    let mut store = Store::open(&path).unwrap();
    let runs = [(100.0, (95.0, 105.0)), (108.0, (104.0, 112.0)), (120.0, (113.0, 127.0))];
    for (n, (p50, interval)) in runs.into_iter().enumerate() {
        store.add(&record(n as u64, "", result(p50, interval, 1_000.0))).unwrap();
    }
    drop(store);
    for (before, after, change, verdict) in [
        ("1", "2", 0.08, "within_noise"),
        ("2", "3", 12.0 / 108.0, "beyond_noise_within_runs"),
        ("3", "1", -1.0 / 6.0, "beyond_noise_within_runs"),
        ("1", "1", 0.0, "within_noise"),
    ] {
        let figure = figure(&path, before, after, "rtt_p50_ns");
        assert!((figure["change"].as_f64().unwrap() - change).abs() < 1e-9, "{figure}");
        assert_eq!(figure["verdict"], verdict, "{before} and {after}: {figure}");
    }
}
