use super::*;
use crate::samples::raw::{RawIrqs, RawNeighbours, RawNic, RawPressure, RawThread};
use model::{IrqId, irq::IrqCount, napi::SoftnetRow, snapshot::SampleTime};
use parse::{rtnl_qdisc::QdiscMessage, schedstat::Schedstat, softirqs::Softirqs};
use proptest::prelude::*;

fn empty(start_ns: u64) -> Raw {
    Raw {
        time: SampleTime { start_ns, end_ns: start_ns + 10 },
        ticks_per_s: Reading::Known(100),
        proc_stat: Reading::absent("none"),
        softirqs: Reading::absent("none"),
        softnet: Reading::absent("none"),
        irqs: Reading::absent("none"),
        protocols: Reading::absent("none"),
        sockstat: Reading::absent("none"),
        nics: Reading::absent("none"),
        threads: BTreeMap::new(),
        conntrack: Reading::absent("none"),
        neighbours: vec![],
        vmstat: Reading::absent("none"),
        listeners: Reading::absent("none"),
        udp: Reading::absent("none"),
        connections: Reading::absent("none"),
        cgroups: Reading::absent("none"),
        pressure: vec![],
    }
}

fn named(pairs: &[(&str, u64)]) -> Counters {
    pairs.iter().map(|(k, v)| ((*k).to_owned(), *v)).collect()
}

fn stat(cpus: &[(u32, u64)]) -> Reading<BTreeMap<CpuId, CpuTicks>> {
    let all = |n| CpuTicks {
        user: Some(n),
        nice: Some(n),
        system: Some(n),
        idle: Some(n),
        iowait: Some(n),
        irq: Some(n),
        softirq: Some(n),
        steal: None,
    };
    Reading::Known(cpus.iter().map(|&(id, n)| (CpuId(id), all(n))).collect())
}

fn backwards(delta: &Delta) -> bool {
    delta.why_not().is_some_and(|why| why.starts_with("went backwards"))
}

#[test]
fn one_reading_is_no_window() {
    assert_eq!(samples(&[]), None);
    assert_eq!(samples(&[empty(5)]), None);
    let s = samples(&[empty(5), empty(1_000_000_005)]).unwrap();
    assert_eq!((s.window_ns, s.reading_ns, s.readings), (Nanos(1_000_000_000), Nanos(10), 2));
}

#[test]
fn ticks_become_nanoseconds_and_a_missing_column_stays_missing() {
    let (mut a, mut b) = (empty(0), empty(1));
    a.proc_stat = stat(&[(0, 100)]);
    b.proc_stat = stat(&[(0, 150)]);
    let s = samples(&[a, b]).unwrap();
    let p = s.cpus[0].proc_stat.known().unwrap();
    assert_eq!(p.user_ns, Reading::Known(500_000_000));
    assert_eq!(p.steal_ns.why_not(), Some("not in reading 1"));
}

fn lines(changes: &[HostChange]) -> Vec<String> {
    changes.iter().map(HostChange::to_string).collect()
}

#[test]
fn a_cpu_that_goes_or_comes_is_named_and_not_counted() {
    let (mut a, mut b, mut c) = (empty(0), empty(1), empty(2));
    a.proc_stat = stat(&[(0, 1), (1, 1), (2, 9)]);
    b.proc_stat = stat(&[(0, 2), (3, 1)]);
    c.proc_stat = stat(&[(0, 3), (2, 10), (3, 5)]);
    let s = samples(&[a, b, c]).unwrap();
    assert_eq!(s.cpus.iter().map(|c| c.id.0).collect::<Vec<_>>(), [0, 2]);
    assert_eq!(
        lines(&s.cpu_changes),
        ["CPU 1 went offline", "CPU 2 went offline and came back", "CPU 3 came online"]
    );
    assert_eq!(s.cpus[0].proc_stat.known().unwrap().idle_ns, Reading::Known(20_000_000));
    assert_eq!(s.cpus[1].proc_stat.why_not(), Some("CPU 2 was offline within the window"));
}

#[test]
fn a_reset_between_two_readings_is_not_hidden_by_a_third() {
    let readings: Vec<Raw> = [10, 3, 40]
        .iter()
        .map(|&n| Raw {
            vmstat: Reading::Known(named(&[("pgfault", n), ("nr_free_pages", n)])),
            ..empty(n)
        })
        .collect();
    let s = samples(&readings).unwrap();
    let vmstat = s.vmstat.known().unwrap();
    assert_eq!(vmstat["pgfault"].why_not(), Some("went backwards: 10 → 3 (reset or wrap)"),);
    assert!(!vmstat.contains_key("nr_free_pages"), "a gauge has no growth");
}

