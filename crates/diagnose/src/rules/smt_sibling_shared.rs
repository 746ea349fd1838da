//! 33: an application on the sibling of a CPU busy with packets.

use model::{Confidence, CpuId, CpuSet, Severity, process::Process, samples::ThreadSample};

use crate::{
    Case, Rule,
    knob::advice,
    load,
    rule::{Draft, Gain, Judgement, Missing, settle},
    spread, text,
};

/// Catalogue number 33.
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
            vec![Judgement::Clear("no CPU with much packet work has a sibling thread".into())]
        }
        (Ok(all), Ok(list)) => all
            .iter()
            .map(|p| settle(&format!("{} ({})", p.name, p.pid), Ok(one(case, p, &list))))
            .collect(),
    }
}

/// Pairs of a CPU with much packet work and one of its siblings.
fn siblings_of_packet_cpus(case: &Case<'_>) -> Result<Vec<(CpuId, CpuId)>, Missing> {
    let samples = case.samples()?;
    let mut pairs = vec![];
    let mut looked = 0;
    for cpu in samples.cpus.iter().map(|c| c.id) {
        let Ok(load) = load::load(case, cpu) else { continue };
        looked += 1;
        if load.network >= PACKETS {
            let others = spread::siblings(case, cpu);
            pairs.extend(others.iter().filter(|s| *s != cpu).map(|s| (cpu, s)));
        }
    }
    if looked == 0 {
        return Err(Missing("/proc/stat: no CPU's time is known".into()));
    }
    Ok(pairs)
}

fn one(case: &Case<'_>, p: &Process, pairs: &[(CpuId, CpuId)]) -> Judgement {
    let who = format!("{} ({})", p.name, p.pid);
    let samples = case.samples().ok();
    let threads = samples.into_iter().flat_map(|s| &s.threads).filter(|t| t.pid == p.pid);
    let window = case.window_s().unwrap_or(1.0) * 1e9;
    let busy: Vec<&ThreadSample> =
        threads.filter(|t| t.cpu_ns.get().is_some_and(|ns| ns as f64 / window >= BUSY)).collect();
    // Stayed on the sibling at every reading: more than passing by.
    let sits = |t: &&ThreadSample, cpu: CpuId| {
        !t.on_cpus.is_empty() && t.on_cpus.iter().all(|c| *c == cpu)
    };
    let hit = pairs.iter().find_map(|(packets, sibling)| {
        Some((*packets, *sibling, *busy.iter().find(|t| sits(t, *sibling))?))
    });
    let Some((packets, sibling, thread)) = hit else {
        return Judgement::Clear(format!(
            "{who}: no busy thread stays on the sibling of a CPU with packet work"
        ));
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
    draft
        .change(advice(
            &format!("CPU {sibling}"),
            "a CPU of another core on the same node",
            &format!("taskset -cp LIST {}", thread.tid),
            "low; the scheduler no longer moves the thread",
        ))
        .on_cpus(&shared)
        .found()
}
