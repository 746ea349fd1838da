//! 14: other tuners of settings that Netwright judges.

use model::{Confidence, IrqId, Severity, ids::Direction, nic::Nic, tuner::Tuner};

use crate::{
    Case, Rule,
    knob::advice,
    queues,
    rule::{Draft, Gain, Judgement, Missing, clear, need, settle},
    text,
};

/// Catalogue number 14. One reading shows which tuners are present and where two would conflict. A
/// revert shows only in a later reading.
pub static RULE: Rule = Rule {
    id: "conflicting_tuner",
    number: 14,
    title: "another program sets the same knobs",
    needs: &["tuners", "interrupt affinities", "a second reading after a change, for reverts"],
    explained_by: &[],
    judge,
};

/// Fewest queues whose order can look deliberate.
const LEAST_QUEUES: usize = 4;

fn judge(case: &Case<'_>) -> Vec<Judgement> {
    let mut out = vec![
        Missing(
            "reverts by others: they show only when a setting is read again after a change".into(),
        )
        .of(""),
    ];
    out.extend(two_owners(case));
    let mut balancers = case.facts.tuners.iter().filter(|r| r.kind == "irqbalance");
    let mut read =
        balancers.try_for_each(|r| need("whether irqbalance runs", &r.running).map(drop));
    if let Some(balancer) = case.running_tuner("irqbalance") {
        read = read.and(queues::all_states(case)).and(case.nics_read());
        read = read.and(need("interrupts banned from irqbalance", &balancer.banned_irqs).map(drop));
        for nic in queues::running_physical(case) {
            match placed_queues(case, nic, balancer) {
                Ok(found) => out.extend(found),
                Err(missing) => read = read.and(Err(missing)),
            }
        }
    }
    let mut list: Vec<String> = case.facts.tuners.iter().map(describe).collect();
    if let Some(name) = case.facts.host.sched_ext.known().filter(|name| *name != "none") {
        list.push(format!("sched_ext scheduler {name}: where threads run"));
    }
    if !list.is_empty() {
        out.push(settle("", clear(list.join("; "), [&read])));
    }
    out
}

/// `irqbalance (pid 612): irq affinity`.
fn describe(r: &Tuner) -> String {
    let name = if r.name.is_empty() { &r.kind } else { &r.name };
    let state = match (r.running.get(), r.pid.get()) {
        (Some(true), Some(pid)) => format!(" (pid {pid})"),
        (Some(true), None) => " (running)".into(),
        (Some(false), _) => " (not running; would set)".into(),
        (None, _) => String::new(),
    };
    let profile = r.profile.known().map_or(String::new(), |p| format!(" profile {p}"));
    let owns = if r.owns.is_empty() { "nothing known".into() } else { r.owns.join(", ") };
    format!("{name}{state}{profile}: {owns}")
}

/// irqbalance runs, and a script, rule, agent or profile places interrupts too.
fn two_owners(case: &Case<'_>) -> Option<Judgement> {
    let balancer = case.running_tuner("irqbalance")?;
    let places = |r: &&Tuner| {
        r.kind != "irqbalance"
            && r.running.get() != Some(false)
            && r.owns.iter().any(|o| o.to_lowercase().contains("irq affinity"))
    };
    let other = case.facts.tuners.iter().find(places)?;
    if balancer.banned_irqs.known().is_some_and(|b| !b.is_empty()) {
        return None;
    }
    let mut draft =
        Draft::new("irq affinity", format!("irqbalance and {} both place interrupts", other.name))
            .weigh(Severity::Info, Confidence::Medium)
            .explain(
                "irqbalance runs and bans no interrupt, so it moves what the other one has placed. \
             Either ban those interrupts in irqbalance or leave them to it.",
            )
            .gain(Gain::Tidies, "placements that stay")
            .show("irqbalance", describe(balancer), "/proc, irqbalance's files and socket")
            .show(
                &other.name,
                describe(other),
                other.evidence.first().cloned().unwrap_or_else(|| other.name.clone()),
            );
    for line in balancer.evidence.iter().take(4) {
        draft = draft.show("irqbalance setting", line, "as named");
    }
    Some(draft.alone().found())
}

/// irqbalance runs, and a NIC's queues sit one by one on consecutive CPUs as scripts place them.
fn placed_queues(
    case: &Case<'_>,
    nic: &Nic,
    balancer: &Tuner,
) -> Result<Option<Judgement>, Missing> {
    let irqs = queues::queue_irqs(case, nic)?;
    let mut placed: Vec<(u32, u32, IrqId)> = vec![];
    for q in irqs.iter().filter(|q| q.serves(Direction::Rx)) {
        let set = need(&format!("affinity of IRQ {}", q.irq.irq), &q.irq.affinity)?;
        let rx = q.queues.iter().find(|i| i.direction == Direction::Rx);
        let (Some(rx), Some(cpu), 1) = (rx, set.first(), set.len()) else { return Ok(None) };
        placed.push((rx.index, cpu.0, q.irq.irq));
    }
    placed.sort_unstable();
    let in_order = placed.windows(2).all(|w| matches!(w, [a, b] if b.1 == a.1 + 1));
    let banned = need("interrupts banned from irqbalance", &balancer.banned_irqs)?;
    let free: Vec<IrqId> = placed.iter().map(|p| p.2).filter(|i| !banned.contains(i)).collect();
    if placed.len() < LEAST_QUEUES || !in_order || free.is_empty() {
        return Ok(None);
    }
    let bans: Vec<String> = free.iter().map(|i| format!("--banirq={i}")).collect();
    let Some(first) = placed.first() else { return Ok(None) };
    Ok(Some(
        Draft::new(
            &nic.name,
            format!("{}'s interrupts look placed by hand, and irqbalance may move them", nic.name),
        )
        .weigh(Severity::Info, Confidence::Low)
        .explain(
            "Each receive queue is asked to be on one CPU, in the order of the queues: a script \
                 or the driver did that. irqbalance runs and does not ban these interrupts.",
        )
        .gain(Gain::Tidies, "placements that stay")
        .show(
            format!("requested affinity of {}", nic.name),
            format!(
                "queue {} on CPU {} and so on, {}",
                first.0,
                first.1,
                text::plural(placed.len(), "queue")
            ),
            "/proc/irq/*/smp_affinity_list",
        )
        .show("irqbalance", describe(balancer), "/proc, irqbalance's files and socket")
        .change(advice(
            "not banned",
            &bans.join(" "),
            &format!(
                "irqbalance {} (in the file that this distribution's unit reads)",
                bans.join(" ")
            ),
            "low; or leave the placement to irqbalance and remove what sets it",
        ))
        .alone()
        .found(),
    ))
}
