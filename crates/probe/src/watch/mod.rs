//! Watches a live host: counters and sums of eBPF programs, interval by interval.
//!
//! Each part (`softirq`, …) has its programs and their last reading, and fills its share of the
//! next [`WatchInterval`].

pub mod accounting;
mod comms;
mod cost;
mod deltas;
mod duty_cycle;
pub mod exchanges;
mod followed;
mod interrupted_task;
mod ipc;
mod movement;
mod names;
mod napi;
mod napi_place;
mod napi_thread;
mod over_window;
mod permission;
pub mod recorder;
pub mod recording;
mod senders;
mod softirq;
mod switch;
mod waits;

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use model::{
    CpuId, Nanos, Reading,
    samples::CpuSample,
    watch::{CpuWatch, ProcStatNs, SCHEMA_VERSION, SoftirqAccounting, SoftirqGap, WatchInterval},
};
pub use over_window::{OverWindow, Running};

use crate::{
    Root,
    samples::{self, Options, clock::monotonic_ns, delta, raw::Raw},
};

#[derive(Debug, Clone)]
pub struct Watch {
    /// Processes with threads to follow, besides every ksoftirqd.
    pub pids: Vec<u32>,
    /// Whether to attach eBPF programs; otherwise only `/proc` is read.
    pub programs: bool,
    /// When to observe softirqs; [`ObserveWhen::Never`] is as [`ObserveWhen::Always`]. Unless always, polls are
    /// observed when softirqs are.
    pub softirqs: ObserveWhen,
    /// When to observe waits.
    pub waits: ObserveWhen,
    /// When to observe messages.
    pub messages: ObserveWhen,
    /// When to observe dropped packets.
    pub drops: ObserveWhen,
    /// When to observe polls of NAPI instances.
    pub queues: ObserveWhen,
}

/// When to observe what takes a program for every packet or call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ObserveWhen {
    /// For as much of each interval as costs no CPU more than 0.2% of its time.
    #[default]
    Auto,
    Always,
    /// No such program is attached.
    Never,
}

/// A host under watch. Dropping it detaches every program.
pub struct Watcher {
    root: Root,
    options: Options,
    softirq: softirq::SoftirqPart,
    waits: waits::WaitsPart,
    movement: movement::Movement,
    ipc: ipc::IpcPart,
    cost: cost::Cost,
    followed: followed::Followed,
    senders: senders::Senders,
    attach_ns: u64,
    accounting: Reading<SoftirqAccounting>,
    before: Raw,
}

impl Watcher {
    /// Attaches as many programs as possible, and begins the first interval. It never fails: each
    /// interval has the reasons for what is missing.
    pub fn start(watch: &Watch) -> Self {
        let begun = monotonic_ns();
        let root = Root::live();
        let options =
            Options { pids: watch.pids.clone(), sockets: senders::SOCKETS, ..Options::default() };
        let possible = possible(&root);
        let asked = permission::asked(&root, watch.programs);
        let softirq =
            softirq::SoftirqPart::attach(&asked, (watch.softirqs, watch.queues), &root, &possible);
        let waits = waits::WaitsPart::attach(&asked, watch.waits, &possible);
        let movement =
            movement::Movement::attach(&asked, (watch.messages, watch.drops), &root, &possible);
        let mut watcher = Self {
            softirq,
            waits,
            movement,
            attach_ns: monotonic_ns().saturating_sub(begun),
            ipc: ipc::IpcPart::begin(&root, &watch.pids),
            cost: cost::Cost::begin(),
            followed: followed::Followed::begin(&root, &watch.pids),
            senders: senders::Senders::default(),
            before: samples::one(&root, 0, &options),
            accounting: accounting::of_softirqs(&root),
            root,
            options,
        };
        watcher.take();
        watcher
    }

    /// How long attaching took.
    pub fn attached_after(&self) -> Duration {
        Duration::from_nanos(self.attach_ns)
    }

    /// How many programs are attached.
    pub fn attached(&self) -> usize {
        let all = [self.softirq.status(), self.waits.status(), self.movement.status()].concat();
        all.iter().filter(|p| p.ran.is_known()).count()
    }

    /// Begins the first interval only now: for those who had something else to wait for since
    /// all was attached.
    pub fn begin(&mut self) {
        self.cost = cost::Cost::begin();
        self.before = samples::one(&self.root, 0, &self.options);
        self.ipc.look(&self.root);
        self.take();
    }

    /// Reads the programs' sums so far, and discards them.
    fn take(&mut self) {
        let comms = comms::Comms::new(&self.root);
        self.softirq.look(Some(&comms));
        self.waits.look(&self.root, &comms);
        self.movement.look(&self.root, &comms, &self.before);
    }

