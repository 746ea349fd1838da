//! 4: an application on one node, the softirqs that feed it on another.

use std::collections::BTreeMap;

use model::{Confidence, CpuSet, NumaNode, Severity, process::Process};

use crate::{
    Case, Rule,
    knob::advice,
    rule::{Draft, Gain, Judgement, Missing, need, settle},
    text,
};

/// Catalogue number 4.
pub static RULE: Rule = Rule {
    id: "app_off_softirq_node",
    number: 4,
    title: "an application and its softirqs on different nodes",
    needs: &[
        "a chosen process",
        "NUMA nodes",
        "the CPUs its threads ran on",
        "softirq time by CPU",
    ],
    explained_by: &["irq_off_node"],
    judge,
};

/// Share of the threads' sightings on another node that makes a finding.
const AWAY: f64 = 0.30;
/// Share of all softirq time that makes a node the one where softirqs run. Our proposal.
const HOME: f64 = 0.70;
/// Softirq time in CPUs (1.0 is one whole CPU) below which there is nothing to be near to.
const LEAST_SOFTIRQ: f64 = 0.05;
/// CPU share below which a thread does not count. Our proposal.
const LEAST_THREAD: f64 = 0.05;

fn judge(case: &Case<'_>) -> Vec<Judgement> {
    match case.nodes_with_cpus() {
        Err(missing) => return vec![missing.of("")],
        Ok(nodes) if nodes.len() <= 1 => {
            return vec![Judgement::Clear("the host has one node with CPUs".into())];
        }
        Ok(_) => {}
    }
    match (case.processes(), softirq_home(case)) {
        (Err(missing), _) | (_, Err(missing)) => vec![missing.of("")],
        (Ok(_), Ok(Home::None(because))) => vec![Judgement::Clear(because)],
        (Ok(all), Ok(Home::Node(node, share))) => all
            .iter()
            .map(|p| settle(&format!("{} ({})", p.name, p.pid), one(case, p, node, share)))
            .collect(),
    }
}

enum Home {
    Node(NumaNode, f64),
    None(String),
}

/// The node that runs most of the softirq time.
fn softirq_home(case: &Case<'_>) -> Result<Home, Missing> {
    let mut by_node: BTreeMap<NumaNode, u64> = BTreeMap::new();
    for sample in &case.samples()?.cpus {
        let what = format!("/proc/stat of CPU {}", sample.id);
        let stat = need(&what, &sample.proc_stat)?;
        let ns = *need(&what, &stat.softirq_ns)?;
        let node = case.node_of(sample.id);
        let node = node.ok_or_else(|| Missing(format!("node of CPU {}: not known", sample.id)))?;
        *by_node.entry(node).or_default() += ns;
    }
    let total: u64 = by_node.values().sum();
    let in_cpus = total as f64 / case.samples()?.window_ns.0 as f64;
    if in_cpus < LEAST_SOFTIRQ {
        return Ok(Home::None(format!("softirqs took {} of one CPU", text::percent(in_cpus))));
    }
    let best = by_node.iter().max_by_key(|(n, ns)| (**ns, std::cmp::Reverse(**n)));
    let Some((node, ns)) = best else {
        return Err(Missing("softirq time by CPU: no CPU was sampled".into()));
    };
    let share = *ns as f64 / total as f64;
    Ok(if share >= HOME {
        Home::Node(*node, share)
    } else {
        Home::None(format!(
            "softirq time is spread over nodes, at most {} on one",
            text::percent(share)
        ))
    })
}

fn one(case: &Case<'_>, p: &Process, home: NumaNode, share: f64) -> Result<Judgement, Missing> {
    let samples = case.samples()?;
    let (mut seen, mut away, mut cpus) = (0usize, 0usize, CpuSet::new());
    for thread in samples.threads.iter().filter(|t| t.pid == p.pid) {
        let what = format!("CPU time of thread {}", thread.tid);
        let used = *need(&what, &thread.cpu_ns)? as f64 / samples.window_ns.0 as f64;
        if used < LEAST_THREAD {
            continue;
        }
        for cpu in &thread.on_cpus {
            let Some(node) = case.node_of(*cpu) else { continue };
            seen += 1;
            if node != home {
                away += 1;
                cpus.insert(*cpu);
            }
        }
    }
    let who = format!("{} ({})", p.name, p.pid);
    if seen == 0 {
        return Ok(Judgement::Clear(format!(
            "{who}: no thread used {} of a CPU",
            text::percent(LEAST_THREAD)
        )));
    }
    let off = away as f64 / seen as f64;
    if off <= AWAY {
        return Ok(Judgement::Clear(format!(
            "{who}: {} of {seen} sightings away from node {home}, where the softirqs run",
            text::percent(off)
        )));
    }
    let softirq_cpus = case.node_cpus(home);
    let target = softirq_cpus.intersection(&case.housekeeping());
    Ok(Draft::new(
        &who,
        format!("{who} runs away from node {home}, which handles its packets"),
    )
    .weigh(Severity::Warning, Confidence::Medium)
    .explain(
        "Packet data written by softirqs on one node is read by the application on another: each \
         cache line crosses the link between nodes. It matters less which node the NIC is on than \
         that these two are together.",
    )
    .gain(Gain::Improves, "fewer cycles per packet in the application and in the softirqs")
    .show(
        format!("sightings of its busy threads {}", case.over()),
        format!("{away} of {seen} on {} off node {home}", text::cpus(&cpus)),
        format!("/proc/{}/task/*/stat, field 39", p.pid),
    )
    .show(
        format!("softirq time on node {home}"),
        format!("{} of the host's", text::percent(share)),
        "/proc/stat",
    )
    .change(advice(
        &format!("CPUs {}", p.cpuset_cpus.known().map_or("not known".into(), ToString::to_string)),
        &format!("CPUs {target}"),
        &format!("taskset -acp {target} {}", p.pid),
        "memory already allocated stays remote; new threads of other processes do not follow; \
         lasting only through the unit's cpuset",
    ))
    .on_cpus(&cpus)
    .on_cpus(&softirq_cpus)
    .found())
}
