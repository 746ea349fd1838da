//! Drops, retransmits and squeezes: counters that should not grow, and the traffic beside them.

use model::{
    Reading, Samples,
    samples::{Delta, NicSample},
    watch::WatchInterval,
};

use super::listing::{Cell, Listing};
use crate::words::grouped;

/// Protocol counters of loss or shortage; shown even without growth.
const PROTOCOLS: [&str; 12] = [
    "Tcp.RetransSegs",
    "TcpExt.TCPTimeouts",
    "TcpExt.ListenOverflows",
    "TcpExt.ListenDrops",
    "TcpExt.TCPBacklogDrop",
    "TcpExt.TCPRcvQDrop",
    "TcpExt.PruneCalled",
    "Udp.RcvbufErrors",
    "Udp.InErrors",
    "Udp.SndbufErrors",
    "Udp6.RcvbufErrors",
    "Ip.InDiscards",
];

/// NIC statistics of loss.
const LOSSES: [&str; 7] = [
    "rx_dropped",
    "tx_dropped",
    "rx_errors",
    "tx_errors",
    "rx_missed_errors",
    "rx_fifo_errors",
    "rx_over_errors",
];

/// One counter per row; those that grew come first.
pub fn counters(interval: &WatchInterval) -> Listing {
    let mut list = Listing::new(&["WHERE", "COUNTER", ">COUNT", ">PER S"]);
    let mut add = Add { list: &mut list, s: interval.interval_s.max(1e-9) };
    by_cpu(interval, &mut add);
    match &interval.samples {
        Reading::Known(samples) => of_samples(samples, &mut add),
        Reading::Absent(why) | Reading::Denied(why) => {
            add.list.note = Some(format!("counters were not read: {why}"));
        }
    }
    for r in interval.retransmits.known().into_iter().flatten() {
        // Long addresses in the pinned first column would leave no room for figures.
        add.count("retransmitted", &format!("{} > {}", r.local, r.remote), r.segments);
    }
    for d in interval.drops.known().into_iter().flatten() {
        let of = |r: &Reading<String>| r.known().map_or("-", String::as_str).to_owned();
        let mut place = format!("dropped {} {}", of(&d.nic), d.protocol);
        if d.observed_share < 0.995 {
            place += &format!(", seen {:.1}% of the time", d.observed_share * 100.0);
        }
        add.count(&place, &format!("{} in {}", of(&d.reason), of(&d.function)), d.packets);
    }
    for p in interval.process_ipc.known().into_iter().flatten() {
        let cell = Cell::number(p.ipc.per_cycle, format!("{:.2}", p.ipc.per_cycle));
        let place = Cell::text(format!("{} ({})", p.name, p.pid));
        add.list.row([place, Cell::text("IPC"), cell, Cell::text("")]);
    }
    list.rows.sort_by_key(|row| row.get(2).and_then(|c| c.number).is_none_or(|n| n == 0.0));
    list
}

struct Add<'a> {
    list: &'a mut Listing,
    s: f64,
}

impl Add<'_> {
    fn count(&mut self, place: &str, counter: &str, n: u64) {
        let per_s = n as f64 / self.s;
        let rate = match per_s {
            r if r >= 100.0 => grouped(r.round() as u64),
            r => format!("{r:.1}"),
        };
        self.list.row([
            Cell::text(place),
            Cell::text(counter),
            Cell::count(n),
            Cell::number(per_s, rate),
        ]);
    }

    fn grown(&mut self, place: &str, counter: &str, n: Option<&Delta>) {
        if let Some(n) = n.and_then(Reading::get).filter(|n| *n > 0) {
            self.count(place, counter, n);
        }
    }
}

fn by_cpu(interval: &WatchInterval, add: &mut Add<'_>) {
    type CpuDelta = fn(&model::watch::CpuWatch) -> &Delta;
    let counters: [(&str, CpuDelta); 4] = [
        ("time_squeeze", |c| &c.time_squeeze),
        ("backlog drops", |c| &c.backlog_drops),
        ("flow limit drops", |c| &c.flow_limit_drops),
        ("RPS interrupts", |c| &c.received_rps),
    ];
    for (name, of) in counters {
        let known: Vec<u64> = interval.cpus.iter().filter_map(|c| of(c).get()).collect();
        if known.is_empty() {
            continue;
        }
        add.count("all CPUs", name, known.iter().sum());
        for cpu in &interval.cpus {
            add.grown(&format!("CPU {}", cpu.id), name, Some(of(cpu)));
        }
    }
}

fn of_samples(samples: &Samples, add: &mut Add<'_>) {
    for name in PROTOCOLS {
        let grown = samples.protocols.known().and_then(|all| all.get(name)).and_then(Reading::get);
        if let Some(n) = grown {
            add.count("host", name, n);
        }
    }
    for nic in &samples.nics {
        of_nic(nic, add);
    }
    for thread in samples.threads.iter().filter(|t| t.name.starts_with("ksoftirqd/")) {
        if let Some(ns) = thread.cpu_ns.get().filter(|ns| *ns > 0) {
            let share = Cell::percent(ns as f64 / 1e9 / add.s);
            add.list.row([Cell::text(&thread.name), Cell::text("CPU time"), Cell::time(ns), share]);
        }
    }
    for change in samples.cpu_changes.iter().chain(&samples.nic_changes) {
        add.list.row([
            Cell::text(change.to_string()),
            Cell::text("within the interval"),
            Cell::text(""),
            Cell::text(""),
        ]);
    }
}

fn of_nic(nic: &NicSample, add: &mut Add<'_>) {
    if let Some(all) = nic.statistics.known() {
        for name in ["rx_packets", "tx_packets", "rx_bytes", "tx_bytes"] {
            add.grown(&nic.name, name, all.get(name));
        }
        for name in LOSSES {
            add.grown(&nic.name, name, all.get(name));
        }
    }
    for (name, n) in nic.driver_stats.known().into_iter().flatten() {
        if ["drop", "miss", "exceeded", "no_buf", "discard"].iter().any(|w| name.contains(w)) {
            add.grown(&nic.name, name, Some(n));
        }
    }
    for q in nic.qdiscs.known().into_iter().flatten() {
        let place = format!("{} {} {}", nic.name, q.kind, q.handle);
        add.grown(&place, "qdisc drops", Some(&q.drops));
        add.grown(&place, "qdisc requeues", Some(&q.requeues));
    }
}