#[test]
fn gauges_of_snmp_are_no_counters_but_tell_states() {
    let raw = |n| Raw {
        protocols: Reading::Known(named(&[("Tcp.CurrEstab", n), ("Tcp.OutSegs", n)])),
        sockstat: Reading::Known(named(&[("TCP.tw", n), ("TCP.orphan", 90)])),
        ..empty(n)
    };
    let s = samples(&[raw(1), raw(7)]).unwrap();
    assert_eq!(s.protocols.known().unwrap().len(), 1);
    assert_eq!(s.protocols.known().unwrap()["Tcp.OutSegs"], Reading::Known(6));
    let states = [("established", 7), ("time_wait", 7)];
    assert_eq!(s.tcp_states, Reading::Known(named(&states)), "orphans are those of the whole host");
    assert_eq!(s.sockstat.known().unwrap()["TCP.tw"], 7);
}

#[test]
fn softirqs_go_by_the_columns_id_not_its_place() {
    let table = |cpus: &[u32], counts: &[u64]| {
        Reading::Known(Softirqs {
            cpus: cpus.iter().map(|&c| CpuId(c)).collect(),
            vectors: vec![("NET_RX".into(), counts.to_vec())],
            skipped: vec![],
        })
    };
    let (mut a, mut b) = (empty(0), empty(1));
    a.proc_stat = stat(&[(0, 1), (5, 1)]);
    b.proc_stat = stat(&[(0, 1), (5, 1)]);
    a.softirqs = table(&[0, 3, 5], &[1, 50, 100]);
    b.softirqs = table(&[0, 5], &[2, 160]);
    let s = samples(&[a, b]).unwrap();
    assert_eq!(s.cpus[0].softirqs.known().unwrap()["NET_RX"], Reading::Known(1));
    assert_eq!(s.cpus[1].softirqs.known().unwrap()["NET_RX"], Reading::Known(60));
}

fn row(cpu: u32, processed: u64, by_position: bool) -> (CpuId, SoftnetRow) {
    let row = SoftnetRow {
        cpu: CpuId(cpu),
        cpu_from_position: by_position,
        processed,
        dropped: 0,
        time_squeeze: 1,
        received_rps: Reading::absent("no such column"),
        flow_limit_count: Reading::Known(2),
        backlog_len: Reading::absent("no such column"),
    };
    (CpuId(cpu), row)
}

#[test]
fn a_wrapped_backlog_counter_is_not_known() {
    let raw = |n, processed| Raw {
        proc_stat: stat(&[(0, n)]),
        softnet: Reading::Known([row(0, processed, false)].into()),
        ..empty(n)
    };
    let s = samples(&[raw(1, 0xffff_fff0), raw(2, 12)]).unwrap();
    let softnet = s.cpus[0].softnet.known().unwrap();
    assert!(backwards(&softnet.processed));
    assert_eq!(softnet.time_squeeze, Reading::Known(0));
    assert_eq!(softnet.received_rps, Reading::absent("no such column"));
}

#[test]
fn rows_known_by_position_are_not_compared_across_a_hotplug() {
    let raw = |n, cpus: &[(u32, u64)]| Raw {
        proc_stat: stat(cpus),
        softnet: Reading::Known(cpus.iter().map(|c| row(c.0, n, true)).collect()),
        ..empty(n)
    };
    let s = samples(&[raw(1, &[(0, 1), (1, 1)]), raw(2, &[(0, 1)])]).unwrap();
    assert!(s.cpus[0].softnet.why_not().unwrap().contains("do not name theirs"));
}

