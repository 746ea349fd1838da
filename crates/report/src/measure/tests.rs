//! Golden texts of constructed results: `golden/*.txt`.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use model::{BitsPerSec, CpuId, Reading, Warning, measure::*, reading::Known};

use super::*;
use crate::{testing::golden, text::TextStyle};

fn cpu(units: u64, threads_ns: u64, busy_ns: u64) -> EndCpu {
    EndCpu {
        window_ns: Nanos(5_000_000_000),
        threads_ns: Known(threads_ns),
        threads_user_ns: Known(threads_ns / 10),
        threads_system_ns: Known(threads_ns - threads_ns / 10),
        process_ns: Known(threads_ns),
        host_ns: Known(BTreeMap::from([
            ("user".to_owned(), busy_ns / 10),
            ("system".to_owned(), busy_ns / 2),
            ("softirq".to_owned(), busy_ns - busy_ns / 10 - busy_ns / 2),
            ("steal".to_owned(), 0),
            ("iowait".to_owned(), 5_000),
            ("idle".to_owned(), 10_000_000_000u64.saturating_sub(busy_ns)),
        ])),
        host_busy_per_unit_ns: Known(busy_ns as f64 / units as f64),
        threads_per_unit_ns: Known(threads_ns as f64 / units as f64),
        voluntary_switches: Known(threads_ns / 6_000),
        involuntary_switches: Known(threads_ns / 1_000_000),
    }
}

fn end(pinned: u32, why: &str) -> EndPlacement {
    EndPlacement {
        pinned: vec![CpuId(pinned)],
        why: why.into(),
        ran_on: BTreeMap::from([(CpuId(pinned), 94_000)]),
        received_on: BTreeMap::from([(CpuId(1 - pinned), 90)]),
        napi_ids: BTreeMap::from([(0, 90)]),
        migrations: Known(0),
        allowed: "0-1".parse().unwrap(),
    }
}

fn placement() -> Placement {
    Placement {
        local: end(1, "a dedicated core; the server, on this host, has dedicated cores"),
        peer: end(0, "a dedicated core; in the L3 of the client's CPU 1"),
        same_host: true,
    }
}

fn interval(value: f64, reach: f64) -> Option<Interval> {
    Some(Interval {
        value,
        low: value * (1.0 - reach),
        high: value * (1.0 + reach),
        level: 0.95,
        method: "batch means, 32 batches of 156 ms".into(),
    })
}

fn quantiles(count: u64, p50: u64) -> Quantiles {
    Quantiles {
        count,
        min: p50 / 2,
        p50,
        p75: p50 * 21 / 20,
        p90: p50 * 11 / 10,
        p99: p50 * 3 / 2,
        p999: p50 * 3,
        p9999: p50 * 8,
        max: p50 * 20,
        mean: p50 as f64 * 1.03,
        sd: p50 as f64 * 0.2,
    }
}

fn rtt_run(size: u64, p50: u64) -> RttRun {
    let transactions = 5_000_000_000 / p50;
    RttRun {
        transport: Transport::Tcp,
        request_bytes: size,
        response_bytes: size,
        flows: 1,
        threads: 1,
        queue_depth: 1,
        wait: Wait::Block,
        peer_wait: Wait::Block,
        placement: placement(),
        engine: "io_uring here, epoll there".into(),
        window_ns: Nanos(5_000_000_000),
        trimmed_ns: Nanos(600_000_000),
        rtt_ns: quantiles(transactions, p50),
        rtt_from_send_ns: None,
        send_lag_ns: None,
        rtt_p50_interval_ns: interval(p50 as f64, 0.008),
        modes: vec![],
        peer_service_ns: None,
        transactions,
        transactions_per_s: transactions as f64 / 5.0,
        transactions_per_s_interval: interval(transactions as f64 / 5.0, 0.011),
        target_per_s: None,
        schedule_lag_ns: None,
        not_started: 0,
        lost: 0,
        late: 0,
        cpu: BothCpu {
            local: cpu(transactions, transactions * 6_200, transactions * 12_500),
            peer: Known(cpu(transactions, transactions * 5_900, transactions * 12_500)),
        },
        evidence: BothEvidence::default(),
        warnings: vec![],
    }
}

fn common() -> Common {
    Common {
        target: "db2:19765".into(),
        peer: PeerProgram::Netwright,
        transport: Transport::Tcp,
        family: None,
        bind: None,
        duration_ns: Nanos(5_000_000_000),
        warmup_ns: Nanos(500_000_000),
        cooldown_ns: Nanos(100_000_000),
        wait: Wait::Block,
        peer_wait: Wait::Block,
        pin: Pin::Auto,
        peer_pin: Pin::Auto,
        threads: 1,
        socket: SocketOptions::default(),
        confidence_per_mille: None,
        max_time_ns: Nanos(60_000_000_000),
    }
}

fn host(address: &str) -> End {
    End {
        program: "netwright 0.1.0".into(),
        kernel: "6.18.5".into(),
        arch: "x86_64".into(),
        cpus: 2,
        address: address.into(),
    }
}

