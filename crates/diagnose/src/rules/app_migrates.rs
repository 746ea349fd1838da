//! 31: an application's threads that move between CPUs all the time.

use model::{Confidence, CpuSet, Severity, process::Process, samples::ThreadSample};

use crate::{
    Case, Rule,
    assignments::{self, Group},
    knob::advice,
    queues,
    rule::{Draft, Gain, Judgement, Missing, Proposal, clear, need, settle},
    text,
};

/// Catalogue number 31. The cost of migrations depends on the machine: the finding proposes to
/// measure with pinned threads.
pub static RULE: Rule = Rule {
    id: "app_migrates",
    number: 31,
    title: "an application's threads migrate between CPUs all the time",
    needs: &["a chosen process", "migrations of its threads over a window"],
    explained_by: &[],
    judge,
};

/// Moves a second of one thread.
const MANY: f64 = 100.0;
/// Share of a CPU from which a thread is busy enough for a few moves between caches to count.
const BUSY: f64 = 0.5;
/// Migrations of such a thread to another L3 or node between readings. A load balancer moves a
/// thread once.
const CROSSINGS: usize = 3;
/// The share of a CPU below which a thread's migrations have no visible effect on throughput. Our
/// proposal.
const LEAST_BUSY: f64 = 0.05;

const RISK: &str = "imbalance: a thread waits for its CPU while others idle; look again after";

/// A process and its threads that move.
struct Moving<'a> {
    process: &'a Process,
    /// With moves a second.
    threads: Vec<(f64, &'a ThreadSample)>,
    /// Crossings of L3 or node of the one that crossed most.
    crossings: usize,
    /// Evidence: for each thread, whether it was busy and where.
    places: Result<(), Missing>,
}

fn judge(case: &Case<'_>) -> Vec<Judgement> {
    if let Some(clear) = queues::one_cpu(case, "one CPU is online") {
        return vec![clear];
    }
    let all = match case.processes() {
        Err(missing) => return vec![missing.of("")],
        Ok(all) => all,
    };
    let (mut said, mut moving) = (vec![], vec![]);
    for p in all {
        match look(case, p) {
            Err(missing) => said.push(missing.of(format!("{}[{}]", p.name, p.pid))),
            Ok(found) if found.threads.is_empty() => {
                let who = format!("{}[{}]", p.name, p.pid);
                let most = text::per_s(MANY);
                let text = format!("{who}: no busy thread migrated more than {most}");
                said.push(settle(&who, clear(text, [&found.places])));
            }
            Ok(found) => moving.push(found),
        }
    }
    let processes: Vec<&Process> = moving.iter().map(|m| m.process).collect();
    let groups = assignments::groups(&processes);
    let assignments = assignments::hand_out(case, &groups);
    // Equal processes share a finding, as in a server with a process for each connection.
    let mut alike: Vec<(&str, Option<usize>, Vec<&Moving<'_>>)> = vec![];
    for m in &moving {
        let at = groups.iter().position(|g| g.members.iter().any(|p| p.pid == m.process.pid));
        let own = at.filter(|i| groups.get(*i).is_some_and(|g| g.confined));
        match alike.iter_mut().find(|(name, of, _)| *name == m.process.name && *of == own) {
            Some((_, _, list)) => list.push(m),
            None => alike.push((&m.process.name, own, vec![m])),
        }
    }
    for (_, _, list) in alike {
        let mine = |g: &Group<'_>| list.iter().any(|m| m.process.pid == g.leader.pid);
        let remedies = match &assignments {
            Ok(all) => {
                let mine = groups.iter().zip(all).filter(|(g, _)| mine(g));
                mine.map(|(group, assignment)| assignments::place(group, assignment, RISK))
                    .collect()
            }
            Err(why) => list.iter().take(1).map(|m| by_hand(m.process, why)).collect(),
        };
        said.extend(finding(case, &list, remedies));
    }
    said
}

fn look<'a>(case: &Case<'a>, p: &'a Process) -> Result<Moving<'a>, Missing> {
    let (window, samples) = (case.window_s()?, case.samples()?);
    let threads: Vec<_> = samples.threads.iter().filter(|t| t.pid == p.pid).collect();
    if threads.is_empty() {
        return Err(Missing(format!("threads of {}[{}]: not in the samples", p.name, p.pid)));
    }
    let mut found = Moving { process: p, threads: vec![], crossings: 0, places: Ok(()) };
    for t in threads {
        let moves = *need(&format!("migrations of thread {}", t.tid), &t.migrations)?;
        let rate = moves as f64 / window;
        let share = t.cpu_ns.get().map(|ns| ns as f64 / 1e9 / window);
        let crossings = match share {
            Some(share) if share >= BUSY => assignments::crossings(case, &t.on_cpus),
            _ => 0,
        };
        let cpu_time = need(&format!("CPU time of thread {}", t.tid), &t.cpu_ns).map(drop);
        let places = t.on_cpus.iter().try_for_each(|c| case.node_read(*c).map(drop));
        let busy = share.is_some_and(|share| share >= BUSY);
        found.places = found.places.and(cpu_time).and(if busy { places } else { Ok(()) });
        let idle = share.is_some_and(|share| share < LEAST_BUSY);
        if (rate > MANY && !idle) || crossings >= CROSSINGS {
            found.crossings = found.crossings.max(crossings);
            found.threads.push((rate, t));
        }
    }
    Ok(found)
}

/// The scheduler in BPF that is loaded.
fn sched_ext<'a>(case: &Case<'a>) -> Option<&'a str> {
    case.facts.host.sched_ext.known().map(String::as_str).filter(|name| *name != "none")
}

