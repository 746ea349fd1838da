//! Tests of `watch` in a guest with NUMA nodes and a NIC of four queues:
//! - interrupted tasks, with softirqs on the application's CPU and elsewhere;
//! - forced squeezes and drops, against the kernel's count;
//! - a CPU and a NIC that disappear and return, and a process that ends;
//! - the guest's older kernel, on which every program with a tracepoint is attached.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    net::UdpSocket,
    os::fd::AsRawFd,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use crate::support::{NETWRIGHT, needs_root};
use lab::{server::ServerSpec, state::Resource, testing::TestLab};
use model::{
    samples::{HostChange, Presence},
    watch::{ByContext, CpuWatch, VectorNs, WatchInterval},
};

/// Bursts of datagrams from the lab's client to the guest, until dropped.
struct Traffic {
    stop: Arc<AtomicBool>,
    sender: Option<JoinHandle<()>>,
}

impl Traffic {
    fn start(lab: &TestLab) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (ended, space) =
            (Arc::clone(&stop), format!("/run/netns/{}", lab.namespace("client").unwrap()));
        let sender = thread::spawn(move || {
            let space = File::open(space).unwrap();
            // SAFETY: an open descriptor; only this thread changes its namespace.
            assert_eq!(unsafe { libc::setns(space.as_raw_fd(), libc::CLONE_NEWNET) }, 0);
            // Several flows, to use several queues.
            let flows: Vec<UdpSocket> =
                (0..8).map(|_| UdpSocket::bind("10.97.0.1:0").unwrap()).collect();
            for flow in flows.iter().cycle() {
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                for _ in 0..16 {
                    // Refused until a socket listens.
                    let _ = flow.send_to(&[0; 100], "10.97.0.2:9000");
                }
                thread::sleep(Duration::from_millis(16));
            }
        });
        Self { stop, sender: Some(sender) }
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.sender.take().map(JoinHandle::join);
    }
}

/// All CPUs of the guest are one thread here: beside twenty others it would get a tenth of a CPU.
fn before_other_work(lab: &TestLab) {
    for made in &lab.state.resources {
        if let Resource::Process { pid, .. } = made {
            // SAFETY: changes priorities; QEMU leads a group of its own.
            unsafe { libc::setpriority(libc::PRIO_PGRP, *pid, -10) };
            // With autogroups only this counts; without them the file does not exist.
            let _ = fs::write(format!("/proc/{pid}/autogroup"), "-10");
        }
    }
}

/// The output of the guest's script.
struct ScriptOutput {
    application: u32,
    phases: BTreeMap<String, [usize; 2]>,
    /// The kernel's counters by CPU: two readings around all of `watch`, two within it.
    outer: Vec<Rows>,
    inner: Vec<Rows>,
    seen: Vec<WatchInterval>,
}

/// Backlog drops and squeezes by CPU.
type Rows = BTreeMap<u32, [u64; 2]>;

impl ScriptOutput {
    fn of(text: &str) -> Self {
        let (head, seen) = text.split_once("seen\n").unwrap_or_else(|| panic!("{text}"));
        let mut said = Self {
            application: 0,
            phases: BTreeMap::new(),
            outer: vec![],
            inner: vec![],
            seen: seen.lines().map(|l| serde_json::from_str(l).unwrap()).collect(),
        };
        let mut lines = head.lines();
        while let Some(line) = lines.next() {
            match line.split(' ').collect::<Vec<_>>()[..] {
                ["application", pid] => said.application = pid.parse().unwrap(),
                ["phase", name, from, to] => {
                    said.phases.insert(name.into(), [from.parse().unwrap(), to.parse().unwrap()]);
                }
                ["softnet", which] => {
                    let rows = lines.by_ref().take_while(|l| !l.is_empty()).map(row).collect();
                    if which == "outer" { &mut said.outer } else { &mut said.inner }.push(rows);
                }
                _ => panic!("{line}"),
            }
        }
        said
    }

    fn phase(&self, name: &str) -> &[WatchInterval] {
        let [from, to] = self.phases[name];
        &self.seen[from..to]
    }
}