#[test]
fn interrupts_that_did_not_count_are_left_out() {
    let raw = |n, cells: &[(u32, u32, u64)], cpus: &[u32]| {
        let mut rows: BTreeMap<IrqId, Option<Vec<IrqCount>>> = [(IrqId(9), Some(vec![]))].into();
        for &(irq, cpu, count) in cells {
            let row = rows.entry(IrqId(irq)).or_insert_with(|| Some(Vec::new()));
            row.as_mut().unwrap().push(IrqCount { cpu: CpuId(cpu), count });
        }
        let cpus = cpus.iter().map(|&c| CpuId(c)).collect();
        Raw { irqs: Reading::Known(RawIrqs { cpus, rows }), ..empty(n) }
    };
    let a = raw(1, &[(24, 0, 5), (25, 1, 7), (26, 1, 9)], &[0, 1]);
    let b = raw(2, &[(24, 0, 5), (24, 1, 3), (25, 1, 6), (27, 0, 1)], &[0, 1]);
    let s = samples(&[a.clone(), b]).unwrap();
    let irqs = s.irqs.known().unwrap();
    assert_eq!(irqs.iter().map(|i| i.irq.0).collect::<Vec<_>>(), [24, 25, 26, 27]);
    assert_eq!(irqs[0].cpus.len(), 1, "CPU 0 did not count");
    assert_eq!((irqs[0].cpus[0].cpu, irqs[0].cpus[0].count.clone()), (CpuId(1), Reading::Known(3)));
    assert!(backwards(&irqs[1].cpus[0].count));
    assert_eq!(irqs[2].cpus[0].count.why_not(), Some("not in reading 2"));
    assert_eq!(irqs[3].cpus[0].count.why_not(), Some("not in reading 1"));
    // CPU 1 offline in the second reading: its column is gone, its count is not zero.
    let s = samples(&[a, raw(2, &[(24, 0, 5), (25, 0, 1)], &[0])]).unwrap();
    let irqs = s.irqs.known().unwrap();
    assert_eq!(irqs[0].irq, IrqId(25));
    assert_eq!(irqs[0].cpus[1].count.why_not(), Some("not in reading 2"));
}

fn nic(ifindex: u32, rx: u64) -> RawNic {
    let qdisc = |drops| QdiscMessage {
        ifindex,
        kind: "fq_codel".into(),
        handle: 0,
        parent: 1,
        sent_bytes: Some(rx),
        sent_packets: Some(rx),
        drops: Some(drops),
        overlimits: Some(0),
        requeues: None,
        backlog_bytes: Some(15),
        backlog_packets: Some(0),
    };
    RawNic {
        ifindex,
        statistics: Reading::Known(named(&[("rx_bytes", rx)])),
        carrier_changes: Reading::Known(2),
        fec: Reading::Known(named(&[("corrected_blocks", rx)])),
        driver_stats: Reading::denied("needs more"),
        queues: Reading::Known([(QueueId::rx(0), named(&[("rx-packets", rx)]))].into()),
        qdiscs: Reading::Known(vec![qdisc(0), qdisc(rx as u32)]),
    }
}
use model::QueueId;

#[test]
fn nics_come_go_and_are_replaced() {
    let raw = |n, nics: Vec<(&str, RawNic)>| Raw {
        nics: Reading::Known(nics.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()),
        ..empty(n)
    };
    let a = raw(1, vec![("eth0", nic(2, 10)), ("eth1", nic(3, 10)), ("veth0", nic(4, 10))]);
    let b = raw(2, vec![("eth0", nic(2, 15)), ("veth0", nic(9, 1)), ("wg0", nic(10, 1))]);
    let s = samples(&[a, b]).unwrap();
    assert_eq!(s.nics.len(), 1);
    let eth0 = &s.nics[0];
    assert_eq!(eth0.statistics.known().unwrap()["rx_bytes"], Reading::Known(5));
    assert_eq!(eth0.queues.known().unwrap()[0].counters["rx-packets"], Reading::Known(5));
    assert_eq!(eth0.driver_stats, Reading::denied("needs more"));
    assert_eq!(eth0.carrier_changes, Reading::Known(0));
    let qdiscs = eth0.qdiscs.known().unwrap();
    assert_eq!((&qdiscs[0].drops, &qdiscs[1].drops), (&Reading::Known(0), &Reading::Known(5)));
    assert_eq!(qdiscs[1].backlog_bytes, Reading::Known(15));
    assert_eq!((qdiscs[1].handle.as_str(), qdiscs[1].parent.as_str()), ("0:", ":1"));
    assert_eq!(qdiscs[1].requeues.why_not(), Some("this kernel does not say"));
    assert_eq!(
        lines(&s.nic_changes),
        [
            "eth1 (ifindex 3) went",
            "veth0 (ifindex 4) went",
            "veth0 (ifindex 9) came",
            "wg0 (ifindex 10) came"
        ]
    );
}

fn thread(start: u64, cpu_ns: u64, slices: u64) -> RawThread {
    RawThread {
        name: "worker".into(),
        start_ticks: start,
        user_ticks: cpu_ns / 10_000_000,
        system_ticks: 0,
        last_cpu: CpuId(cpu_ns as u32 % 7),
        schedstat: Reading::Known(Schedstat {
            cpu_ns,
            run_queue_ns: cpu_ns / 2,
            timeslices: slices,
        }),
        migrations: Reading::absent("no sched"),
        voluntary_switches: Reading::Known(cpu_ns),
        involuntary_switches: Reading::Known(0),
        rss_bytes: Reading::absent("kernel thread"),
    }
}

