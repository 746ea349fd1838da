//! Golden texts of constructed results: `golden/*.txt`.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod documents;

use std::collections::BTreeMap;

use model::{CpuId, Reading, measure::*, reading::Known};

use super::*;
use crate::{testing::golden, text::TextStyle};
use documents::*;

#[test]
fn one_run_begins_with_median_and_rate() {
    let d = rtt_document(vec![rtt_run(64, 53_100)]);
    golden!("rtt_one", "p50 53.1 µs (95% CI", |style| rtt(&d, style));
}

#[test]
fn a_sweep_with_modes_moves_counters_and_warnings() {
    let d = sweep();
    golden!("rtt_sweep", "p50 from 53.1 µs (run 1) to 91 µs (run 3)", |style| rtt(&d, style));
}

#[test]
fn modes_that_nothing_sets_apart_are_shown_where_they_are_clearly_two() {
    let with = |a: u64, b: u64| {
        let mut run = rtt_run(64, a);
        run.modes = vec![mode(0.6, a, (0, 0)), mode(0.4, b, (0, 1))];
        run.modes.iter_mut().for_each(|m| m.name = model::measure::NOTHING_SETS_APART.into());
        run
    };
    let text = |run| rtt(&rtt_document(vec![run]), TextStyle::default());
    assert!(!text(with(50_000, 60_000)).contains("MODES"));
    assert!(text(with(50_000, 90_000)).contains("MODES"));
    let mut named = with(50_000, 60_000);
    named.modes[1].name = "on two CPUs".into();
    assert!(text(named).contains("MODES"));
}

#[test]
fn intervals_of_several_runs_say_which_batches_or_that_there_are_none() {
    let mut d = sweep();
    d.runs[0].rtt_p50_interval_ns.as_mut().unwrap().method = "batch means, 12 batches".into();
    d.runs[2].rtt_p50_interval_ns = None;
    let text = rtt(&d, TextStyle::default());
    assert!(
        text.contains("95% CI; P50 by run:\n  run 1: batch means, 12 batches\n  run 2: "),
        "{text}"
    );
    assert!(text.contains("run 3: no 95% CI (±): too few batches or samples"), "{text}");
}

#[test]
fn counters_of_one_host_are_said_to_be_one() {
    let mut d = sweep();
    let says = "equal figures of CLIENT and SERVER";
    assert!(!rtt(&d, TextStyle::default()).contains(says));
    d.runs[2].evidence.peer = d.runs[2].evidence.local.clone();
    assert_eq!(rtt(&d, TextStyle::default()).matches(says).count(), 1);
    d.runs.iter_mut().for_each(|r| r.placement.same_host = false);
    assert!(!rtt(&d, TextStyle::default()).contains(says));
}

#[test]
fn two_hosts_by_schedule_over_udp_with_everything_said() {
    let mut run = rtt_run(64, 1_900);
    run.transport = Transport::Udp;
    run.response_bytes = 1_000;
    run.flows = 64;
    run.queue_depth = 4;
    (run.wait, run.peer_wait) = (Wait::Spin, Wait::SpinThenBlock);
    run.target_per_s = Some(200_000);
    run.rtt_from_send_ns = Some(quantiles(900_000, 1_700));
    run.send_lag_ns = Some(quantiles(900_000, 200));
    (run.lost, run.late) = (1_204, 7);
    run.placement.same_host = false;
    run.placement.local.napi_ids = BTreeMap::from([(8_193, 60), (8_194, 30)]);
    run.placement.peer = EndPlacement { why: "not pinned".into(), ..Default::default() };
    run.cpu.peer = Reading::absent("the server did not report");
    let mut d = rtt_document(vec![run]);
    d.request.common.transport = Transport::Udp;
    d.peer = End { program: "qperf 0.4.11".into(), address: "10.0.0.2".into(), ..End::default() };
    d.interrupted = true;
    golden!("rtt_udp", "p50 ", |style| rtt(&d, TextStyle { verbose: true, ..style }));
}

#[test]
fn a_wait_split_begins_with_its_two_parts() {
    let (mut spinning, mut one) = (rtt_run(1, 7_200), rtt_run(1, 11_400));
    (spinning.wait, spinning.peer_wait) = (Wait::Spin, Wait::Spin);
    one.placement.peer.pinned = vec![CpuId(1)];
    let runs = vec![rtt_run(1, 53_100), spinning, one];
    let names = ["two CPUs, blocking", "two CPUs, spinning", "one CPU, blocking"];
    let variants = names.iter().zip(&runs);
    let mut d = rtt_document(runs.clone());
    d.wait_split = Some(WaitSplit {
        variants: variants
            .map(|(n, r)| WaitVariant { name: (*n).into(), run: r.clone() })
            .collect(),
        stack_ns: Some(Nanos(7_200)),
        waking_ns: Some(Nanos(45_900)),
        one_cpu_ns: Some(Nanos(11_400)),
        says: SplitAnswer::Split {
            blocking_ns: Nanos(53_100),
            stack_ns: Nanos(7_200),
            waking_ns: Nanos(45_900),
        },
    });
    golden!("rtt_split", "network stack 7.20 µs + wake-up 45.9 µs = p50 53.1 µs", |style| rtt(
        &d, style
    ));
}

