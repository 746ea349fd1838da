//! 31: an application's threads that move between CPUs all the time.

use model::{Confidence, CpuSet, Severity, process::Process};

use crate::{
    Case, Rule,
    knob::advice,
    rule::{Draft, Gain, Judgement, Missing, need, settle},
    text,
};

/// Catalogue number 31. Whether moving costs depends on the machine: the finding says to measure
/// with the threads pinned, not that they must be.
pub static RULE: Rule = Rule {
    id: "app_migrates",
    number: 31,
    title: "an application's threads move between CPUs all the time",
    needs: &["a chosen process", "migrations of its threads over a window"],
    explained_by: &[],
    judge,
};

/// Moves a second of one thread.
const MANY: f64 = 100.0;

fn judge(case: &Case<'_>) -> Vec<Judgement> {
    if case.online().len() == 1 {
        return vec![Judgement::Clear("one CPU is online".into())];
    }
    match case.processes() {
        Err(missing) => vec![missing.of("")],
        Ok(all) => {
            all.iter().map(|p| settle(&format!("{} ({})", p.name, p.pid), one(case, p))).collect()
        }
    }
}

fn one(case: &Case<'_>, p: &Process) -> Result<Judgement, Missing> {
    let window = case.window_s()?;
    let threads: Vec<_> = case.samples()?.threads.iter().filter(|t| t.pid == p.pid).collect();
    if threads.is_empty() {
        return Err(Missing(format!("threads of {} ({}): not in the samples", p.name, p.pid)));
    }
    let mut rates = vec![];
    for t in &threads {
        let moves = *need(&format!("migrations of thread {}", t.tid), &t.migrations)?;
        rates.push((moves as f64 / window, t));
    }
    let moving: Vec<_> = rates.iter().filter(|(rate, _)| *rate > MANY).collect();
    let Some((rate, worst)) = moving.iter().max_by(|a, b| a.0.total_cmp(&b.0)).copied() else {
        return Ok(Judgement::Clear(format!(
            "{} ({}): no thread moved more than {}",
            p.name,
            p.pid,
            text::per_s(MANY)
        )));
    };
    let seen: CpuSet = moving.iter().flat_map(|(_, t)| t.on_cpus.iter().copied()).collect();
    Ok(Draft::new(
        format!("{} ({})", p.name, p.pid),
        format!(
            "{}: {} between CPUs more than {}",
            p.name,
            if moving.len() == 1 {
                "1 thread moves".into()
            } else {
                format!("{} threads move", moving.len())
            },
            text::per_s(MANY)
        ),
    )
    .weigh(Severity::Info, Confidence::Medium)
    .explain(
        "Each move leaves caches behind. On some machines throughput swings with it, on others it \
         does not matter: measure with the threads pinned before keeping that.",
    )
    .gain(Gain::Improves, "steadier throughput, where the machine is sensitive to it")
    .show(
        format!("migrations of thread {} ({}) {}", worst.tid, worst.name, case.over()),
        text::per_s(*rate),
        format!("/proc/{}/task/{}/sched", p.pid, worst.tid),
    )
    .show("CPUs it was seen on", seen.to_string(), format!("/proc/{}/task/*/stat, field 39", p.pid))
    .change(advice(
        &p.cpuset_cpus.known().map_or("not known".into(), ToString::to_string),
        "one CPU or one L3 for each thread",
        &format!("taskset -acp LIST {} (all threads), lasting through the unit's cpuset", p.pid),
        "imbalance: a pinned thread waits for its CPU while others idle",
    ))
    .found())
}
