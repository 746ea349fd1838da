//! Tests that the text agrees with the document.

use model::{Nanos, Warning, explain::*, measure::Quantiles};

use super::text;
use crate::{TextStyle, testing::golden};

fn part(name: &str, ns: f64, share: f64) -> Component {
    Component {
        name: name.into(),
        about: "about it".into(),
        ns,
        low_ns: ns - ns.abs() * 0.01,
        high_ns: ns + ns.abs() * 0.01,
        share: (ns > 0.0).then_some(share),
        reported: ns > 0.0,
    }
}

fn prediction(path: &str, clients: u32, per_s: f64) -> Prediction {
    Prediction {
        path: path.into(),
        clients,
        predicted_per_s: per_s,
        low_per_s: per_s * 0.9,
        high_per_s: per_s * 1.1,
        naive_per_s: Some(per_s * 1.05),
        limiting: Some("path".into()),
        measured_per_s: None,
        error: None,
        inconclusive: false,
        cpu_bounded: false,
    }
}

fn document() -> ExplainDocument {
    let q = |p50| Quantiles {
        count: 1000,
        p50,
        p90: p50 / 10 * 11,
        p99: p50 * 2,
        mean: p50 as f64 * 1.02,
        ..Default::default()
    };
    ExplainDocument {
        schema_version: 1,
        kind: "explain".into(),
        started_unix_s: 0,
        target: "rtt://db1".into(),
        responder: "db1".into(),
        exchange: Exchange {
            request_bytes: 64,
            response_bytes: 2048,
            messages: 2,
            round_trips: 1.0,
            sends: 1.0,
            receives: 1.0,
            new_connections: 0.0,
            connect_round_trips: None,
        },
        clients: 8,
        rounds: 40,
        round_ns: Nanos(200_000_000),
        components: vec![
            part("network", 20_000.0, 0.199),
            part("service", 70_000.0, 0.697),
            part("server queueing", -500.0, 0.0),
            part("client", 10_500.0, 0.104),
        ],
        sum: Sum {
            measured_ns: 100_500.0,
            sum_ns: 100_000.0,
            error: -0.005,
            allowed: 0.02,
            conclusive: true,
            disturbed: vec![],
        },
        quantiles: SideBySide { workload_ns: q(90_000), network_ns: q(19_000) },
        typical: Some(Typical { network_ns: 19e3, service_ns: 71e3, low_ns: 70e3, high_ns: 72e3 }),
        naive: Naive { one_way_ns: 10_000.0, service_ns: 80_500.0 },
        demands: vec![Demand {
            place: "server".into(),
            servers: Some(4),
            ns: 70_000.0,
            source: "CPU time of the server".into(),
        }],
        levels: vec![],
        knee_clients: Some(5.7),
        limiting: Some("server".into()),
        other_paths: vec![],
        predictions: vec![prediction("this", 8, 79_600.0), prediction("rtt=1 ms", 8, 7_400.0)],
        what_if: vec![WhatIf {
            change: "no network".into(),
            clients: 8,
            predicted_per_s: 100_000.0,
            factor: 1.256,
            bound: None,
            inconclusive: false,
        }],
        verified: None,
        injected_service_ns: Some(70_000.0),
        statuses: Default::default(),
        left_out: Default::default(),
        warnings: vec![Warning::OthersBusy { cpus: 1.5 }],
        interrupted: false,
    }
}

fn plain(d: &ExplainDocument) -> String {
    text(d, TextStyle { width: 100, colour: false, verbose: false })
}

#[test]
fn parts_sum_predictions_and_changes_are_reported() {
    let said = plain(&document());
    for wanted in [
        "Response time of rtt://db1 · 8 clients · 64 B request, 2 KiB response",
        "busy-loops 70 µs",
        "server queueing  unresolved  -505 to -495 ns",
        "Sum of components 100 µs; measured 100 µs",
        "Network 19.9%; largest component: service, 70 µs (95% CI 69.3–70.7 µs)",
        "rtt=1 ms",
        "79,600",
        "The server saturates at about 5.7 clients",
        "server 70 µs (4 in parallel)",
        "WHAT IF, WITH 8 CLIENTS    PER S  FACTOR",
        "  no network             100,000   ×1.26",
        "CAVEATS",
        "  other programs kept 1.5 of this host",
        "network 19 µs, service 71 µs (95% CI 70–72 µs)",
    ] {
        assert!(said.contains(wanted), "{wanted:?} is missing:\n{said}");
    }
    assert!(!said.contains("MEASURED") && !said.contains("Inconclusive"), "{said}");
    assert!(said.lines().all(|l| l.chars().count() <= 100), "{said}");
}

