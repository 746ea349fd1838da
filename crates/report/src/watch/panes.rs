//! The tables of `watch`, one function each: an interval in, rows out.

use model::{
    BitsPerSec, Reading,
    watch::{ByContext, CpuWatch, ProgramStatus, VectorNs, WaitNs, WatchHost, WatchInterval},
};

use super::{
    contexts,
    listing::{Cell, Listing, shown},
};
use crate::senders;

/// One CPU per row: softirq time by context as a share of the interval, and that of `/proc/stat`.
pub fn cpus(interval: &WatchInterval, host: &WatchHost) -> Listing {
    let mut list = Listing::new(&[
        ">CPU",
        ">NODE",
        ">SOFTIRQ",
        ">SYSCALL",
        ">ON TASK",
        ">IDLE",
        ">KSOFT",
        ">THREAD",
        ">NET",
        ">/PROC si",
        ">us",
        ">sy",
        ">id",
        ">SQUEEZE",
        ">DROPS",
        ">RPS",
        ">IPC",
    ]);
    let s = interval.interval_s.max(1e-9);
    for cpu in &interval.cpus {
        list.row(cpu_row(cpu, host, s));
    }
    list
}

fn cpu_row(cpu: &CpuWatch, host: &WatchHost, s: f64) -> Vec<Cell> {
    let percent = |ns: u64| Cell::percent(ns as f64 / 1e9 / s);
    let by = |of: fn(&ByContext) -> u64| Cell::reading(&cpu.softirq_ns, |c| percent(of(c)));
    let threaded = cpu.softirq_ns.as_ref().and_then(|c| c.threaded.clone());
    let whole_ns = contexts::whole_ns(&cpu.proc_stat, s);
    let stat = |of: fn(&model::watch::ProcStatNs) -> &Reading<u64>| {
        let claimed = cpu.proc_stat.as_ref().and_then(|p| of(p).clone());
        Cell::reading(&claimed, |ns| Cell::percent(*ns as f64 / whole_ns))
    };
    let net = |c: &ByContext| {
        [c.syscall, c.interrupting_task, c.idle, c.ksoftirqd].iter().map(VectorNs::network).sum()
    };
    let node = host.node_of(cpu.id);
    let count = |n: &Reading<u64>| Cell::reading(n, |n| Cell::count(*n));
    vec![
        Cell::id(cpu.id.0),
        node.map_or_else(|| Cell::text("-"), |n| Cell::id(n.0)),
        by(ByContext::softirq_ns),
        by(|c| c.syscall.total()),
        by(|c| c.interrupting_task.total()),
        by(|c| c.idle.total()),
        by(|c| c.ksoftirqd.total()),
        Cell::reading(&threaded, |t| percent(t.total())),
        by(net),
        stat(|p| &p.softirq),
        stat(|p| &p.user),
        stat(|p| &p.system),
        stat(|p| &p.idle),
        count(&cpu.time_squeeze),
        count(&cpu.backlog_drops),
        count(&cpu.received_rps),
        Cell::reading(&cpu.ipc, |i| Cell::number(i.per_cycle, format!("{:.2}", i.per_cycle))),
    ]
}

/// One NAPI instance on one CPU per row.
pub fn queues(interval: &WatchInterval) -> Listing {
    let mut list = Listing::new(&[
        "NIC",
        "QUEUE",
        ">NAPI",
        ">IRQ",
        ">CPU",
        ">POLLS",
        ">PACKETS",
        ">PER POLL",
        ">BUDGET USED",
        ">TIME",
        ">CPU%",
        "THREADED",
        ">SAMPLE %",
    ])
    .keyed(5)
    .of(&interval.napi, |_| vec![]);
    let s = interval.interval_s.max(1e-9);
    list.rows.clear();
    for napi in interval.napi.known().into_iter().flatten() {
        for on in &napi.cpus {
            let per_poll = on.packets as f64 / on.polls.max(1) as f64;
            list.row([
                shown(&napi.nic),
                shown(&napi.queue),
                Cell::reading(&napi.napi_id, |id| Cell::id(*id)),
                Cell::reading(&napi.irq, |irq| Cell::id(irq.0)),
                Cell::id(on.cpu.0),
                Cell::count(on.polls),
                Cell::count(on.packets),
                Cell::number(per_poll, format!("{per_poll:.1}")),
                Cell::count(on.full_polls),
                Cell::reading(&on.ns, |ns| Cell::time(*ns)),
                Cell::reading(&on.ns, |ns| Cell::percent(*ns as f64 / 1e9 / s)),
                Cell::reading(&napi.threaded, |t| Cell::text(if *t { "yes" } else { "no" })),
                Cell::percent(napi.observed_share),
            ]);
        }
    }
    list
}