fn row(line: &str) -> (u32, [u64; 2]) {
    let fields: Vec<u64> =
        line.split_whitespace().map(|f| u64::from_str_radix(f, 16).unwrap()).collect();
    (u32::try_from(fields[12]).unwrap(), [fields[1], fields[2]])
}

/// Softirq time by context of these CPUs.
fn contexts(seen: &[WatchInterval], cpus: &[u32]) -> ByContext {
    let mut sum = ByContext::default();
    for cpu in seen.iter().flat_map(|i| &i.cpus).filter(|c| cpus.contains(&c.id.0)) {
        sum.add(cpu.softirq_ns.known().unwrap_or_else(|| panic!("{:?}", cpu.softirq_ns)));
    }
    sum
}

fn sum(of: &ByContext, what: fn(&VectorNs) -> u64) -> u64 {
    [of.syscall, of.interrupting_task, of.idle, of.ksoftirqd].iter().map(what).sum()
}

/// Share of receiving on these CPUs.
fn share_on(seen: &[WatchInterval], cpus: &[u32]) -> f64 {
    let rx = |cpus| sum(&contexts(seen, cpus), |v| v.net_rx) as f64;
    rx(cpus) / rx(&[0, 1, 2, 3])
}

/// Softirq time that interrupted a process.
fn paid(seen: &[WatchInterval], pid: u32) -> u64 {
    let interrupted_tasks = seen.iter().flat_map(|i| i.interrupted_tasks.known().unwrap());
    interrupted_tasks
        .filter(|p| p.pid == pid)
        .map(|p| p.preempted_by_softirq_ns + p.own_softirq_ns)
        .sum()
}

/// The same of each other process that is not the observer.
fn others(seen: &[WatchInterval], application: u32) -> BTreeMap<u32, u64> {
    let tasks = seen.iter().flat_map(|i| i.interrupted_tasks.known().unwrap());
    let others = tasks.filter(|t| t.pid != application && t.name != "netwright");
    others.map(|t| (t.pid, paid(seen, t.pid))).collect()
}

/// CPUs that polled eth0's queues, by packets.
fn polled(seen: &[WatchInterval]) -> BTreeMap<u32, u64> {
    let mut by_cpu = BTreeMap::new();
    let napi = seen.iter().flat_map(|i| i.napi.known().unwrap());
    for one in napi.filter(|n| n.nic.known().is_some_and(|n| n == "eth0")).flat_map(|n| &n.cpus) {
        *by_cpu.entry(one.cpu.0).or_default() += one.packets;
    }
    by_cpu
}

/// All of these share one guest, as booting is slow.
#[test]
fn who_pays_and_every_squeeze_drop_and_what_goes() {
    needs_root();
    let lab = TestLab::server(&ServerSpec::new(NETWRIGHT)).unwrap();
    before_other_work(&lab);
    let traffic = Traffic::start(&lab);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/guest/watch.sh");
    let argv = ["timeout", "145", "bash", script, NETWRIGHT];
    let out = lab.output_within("server", &argv, Duration::from_secs(150));
    drop(traffic);
    let out = out.unwrap();
    assert_eq!(out.code, 0, "{}", String::from_utf8_lossy(&out.stderr));
    let said = ScriptOutput::of(&String::from_utf8_lossy(&out.stdout));
    every_program_loads(&said);
    who_pays(&said);
    as_the_kernel_counts(&said);
    a_cpu_that_goes(&said);
    a_nic_and_a_process_that_go(&said);
}

/// The guest's Linux 6.1 has none of these; programs that need them report it.
const SINCE_6_3: [&str; 3] = ["sk_data_ready", "sock_send_length", "sock_recv_length"];

