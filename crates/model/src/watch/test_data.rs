//! Generated intervals, for tests and for benchmarks of the view.

use std::collections::BTreeMap;

use super::{
    ByContext, CpuNode, CpuWatch, InterruptedTask, Ipc, Messages, MigratedThread, MigrationPath,
    NapiOnCpu, NapiWatch, Observer, PacketDrops, ProcStatNs, ProcessIpc, ProcessWaits,
    ProgramStatus, RECORDING_VERSION, Ran, Retransmits, SCHEMA_VERSION, SoftirqAccounting,
    SoftirqGap, VectorNs, WaitNs, WatchHost, WatchInterval,
};
use crate::{
    CpuId, IrqId, Nanos, NumaNode, QueueId, Reading, Samples,
    reading::Known,
    samples::{ConnectionSample, Owner},
};

/// A host with this many CPUs and nodes, `eth0` and `lo`.
pub fn host(cpus: u32, nodes: u32) -> WatchHost {
    let each = cpus.div_ceil(nodes.max(1)).max(1);
    let node = |id: u32| CpuNode { id: CpuId(id), numa_node: Known(NumaNode(id / each)) };
    WatchHost {
        recording_version: RECORDING_VERSION,
        name: Known("generated".into()),
        kernel: Known("6.12.0".into()),
        cpus: (0..cpus).map(node).collect(),
        nics: vec!["eth0".into(), "lo".into()],
    }
}

/// A second of a host with this many CPUs, fully observed; the first tenth of them carries traffic.
/// `turn` varies the figures.
pub fn interval(cpus: u32, turn: u64) -> WatchInterval {
    WatchInterval {
        schema_version: SCHEMA_VERSION,
        ended_unix_ns: Nanos((1_790_000_000 + turn) * 1_000_000_000),
        interval_s: 1.0,
        cpus: (0..cpus).map(|id| cpu(id, cpus, turn)).collect(),
        softirq_observed_share: 1.0,
        messages_observed_share: 1.0,
        drops_observed_share: 1.0,
        softirq_accounting: Known(SoftirqAccounting::Ticks),
        interrupted_tasks: Known((0..20).map(|n| interrupted_task(n, turn)).collect()),
        napi: Known((0..cpus.min(64)).map(|q| napi(q, turn)).collect()),
        waits: Known((0..10).map(waits).collect()),
        migrated_threads: Known((0..10).map(|n| migrated_thread(n, cpus)).collect()),
        messages: Known((0..10).map(messages).collect()),
        retransmits: Known(vec![Retransmits {
            local: "10.0.0.1:5432".into(),
            remote: "10.0.0.2:40000".into(),
            segments: 3,
        }]),
        drops: Known(vec![PacketDrops {
            reason: Known("NO_SOCKET".into()),
            protocol: "IPv4".into(),
            nic: Known("eth0".into()),
            net_namespace: Known(4_026_531_840),
            function: Known("__udp4_lib_rcv".into()),
            packets: 5,
            observed_share: 1.0,
        }]),
        process_ipc: Known(vec![ProcessIpc { pid: 1000, name: "postgres".into(), ipc: ipc(turn) }]),
        ended_processes: vec![],
        observer: observer(),
        samples: Reading::absent("not generated"),
    }
}

/// Counters of a second in which one connection of `postgres` sent 1 Gbit, always with data to send.
pub fn samples() -> Samples {
    Samples {
        window_ns: Nanos(1_000_000_000),
        reading_ns: Nanos(1_000_000),
        readings: 2,
        cpus: vec![],
        cpu_changes: vec![],
        irqs: Reading::absent("not generated"),
        protocols: Reading::absent("not generated"),
        sockstat: Reading::absent("not generated"),
        nics: vec![],
        nic_changes: vec![],
        threads: vec![],
        conntrack: Reading::absent("not generated"),
        neighbours: Reading::absent("not generated"),
        pressure: Reading::absent("not generated"),
        vmstat: Reading::absent("not generated"),
        tcp_states: Reading::absent("not generated"),
        listeners: Reading::absent("not generated"),
        grew_in: BTreeMap::new(),
        udp_sockets: Reading::absent("not generated"),
        connections: Known(vec![connection()]),
        cgroups: Reading::absent("not generated"),
        drops: Reading::absent("not generated"),
        since_boot: false,
    }
}