#[test]
fn streams_both_ways_are_added_up_in_the_answer() {
    // Both are directions of one window, with the same CPU time and counters.
    let mut runs =
        vec![stream_run(Direction::Forward, 41.3e9), stream_run(Direction::Reverse, 38.9e9)];
    runs[1].cpu = runs[0].cpu.clone();
    let d = stream_document(runs);
    golden!("stream_both", "forward 41.3 Gbit/s + reverse 38.9 Gbit/s = 80.2 Gbit/s", |style| {
        stream(&d, style)
    });
}

#[test]
fn a_udp_stream_with_losses() {
    let mut run = stream_run(Direction::Forward, 980e6);
    let datagrams = Datagrams {
        sent: 450_000,
        received: 448_800,
        lost: 1_200,
        reordered: 3.into(),
        duplicates: 0.into(),
        jitter_ns: 11_300.into(),
        send_refused: 2,
    };
    run.transport = Transport::Udp;
    run.message_bytes = 1_400;
    run.retransmits = Reading::absent("UDP sends nothing again");
    run.congestion = Reading::absent("UDP has none");
    run.mss_bytes = Reading::absent("UDP has none");
    run.zerocopy_copied = None;
    run.flow_bytes.truncate(1);
    run.flows = 1;
    for i in &mut run.intervals {
        i.retransmits = Reading::absent("UDP sends nothing again");
        i.datagrams = Some(Datagrams { lost: 240, sent: 90_000, ..datagrams.clone() });
    }
    run.datagrams = Some(datagrams);
    let mut d = stream_document(vec![run]);
    d.request.common.transport = Transport::Udp;
    golden!("stream_udp", "980 Mbit/s (95% CI", |style| stream(&d, style));
}

#[test]
fn many_intervals_are_summed_up_until_asked_for() {
    let mut run = stream_run(Direction::Forward, 9.4e9);
    let one = run.intervals[0].clone();
    run.intervals = vec![one; 600];
    let d = stream_document(vec![run]);
    let brief = stream(&d, TextStyle::default());
    assert!(brief.contains("600 intervals, from 9.40 Gbit/s to 9.40 Gbit/s"), "{brief}");
    let full = stream(&d, TextStyle { verbose: true, ..TextStyle::default() });
    assert!(full.lines().count() > 600, "{full}");
}

#[test]
fn a_sweep_of_connections_begins_with_its_range() {
    let mut second = connect_run(64, Close::Local);
    second.failed = BTreeMap::from([("Cannot assign requested address".into(), 2_101)]);
    second.start_lag_ns = Some(quantiles(90_000, 900));
    second.peer_accepted_in_all = Known(94_959);
    second.evidence.peer = BTreeMap::from([("TcpExt.ListenOverflows".into(), 41)]);
    let mut first = connect_run(1, Close::Local);
    first.connections_per_s = 6_000.0;
    first.connections_per_s_interval = None;
    let d = connect_document(vec![first, second]);
    golden!("connect", "connections/s from 6,000 (run 1) to 18,000 (run 2)", |style| connect(
        &d, style
    ));
}

#[test]
fn only_who_closes_first_has_a_limit_by_ports() {
    for (close, limited, says) in [
        (Close::Local, true, "keeps its port for 60 s: at most 471 connections/s"),
        (Close::Peer, false, "The server closes: no port stays"),
        (Close::Reset, false, "The client resets: no port stays"),
    ] {
        let text = connect(&connect_document(vec![connect_run(1, close)]), TextStyle::default());
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(says), "{text}");
        assert_eq!(text.contains("are sustainable"), limited, "{text}");
    }
}

#[test]
fn pages_of_any_width_are_kept_where_words_allow() {
    for width in [40, 60, 80, 100, 160] {
        let look = TextStyle { width, ..TextStyle::default() };
        for text in [
            rtt(&sweep(), look),
            stream(&stream_document(vec![stream_run(Direction::Forward, 41e9)]), look),
            connect(&connect_document(vec![connect_run(1, Close::Peer)]), look),
        ] {
            let longest = text.lines().map(|l| l.chars().count()).max().unwrap();
            // Below 80 columns some tables cannot shrink further.
            assert!(longest <= width.max(76), "{width}: {longest}\n{text}");
            assert!(!text.lines().any(|l| l.ends_with(' ')), "{text}");
        }
    }
}

