//! 33: an application on the sibling of a CPU busy with packets.

use model::{Confidence, CpuId, CpuSet, Severity, process::Process, samples::ThreadSample};

use crate::{
    Case, Rule,
    knob::advice,
    load,
    rule::{Draft, Gain, Judgement, Missing, clear, need, settle},
    spread, text,
};

pub static RULE: Rule = Rule {
    id: "smt_sibling_shared",
    number: 33,
    title: "an application shares a core with packet work",
    needs: &[
        "SMT siblings",
        "a chosen process",
        "the CPUs its threads ran on",
        "CPU time over a window",
    ],
    explained_by: &["few_channels", "irqs_piled_up"],
    judge,
};

/// Network share of a CPU from which its sibling suffers. Our proposal.
const PACKETS: f64 = 0.25;
/// CPU share of a thread that counts as busy. Our proposal.
const BUSY: f64 = 0.50;

fn judge(case: &Case<'_>) -> Vec<Judgement> {
    match (case.processes(), siblings_of_packet_cpus(case)) {
        (Err(missing), _) | (_, Err(missing)) => vec![missing.of("")],
        (Ok(_), Ok(list)) if list.is_empty() => {
            let text = "no CPU with much packet work has a sibling thread";
            vec![settle("", clear(text, [&siblings_of_packet_cpus(case)]))]
        }
        (Ok(all), Ok(list)) => all
            .iter()
            .map(|p| settle(&format!("{}[{}]", p.name, p.pid), one(case, p, &list)))
            .collect(),
    }
}

/// Pairs of a CPU with much packet work and one of its siblings.
fn siblings_of_packet_cpus(case: &Case<'_>) -> Result<Vec<(CpuId, CpuId)>, Missing> {
    case.cpus_read()?;
    let mut pairs = vec![];
    for cpu in case.online().iter() {
        if load::load(case, cpu)?.network >= PACKETS {
            let facts = case.cpu(cpu).ok_or_else(|| Missing(format!("CPU {cpu}: was not read")))?;
            need(&format!("siblings of CPU {cpu}"), &facts.smt_siblings)?;
            let others = spread::siblings(case, cpu);
            pairs.extend(others.iter().filter(|s| *s != cpu).map(|s| (cpu, s)));
        }
    }
    Ok(pairs)
}

fn one(case: &Case<'_>, p: &Process, pairs: &[(CpuId, CpuId)]) -> Result<Judgement, Missing> {
    let who = format!("{}[{}]", p.name, p.pid);
    let samples = case.samples().ok();
    let threads = samples.into_iter().flat_map(|s| &s.threads).filter(|t| t.pid == p.pid);
    let window = case.window_s().unwrap_or(1.0) * 1e9;
    let busy: Vec<&ThreadSample> =
        threads.filter(|t| t.cpu_ns.get().is_some_and(|ns| ns as f64 / window >= BUSY)).collect();
    // On the sibling at every reading, so it does not just pass by.
    let sits = |t: &&ThreadSample, cpu: CpuId| {
        !t.on_cpus.is_empty() && t.on_cpus.iter().all(|c| *c == cpu)
    };
    let hit = pairs.iter().find_map(|(packets, sibling)| {
        Some((*packets, *sibling, *busy.iter().find(|t| sits(t, *sibling))?))
    });
    let Some((packets, sibling, thread)) = hit else {
        let text = format!("{who}: no busy thread stays on the sibling of a CPU with packet work");
        return clear(text, [&case.threads_read(p)]);
    };
    let mut shared = CpuSet::new();
    shared.insert(packets);
    shared.insert(sibling);
    let mut draft = Draft::new(
        &who,
        format!("{who} is busy on CPU {sibling}, whose sibling CPU {packets} handles packets"),
    )
    .weigh(Severity::Info, Confidence::Medium)
    .explain("Both hardware threads share one core's units and caches: each slows the other.")
    .gain(Gain::Improves, "more cycles for both")
    .show(
        format!("siblings of CPU {packets}"),
        spread::siblings(case, packets).to_string(),
        format!("/sys/devices/system/cpu/cpu{packets}/topology/core_cpus_list"),
    )
    .show(
        format!("thread {} ({}) {}", thread.tid, thread.name, case.over()),
        format!(
            "{} of a CPU, on CPU {sibling}",
            text::percent(thread.cpu_ns.get().unwrap_or(0) as f64 / window)
        ),
        format!("/proc/{}/task/{}/schedstat", p.pid, thread.tid),
    );
    if let Ok(load) = load::load(case, packets) {
        draft = draft.show_load(case, packets, load);
    }
    Ok(draft
        .change(advice(
            &format!("CPU {sibling}"),
            "a CPU of another core on the same node",
            &format!("taskset -cp LIST {}", thread.tid),
            "low; the scheduler no longer moves the thread",
        ))
        .on_cpus(&shared)
        .found())
}