/// One interrupt per row, the most frequent first, with the CPUs that took it.
pub fn interrupts(interval: &WatchInterval) -> Listing {
    let s = interval.interval_s.max(1e-9);
    let irqs = interval.samples.as_ref().and_then(|samples| samples.irqs.clone());
    let mut list = Listing::new(&[">IRQ", ">COUNT", ">PER S", "CPUS"]).of(&irqs, |i| {
        let known = || i.cpus.iter().filter_map(|c| Some((c.cpu, c.count.get()?)));
        let count: u64 = known().map(|(_, n)| n).sum();
        let per_s = count as f64 / s;
        let mut cpus: Vec<_> = known().collect();
        cpus.sort_by_key(|(cpu, n)| (std::cmp::Reverse(*n), *cpu));
        let cpus: Vec<String> = cpus.iter().take(4).map(|(cpu, _)| cpu.to_string()).collect();
        vec![
            Cell::text(i.irq.to_string()),
            Cell::count(count),
            Cell::number(per_s, format!("{per_s:.1}")),
            Cell::text(cpus.join(", ")),
        ]
    });
    list.sort(1);
    list
}

/// The processes that sent over TCP, and what limits each, with the shares that `ss -i` has times of.
pub fn senders(interval: &WatchInterval) -> Listing {
    let heads =
        ["PROCESS", "LIMITED BY", ">CONNECTIONS", ">SENT", ">BUSY", ">RWND", ">SNDBUF", ">NOTSENT"];
    Listing::new(&heads).of(&interval.samples.as_ref().and_then(senders::of), |s| {
        let name = if s.process.is_empty() { "not known" } else { &s.process };
        vec![
            Cell::text(name),
            Cell::text(s.limited_by.text()),
            Cell::count(s.connections),
            Cell::number(s.bits_per_s, BitsPerSec(s.bits_per_s.round() as u64).to_string()),
            Cell::percent(s.busy_share),
            Cell::percent(s.receiver_share),
            Cell::percent(s.send_buffer_share),
            Cell::percent(s.waiting_share),
        ]
    })
}

/// Where packets wait, by process: median and p99 of each stage.
pub fn waits(interval: &WatchInterval) -> Listing {
    let heads = [
        ">PID",
        "NAME",
        ">READS",
        ">STACK p50",
        ">p99",
        ">WAKE-UP p50",
        ">p99",
        ">RUN QUEUE p50",
        ">p99",
        ">IDLE EXIT p50",
        ">COPY p50",
        ">p99",
        ">FILTERED",
        ">LATE READS",
        ">SAMPLE %",
    ];
    let p50 = |w: &Reading<WaitNs>| Cell::reading(w, |w| Cell::time(w.p50));
    let p99 = |w: &Reading<WaitNs>| Cell::reading(w, |w| Cell::time(w.p99));
    Listing::new(&heads).keyed(2).of(&interval.waits, |w| {
        vec![
            Cell::id(w.pid),
            Cell::text(&w.name),
            Cell::count(w.copy.known().map_or(0, |c| c.count)),
            p50(&w.stack),
            p99(&w.stack),
            p50(&w.wakeup),
            p99(&w.wakeup),
            p50(&w.runqueue),
            p99(&w.runqueue),
            p50(&w.idle_exit),
            p50(&w.copy),
            p99(&w.copy),
            Cell::reading(&w.excluded_reads, |n| Cell::count(*n)),
            Cell::reading(&w.late_reads, |n| Cell::count(*n)),
            Cell::percent(w.observed_share),
        ]
    })
}