fn connection() -> ConnectionSample {
    ConnectionSample {
        local: "10.0.0.1:5432".into(),
        remote: "10.0.0.2:40000".into(),
        inode: 1,
        retransmits: Known(0),
        segments_out: Known(2_000),
        bytes_acked: Known(125_000_000),
        bytes_received: Known(0),
        busy_ns: Known(1_000_000_000),
        rwnd_limited_ns: Known(0),
        sndbuf_limited_ns: Known(0),
        readings: 2,
        waiting_readings: Known(2),
        min_rtt_ns: Known(100_000),
        peer_window_bytes: Known(3_000_000),
        send_buffer_bytes: Known(2_000_000),
        owners: Known(vec![Owner { pid: 1000, name: "postgres".into() }]),
    }
}

fn cpu(id: u32, cpus: u32, turn: u64) -> CpuWatch {
    let busy = u64::from(id < cpus.div_ceil(10));
    let ms = |n: u64| n * 1_000_000;
    let rx = |n: u64| VectorNs { net_rx: ms(n), net_tx: 10_000, pacing: 20_000, other: 50_000 };
    let by = ByContext {
        syscall: rx(200 * busy + (u64::from(id) + turn) % 7),
        interrupting_task: rx(80 * busy + u64::from(id) % 3),
        idle: rx(30 * busy + 1),
        ksoftirqd: rx(50 * busy),
        threaded: Known(VectorNs::default()),
    };
    let measured_ns = by.softirq_ns();
    let stat = |n: u64| Known(ms(n));
    CpuWatch {
        id: CpuId(id),
        softirq_ns: Known(by),
        softirq_by_vector_ns: Known(BTreeMap::from([("NET_RX".to_owned(), measured_ns)])),
        proc_stat: Known(ProcStatNs {
            user: stat(100 + 200 * busy),
            system: stat(50 + 300 * busy),
            softirq: stat(10 + 100 * busy),
            irq: stat(0),
            idle: stat(840 - 600 * busy),
            steal: stat(0),
        }),
        softirq_gap: Known(SoftirqGap {
            measured_ns,
            proc_stat_ns: ms(10 + 100 * busy),
            proc_stat_by_measured: Reading::absent("generated"),
        }),
        ipc: Known(ipc(turn)),
        time_squeeze: Known(3 * busy),
        backlog_drops: Known(0),
        received_rps: Known(0),
        flow_limit_drops: Known(0),
    }
}

fn ipc(turn: u64) -> Ipc {
    Ipc { instructions: 1_500_000_000 + turn, cycles: 1_000_000_000, per_cycle: 1.5 }
}

fn interrupted_task(n: u32, turn: u64) -> InterruptedTask {
    let n64 = u64::from(n);
    InterruptedTask {
        pid: 1000 + n / 2,
        process: Known("postgres".into()),
        tid: 1000 + n,
        name: if n.is_multiple_of(2) { "postgres" } else { "worker" }.into(),
        preempted_by_softirq_ns: 20_000_000 / (n64 + 1) + turn,
        preempted_by_irq_ns: 1_000_000 / (n64 + 1),
        own_softirq_ns: 5_000_000 * (n64 % 3),
        softirqs: 1000 / (n64 + 1),
    }
}

fn napi(q: u32, turn: u64) -> NapiWatch {
    let polls = 10_000 / (u64::from(q) + 1) + turn % 10;
    NapiWatch {
        napi_id: Known(8193 + q),
        nic: Known("eth0".into()),
        netns: Reading::Known(4_026_531_840),
        queue: Known(QueueId::rx(q)),
        irq: Known(IrqId(40 + q)),
        threaded: Known(false),
        observed_share: 1.0,
        cpus: vec![NapiOnCpu {
            cpu: CpuId(q),
            polls,
            packets: polls * 7,
            full_polls: polls / 100,
            polls_outside_softirq: 0,
            ns: Known(polls * 2_000),
        }],
    }
}

fn wait(ns: u64) -> Reading<WaitNs> {
    let [p50, p90, p99, max] = [1, 2, 9, 30].map(|n| n * ns);
    Known(WaitNs { count: 1000, mean: ns as f64, p50, p90, p99, max, by_power: vec![] })
}