    /// Waits for the interval's end, and returns it. `stop` ends it early without loss: the next
    /// interval begins where this one ended.
    pub fn next(&mut self, interval: Duration, stop: &AtomicBool) -> WatchInterval {
        let begun = self.before.time.start_ns;
        let end = begun + u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX / 2);
        self.softirq.resume(end);
        self.waits.resume(end);
        self.movement.messages.resume(end);
        self.movement.drops.resume(end);
        self.look_at_cost(end, stop);
        self.spare(end, stop);
        samples::clock::wait_until(end, stop, &mut |_| {});
        let now = samples::one(&self.root, 0, &self.options);
        let comms = comms::Comms::new(&self.root);
        let softirq = self.softirq.look(Some(&comms));
        let waits = self.waits.look(&self.root, &comms);
        let movement = self.movement.look(&self.root, &comms, &now);
        let ipc = self.ipc.look(&self.root);
        let mut between = delta::samples(&[self.before.clone(), now.clone()]);
        if let Some(samples) = &mut between {
            self.senders.name(&self.root, samples);
        }
        let window_ns = now.time.start_ns.saturating_sub(begun);
        self.before = now;
        let cpus =
            between.iter().flat_map(|s| &s.cpus).map(|c| one_cpu(c, &softirq, &ipc)).collect();
        let count = between.as_ref().map_or(0, |s| s.cpus.len());
        WatchInterval {
            schema_version: SCHEMA_VERSION,
            ended_unix_ns: unix_at(self.before.time.start_ns),
            interval_s: window_ns as f64 / 1e9,
            cpus,
            softirq_observed_share: softirq.observed_share,
            softirq_accounting: self.accounting.clone(),
            interrupted_tasks: softirq.interrupted_tasks,
            napi: softirq.napi,
            waits,
            migrated_threads: movement.migrated_threads,
            messages: movement.messages,
            messages_observed_share: self.movement.messages.observed_share,
            retransmits: movement.retransmits,
            drops: movement.drops,
            drops_observed_share: self.movement.drops.observed_share,
            process_ipc: ipc.processes,
            ended_processes: self.followed.ended(&self.root),
            observer: self.cost.observer(
                [self.softirq.status(), self.waits.status(), self.movement.status()].concat(),
                (window_ns, count),
                self.attach_ns,
            ),
            samples: between.map_or_else(|| Reading::absent("no counters"), Reading::Known),
        }
    }

    /// Looks at what the dear programs cost until all of them are detached or the interval ends.
    fn spare(&mut self, end: u64, stop: &AtomicBool) {
        loop {
            let due = [
                self.softirq.due(),
                self.waits.due(),
                self.movement.messages.due(),
                self.movement.drops.due(),
            ];
            let Some(at) = due.into_iter().flatten().min().filter(|at| *at < end) else { return };
            samples::clock::wait_until(at, stop, &mut |_| {});
            if stop.load(Ordering::Relaxed) {
                return;
            }
            self.softirq.spare();
            self.waits.spare();
            self.movement.messages.spare();
            self.movement.drops.spare();
        }
    }

    /// For a short part of some intervals the kernel counts what our programs cost.
    fn look_at_cost(&mut self, end: u64, stop: &AtomicBool) {
        let Some(_on) = self.cost.turn() else { return };
        self.softirq.begin_cost();
        self.waits.begin_cost();
        self.movement.begin_cost();
        let until = (monotonic_ns() + cost::LOOK_NS).min(end);
        samples::clock::wait_until(until, stop, &mut |_| {});
        self.softirq.end_cost();
        self.waits.end_cost();
        self.movement.end_cost();
    }
}

/// The kernel's possible CPUs; where it does not say, those from 0 that the machine has.
fn possible(root: &Root) -> Vec<CpuId> {
    match root.list("/sys/devices/system/cpu/possible") {
        Reading::Known(cpus) => cpus.iter().collect(),
        _ => (0..num_configured()).map(CpuId).collect(),
    }
}

fn num_configured() -> u32 {
    // SAFETY: reads a number.
    let n = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
    u32::try_from(n).unwrap_or(1)
}

/// A moment of the monotonic clock, not long ago, in nanoseconds since 1970.
fn unix_at(monotonic: u64) -> Nanos {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let unix = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
    Nanos(unix.saturating_sub(monotonic_ns().saturating_sub(monotonic)))
}