fn floor() -> Floor {
    Floor {
        clock_ns: 20.1,
        clock_step_ns: 20,
        sample_ns: 24.3,
        timer_lateness_ns: Quantiles { count: 100, ..quantiles(100, 4_000) },
        steal_ns: Known(0),
        trust_above_ns: 2_430,
        why: vec![
            TrustLimit::ClientOverhead { sample_ns: Nanos(24), below_ns: Nanos(2_430) },
            TrustLimit::LateTimers { latest_ns: Nanos(80_000), sleeps: 100 },
        ],
    }
}

fn rtt_document(runs: Vec<RttRun>) -> RttDocument {
    RttDocument {
        schema_version: 1,
        kind: "rtt".into(),
        started_unix_s: 1_700_000_000,
        request: RttSpec {
            common: common(),
            request_bytes: vec![64],
            response_bytes: vec![],
            flows: vec![1],
            queue_depth: 1,
            rate_per_s: None,
            timeout_ns: Nanos(1_000_000_000),
            service_ns: None,
            think_time_ns: None,
            peer_threads: None,
            engine: Engine::Auto,
            wait_split: false,
        },
        local: host("10.0.0.1"),
        peer: host("10.0.0.1"),
        floor: floor(),
        runs,
        wait_split: None,
        interrupted: false,
    }
}

#[test]
fn one_run() {
    let d = rtt_document(vec![rtt_run(64, 53_100)]);
    golden!("rtt_one", "p50 53.1 µs (95% CI", |style| rtt(&d, style));
}

/// A sweep with two modes in one run, an end moved, counters and warnings.
fn sweep() -> RttDocument {
    let mut runs: Vec<RttRun> = [(64, 53_100), (1_024, 54_800), (65_536, 91_000)]
        .into_iter()
        .map(|(size, p50)| rtt_run(size, p50))
        .collect();
    runs[1].modes = vec![mode(0.61, 11_400, (0, 0)), mode(0.39, 53_700, (0, 1))];
    runs[1].placement.local.migrations = Known(12);
    runs[1].placement.local.ran_on = BTreeMap::from([(CpuId(0), 61_000), (CpuId(1), 39_000)]);
    runs[2].evidence.local =
        BTreeMap::from([("Tcp.RetransSegs".into(), 3), ("softirq.NET_RX".into(), 90_000)]);
    runs[2].evidence.peer = BTreeMap::from([("lo.rx_dropped".into(), 1_204)]);
    runs[0].warnings = vec![Warning::MedianDrifts { trend: 0.031 }];
    for run in &mut runs[1..] {
        run.warnings = vec![Warning::AtServer(Box::new(Warning::SpinningOnSharedCpu))];
    }
    rtt_document(runs)
}

fn mode(share: f64, p50: u64, cpus: (u32, u32)) -> Mode {
    Mode {
        share,
        low_ns: Nanos(p50 * 8 / 10),
        high_ns: Nanos(p50 * 13 / 10),
        p50_ns: Nanos(p50),
        placements: vec![
            ModePlacement { local_cpu: CpuId(cpus.0), peer_cpu: Some(CpuId(cpus.1)), share: 0.98 },
            ModePlacement { local_cpu: CpuId(1), peer_cpu: None, share: 0.02 },
        ],
        name: if cpus.0 == cpus.1 { "both on one CPU" } else { "on two CPUs" }.into(),
    }
}

#[test]
fn a_sweep_with_modes_moves_counters_and_warnings() {
    let d = sweep();
    golden!("rtt_sweep", "Round trips", |style| rtt(&d, style));
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
        text.contains("95% CI of the P50.\n  run 1: batch means, 12 batches\n  run 2: "),
        "{text}"
    );
    assert!(text.contains("run 3: no interval (±): too few batches of time"), "{text}");
}

