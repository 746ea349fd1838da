//! Constructed results for tests of the text.

use std::collections::BTreeMap;

use model::{BitsPerSec, CpuId, Nanos, Warning, measure::*, reading::Known};

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
        local: end(1, "a separate core; the server, on this host, runs on other cores"),
        peer: end(0, "a separate core; in the L3 of the client's CPU 1"),
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

pub(super) fn quantiles(count: u64, p50: u64) -> Quantiles {
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

pub(super) fn rtt_run(size: u64, p50: u64) -> RttRun {
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
        engine: "io_uring at the client, epoll at the server".into(),
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

pub(super) fn rtt_document(runs: Vec<RttRun>) -> RttDocument {
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

/// A sweep with two modes in one run, one moved end, counters and warnings.
pub(super) fn sweep() -> RttDocument {
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

pub(super) fn mode(share: f64, p50: u64, cpus: (u32, u32)) -> Mode {
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

pub(super) fn stream_run(direction: Direction, bits_per_s: f64) -> StreamRun {
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

pub(super) fn stream_document(runs: Vec<StreamRun>) -> StreamDocument {
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

pub(super) fn connect_run(flows: u32, close: Close) -> ConnectRun {
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

pub(super) fn connect_document(runs: Vec<ConnectRun>) -> ConnectDocument {
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