#[test]
fn what_does_not_add_up_says_why_and_gives_no_answer() {
    let mut d = document();
    d.sum.conclusive = false;
    d.sum.error = -0.08;
    d.sum.disturbed = vec![Disturbance::RoundsApart {
        side: RoundSide::Slower,
        count: 4,
        rounds: 12,
        over: 0.1,
        most: 0.3,
    }];
    let said = plain(&d);
    assert!(said.contains("Inconclusive: 4 of 12 rounds"), "{said}");
    let flat = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        flat.contains("The disturbance covers most transactions, so the P50 includes it."),
        "{said}"
    );
    assert!(flat.contains("Run longer (--max-duration)"), "{said}");
    assert!(!said.contains("Network "), "{said}");
}

#[test]
fn what_a_server_answered_is_reported_by_status() {
    let mut d = document();
    assert!(!plain(&d).contains("Responses"));
    d.statuses = [(200, 1_234), (404, 7)].into();
    let said = plain(&d);
    assert!(said.contains("Responses: 1,234 × 200, 7 × 404."), "{said}");
}

#[test]
fn what_was_verified_has_its_error() {
    let mut d = document();
    (d.predictions[0].measured_per_s, d.predictions[0].error) = (Some(80_000.0), Some(-0.005));
    d.verified = Some(Verified {
        cells: 1,
        median_error: Some(0.005),
        worst_error: Some(0.005),
        drift: None,
    });
    let said = plain(&d);
    assert!(said.contains("MEASURED") && said.contains("-0.5%"), "{said}");
    assert!(
        said.contains("Verified by 1 measurement beside the curve: median error 0.5%"),
        "{said}"
    );
}

#[test]
fn an_impossible_component_is_not_printed_as_a_result() {
    let mut d = document();
    d.components[1] = Component {
        ns: -61e3,
        low_ns: -70e3,
        high_ns: 3e3,
        share: None,
        reported: false,
        ..part("service", 1.0, 0.0)
    };
    (d.components[0].share, d.components[3].share) = (Some(0.656), Some(0.344));
    d.typical = Some(Typical { network_ns: 19e3, service_ns: -2e3, low_ns: -4e3, high_ns: 1e3 });
    d.naive.service_ns = -50e3;
    let said = text(&d, TextStyle { width: 100, colour: false, verbose: true });
    assert!(!said.contains("-61") && !said.contains("-139") && !said.contains("-50 µs"), "{said}");
    for wanted in [
        "service          unresolved  ",
        "service, server queueing: within noise of 0",
        "service within noise of 0 (95% CI -4 to 1 µs)",
        "nothing is left for the server",
        "network               20 µs  ",
    ] {
        assert!(said.contains(wanted), "{wanted:?} is missing:\n{said}");
    }
}

#[test]
fn predictions_from_what_is_inconclusive_are_marked() {
    let mut d = document();
    d.sum.conclusive = false;
    d.predictions.iter_mut().for_each(|p| p.inconclusive = true);
    d.what_if.iter_mut().for_each(|w| w.inconclusive = true);
    let said = plain(&d);
    assert!(said.contains("do not rely on them") && said.contains("(inconclusive)"), "{said}");
    assert!(!plain(&document()).contains("rely on"));
}

#[test]
fn what_is_not_known_of_a_server_is_not_said() {
    let mut d = document();
    (d.limiting, d.knee_clients) = (None, None);
    d.what_if[0].bound = Some(Bound::AtMost);
    d.clients = 1;
    let said = plain(&d);
    assert!(said.contains("The limit with many clients is not known."), "{said}");
    assert!(said.contains("WHAT IF, WITH 1 CLIENT "), "{said}");
    assert!(said.contains("no network  ") && said.contains("  at most 100,000"), "{said}");
    (d.limiting, d.knee_clients) = (Some("client".into()), Some(1.04));
    assert!(plain(&d).contains("The client saturates at about 1 client."));
}

#[test]
fn a_curve_that_did_not_repeat_has_no_error_to_tell() {
    let mut d = document();
    (d.predictions[0].measured_per_s, d.predictions[0].error) = (Some(65_000.0), Some(0.22));
    d.verified =
        Some(Verified { cells: 1, median_error: None, worst_error: None, drift: Some(-0.18) });
    let said = plain(&d);
    assert!(said.contains("did not repeat when they were measured again (-18.0%)"), "{said}");
    assert!(!said.contains("median error"), "{said}");
}

#[test]
fn the_answer_stands_in_the_second_line_at_both_widths() {
    let d = document();
    golden!("conclusive", "Network 19.9%; largest component: service", |style| text(&d, style));
    let mut d = document();
    d.sum.conclusive = false;
    d.sum.disturbed = vec![Disturbance::RoundsApart {
        side: RoundSide::Slower,
        count: 4,
        rounds: 12,
        over: 0.1,
        most: 0.3,
    }];
    d.components[2].reported = false;
    d.interrupted = true;
    golden!("inconclusive", "Inconclusive: 4 of 12", |style| text(&d, style));
}
