//! 3: interrupts served by CPUs of another node than the NIC's.

use model::{Confidence, CpuSet, NumaNode, Severity, nic::Nic};

use crate::{
    Case, Rule,
    queues::{self, BUSY_IRQ_PER_S, QueueIrq},
    rule::{Draft, Gain, Judgement, Missing, Proposal, clear, need, settle},
    spread, text,
};

pub static RULE: Rule = Rule {
    id: "irq_off_node",
    number: 3,
    title: "interrupts served away from the NIC's node",
    needs: &[
        "the NIC's node",
        "NUMA nodes",
        "interrupts tied to queues",
        "/proc/interrupts over a window",
    ],
    // A change of channels reassigns the interrupts.
    explained_by: &["few_channels"],
    judge,
};

fn judge(case: &Case<'_>) -> Vec<Judgement> {
    match case.nodes_with_cpus() {
        Err(missing) => vec![missing.of("")],
        Ok(nodes) if nodes.len() <= 1 => vec![settle("", queues::one_node(case))],
        Ok(_) => queues::each_physical(case, |nic| one(case, nic)),
    }
}

fn node_path(nic: &Nic) -> String {
    format!("/sys/class/net/{}/device/numa_node", nic.name)
}

/// A busy interrupt and the CPUs of other nodes that served it.
struct Stray<'a> {
    queue: QueueIrq<'a>,
    away: CpuSet,
    count: u64,
}

fn one(case: &Case<'_>, nic: &Nic) -> Result<Judgement, Missing> {
    let source = node_path(nic);
    let node = *need(&source, &nic.numa_node)?;
    let local = case.node_cpus(node);
    if local.is_empty() {
        return Err(Missing(format!("{source}: node {node} has no CPUs of its own")));
    }
    let window = case.window_s()?;
    let (mut strays, mut taken, mut busy) = (vec![], vec![], 0);
    for queue in queues::queue_irqs(case, nic)? {
        let grown = queues::growth(case, queue.irq)?;
        if (queues::total(&grown) as f64) < BUSY_IRQ_PER_S * window {
            continue;
        }
        busy += 1;
        let off = grown.iter().filter(|g| !local.contains(g.0));
        let (away, count) = off.fold((CpuSet::new(), 0), |(mut set, n), g| {
            set.insert(g.0);
            (set, n + g.1)
        });
        // A move within the window leaves a few counts on the old CPU.
        if count * 2 > queues::total(&grown) {
            strays.push(Stray { queue, away, count });
        } else {
            taken.extend(grown.iter().map(|g| g.0));
        }
    }
    if strays.is_empty() {
        let said = if busy == 0 {
            "none of its queue interrupts is busy".into()
        } else {
            format!("so are the CPUs of {}", text::plural(busy, "busy queue interrupt"))
        };
        let text = format!("{} is on node {node}, {said}", nic.name);
        return clear(text, [&nic.numa_node, &queues::all_rx_irqs(case, nic)]);
    }
    let taken: CpuSet = taken.into_iter().collect();
    Ok(finding(case, nic, node, &local, &strays, &taken))
}

fn finding(
    case: &Case<'_>,
    nic: &Nic,
    node: NumaNode,
    local: &CpuSet,
    strays: &[Stray<'_>],
    taken: &CpuSet,
) -> Judgement {
    let source = node_path(nic);
    let away = strays.iter().fold(CpuSet::new(), |set, s| set.union(&s.away));
    let together = spread::processes_live_with(case, &away);
    let numbers: Vec<_> = strays.iter().map(|s| s.queue.irq.irq).collect();
    let mut draft = Draft::new(
        &nic.name,
        format!(
            "{} is on node {node}, {} served by {} of another node",
            nic.name,
            text::plural(strays.len(), "busy queue interrupt"),
            text::cpus(&away)
        ),
    )
    .explain(
        "Descriptor rings stay in the memory of the NIC's node while packet buffers follow the \
         CPU that serves the interrupt, so every packet crosses the link between nodes.",
    )
    .show(format!("node of {}", nic.name), node.to_string(), source)
    .show(
        format!("CPUs of node {node}"),
        local.to_string(),
        format!("/sys/devices/system/node/node{node}/cpulist"),
    );
    for s in strays.iter().take(8) {
        draft = draft.show(
            format!("IRQ {} ({}) {}", s.queue.irq.irq, s.queue.label(), case.over()),
            format!("{} on {}", text::count(s.count), text::cpus(&s.away)),
            "/proc/interrupts",
        );
    }
    draft = if together {
        draft
            .weigh(Severity::Info, Confidence::Medium)
            .gain(Gain::Tidies, "none from moving the interrupts alone")
            .add(
                "The chosen processes run on that node too. Application and softirq on one node \
                 matters more than the NIC's own node, so moving only the interrupts would part \
                 them: move both or none.",
            )
    } else {
        draft
            .weigh(Severity::Warning, Confidence::Medium)
            .gain(Gain::Improves, "fewer cycles per packet on those CPUs")
            .add(
                "Keep application and softirq on one node: that matters more than the NIC's node, \
                 so move the application along if it sits with the interrupts now.",
            )
            .changes(moves(case, node, strays, taken))
    };
    if strays.len() > 8 {
        draft = draft.add(&format!("All of them: {}.", text::irqs(&numbers)));
    }
    draft.on_nic(&nic.name).on_cpus(&away).found()
}

fn moves(case: &Case<'_>, node: NumaNode, strays: &[Stray<'_>], taken: &CpuSet) -> Vec<Proposal> {
    let movable = strays.iter().map(|s| &s.queue).filter(|q| q.irq.managed.get() != Some(true));
    let movable: Vec<_> = movable.collect();
    let pool = spread::candidates(case, Some(node));
    let local = case.node_cpus(node);
    let pool: Vec<_> = pool.into_iter().filter(|c| local.contains(*c)).collect();
    spread::moves(case, &movable, &pool, &mut taken.iter().map(|c| (c, 1)).collect())
}
