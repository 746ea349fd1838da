//! 31: an application's threads that move between CPUs all the time.

use model::{Change, Confidence, CpuSet, Severity, process::Process, samples::ThreadSample};

use crate::{
    Case, Rule,
    knob::{advice, change},
    rule::{Draft, Gain, Judgement, Missing, need},
    seats::{self, Group},
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
/// Share of a CPU from which a thread is busy enough for a few moves between caches to count.
const BUSY: f64 = 0.5;
/// Times that such a thread was seen to have gone to another L3 or node from one reading to the
/// next. One move is what a balancer does once.
const CROSSINGS: usize = 3;

/// A process and its threads that move.
struct Moving<'a> {
    process: &'a Process,
    /// With moves a second.
    threads: Vec<(f64, &'a ThreadSample)>,
    /// Crossings of L3 or node of the one that crossed most.
    crossings: usize,
}

fn judge(case: &Case<'_>) -> Vec<Judgement> {
    if case.online().len() == 1 {
        return vec![Judgement::Clear("one CPU is online".into())];
    }
    let all = match case.processes() {
        Err(missing) => return vec![missing.of("")],
        Ok(all) => all,
    };
    let (mut said, mut moving) = (vec![], vec![]);
    for p in all {
        match look(case, p) {
            Err(missing) => said.push(missing.of(format!("{} ({})", p.name, p.pid))),
            Ok(found) if found.threads.is_empty() => said.push(Judgement::Clear(format!(
                "{} ({}): no thread moved more than {}",
                p.name,
                p.pid,
                text::per_s(MANY)
            ))),
            Ok(found) => moving.push(found),
        }
    }
    let processes: Vec<&Process> = moving.iter().map(|m| m.process).collect();
    let groups = seats::groups(&processes);
    let seats = seats::hand_out(case, &groups);
    for m in &moving {
        let at = groups.iter().position(|g| g.members.iter().any(|p| p.pid == m.process.pid));
        let group = at.and_then(|i| groups.get(i));
        let seat = match &seats {
            Ok(all) => at.and_then(|i| all.get(i)).ok_or(""),
            Err(why) => Err(why.as_str()),
        };
        let remedy = match (group, seat) {
            (Some(group), Ok(seat)) => place(m.process, group, seat),
            (_, seat) => by_hand(m.process, seat.err().unwrap_or_default()),
        };
        said.push(finding(case, m, remedy));
    }
    said
}

fn look<'a>(case: &Case<'a>, p: &'a Process) -> Result<Moving<'a>, Missing> {
    let (window, samples) = (case.window_s()?, case.samples()?);
    let threads: Vec<_> = samples.threads.iter().filter(|t| t.pid == p.pid).collect();
    if threads.is_empty() {
        return Err(Missing(format!("threads of {} ({}): not in the samples", p.name, p.pid)));
    }
    let mut found = Moving { process: p, threads: vec![], crossings: 0 };
    for t in threads {
        let moves = *need(&format!("migrations of thread {}", t.tid), &t.migrations)?;
        let rate = moves as f64 / window;
        let busy = t.cpu_ns.get().is_some_and(|ns| ns as f64 / 1e9 >= BUSY * window);
        let crossings = if busy { seats::crossings(case, &t.on_cpus) } else { 0 };
        if rate > MANY || crossings >= CROSSINGS {
            found.crossings = found.crossings.max(crossings);
            found.threads.push((rate, t));
        }
    }
    Ok(found)
}

/// The change that keeps a group of processes on its CPUs.
fn place(p: &Process, group: &Group<'_>, seat: &CpuSet) -> Change {
    let old = p.cpuset_cpus.known().map_or("not known".into(), ToString::to_string);
    let (command, holds) = if group.confined {
        let folder = p.cgroup.known().map_or("", String::as_str);
        (
            format!("echo {seat} > $(find /sys/fs/cgroup -path '*{folder}/cpuset.cpus')"),
            "holds for all processes of its control group; ",
        )
    } else {
        (format!("taskset -acp {seat} {}", group.leader.pid), "")
    };
    let risk =
        format!("imbalance: {holds}a thread waits for its CPU while others idle; look again after");
    change(group.knob(), old, seat.to_string(), command, risk)
}

fn by_hand(p: &Process, why: &str) -> Change {
    advice(
        &p.cpuset_cpus.known().map_or("not known".into(), ToString::to_string),
        "one CPU or one L3 for each thread",
        &format!("taskset -acp LIST {} (all threads), lasting through the unit's cpuset", p.pid),
        &format!(
            "imbalance: a pinned thread waits for its CPU while others idle; none is proposed: {why}"
        ),
    )
}

fn finding(case: &Case<'_>, m: &Moving<'_>, remedy: Change) -> Judgement {
    let p = m.process;
    let n = m.threads.len();
    let Some((rate, worst)) = m.threads.iter().max_by(|a, b| a.0.total_cmp(&b.0)) else {
        return Judgement::Clear(format!("{} ({}): no thread moves", p.name, p.pid));
    };
    let seen: CpuSet = m.threads.iter().flat_map(|(_, t)| t.on_cpus.iter().copied()).collect();
    let often = if *rate > MANY {
        format!("between CPUs more than {}", text::per_s(MANY))
    } else {
        "between caches while busy".into()
    };
    let who = if n == 1 { "1 thread moves".to_owned() } else { format!("{n} threads move") };
    let mut draft = Draft::new(
        format!("{} ({})", p.name, p.pid),
        format!("{}: {who} {often}", p.name),
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
    );
    if m.crossings > 0 {
        draft = draft.show(
            format!("moves to another L3 or node, from reading to reading {}", case.over()),
            m.crossings.to_string(),
            format!("/proc/{}/task/*/stat, field 39", p.pid),
        );
    }
    draft
        .show(
            "CPUs it was seen on",
            seen.to_string(),
            format!("/proc/{}/task/*/stat, field 39", p.pid),
        )
        .change(remedy)
        .found()
}