#[test]
fn counters_of_one_host_are_said_to_be_one() {
    let mut d = sweep();
    let says = "what CLIENT and SERVER have alike";
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
fn a_wait_split() {
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
    golden!("rtt_split", "Round trips", |style| rtt(&d, style));
}

fn stream_run(direction: Direction, bits_per_s: f64) -> StreamRun {
    let bytes = (bits_per_s / 8.0 * 5.0) as u64;
    let interval = |n: u32| StreamInterval {
        start_s: f64::from(n),
        end_s: f64::from(n + 1),
        bytes: bytes / 5,
        bits_per_s: bits_per_s * (1.0 - f64::from(n) / 50.0),
        retransmits: Known(u64::from(n) * 3),
        cwnd_bytes: Known(3_145_728),
        rtt_ns: Known(41_000),
        migrations: Known(0),
        datagrams: None,
    };
    StreamRun {
        transport: Transport::Tcp,
        direction,
        flows: 2,
        threads: 1,
        message_bytes: 131_072,
        wait: Wait::Block,
        peer_wait: Wait::Block,
        placement: placement(),
        window_ns: Nanos(5_000_000_000),
        trimmed_ns: Nanos(600_000_000),
        bytes,
        bits_per_s,
        bits_per_s_interval: interval_of(bits_per_s),
        retransmits: Known(30),
        datagrams: None,
        flow_bytes: vec![bytes / 3, bytes - bytes / 3],
        intervals: (0..5).map(interval).collect(),
        modes: None,
        zerocopy_copied: Some(ZeroCopyCount { completed: 90_000, copied: 90_000 }),
        congestion: Known("cubic".into()),
        mss_bytes: Known(65_483),
        cpu: BothCpu {
            local: cpu(bytes, 2_000_000_000, 3_000_000_000),
            peer: Known(cpu(bytes, 2_500_000_000, 3_000_000_000)),
        },
        evidence: BothEvidence {
            local: BTreeMap::from([("Tcp.RetransSegs".into(), 30)]),
            peer: BTreeMap::new(),
        },
        warnings: vec![],
    }
}

fn interval_of(value: f64) -> Option<Interval> {
    interval(value, 0.02)
}

fn stream_document(runs: Vec<StreamRun>) -> StreamDocument {
    StreamDocument {
        schema_version: 1,
        kind: "stream".into(),
        started_unix_s: 1_700_000_000,
        request: StreamSpec {
            common: common(),
            direction: Direction::Both,
            flows: vec![2],
            message_bytes: vec![131_072],
            rate: Some(BitsPerSec(1_000_000_000)),
            interval_ns: Nanos(1_000_000_000),
            zerocopy: None,
            skip_receive_copy: false,
        },
        local: host("10.0.0.1"),
        peer: host("10.0.0.1"),
        floor: floor(),
        runs,
        interrupted: false,
    }
}

#[test]
fn streams_both_ways() {
    // Both are sides of one window, and both tell its CPU and counters.
    let mut runs =
        vec![stream_run(Direction::Forward, 41.3e9), stream_run(Direction::Reverse, 38.9e9)];
    runs[1].cpu = runs[0].cpu.clone();
    let d = stream_document(runs);
    golden!("stream_both", "Stream", |style| stream(&d, style));
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
    golden!("stream_udp", "Stream", |style| stream(&d, style));
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

fn connect_run(flows: u32, close: Close) -> ConnectRun {
    ConnectRun {
        transport: Transport::Tcp,
        flows,
        threads: 1,
        request_bytes: 64,
        response_bytes: 1_024,
        close,
        wait: Wait::Block,
        peer_wait: Wait::Block,
        placement: placement(),
        window_ns: Nanos(5_000_000_000),
        trimmed_ns: Nanos(600_000_000),
        connections: 90_000,
        connections_per_s: 18_000.0,
        connections_per_s_interval: interval(18_000.0, 0.01),
        connect_ns: quantiles(90_000, 48_000),
        first_byte_ns: Some(quantiles(90_000, 101_000)),
        start_lag_ns: None,
        failed: BTreeMap::new(),
        established_in_all: 95_000,
        peer_accepted_in_all: Known(95_000),
        ports: Known(PortBudget {
            ports: 28_232,
            addresses: 1,
            kept_ns: Nanos(60_000_000_000),
            time_wait_before: 12,
            time_wait_after: 25_300,
            sustained_per_s: 470.5,
        }),
        cpu: BothCpu {
            local: cpu(90_000, 90_000 * 31_000, 90_000 * 62_000),
            peer: Known(cpu(90_000, 90_000 * 29_000, 90_000 * 62_000)),
        },
        evidence: BothEvidence::default(),
        warnings: vec![],
    }
}

fn connect_document(runs: Vec<ConnectRun>) -> ConnectDocument {
    ConnectDocument {
        schema_version: 1,
        kind: "connect".into(),
        started_unix_s: 1_700_000_000,
        request: ConnectSpec {
            common: common(),
            flows: vec![1, 64],
            rate_per_s: None,
            request_bytes: 64,
            response_bytes: 1_024,
            close: Close::Local,
            timeout_ns: Nanos(1_000_000_000),
        },
        local: host("10.0.0.1"),
        peer: host("10.0.0.1"),
        floor: floor(),
        runs,
        interrupted: false,
    }
}

#[test]
fn connections() {
    let mut second = connect_run(64, Close::Local);
    second.failed = BTreeMap::from([("Cannot assign requested address".into(), 2_101)]);
    second.start_lag_ns = Some(quantiles(90_000, 900));
    second.peer_accepted_in_all = Known(94_959);
    second.evidence.peer = BTreeMap::from([("TcpExt.ListenOverflows".into(), 41)]);
    let d = connect_document(vec![connect_run(1, Close::Local), second]);
    golden!("connect", "Connections", |style| connect(&d, style));
}

#[test]
fn only_who_closes_first_has_a_limit_by_ports() {
    for (close, limited, says) in [
        (Close::Local, true, "keeps its port for 60 s here: 471 connections/s"),
        (Close::Peer, false, "keeps no port here"),
        (Close::Reset, false, "no port at either end"),
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
            // Below 80 some tables of several columns are what they are.
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
    assert!(!rtt(&d, TextStyle::default()).contains("The traffic itself"));
    let verbose = TextStyle { verbose: true, ..TextStyle::default() };
    assert!(rtt(&d, verbose).contains("The traffic itself"));
}

/// Four connections to nginx, and two sessions of pgbench's select-only: documents of real runs.
#[test]
fn servers_of_others() {
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
