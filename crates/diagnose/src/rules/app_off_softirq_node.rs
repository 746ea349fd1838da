//! 4: an application on one node, the softirqs that feed it on another.

use std::collections::BTreeMap;

use model::{Confidence, CpuSet, NumaNode, Severity, nic::Nic, process::Process};

use crate::{
    Case, Rule, assignments,
    queues::{self, BUSY_NIC_PER_S},
    rule::{Draft, Gain, Judgement, Missing, Proposal, clear, need, settle},
    spread, text,
};

pub static RULE: Rule = Rule {
    id: "app_off_softirq_node",
    number: 4,
    title: "an application and its softirqs on different nodes",
    needs: &[
        "a chosen process",
        "NUMA nodes",
        "the CPUs its threads ran on",
        "packets and softirq time by CPU",
    ],
    explained_by: &["irq_off_node"],
    judge,
};

/// The share of a thread's readings on another node that makes a finding.
const AWAY: f64 = 0.30;
/// The share of all packets from which a node counts as handling them. Our proposal.
const HOME: f64 = 0.70;
/// The softirq time in CPUs (1.0 is one whole CPU) below which placement does not matter.
const LEAST_SOFTIRQ: f64 = 0.05;
/// CPU share below which a thread does not count. Our proposal.
const LEAST_THREAD: f64 = 0.05;
/// Share of all received packets from which a NIC's interrupts are moved. Our proposal.
const TAKES_PART: f64 = 0.10;
const SHOWN: usize = 4;
const RISK: &str = "memory already allocated stays remote";

fn judge(case: &Case<'_>) -> Vec<Judgement> {
    match case.nodes_with_cpus() {
        Err(missing) => return vec![missing.of("")],
        Ok(nodes) if nodes.len() <= 1 => {
            return vec![settle("", queues::one_node(case))];
        }
        Ok(_) => {}
    }
    match (case.processes(), softirq_home(case)) {
        (Err(missing), _) | (_, Err(missing)) => vec![missing.of("")],
        (Ok(_), Ok(Home::None(because))) => {
            vec![settle("", clear(because, [&softirq_home(case)]))]
        }
        (Ok(all), Ok(Home::Node(home))) => {
            let (mut said, mut away) = (vec![], vec![]);
            for p in all {
                match one(case, p, home.node) {
                    Ok(Ok(off)) => away.push(off),
                    Ok(Err(because)) => {
                        let who = format!("{}[{}]", p.name, p.pid);
                        let rests_on = case.threads_read(p);
                        said.push(settle(&who, clear(because, [&rests_on, &softirq_home(case)])));
                    }
                    Err(missing) => said.push(missing.of(format!("{}[{}]", p.name, p.pid))),
                }
            }
            if !away.is_empty() {
                said.push(finding(case, &away, &home));
            }
            said
        }
    }
}

/// A process whose busy threads were seen away from the softirqs' node.
struct Away<'a> {
    process: &'a Process,
    seen: usize,
    away: usize,
    cpus: CpuSet,
}

/// The node whose CPUs handle most packets.
struct Node {
    node: NumaNode,
    packets_per_s: f64,
    /// Of the host's packets.
    share: f64,
    /// Softirq time of all CPUs, in CPUs.
    softirqs: f64,
}

enum Home {
    Node(Node),
    None(String),
}

/// Packets decide, not softirq time: timers, RCU and the scheduler use softirqs too. On an idle
/// network they use nearly all softirq time, mostly on one node.
fn softirq_home(case: &Case<'_>) -> Result<Home, Missing> {
    let mut by_node: BTreeMap<NumaNode, u64> = BTreeMap::new();
    let mut softirq_ns = 0;
    case.cpus_read()?;
    for cpu in case.online().iter() {
        let sample = case.cpu_sample(cpu)?;
        let what = format!("/proc/stat of CPU {cpu}");
        softirq_ns += *need(&what, &need(&what, &sample.proc_stat)?.softirq_ns)?;
        let what = format!("/proc/net/softnet_stat of CPU {cpu}");
        let packets = *need(&what, &need(&what, &sample.softnet)?.processed)?;
        *by_node.entry(case.node_read(cpu)?).or_default() += packets;
    }
    let (window, total) = (case.window_s()?, by_node.values().sum::<u64>() as f64);
    if total / window < BUSY_NIC_PER_S {
        return Ok(Home::None(format!("the CPUs handled {} packets", text::per_s(total / window))));
    }
    let softirqs = softirq_ns as f64 / 1e9 / window;
    if softirqs < LEAST_SOFTIRQ {
        return Ok(Home::None(format!("softirqs took {} of one CPU", text::percent(softirqs))));
    }
    let best = by_node.iter().max_by_key(|(n, packets)| (**packets, std::cmp::Reverse(**n)));
    let Some((&node, &packets)) = best else {
        return Err(Missing("packets by CPU: no CPU was sampled".into()));
    };
    let share = packets as f64 / total;
    Ok(if share >= HOME {
        Home::Node(Node { node, packets_per_s: packets as f64 / window, share, softirqs })
    } else {
        Home::None(format!(
            "packets are handled on several nodes, at most {} on one",
            text::percent(share)
        ))
    })
}

