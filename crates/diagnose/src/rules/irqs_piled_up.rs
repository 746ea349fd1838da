//! 2: several queues' interrupts on one CPU.

use std::collections::BTreeMap;

use model::{Confidence, CpuId, CpuSet, Severity, nic::Nic};

use crate::{
    Case, Rule,
    load::{self, Load},
    queues::{self, BUSY_IRQ_PER_S, QueueIrq},
    rule::{Draft, Gain, Judgement, Missing, Proposal, clear},
    spread, text,
};

pub static RULE: Rule = Rule {
    id: "irqs_piled_up",
    number: 2,
    title: "interrupts of several queues on one CPU",
    needs: &[
        "interrupts tied to queues",
        "/proc/interrupts over a window",
        "CPU time over a window",
    ],
    explained_by: &[],
    judge,
};

/// The fewest queue interrupts that can pile up.
const LEAST_IRQS: usize = 4;
/// Share of a NIC's queue interrupts on one CPU that makes a pile.
const PILE: f64 = 0.50;
/// Share of the NIC's interrupts from which one queue's counts as part of the traffic: an
/// interrupt that hardly fires cannot pile up.
const TAKES_PART: f64 = 0.05;

fn judge(case: &Case<'_>) -> Vec<Judgement> {
    if let Some(clear) = queues::one_cpu(case, "one CPU is online: nothing to spread") {
        return vec![clear];
    }
    queues::each_physical(case, |nic| one(case, nic))
}

struct IrqDelta<'a> {
    queue: QueueIrq<'a>,
    by_cpu: Vec<(CpuId, u64)>,
}

impl IrqDelta<'_> {
    fn total(&self) -> u64 {
        queues::total(&self.by_cpu)
    }

    /// The CPU that took most of it.
    fn main_cpu(&self) -> Option<CpuId> {
        self.by_cpu.iter().max_by_key(|g| (g.1, std::cmp::Reverse(g.0))).map(|g| g.0)
    }
}

fn one(case: &Case<'_>, nic: &Nic) -> Result<Judgement, Missing> {
    let irqs = queues::queue_irqs(case, nic)?;
    let name = &nic.name;
    if irqs.len() < LEAST_IRQS {
        let text = format!(
            "{name} has {}, fewer than {LEAST_IRQS}",
            text::plural(irqs.len(), "queue interrupt")
        );
        return clear(text, [&queues::all_rx_irqs(case, nic)]);
    }
    let mut grown = vec![];
    for queue in irqs {
        let by_cpu = queues::growth(case, queue.irq)?;
        grown.push(IrqDelta { queue, by_cpu });
    }
    let total: u64 = grown.iter().map(IrqDelta::total).sum();
    let rate = total as f64 / case.window_s()?;
    if rate < BUSY_IRQ_PER_S {
        let text = format!("{name}: {} interrupts, too few to matter", text::per_s(rate));
        return clear(text, [&queues::all_rx_irqs(case, nic), &case.samples()?.irqs]);
    }
    grown.retain(|g| g.total() as f64 >= total as f64 * TAKES_PART);
    let mut per_cpu: BTreeMap<CpuId, u64> = BTreeMap::new();
    for (cpu, n) in grown.iter().flat_map(|g| &g.by_cpu) {
        *per_cpu.entry(*cpu).or_default() += n;
    }
    let Some((&cpu, &most)) = per_cpu.iter().max_by_key(|(c, n)| (**n, std::cmp::Reverse(**c)))
    else {
        return Err(Missing(format!("interrupts of {name}'s queues: no CPU counted them")));
    };
    let share = most as f64 / total as f64;
    let (pile, others): (Vec<_>, Vec<_>) =
        grown.into_iter().partition(|g| g.main_cpu() == Some(cpu));
    let busy_queues = pile.len() + others.len();
    let pool = pool(case, nic, cpu);
    // The fewest possible on each CPU: two of four queues, where the node has two CPUs.
    let even = pool.len() > 1 && pile.len() <= busy_queues.div_ceil(pool.len());
    if share <= PILE || pile.len() < 2 || busy_queues < LEAST_IRQS || even {
        let text = format!(
            "{name}: CPU {cpu} takes {} of the interrupts of {} with traffic, {} of them its own",
            text::percent(share),
            text::plural(busy_queues, "queue"),
            pile.len()
        );
        return clear(text, [&queues::all_rx_irqs(case, nic), &case.samples()?.irqs]);
    }
    let load = load::load(case, cpu)?;
    Ok(finding(case, nic, &Pile { cpu, share, rate, load, pile, others, pool }))
}