#[test]
fn nothing_measured_and_hostile_words_are_printed_too() {
    let mut empty = rtt_document(vec![]);
    empty.interrupted = true;
    let text = rtt(&empty, TextStyle::default());
    assert!(text.contains("Ended early, before anything was measured."), "{text}");
    stream(&stream_document(vec![]), TextStyle::default());
    connect(&connect_document(vec![]), TextStyle::default());

    let mut d = sweep();
    d.peer.program = "evil\x1b[31m\n".into();
    d.runs[0].placement.peer.why = "\x1b]0;title\x07".repeat(50);
    d.runs[0].rtt_ns = Quantiles::default();
    d.runs[0].transactions_per_s = f64::NAN;
    d.runs[0].cpu.local.threads_per_unit_ns = Known(f64::NEG_INFINITY);
    d.runs[0].rtt_p50_interval_ns.as_mut().unwrap().value = 0.0;
    let text = rtt(&d, TextStyle::default());
    assert!(!text.contains(['\x1b', '\x07']), "{text}");
}

#[test]
fn a_single_run_answers_in_the_second_line_and_no_line_is_wider_than_the_page() {
    for width in [80, 120] {
        let text = rtt(
            &rtt_document(vec![rtt_run(64, 53_100)]),
            TextStyle { width, ..TextStyle::default() },
        );
        let answer = "p50 53.1 µs (95% CI 52.7–53.5 µs) · 18,832/s (95% CI 18,625–19,039)";
        assert_eq!(text.lines().nth(1), Some(answer), "{text}");
        assert!(text.lines().all(|l| l.chars().count() <= width), "{text}");
    }
}

#[test]
fn a_single_run_shows_the_least_the_mean_and_the_count_that_the_document_has() {
    let run = rtt_run(64, 53_100);
    let (mean, count) = (run.rtt_ns.mean, run.rtt_ns.count);
    assert_eq!((mean.round() as u64, count), (54_693, 94_161));
    let text = rtt(&rtt_document(vec![run]), TextStyle::default());
    let rows = text.lines().skip_while(|l| !l.contains("MIN")).take(2);
    let rows: Vec<Vec<&str>> = rows.map(|l| l.split("  ").map(str::trim).collect()).collect();
    let cells = |row: usize| rows[row].iter().filter(|c| !c.is_empty()).collect::<Vec<_>>();
    let at = |head: &str| cells(1)[cells(0).iter().position(|h| **h == head).unwrap()];
    assert_eq!([at("MIN"), at("MEAN"), at("SAMPLES")], [&"26.6 µs", &"54.7 µs", &"94,161"]);
}

#[test]
fn a_sweep_over_flows_says_where_it_stops_growing() {
    let run = |flows, p50| RttRun { flows, ..rtt_run(64, p50) };
    let text = |runs| rtt(&rtt_document(runs), TextStyle::default());
    let three = text(vec![run(1, 40_000), run(2, 20_000), run(4, 20_000)]);
    assert!(three.contains("Throughput stops growing at 2 flows: 50,000/s, 100% of"), "{three}");
    let mut by_schedule = vec![run(1, 40_000), run(2, 20_000)];
    by_schedule[0].target_per_s = Some(25_000);
    assert!(!text(by_schedule).contains("Throughput"));
}

#[test]
fn what_only_counts_the_traffic_is_shown_with_v_alone() {
    let d = sweep();
    assert!(!rtt(&d, TextStyle::default()).contains("Counters of the traffic itself"));
    let verbose = TextStyle { verbose: true, ..TextStyle::default() };
    assert!(rtt(&d, verbose).contains("Counters of the traffic itself"));
}

/// Four connections to nginx, and two sessions of pgbench's select-only: documents of real runs.
#[test]
fn servers_of_others_begin_with_their_rate() {
    let d: model::measure::HttpDocument =
        serde_json::from_str(include_str!("golden/http.json")).unwrap();
    golden!("http", "/s (95% CI", |style| http(&d, style));
    let d: model::measure::RedisDocument =
        serde_json::from_str(include_str!("golden/redis.json")).unwrap();
    golden!("redis", "Throughput", |style| redis(&d, style));
    let d: model::measure::PgDocument =
        serde_json::from_str(include_str!("golden/pg.json")).unwrap();
    golden!("pg", "/s (95% CI", |style| pg(&d, style));
}
