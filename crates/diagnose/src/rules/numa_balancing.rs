//! 32: automatic NUMA balancing at work under pinned applications.

use model::{Confidence, Severity, process::Process};

use crate::{
    Case, Rule,
    case::delta,
    knob, queues,
    rule::{Draft, Gain, Judgement, Missing, clear, need, settle},
    text,
};

pub static RULE: Rule = Rule {
    id: "numa_balancing",
    number: 32,
    title: "automatic NUMA balancing on while the applications are pinned",
    needs: &[
        "kernel.numa_balancing",
        "a chosen process with its affinities",
        "numa_hint_faults over a window",
    ],
    explained_by: &[],
    judge,
};

const KEY: &str = "kernel.numa_balancing";
/// Hint faults per second with a noticeable cost. Our proposal.
const MANY: f64 = 1_000.0;

fn judge(case: &Case<'_>) -> Vec<Judgement> {
    vec![settle("", one(case))]
}

/// Evidence: each thread's affinity, and its nodes.
fn affinities_read(case: &Case<'_>) -> Result<(), Missing> {
    for t in case.processes()?.iter().flat_map(|p| &p.threads) {
        let set = need(&format!("affinity of thread {}", t.tid), &t.affinity)?;
        set.iter().try_for_each(|c| case.node_read(c).map(drop))?;
    }
    Ok(())
}

/// Whether every thread is confined to one node.
fn pinned(case: &Case<'_>, p: &Process) -> bool {
    let one_node = |set: &model::CpuSet| {
        let nodes: std::collections::BTreeSet<_> = set.iter().map(|c| case.node_of(c)).collect();
        nodes.len() == 1 && !nodes.contains(&None)
    };
    !p.threads.is_empty() && p.threads.iter().all(|t| t.affinity.known().is_some_and(one_node))
}

fn one(case: &Case<'_>) -> Result<Judgement, Missing> {
    if case.nodes_with_cpus()?.len() <= 1 {
        return queues::one_node(case);
    }
    let on = case.sysctl_number(KEY)?;
    if on == 0 {
        return clear(format!("{KEY} is 0"), [&case.sysctl_number(KEY)]);
    }
    let processes = case.processes()?;
    let pinned: Vec<_> = processes.iter().filter(|p| pinned(case, p)).collect();
    if pinned.is_empty() {
        let text = "no chosen process is pinned to one node: balancing may help it";
        return clear(text, [&affinities_read(case)]);
    }
    let counters = need("/proc/vmstat", &case.samples()?.vmstat)?;
    let faults = delta("numa_hint_faults", counters.get("numa_hint_faults"))?;
    let rate = faults as f64 / case.window_s()?;
    if rate < MANY {
        let text = format!("{} NUMA hint faults: too few to cost", text::per_s(rate));
        return clear(text, [&case.samples()?.vmstat]);
    }
    let names: Vec<String> = pinned.iter().map(|p| format!("{}[{}]", p.name, p.pid)).collect();
    Ok(Draft::new(
        KEY,
        format!(
            "NUMA balancing takes {} hint faults while {} is pinned",
            text::per_s(rate),
            names.join(", ")
        ),
    )
    .weigh(Severity::Info, Confidence::Medium)
    .explain(
        "The kernel unmaps pages now and then to learn who uses them, and moves them. Threads \
             that are confined to one node pay the faults and gain little. The faults are counted \
             for the whole host, so other processes may cause them.",
    )
    .gain(Gain::Improves, "steadier latency of the pinned applications")
    .show_sysctl(case, KEY)
    .show(format!("numa_hint_faults {}", case.over()), text::per_s(rate), "/proc/vmstat")
    .show("confined to one node", names.join(", "), "/proc/PID/task/*/status Cpus_allowed_list")
    .change(knob::sysctl(case, KEY, "0", "hurts applications that are not pinned"))
    .on_sysctl(KEY)
    .found())
}