/// A program is attached, or the kernel lacks its tracepoint: the verifier rejects none.
fn every_program_loads(said: &ScriptOutput) {
    let apart = said.phase("apart");
    let programs = &apart[0].observer.programs;
    let attached = |object: &str, program: &str| {
        programs.iter().any(|p| p.object == object && p.program == program && p.ran.is_known())
    };
    for p in programs.iter().filter(|p| !p.ran.is_known()) {
        let why = p.ran.why_not().unwrap();
        let lacks =
            SINCE_6_3.iter().any(|t| why == format!("{t}: this kernel has no such tracepoint"));
        assert!(lacks, "{}/{}: {why}", p.object, p.program);
    }
    for (object, program) in [
        ("softirq", "softirq_entry"),
        ("softirq", "softirq_exit"),
        ("softirq", "napi_poll"),
        ("waits", "netif_receive_skb"),
        ("waits", "sched_waking"),
        ("waits", "sched_switch"),
        ("waits", "skb_copy_datagram_iovec"),
        ("migrated_threads", "sched_migrate_task"),
        ("retransmits", "tcp_retransmit_skb"),
        ("retransmits", "tcp_retransmit_synack"),
    ] {
        assert!(attached(object, program), "{object}/{program}: {programs:?}");
    }
    // At least `watch`'s own reads are seen, as it queries the kernel by sockets.
    let reads: u64 = apart
        .iter()
        .flat_map(|i| i.waits.known().unwrap_or_else(|| panic!("{:?}", i.waits)))
        .filter_map(|w| w.excluded_reads.get())
        .sum();
    assert!(reads > 0, "{:?}", apart[0].waits);
}

fn who_pays(said: &ScriptOutput) {
    let (apart, together) = (said.phase("apart"), said.phase("together"));
    // Softirqs and polls are where the interrupts go.
    assert!(share_on(apart, &[2, 3]) > 0.8, "{:?}", contexts(apart, &[0, 1]));
    assert!(share_on(together, &[0]) > 0.8, "{:?}", contexts(together, &[1, 2, 3]));
    let most = |seen, cpus: &[u32]| {
        let by_cpu = polled(seen);
        let here: u64 = cpus.iter().filter_map(|c| by_cpu.get(c)).sum();
        assert!(here * 10 > by_cpu.values().sum::<u64>() * 8, "{by_cpu:?}");
    };
    most(apart, &[2, 3]);
    most(together, &[0]);
    // No task is interrupted on idle CPUs.
    let free = contexts(apart, &[2, 3]);
    let nobodys = free.idle.net_rx + free.ksoftirqd.net_rx;
    assert!(nobodys * 10 > sum(&free, |v| v.net_rx) * 6, "{free:?}");
    // Packets received on the application's CPU interrupt it. (The time between softirq and
    // interrupt decides whose it is; an emulator stretches it, so that is not tested here.)
    let upon = |of: &ByContext| of.interrupting_task.net_rx + of.syscall.net_rx;
    let (none, much) = (upon(&contexts(apart, &[0])), upon(&contexts(together, &[0])));
    assert!(much > 1_000_000 && much > none * 5, "{none} and {much} ns");
    // On CPU 0 kernel threads and short commands of the guest's script are interrupted, too. Of all
    // processes but the observer, which has CPU 1, the application lost most.
    let (own, others) = (paid(together, said.application), others(together, said.application));
    assert!(others.values().all(|ns| own > *ns), "{own} ns, of others {others:?}");
    // What the CPUs spent in tasks' contexts is what the tasks lost, all together.
    let all = contexts(together, &[0, 1, 2, 3]);
    let taken = (all.interrupting_task.total() + all.syscall.total()) as f64;
    let tasks = together.iter().flat_map(|i| i.interrupted_tasks.known().unwrap());
    let lost: u64 = tasks.map(|t| t.preempted_by_softirq_ns + t.own_softirq_ns).sum();
    let share = lost as f64 / taken;
    assert!((0.95..1.05).contains(&share), "{lost} of {taken} ns");
}

