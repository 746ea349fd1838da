//! 12: transmit steering that crosses caches.

use model::{Confidence, CpuSet, QueueId, Severity, ids::Direction, nic::Nic};

use crate::{
    Case, Rule,
    knob::change,
    queues::{self, BUSY_IRQ_PER_S},
    rule::{Draft, Gain, Judgement, Missing, clear, need},
    spread, text,
};

pub static RULE: Rule = Rule {
    id: "xps_not_local",
    number: 12,
    title: "transmit queues chosen by CPUs far from the queue's interrupt",
    needs: &[
        "xps_cpus of the transmit queues",
        "the CPUs that serve their interrupts",
        "L3 caches or NUMA nodes",
    ],
    explained_by: &["irq_off_node", "irqs_piled_up"],
    judge,
};

/// Beyond this [`spread::distance`] two CPUs share neither an L3 nor a node.
const SAME_NODE: u32 = 3;

fn judge(case: &Case<'_>) -> Vec<Judgement> {
    if let Some(clear) = queues::one_cpu(case, "one CPU is online: everything is local") {
        return vec![clear];
    }
    queues::each_physical(case, |nic| one(case, nic))
}

struct Row {
    queue: QueueId,
    xps: CpuSet,
    irq_cpus: CpuSet,
    /// Interrupts a second, if known.
    rate: f64,
}

fn rows(case: &Case<'_>, nic: &Nic) -> Result<Vec<Row>, Missing> {
    let irqs = queues::queue_irqs(case, nic)?;
    let window = case.window_s().unwrap_or(f64::INFINITY);
    let mut rows = vec![];
    for q in nic.queues.iter().filter(|q| q.id.direction == Direction::Tx) {
        let path = format!("/sys/class/net/{}/queues/{}/xps_cpus", nic.name, q.id);
        let xps = need(&path, &q.xps_cpus)?.clone();
        let irq = irqs.iter().find(|i| i.queues.contains(&q.id));
        let irq =
            irq.ok_or_else(|| Missing(format!("interrupt of {}'s {}: not known", nic.name, q.id)))?;
        let irq_cpus = queues::irq_cpus(case, irq.irq)?;
        let grown = queues::growth(case, irq.irq).unwrap_or_default();
        rows.push(Row { queue: q.id, xps, irq_cpus, rate: queues::total(&grown) as f64 / window });
    }
    Ok(rows)
}

fn one(case: &Case<'_>, nic: &Nic) -> Result<Judgement, Missing> {
    let name = &nic.name;
    if queues::count(nic, Direction::Tx) < 2 {
        return clear(
            format!("{name}: single transmit queue"),
            [&queues::some_queue(nic, Direction::Tx)],
        );
    }
    let read = rows(case, nic);
    let rows = read.as_ref().map_err(Clone::clone)?;
    if rows.iter().all(|r| r.xps.is_empty()) {
        let text = format!("{name}: no queue has xps_cpus, the flow's hash chooses");
        return clear(text, [&read]);
    }
    let off_node = |r: &&Row| {
        let pairs = r.xps.iter().flat_map(|a| r.irq_cpus.iter().map(move |b| (a, b)));
        !r.xps.is_empty()
            && pairs.map(|(a, b)| spread::distance(case, a, b)).min() > Some(SAME_NODE)
    };
    let strays: Vec<&Row> = rows.iter().filter(off_node).collect();
    if strays.is_empty() {
        let text =
            format!("{name}: every queue's xps_cpus share a cache or node with its interrupt");
        return clear(text, [&read]);
    }
    // Without a known topology no CPU is known to be far.
    if let Some(cpu) = strays
        .iter()
        .flat_map(|r| r.xps.union(&r.irq_cpus).iter().collect::<Vec<_>>())
        .find(|c| case.node_of(*c).is_none())
    {
        return Err(Missing(format!("node of CPU {cpu}: not known")));
    }
    let places: Vec<_> = rows.iter().map(|r| (r.queue, r.irq_cpus.clone())).collect();
    let map = spread::nearest_queues(case, &places);
    if strays.iter().all(|r| map.get(&r.queue) == Some(&r.xps)) {
        let text =
            format!("{name}: every CPU uses the nearest queue that the interrupts' places allow");
        return clear(text, [&read]);
    }
    let busy = strays.iter().any(|r| r.rate >= BUSY_IRQ_PER_S);
    let mut draft = Draft::new(
        name,
        format!(
            "{} of {} transmit queues of {name} {} interrupt",
            strays.len(),
            rows.len(),
            if strays.len() == 1 {
                "is used by CPUs of another node than its"
            } else {
                "are used by CPUs of another node than their"
            },
        ),
    )
    .weigh(
        if busy { Severity::Warning } else { Severity::Info },
        if busy { Confidence::Medium } else { Confidence::Low },
    )
    .explain(
        "A packet sent on one CPU is freed where the queue's interrupt completes it; across \
             nodes both touch the same lines. One queue per CPU, near its interrupt, avoids that.",
    )
    .gain(Gain::Improves, "fewer cycles per packet sent");
    for r in strays.iter().take(8) {
        draft = draft.show(
            format!("{} of {name}", r.queue),
            format!("used by {}, its interrupt on {}", text::cpus(&r.xps), text::cpus(&r.irq_cpus)),
            format!("/sys/class/net/{name}/queues/{}/xps_cpus, /proc/interrupts", r.queue),
        );
    }
    for r in rows {
        let Some(new) = map.get(&r.queue).filter(|new| **new != r.xps) else { continue };
        let mask = new.to_hex_mask();
        draft = draft.change(change(
            format!("nic.{name}.queue.{}.xps_cpus", r.queue),
            r.xps.to_hex_mask(),
            &mask,
            "low; flows in progress may change queue once",
        ));
    }
    Ok(draft.on_nic(name).found())
}