fn one_cpu(cpu: &CpuSample, softirq: &softirq::SoftirqReading, ipc: &ipc::IpcReading) -> CpuWatch {
    let (softirq_ns, softirq_by_vector_ns) = softirq.of(cpu.id);
    let proc_stat = cpu.proc_stat.as_ref().map(|s| ProcStatNs {
        user: added(&[&s.user_ns, &s.nice_ns]),
        system: s.system_ns.clone(),
        softirq: s.softirq_ns.clone(),
        irq: s.irq_ns.clone(),
        idle: added(&[&s.idle_ns, &s.iowait_ns]),
        steal: s.steal_ns.clone(),
    });
    let measured = softirq_ns.as_ref().map(model::watch::ByContext::softirq_ns);
    let softnet = |of: fn(&model::samples::SoftnetSample) -> &Reading<u64>| {
        cpu.softnet.as_ref().and_then(|s| of(s).clone())
    };
    CpuWatch {
        id: cpu.id,
        softirq_gap: measured.and_then(|ns| gap(ns, &proc_stat)),
        softirq_ns,
        softirq_by_vector_ns,
        proc_stat,
        ipc: ipc.of(cpu.id),
        time_squeeze: softnet(|s| &s.time_squeeze),
        backlog_drops: softnet(|s| &s.dropped),
        received_rps: softnet(|s| &s.received_rps),
        flow_limit_drops: softnet(|s| &s.flow_limit_count),
    }
}

/// Two ticks at 100 Hz: below that a claim made in ticks says nothing.
const LEAST_NS: u64 = 20_000_000;

fn gap(measured_ns: u64, claimed: &Reading<ProcStatNs>) -> Reading<SoftirqGap> {
    claimed.as_ref().and_then(|c| c.softirq.clone()).map(|proc_stat_ns| SoftirqGap {
        measured_ns,
        proc_stat_ns,
        proc_stat_by_measured: match measured_ns.max(proc_stat_ns) >= LEAST_NS && measured_ns > 0 {
            true => Reading::Known(proc_stat_ns as f64 / measured_ns as f64),
            false => Reading::absent("too little softirq time for a ratio"),
        },
    })
}

/// A sum of growths; an unknown first part leaves it unknown, a second one that shrank (`iowait`
/// may) adds nothing.
fn added(parts: &[&Reading<u64>; 2]) -> Reading<u64> {
    let [first, second] = parts;
    (*first).as_ref().map(|a| a + second.get().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_interval_is_no_longer_than_since_it_began() {
        let [softirqs, waits, messages, drops, queues] = [ObserveWhen::Never; 5];
        let watch =
            Watch { pids: vec![], programs: false, softirqs, waits, messages, drops, queues };
        let mut watcher = Watcher::start(&watch);
        // Another thread reads facts, which takes longer than the interval.
        std::thread::sleep(Duration::from_millis(300));
        let begun = monotonic_ns();
        watcher.begin();
        let first = watcher.next(Duration::from_millis(50), &AtomicBool::new(false));
        let passed = (monotonic_ns() - begun) as f64 / 1e9;
        assert!(
            first.interval_s <= passed,
            "{} s, of which {passed} are its own",
            first.interval_s
        );
    }

    /// A host's files with these counters of CPU 0.
    fn host(processed: u32, dropped: u32, interrupts: u32, ticks: u64) -> Raw {
        let dir = tempfile::tempdir().unwrap();
        let squeezes = 7;
        let softnet = format!(
            "{processed:08x} {dropped:08x} {squeezes:08x}{} 00000000\n",
            " 00000000".repeat(9)
        );
        let files = [
            ("proc/stat", format!("cpu0 {ticks} 0 0 0 0 0 0 0 0 0\n")),
            ("proc/net/softnet_stat", softnet),
            ("proc/interrupts", format!("      CPU0\n 24: {interrupts} PCI-MSI 1-edge eth0\n")),
        ];
        for (path, text) in files {
            let path = dir.path().join("netwright/samples/0").join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        samples::one(&Root::open(dir.path()).unwrap(), 0, &Options::default())
    }

    #[test]
    fn a_counter_of_the_kernel_that_wraps_is_not_known_and_the_others_are() {
        let [softirqs, waits, messages, drops, queues] = [ObserveWhen::Never; 5];
        let watch =
            Watch { pids: vec![], programs: false, softirqs, waits, messages, drops, queues };
        let mut watcher = Watcher::start(&watch);
        let (softirq, ipc) = (watcher.softirq.look(None), watcher.ipc.look(&watcher.root));
        let (before, now) = (host(5, u32::MAX - 3, u32::MAX, 100), host(9, 2, 4, 150));
        let between = delta::samples(&[before, now]).unwrap();
        let cpu = one_cpu(&between.cpus[0], &softirq, &ipc);
        let why = cpu.backlog_drops.why_not().unwrap();
        assert!(why.contains("4294967292") && why.contains("wrap"), "{why}");
        assert_eq!(cpu.time_squeeze, Reading::Known(0));
        assert_eq!(cpu.received_rps, Reading::Known(0));
        let irqs = between.irqs.known().unwrap();
        assert!(irqs[0].cpus[0].count.why_not().unwrap().contains("wrap"), "{irqs:?}");
    }
}