struct Pile<'a> {
    cpu: CpuId,
    share: f64,
    rate: f64,
    load: Load,
    pile: Vec<IrqDelta<'a>>,
    others: Vec<IrqDelta<'a>>,
    pool: Vec<CpuId>,
}

fn finding(case: &Case<'_>, nic: &Nic, p: &Pile<'_>) -> Judgement {
    let (severity, confidence, gain) = if p.load.hot() {
        (Severity::Critical, Confidence::High, Gain::Unblocks)
    } else if p.load.busy >= 0.5 {
        (Severity::Warning, Confidence::Medium, Gain::Improves)
    } else {
        (Severity::Info, Confidence::Low, Gain::Tidies)
    };
    let effect = if p.load.busy >= 0.5 {
        "Packets of these queues wait for one CPU although each could have its own."
    } else {
        "That CPU still has room, so nothing measurable is lost now; under load it is the first \
         to run full."
    };
    let mut draft = Draft::new(
        &nic.name,
        format!(
            "{} of {}'s interrupts, from {}, land on CPU {}",
            text::percent(p.share),
            nic.name,
            text::plural(p.pile.len(), "queue"),
            p.cpu
        ),
    )
    .weigh(severity, confidence)
    .explain(effect)
    .gain(gain, "the queues' work runs on as many CPUs as there are queues")
    .show(
        format!("{}'s queue interrupts {}", nic.name, case.over()),
        format!("{}, {} of them on CPU {}", text::per_s(p.rate), text::percent(p.share), p.cpu),
        "/proc/interrupts",
    )
    .show_load(case, p.cpu, p.load);
    for g in p.pile.iter().take(8) {
        draft = draft.show(
            format!("IRQ {} ({})", g.queue.irq.irq, g.queue.label()),
            format!(
                "{} {}, effective affinity {}",
                text::count(g.total()),
                case.over(),
                g.queue
                    .irq
                    .effective_affinity
                    .known()
                    .map_or("not known".into(), ToString::to_string)
            ),
            format!("/proc/interrupts, /proc/irq/{}/effective_affinity_list", g.queue.irq.irq),
        );
    }
    let (changes, note) = moves(case, p);
    draft
        .add(&note)
        .changes(changes)
        .on_nic(&nic.name)
        .on_cpus(&[p.cpu].into_iter().collect())
        .found()
}

/// The CPUs that may serve the NIC's queues.
fn pool(case: &Case<'_>, nic: &Nic, cpu: CpuId) -> Vec<CpuId> {
    // Application and softirq on one node matter more than the NIC's own node.
    let node = if spread::processes_live_with(case, &[cpu].into_iter().collect()) {
        case.node_of(cpu)
    } else {
        nic.numa_node.get()
    };
    spread::candidates(case, node)
}

/// The busiest queue's interrupts stay; every other interrupt of the pile moves to the CPU with the
/// fewest, possibly the same CPU.
fn moves(case: &Case<'_>, p: &Pile<'_>) -> (Vec<Proposal>, String) {
    let mut pile: Vec<&IrqDelta<'_>> = p.pile.iter().collect();
    pile.sort_by_key(|g| (std::cmp::Reverse(g.total()), g.queue.irq.irq));
    let managed: Vec<_> = pile
        .iter()
        .filter(|g| g.queue.irq.managed.get() == Some(true))
        .map(|g| g.queue.irq.irq)
        .collect();
    let note = if managed.is_empty() {
        String::new()
    } else {
        format!(
            "The kernel itself manages {}: writing the affinity answers EIO. Their CPUs follow \
             from the number of channels and the kernel cmdline (isolcpus=managed_irq).",
            text::irqs(&managed)
        )
    };
    let taken: CpuSet = p.others.iter().filter_map(IrqDelta::main_cpu).chain([p.cpu]).collect();
    let stays = pile.first().and_then(|g| g.queue.number());
    let movable = pile.iter().map(|g| &g.queue).filter(|q| q.number() != stays);
    let movable: Vec<_> = movable.filter(|q| !managed.contains(&q.irq.irq)).collect();
    let mut taken = taken.iter().map(|c| (c, 1)).collect();
    let mut moves = spread::moves(case, &movable, &p.pool, &mut taken);
    moves.retain(|m| !m.as_ref().is_ok_and(|m| m.new == p.cpu.to_string()));
    (moves, note)
}