pub fn migrated_threads(interval: &WatchInterval) -> Listing {
    let heads = [
        ">PID",
        ">TID",
        "THREAD",
        ">MIGRATIONS",
        ">PER S",
        ">ACROSS L3",
        ">NODE",
        ">PACKAGE",
        "FROM→TO",
    ];
    let s = interval.interval_s.max(1e-9);
    let count = |n: &Reading<u64>| Cell::reading(n, |n| Cell::count(*n));
    Listing::new(&heads).keyed(3).of(&interval.migrated_threads, |m| {
        let way = |w: &model::watch::MigrationPath| format!("{}>{} {}", w.from, w.to, w.count);
        let transitions: Vec<String> = m.transitions.iter().take(4).map(way).collect();
        let per_s = m.migrations as f64 / s;
        vec![
            Cell::reading(&m.pid, |pid| Cell::id(*pid)),
            Cell::id(m.tid),
            Cell::text(&m.name),
            Cell::count(m.migrations),
            Cell::number(per_s, format!("{per_s:.1}")),
            count(&m.across_l3),
            count(&m.across_node),
            count(&m.across_package),
            Cell::text(transitions.join(", ")),
        ]
    })
}

/// Sends and receives of processes.
pub fn messages(interval: &WatchInterval) -> Listing {
    let heads = [
        ">PID",
        "NAME",
        ">PORT",
        ">SENDS",
        ">BYTES EACH",
        ">RECEIVES",
        ">BYTES EACH",
        ">REQUESTS",
        ">ON OTHER CPU",
        ">SAMPLE %",
    ];
    let each = |bytes: u64, calls: u64| match calls {
        0 => Cell::text("-"),
        n => Cell::count(bytes / n),
    };
    Listing::new(&heads).keyed(3).of(&interval.messages, |m| {
        vec![
            Cell::id(m.pid),
            Cell::text(&m.name),
            Cell::reading(&m.port, |p| Cell::id(*p)),
            Cell::count(m.sends),
            each(m.sent_bytes, m.sends),
            Cell::count(m.receives),
            each(m.received_bytes, m.receives),
            Cell::count(m.exchanges),
            Cell::reading(&m.received_elsewhere, |n| Cell::count(*n)),
            Cell::percent(m.observed_share),
        ]
    })
}

/// Netwright's own eBPF programs; [`super::missing`] has the reasons of those not attached.
pub fn programs(interval: &WatchInterval) -> Listing {
    let heads = ["PROGRAM", "STATE", ">RUNS", ">NS/RUN", ">TIME", "GIVES"];
    let mut list = Listing::new(&heads);
    for p in &interval.observer.programs {
        list.row(program_row(p));
    }
    if list.rows.is_empty() {
        list.note = Some("eBPF is switched off".into());
    }
    list
}

fn program_row(p: &ProgramStatus) -> Vec<Cell> {
    let ran = p.ran.as_ref();
    let runs = ran.clone().and_then(|r| r.runs.clone());
    let each = ran.clone().and_then(|r| r.ns_per_run.clone());
    let time = ran.and_then(|r| r.time_ns.clone());
    let state = match &p.ran {
        Reading::Known(_) => "attached",
        Reading::Absent(_) => "absent",
        Reading::Denied(_) => "denied",
    };
    vec![
        Cell::text(format!("{}/{}", p.object, p.program)),
        Cell::text(state),
        Cell::reading(&runs, |n| Cell::count(*n)),
        Cell::reading(&each, |ns| Cell::number(*ns, format!("{ns:.0}"))),
        Cell::reading(&time, |ns| Cell::time(*ns)),
        Cell::text(&p.gives),
    ]
}