#[test]
fn threads_by_schedstat_else_by_ticks_and_never_across_a_reused_id() {
    let raw = |n, threads: Vec<(u32, RawThread)>| Raw {
        threads: threads.into_iter().map(|(tid, t)| ((1, tid), t)).collect(),
        ..empty(n)
    };
    let a = raw(
        1,
        vec![
            (1, thread(5, 100, 1)),
            (2, thread(5, 10_000_000, 0)),
            (3, thread(5, 9, 9)),
            (4, thread(5, 1, 1)),
        ],
    );
    let b = raw(
        2,
        vec![
            (1, thread(5, 400, 3)),
            (2, thread(5, 40_000_000, 0)),
            (3, thread(6, 99, 9)),
            (5, thread(7, 1, 1)),
        ],
    );
    let s = samples(&[a, b]).unwrap();
    let [exact, ticks, reused, ended, began] = &s.threads[..] else { panic!("{:?}", s.threads) };
    assert_eq!((&exact.cpu_ns, &exact.run_queue_ns), (&Reading::Known(300), &Reading::Known(150)));
    assert_eq!(exact.on_cpus, [CpuId(2), CpuId(1)]);
    assert_eq!(exact.migrations, Reading::absent("no sched"));
    assert_eq!(ticks.cpu_ns, Reading::Known(30_000_000));
    assert!(ticks.run_queue_ns.why_not().unwrap().contains("accounting is off"));
    assert_eq!(reused.cpu_ns.why_not(), Some("another thread took this id within the window"));
    assert_eq!(ended.cpu_ns.why_not(), Some("the thread ended within the window"));
    assert_eq!(began.migrations.why_not(), Some("the thread began within the window"));
}

#[test]
fn an_accept_queue_is_as_full_as_it_ever_was() {
    let socket = |address: &str, waiting, limit| crate::ask::sock_diag::Listening {
        address: address.parse().unwrap(),
        ifindex: 0,
        waiting,
        limit,
        inode: 1,
    };
    let at = |n: u64, sockets: Reading<Vec<_>>| Raw { listeners: sockets, ..empty(n) };
    let readings = [
        at(0, Reading::Known(vec![socket("[::]:80", 0, 4), socket("10.0.0.1:22", 1, 128)])),
        // Two that share an address: the fuller one counts.
        at(1, Reading::Known(vec![socket("[::]:80", 5, 4), socket("[::]:80", 1, 4)])),
        at(2, Reading::absent("interrupted")),
        at(3, Reading::Known(vec![socket("[::]:80", 4, 4)])),
    ];
    let seen: Vec<_> = samples(&readings)
        .unwrap()
        .listeners
        .into_known()
        .unwrap()
        .into_iter()
        .map(|l| (l.address, l.fullest_accept_queue, l.accept_queue_limit, l.full_readings))
        .collect();
    assert_eq!(seen, [("10.0.0.1:22".into(), 1, 128, 0), ("[::]:80".into(), 5, 4, 2)]);
    let none = samples(&[empty(0), empty(1)]).unwrap().listeners;
    assert_eq!(none, Reading::absent("none"));
}

fn any_raw() -> impl Strategy<Value = Raw> {
    let counters = || proptest::collection::btree_map("[a-c]", any::<u64>(), 0..3);
    (
        (any::<u64>(), any::<u64>(), any::<u64>()),
        proptest::collection::vec((0u32..4, any::<u64>()), 0..4),
        (counters(), counters()),
        proptest::collection::btree_map(0u32..3, (0u64..2, any::<u64>(), any::<u64>()), 0..3),
        proptest::collection::btree_map("[ab]", (1u32..3, any::<u64>()), 0..3),
        proptest::collection::vec((0u32..3, 0u32..3, any::<u64>()), 0..5),
    )
        .prop_map(|(time, cpus, (a, b), threads, nics, irqs)| {
            let mut rows: BTreeMap<IrqId, Option<Vec<IrqCount>>> = BTreeMap::new();
            for (irq, cpu, count) in irqs {
                rows.entry(IrqId(irq))
                    .or_insert_with(|| (cpu > 0).then(Vec::new))
                    .iter_mut()
                    .for_each(|r| r.push(IrqCount { cpu: CpuId(cpu), count }));
            }
            Raw {
                time: SampleTime { start_ns: time.0, end_ns: time.1 },
                ticks_per_s: Reading::Known(time.2 % 3 * 100),
                proc_stat: stat(&cpus),
                softnet: Reading::Known(cpus.iter().map(|c| row(c.0, c.1, c.1 % 2 == 0)).collect()),
                softirqs: Reading::Known(Softirqs {
                    cpus: cpus.iter().map(|c| CpuId(c.0)).collect(),
                    vectors: vec![("X".into(), cpus.iter().map(|c| c.1).skip(1).collect())],
                    skipped: vec![],
                }),
                irqs: Reading::Known(RawIrqs {
                    cpus: cpus.iter().map(|c| CpuId(c.0)).collect(),
                    rows,
                }),
                protocols: Reading::Known(a.clone()),
                sockstat: Reading::Known(b),
                nics: Reading::Known(nics.into_iter().map(|(k, (i, n))| (k, nic(i, n))).collect()),
                threads: threads
                    .into_iter()
                    .map(|(tid, (start, ns, slices))| ((1, tid), thread(start, ns, slices)))
                    .collect(),
                conntrack: Reading::Known(a),
                neighbours: vec![],
                vmstat: Reading::absent("none"),
                listeners: Reading::absent("none"),
                udp: Reading::absent("none"),
                connections: Reading::absent("none"),
                cgroups: Reading::absent("none"),
                pressure: vec![],
            }
        })
}