fn waits(n: u32) -> ProcessWaits {
    ProcessWaits {
        pid: 1000 + n,
        name: "postgres".into(),
        stack: wait(4_000),
        wakeup: wait(900),
        runqueue: wait(12_000),
        idle_exit: wait(40_000),
        copy: wait(1_500),
        excluded_reads: Known(17),
        late_reads: Known(2),
        observed_share: 1.0,
    }
}

fn migrated_thread(n: u32, cpus: u32) -> MigratedThread {
    let (from, to) = (CpuId(n % cpus.max(1)), CpuId((n + 1) % cpus.max(1)));
    MigratedThread {
        pid: Known(1000 + n),
        tid: 1000 + n,
        name: "postgres".into(),
        migrations: 300 / u64::from(n + 1),
        across_l3: Known(20),
        across_node: Known(3),
        across_package: Known(3),
        transitions: vec![
            MigrationPath { from, to, count: 5 },
            MigrationPath { from: to, to: from, count: 4 },
        ],
    }
}

fn messages(n: u32) -> Messages {
    Messages {
        pid: 1000 + n,
        name: "postgres".into(),
        transport: crate::measure::Transport::Tcp,
        port: Known(5432),
        sends: 10_000,
        sent_bytes: 5_000_000,
        receives: 10_100,
        received_bytes: 900_000,
        exchanges: 9_990,
        received_elsewhere: Known(120),
        observed_share: 1.0,
    }
}

fn observer() -> Observer {
    let attached = ProgramStatus {
        object: "softirq".into(),
        program: "softirq_entry".into(),
        gives: "softirq time".into(),
        ran: Known(Ran {
            runs: Known(40_000),
            ns_per_run: Known(140.0),
            time_ns: Known(5_600_000),
        }),
    };
    let missing = ProgramStatus {
        program: "ipi_exit".into(),
        ran: Reading::absent("this kernel has no such tracepoint"),
        ..attached.clone()
    };
    Observer {
        programs: vec![attached, missing],
        programs_ns: Nanos(5_600_000),
        programs_untimed: 0,
        process_ns: Known(Nanos(3_000_000)),
        share_of_host: Known(0.0043),
        attach_ns: Known(Nanos(1_300_000_000)),
    }
}

#[cfg(test)]
mod tests {
    use crate::watch::WatchFilter;

    #[test]
    fn a_generated_interval_survives_json() {
        let made = super::interval(3, 1);
        let json = serde_json::to_string(&made).unwrap();
        assert_eq!(serde_json::from_str::<super::WatchInterval>(&json).unwrap(), made);
    }

    #[test]
    fn a_filter_leaves_only_what_was_asked_for() {
        let whole = super::interval(4, 0);
        let mut same = whole.clone();
        assert!(WatchFilter::default().is_empty());
        WatchFilter::default().apply(&mut same);
        assert_eq!(same, whole);
        let filter = WatchFilter {
            nics: vec!["eth0".into()],
            cpus: Some("1,3".parse().unwrap()),
            pids: vec![1001],
        };
        let mut part = whole.clone();
        filter.apply(&mut part);
        assert!(part.tells_of(1001) && !part.tells_of(1002) && whole.tells_of(1002));
        assert_eq!(part.cpus.iter().map(|c| c.id.0).collect::<Vec<_>>(), [1, 3]);
        let polled = part.napi.known().unwrap().iter().flat_map(|n| &n.cpus).map(|c| c.cpu.0);
        assert_eq!(polled.collect::<Vec<_>>(), [1, 3]);
        assert!(part.interrupted_tasks.known().unwrap().iter().all(|p| p.pid == 1001));
        assert_eq!(part.interrupted_tasks.known().unwrap().len(), 2, "both threads of the process");
        assert_eq!(part.observer, whole.observer, "what watching costs is not filtered");
        let mut sending = super::interval(1, 0);
        sending.samples = crate::Reading::Known(super::samples());
        let of = |pid| {
            let mut part = sending.clone();
            WatchFilter { pids: vec![pid], ..WatchFilter::default() }.apply(&mut part);
            part.samples.known().unwrap().connections.known().unwrap().len()
        };
        assert_eq!((of(1000), of(1001)), (1, 0));
        let mut none = whole;
        WatchFilter { nics: vec!["lo".into()], ..WatchFilter::default() }.apply(&mut none);
        assert!(none.napi.known().unwrap().is_empty());
    }
}