fn by_hand(p: &Process, why: &str) -> Proposal {
    advice(
        &assignments::affinity(p).known().map(ToString::to_string).unwrap_or_default(),
        "one CPU or one L3 for each thread",
        &format!("taskset -acp LIST {} (all threads), lasting through the unit's cpuset", p.pid),
        &format!(
            "imbalance: a pinned thread waits for its CPU while others idle; none is proposed: {why}"
        ),
    )
}

fn finding(case: &Case<'_>, all: &[&Moving<'_>], remedies: Vec<Proposal>) -> Option<Judgement> {
    let threads = || all.iter().flat_map(|m| m.threads.iter().map(|t| (m.process, t)));
    let (p, (rate, worst)) = threads().max_by(|a, b| a.1.0.total_cmp(&b.1.0))?;
    let seen: CpuSet = threads().flat_map(|(_, (_, t))| t.on_cpus.iter().copied()).collect();
    let often = if *rate > MANY {
        format!("between CPUs more than {}", text::per_s(MANY))
    } else {
        "between caches while busy".into()
    };
    let n = threads().count();
    let who = if n == 1 { "1 thread migrates".to_owned() } else { format!("{n} threads migrate") };
    let subject = match all {
        [_] => format!("{}[{}]", p.name, p.pid),
        many => format!("{} ({} processes)", p.name, many.len()),
    };
    let mut draft = Draft::new(subject, format!("{}: {who} {often}", p.name))
        .weigh(Severity::Info, Confidence::Medium)
        .explain(
            "Each migration leaves warm caches behind. On some machines throughput swings with it, on others \
             it does not matter: measure with the threads pinned before keeping that.",
        )
        .gain(Gain::Improves, "steadier throughput, where the machine is sensitive to it")
        .show(
            format!("migrations of thread {} ({}) {}", worst.tid, worst.name, case.over()),
            text::per_s(*rate),
            format!("/proc/{}/task/{}/sched", p.pid, worst.tid),
        );
    let crossings = all.iter().map(|m| m.crossings).max().unwrap_or_default();
    if crossings > 0 {
        draft = draft.show(
            format!("migrations to another L3 or node, between samples, {}", case.over()),
            crossings.to_string(),
            format!("/proc/{}/task/*/stat, field 39", p.pid),
        );
    }
    if let Some(scheduler) = sched_ext(case) {
        draft = draft
            .add(&format!(
                "The sched_ext scheduler {scheduler} decides where threads run: these are its migrations."
            ))
            .show("scheduler", scheduler, "/sys/kernel/sched_ext/root/ops");
    }
    let shown = draft.show(
        "CPUs it ran on",
        seen.to_string(),
        format!("/proc/{}/task/*/stat, field 39", p.pid),
    );
    Some(shown.changes(remedies).found())
}