proptest! {
    #[test]
    fn monotone_counters_give_exact_growth(start in 0u64..1 << 40, steps in proptest::collection::vec(0u64..1 << 40, 1..6)) {
        let mut values = vec![Some(start)];
        let mut at = start;
        for step in &steps {
            at += step;
            values.push(Some(at));
        }
        prop_assert_eq!(grown(values), Reading::Known(steps.iter().sum::<u64>()));
    }

    #[test]
    fn any_decrease_or_gap_is_not_known(values in proptest::collection::vec(proptest::option::weighted(0.9, 0u64..20), 1..6)) {
        let whole: Option<Vec<u64>> = values.iter().copied().collect();
        let delta = grown(values);
        match whole {
            Some(v) if v.is_sorted() => prop_assert_eq!(delta, Reading::Known(v[v.len() - 1] - v[0])),
            _ => prop_assert!(!delta.is_known()),
        }
    }

    #[test]
    fn never_panics_and_never_a_huge_number(readings in proptest::collection::vec(any_raw(), 0..4)) {
        if let Some(s) = samples(&readings) {
            let json = serde_json::to_string(&s).unwrap();
            prop_assert_eq!(serde_json::from_str::<Samples>(&json).unwrap(), s);
        }
    }
}

#[test]
fn neighbour_tables_grow_each_by_itself() {
    let of = |fulls: u64| {
        let text = format!("entries table_fulls\n00000007 {fulls:08x}\n00000007 00000001\n");
        let stat = parse::proc_net_stat::parse(text.as_bytes()).unwrap();
        let one = |family, stat| RawNeighbours { family, stat, most: Reading::Known(1024) };
        let other = one("ipv6", Reading::absent("another namespace"));
        Raw { neighbours: vec![one("ipv4", Reading::Known(stat)), other], ..empty(fulls) }
    };
    let both = samples(&[of(5), of(9)]).unwrap().neighbours.into_known().unwrap();
    assert_eq!((both[0].entries.get(), both[0].table_fulls.get()), (Some(7), Some(4)));
    assert_eq!(both[1].table_fulls.why_not(), Some("another namespace"));
}

#[test]
fn pressure_is_time_by_file() {
    let of = |some_us, full_us| {
        let totals = Reading::Known(parse::pressure::Pressure { some_us, full_us });
        let one = |resource, cgroup: &str, file: &str, totals| RawPressure {
            resource,
            cgroup: cgroup.to_owned(),
            file: file.to_owned(),
            totals,
        };
        let host = one("memory", "", "/proc/pressure/memory", totals);
        let other = one("cpu", "/web", "/web/cpu.pressure", Reading::absent("psi=0"));
        Raw { pressure: vec![host, other], ..empty(some_us) }
    };
    let all = samples(&[of(5, None), of(9, Some(3))]).unwrap().pressure.into_known().unwrap();
    assert_eq!(all[0].some_ns, Reading::Known(4_000));
    assert_eq!(all[0].full_ns.why_not(), Some("this kernel has no line full"));
    assert_eq!((&*all[1].cgroup, all[1].some_ns.why_not()), ("/web", Some("psi=0")));
    let all = samples(&[of(5, Some(1)), of(9, Some(3))]).unwrap().pressure.into_known().unwrap();
    assert_eq!(all[0].full_ns, Reading::Known(2_000));
}