/// The misplaced process, or why it is well placed.
fn one<'a>(
    case: &Case<'_>,
    p: &'a Process,
    home: NumaNode,
) -> Result<Result<Away<'a>, String>, Missing> {
    let samples = case.samples()?;
    let mut found = Away { process: p, seen: 0, away: 0, cpus: CpuSet::new() };
    for thread in samples.threads.iter().filter(|t| t.pid == p.pid) {
        let what = format!("CPU time of thread {}", thread.tid);
        let used = *need(&what, &thread.cpu_ns)? as f64 / samples.window_ns.0 as f64;
        if used < LEAST_THREAD {
            continue;
        }
        for cpu in &thread.on_cpus {
            let node = case.node_read(*cpu)?;
            found.seen += 1;
            if node != home {
                found.away += 1;
                found.cpus.insert(*cpu);
            }
        }
    }
    let who = format!("{}[{}]", p.name, p.pid);
    if found.seen == 0 {
        return Ok(Err(format!("{who}: no thread used {} of a CPU", text::percent(LEAST_THREAD))));
    }
    let off = found.away as f64 / found.seen as f64;
    if off <= AWAY {
        return Ok(Err(format!(
            "{who}: {} of {} CPU samples off node {home}, which handles the packets",
            text::percent(off),
            found.seen
        )));
    }
    Ok(Ok(found))
}

/// One finding with one set of changes for the whole application: moving half of its processes
/// would separate them.
fn finding(case: &Case<'_>, all: &[Away<'_>], place: &Node) -> Judgement {
    let home = place.node;
    let who = match all {
        [one] => format!("{}[{}]", one.process.name, one.process.pid),
        [first, ..] => format!("{} ({} processes)", first.process.name, all.len()),
        [] => String::new(),
    };
    let softirq_cpus = case.node_cpus(home);
    let mut draft = Draft::new(
        &who,
        format!("{who} runs away from node {home}, which handles its packets"),
    )
    .weigh(Severity::Warning, Confidence::Medium)
    .explain(
        "Packet data written by softirqs on one node is read by the application on another: each \
         cache line crosses the link between nodes. It matters less which node the NIC is on than \
         that these two are together.",
    )
    .gain(Gain::Improves, "fewer cycles per packet in the application and in the softirqs");
    for a in all.iter().take(SHOWN) {
        let p = a.process;
        draft = draft
            .show(
                format!("CPU samples of the busy threads of {}[{}] {}", p.name, p.pid, case.over()),
                format!("{} of {} on {} off node {home}", a.away, a.seen, text::cpus(&a.cpus)),
                format!("/proc/{}/task/*/stat, field 39", p.pid),
            )
            .on_cpus(&a.cpus);
    }
    let (changes, note) = together(case, all, home, &softirq_cpus);
    draft
        .show(
            format!("packets handled on node {home} {}", case.over()),
            format!(
                "{}, {} of the host's",
                text::per_s(place.packets_per_s),
                text::percent(place.share)
            ),
            "/proc/net/softnet_stat, column 1",
        )
        .show(
            format!("softirq time {}", case.over()),
            format!("{} of one CPU", text::percent(place.softirqs)),
            "/proc/stat",
        )
        .add(&note)
        .changes(changes)
        .on_cpus(&softirq_cpus)
        .found()
}

/// The changes that bring both to one node. The application's processes move to the softirqs' node,
/// on CPUs that packets leave free. Where they are confined to a node, the interrupts move there.
fn together(
    case: &Case<'_>,
    all: &[Away<'_>],
    home: NumaNode,
    softirq_cpus: &CpuSet,
) -> (Vec<Proposal>, String) {
    let processes: Vec<&Process> = all.iter().map(|a| a.process).collect();
    let groups = assignments::groups(&processes);
    let allowed = |g| assignments::allowed(case, g).intersection(softirq_cpus);
    if groups.iter().all(|g| allowed(g).is_empty()) {
        let cpus = all.iter().fold(CpuSet::new(), |set, a| set.union(&a.cpus));
        let node = cpus.first().and_then(|c| case.node_of(c));
        let note = "The application may not run on that node, so its packets' interrupts are moved \
                    to it.";
        return (node.map_or(vec![], |n| interrupts(case, home, n)), note.into());
    }
    let local = softirq_cpus.intersection(&case.housekeeping());
    let free: CpuSet = local.iter().filter(|c| !assignments::full_of_packets(case, *c)).collect();
    let target = if free.is_empty() { local } else { free };
    (groups.iter().map(|g| assignments::place(g, &target, RISK)).collect(), String::new())
}

/// Moves interrupts of the NICs with a share of the traffic to another node, a CPU for each queue.
/// Idle NICs stay.
fn interrupts(case: &Case<'_>, from: NumaNode, to: NumaNode) -> Vec<Proposal> {
    let (away, pool) = (case.node_cpus(from), spread::candidates(case, Some(to)));
    let (mut moves, mut taken) = (vec![], BTreeMap::new());
    let nics = queues::running_physical(case);
    let received = |nic: &Nic| case.nic_statistic(&nic.name, "rx_packets");
    let all: u64 = nics.iter().filter_map(|nic| received(nic).ok()).sum();
    let idle = |nic: &Nic| received(nic).is_ok_and(|n| (n as f64) < all as f64 * TAKES_PART);
    for nic in nics.into_iter().filter(|nic| !idle(nic)) {
        let Ok(queues) = queues::queue_irqs(case, nic) else { continue };
        let is_there = |q: &&queues::QueueIrq<'_>| {
            let cpus = queues::irq_cpus(case, q.irq);
            cpus.is_ok_and(|c| !c.intersection(&away).is_empty())
        };
        let moving = queues.iter().filter(is_there).filter(|q| q.irq.managed.get() != Some(true));
        moves.extend(spread::moves(case, &moving.collect::<Vec<_>>(), &pool, &mut taken));
    }
    moves
}