/// `watch`'s count over all intervals is between the kernel's growth within it and around it.
fn as_the_kernel_counts(said: &ScriptOutput) {
    let of: [fn(&CpuWatch) -> Option<u64>; 2] =
        [|c| c.backlog_drops.get(), |c| c.time_squeeze.get()];
    let grown = |rows: &[Rows], cpu, n: usize| rows[1][&cpu][n] - rows[0][&cpu][n];
    // CPU 3's counts between the last reading and its removal are lost.
    for cpu in 0..3 {
        for (n, of) in of.iter().enumerate() {
            let all = said.seen.iter().flat_map(|i| &i.cpus).filter(|c| c.id.0 == cpu);
            let watched: u64 = all.filter_map(of).sum();
            let (least, most) = (grown(&said.inner, cpu, n), grown(&said.outer, cpu, n));
            assert!(
                (least..=most).contains(&watched),
                "CPU {cpu}, counter {n}: {watched}, not {least} to {most}"
            );
        }
    }
    let drops = grown(&said.inner, 1, 0);
    let squeezes = grown(&said.inner, 0, 1);
    assert!(drops > 20 && squeezes > 20, "{drops} drops and {squeezes} squeezes were forced");
}

fn a_cpu_that_goes(said: &ScriptOutput) {
    let ids = |one: &WatchInterval| one.cpus.iter().map(|c| c.id.0).collect::<Vec<_>>();
    assert!(said.phase("without").iter().all(|i| ids(i) == [0, 1, 2]));
    assert!(said.phase("again").iter().all(|i| ids(i) == [0, 1, 2, 3]));
    let changes: Vec<String> = said
        .phase("hotplug")
        .iter()
        .flat_map(|i| &i.samples.known().unwrap().cpu_changes)
        .map(ToString::to_string)
        .collect();
    assert_eq!(changes, ["CPU 3 went offline", "CPU 3 came online"]);
    sane(said.phase("hotplug"));
}

/// A counter that restarts adds no time or packets; a reading may be late.
fn sane(seen: &[WatchInterval]) {
    for one in seen {
        let most_ns = one.interval_s * 2e9 + 1e9;
        for cpu in &one.cpus {
            let ns = cpu.softirq_ns.known().unwrap().all_ns() as f64;
            assert!(ns < most_ns, "{cpu:?}");
            let squeezed = cpu.time_squeeze.get().unwrap_or(0);
            let dropped = cpu.backlog_drops.get().unwrap_or(0);
            assert!(squeezed < 1_000_000 && dropped < 1_000_000, "{cpu:?}");
        }
        for interrupted_task in one.interrupted_tasks.known().unwrap() {
            let ns = interrupted_task.preempted_by_softirq_ns + interrupted_task.own_softirq_ns;
            assert!((ns as f64) < 4.0 * most_ns, "{interrupted_task:?}");
        }
        for nic in &one.samples.known().unwrap().nics {
            let counts = nic.statistics.known().into_iter().flat_map(BTreeMap::iter);
            for (name, grown) in counts {
                assert!(grown.get().unwrap_or(0) < 1 << 30, "{} {name}: {grown:?}", nic.name);
            }
        }
    }
}

fn a_nic_and_a_process_that_go(said: &ScriptOutput) {
    let nics = |one: &WatchInterval| -> Vec<String> {
        one.samples.known().unwrap().nics.iter().map(|n| n.name.clone()).collect()
    };
    let (bare, back) = (said.phase("bare"), said.phase("back"));
    assert!(bare.iter().all(|i| nics(i) == ["lo"]), "{:?}", nics(&bare[0]));
    assert!(polled(bare).is_empty(), "{:?}", polled(bare));
    assert!(back.iter().all(|i| nics(i).contains(&"eth0".into())), "{:?}", nics(&back[0]));
    let all = said.phase("unplug").iter().flat_map(|i| &i.samples.known().unwrap().nic_changes);
    // It returns as another device, with another index.
    let of_eth0 = |c: &HostChange| match c {
        HostChange::NicChanged { nic, change, .. } if nic == "eth0" => Some(*change),
        _ => None,
    };
    let changes: Vec<Presence> = all.filter_map(of_eth0).collect();
    assert_eq!(changes, [Presence::Went, Presence::Came]);
    let last = said.phase("together").iter().chain(said.phase("hotplug"));
    let of = |i: &WatchInterval| {
        i.interrupted_tasks
            .known()
            .unwrap()
            .iter()
            .any(|p| p.pid == said.application && p.name == "perl")
    };
    assert!(last.clone().any(of), "the application paid");
    assert!(!bare.iter().chain(back).any(of), "long after its end it still pays");
    sane(said.phase("unplug"));
}
