//! From a NIC to its queues, their interrupts, and the CPUs that serve them.

use model::{
    CpuId, CpuSet, QueueId,
    ids::Direction,
    irq::Irq,
    nic::{Nic, UNKNOWN_KIND},
};

use crate::{
    Case,
    case::by_id,
    load::{self, Load},
    rule::{Judgement, Missing, clear, need, settle},
    text,
};

/// Interrupts a second from which one counts as busy. Our proposal: an idle host's NIC raises a
/// few, a single interactive session some dozens.
pub(crate) const BUSY_IRQ_PER_S: f64 = 100.0;

/// Received packets a second from which a NIC counts as carrying traffic. Our proposal.
pub(crate) const BUSY_NIC_PER_S: f64 = 1_000.0;

/// Share of an interrupt's growth from which a CPU counts as serving it.
const SERVES: f64 = 0.10;

/// Whether a NIC carries traffic; `Err` where this is unknown.
fn is_running(nic: &Nic) -> Result<bool, Missing> {
    match (nic.up.get(), nic.carrier.get(), nic.operstate.known().map(String::as_str)) {
        (Some(false), _, _) | (_, Some(false), _) => Ok(false),
        // The kernel updates `operstate` up to a second after the carrier; packets flow earlier.
        (Some(true), Some(true), Some(state)) => Ok(!matches!(state, "dormant" | "notpresent")),
        (_, _, Some("down" | "lowerlayerdown" | "notpresent" | "dormant")) => Ok(false),
        (Some(true), _, _) | (_, Some(true), _) | (_, _, Some("up" | "unknown")) => Ok(true),
        _ => Err(Missing(format!(
            "whether {} is up: {}",
            nic.name,
            nic.operstate.why_not().unwrap_or("not known")
        ))),
    }
}

/// Judges every NIC that has a device and is up. Virtual devices have neither rings nor interrupts,
/// and a NIC that is down does no work.
pub(crate) fn each_physical(
    case: &Case<'_>,
    judge: impl Fn(&Nic) -> Result<Judgement, Missing>,
) -> Vec<Judgement> {
    each_nic(case, has_device, "no physical NIC is up", judge)
}

/// Whether the interface has a device; `Err` where this is unknown.
pub(crate) fn has_device(nic: &Nic) -> Result<bool, Missing> {
    match nic.kind.as_str() {
        UNKNOWN_KIND => Err(Missing(format!("whether a device is behind {}: not known", nic.name))),
        kind => Ok(kind == "physical"),
    }
}

/// "Clear" on a host with one CPU, where nothing can be spread. A CPU with an unknown state counts
/// as online.
pub(crate) fn one_cpu(case: &Case<'_>, because: &str) -> Option<Judgement> {
    (case.online().len() == 1).then(|| settle("", clear(because, [&case.cpus_read()])))
}

/// "Clear" where all CPUs are on one node.
pub(crate) fn one_node(case: &Case<'_>) -> Result<Judgement, Missing> {
    clear("the host has one node with CPUs", [&case.nodes_with_cpus()])
}

/// Judges every NIC that is administratively up.
pub(crate) fn each_nic(
    case: &Case<'_>,
    wanted: impl Fn(&Nic) -> Result<bool, Missing>,
    none: &str,
    judge: impl Fn(&Nic) -> Result<Judgement, Missing>,
) -> Vec<Judgement> {
    let mut out = vec![];
    for nic in &case.facts.nics {
        let judged = match (is_running(nic), wanted(nic)) {
            (Ok(false), _) | (_, Ok(false)) => continue,
            (Err(missing), _) | (_, Err(missing)) => Err(missing),
            (Ok(true), Ok(true)) => judge(nic),
        };
        out.push(settle(&nic.name, judged));
    }
    if out.is_empty() {
        out.push(settle("", clear(none, [&case.nics_read()])));
    }
    out
}

/// Evidence: all interrupts of the receive queues, so that other CPUs are known to serve none.
pub(crate) fn all_rx_irqs(case: &Case<'_>, nic: &Nic) -> Result<(), Missing> {
    let irqs = queue_irqs(case, nic)?;
    let rx = nic.queues.iter().filter(|q| q.id.direction == Direction::Rx);
    match rx.map(|q| q.id).find(|id| !irqs.iter().any(|i| i.queues.contains(id))) {
        Some(id) => Err(Missing(format!("interrupt of {}'s {id}: not known", nic.name))),
        None => Ok(()),
    }
}

/// The names of the NICs that have a device and are up.
pub(crate) fn running_physical<'a>(case: &Case<'a>) -> Vec<&'a Nic> {
    let nics = case.facts.nics.iter();
    let runs = |n: &Nic| has_device(n).and_then(|device| Ok(device && is_running(n)?));
    nics.filter(|n| runs(n).unwrap_or(false)).collect()
}

/// Evidence: for every NIC, whether it has a device and is up.
pub(crate) fn all_states(case: &Case<'_>) -> Result<(), Missing> {
    case.facts
        .nics
        .iter()
        .try_for_each(|nic| if is_running(nic)? { has_device(nic).map(drop) } else { Ok(()) })
}

/// An interrupt with the queues it serves.
pub(crate) struct QueueIrq<'a> {
    pub(crate) irq: &'a Irq,
    pub(crate) queues: Vec<QueueId>,
}

impl QueueIrq<'_> {
    pub(crate) fn serves(&self, direction: Direction) -> bool {
        self.queues.iter().any(|q| q.direction == direction)
    }

    /// The number of its first queue.
    pub(crate) fn number(&self) -> Option<u32> {
        self.queues.first().map(|q| q.index)
    }

    /// Its queues in one word: `rx-0+tx-0`.
    pub(crate) fn label(&self) -> String {
        self.queues.iter().map(ToString::to_string).collect::<Vec<_>>().join("+")
    }
}

/// The interrupts that serve queues of a NIC.
pub(crate) fn queue_irqs<'a>(case: &Case<'a>, nic: &Nic) -> Result<Vec<QueueIrq<'a>>, Missing> {
    let irqs = need("interrupts", &case.facts.irqs)?;
    let of_nic = |irq: &Irq| {
        let mut queues: Vec<QueueId> = vec![];
        if irq.nic.known() == Some(&nic.name) {
            queues.extend(&irq.queues);
        }
        let reported = nic.queues.iter().filter(|q| q.irq.get() == Some(irq.irq)).map(|q| q.id);
        queues.extend(reported);
        queues.sort();
        queues.dedup();
        queues
    };
    let mut found = vec![];
    for irq in irqs {
        let queues = of_nic(irq);
        if !queues.is_empty() {
            found.push(QueueIrq { irq, queues });
        }
    }
    if found.is_empty() {
        let why = nic.queues.iter().find_map(|q| q.irq.why_not());
        let why = why.unwrap_or("none of its interrupts names a queue");
        return Err(Missing(format!("interrupts of {}'s queues: {why}", nic.name)));
    }
    Ok(found)
}

/// An interrupt's growth by CPU over the window; an unlisted CPU did not grow.
pub(crate) fn growth(case: &Case<'_>, irq: &Irq) -> Result<Vec<(CpuId, u64)>, Missing> {
    let all = need("/proc/interrupts over the window", &case.samples()?.irqs)?;
    let Some(sample) = by_id(all, irq.irq, |s| s.irq) else { return Ok(vec![]) };
    let what = format!("growth of IRQ {}", irq.irq);
    let cells = sample.cpus.iter();
    cells.map(|d| Ok((d.cpu, *need(&what, &d.count)?))).collect()
}

pub(crate) fn total(growth: &[(CpuId, u64)]) -> u64 {
    growth.iter().map(|g| g.1).sum()
}

/// The CPUs that serve an interrupt: where it counted over the window, else its effective affinity.
///
/// A saturated queue is polled with its interrupt off and may hardly count.
pub(crate) fn irq_cpus(case: &Case<'_>, irq: &Irq) -> Result<CpuSet, Missing> {
    let grown = growth(case, irq).unwrap_or_default();
    let all = total(&grown);
    if all > 0 {
        let serves = |g: &&(CpuId, u64)| g.1 as f64 >= all as f64 * SERVES;
        return Ok(grown.iter().filter(serves).map(|g| g.0).collect());
    }
    if irq.move_waits() {
        return need(&format!("/proc/irq/{}/smp_affinity_list", irq.irq), &irq.affinity).cloned();
    }
    let what = format!("/proc/irq/{}/effective_affinity_list", irq.irq);
    match need(&what, &irq.effective_affinity) {
        Ok(set) => Ok(set.clone()),
        // One requested CPU leaves no choice.
        Err(missing) => match irq.affinity.known() {
            Some(set) if set.len() == 1 => Ok(set.clone()),
            _ => Err(missing),
        },
    }
}

/// All CPUs that serve a NIC's queues of one direction.
pub(crate) fn nic_cpus(
    case: &Case<'_>,
    nic: &Nic,
    direction: Direction,
) -> Result<CpuSet, Missing> {
    let mut set = CpuSet::new();
    for q in queue_irqs(case, nic)?.iter().filter(|q| q.serves(direction)) {
        set = set.union(&irq_cpus(case, q.irq)?);
    }
    if set.is_empty() {
        return Err(Missing(format!("CPUs that serve {}'s queues: none is known", nic.name)));
    }
    Ok(set)
}

/// The busiest CPU that serves a NIC's receive queues, by network work.
pub(crate) fn busiest_rx_cpu(case: &Case<'_>, nic: &Nic) -> Result<(CpuId, Load), Missing> {
    let mut best: Option<(CpuId, Load)> = None;
    for cpu in nic_cpus(case, nic, Direction::Rx)?.iter() {
        let load = load::load(case, cpu)?;
        let key = |l: Load| l.network;
        if best.is_none_or(|(_, b)| key(load) > key(b)) {
            best = Some((cpu, load));
        }
    }
    best.ok_or_else(|| Missing(format!("CPUs that serve {}'s queues: none is known", nic.name)))
}

/// Packets a second that a NIC received.
pub(crate) fn rx_per_s(case: &Case<'_>, nic: &Nic) -> Result<f64, Missing> {
    Ok(case.nic_statistic(&nic.name, "rx_packets")? as f64 / case.window_s()?)
}

/// The present number of queues of one direction.
pub(crate) fn count(nic: &Nic, direction: Direction) -> usize {
    nic.queues.iter().filter(|q| q.id.direction == direction).count()
}

/// Evidence: queues of this direction were read.
pub(crate) fn some_queue(nic: &Nic, direction: Direction) -> Result<(), Missing> {
    match count(nic, direction) {
        0 => Err(Missing(format!("queues of {}: none was read", nic.name))),
        _ => Ok(()),
    }
}

/// Why a threaded NIC cannot be judged by softirq time.
pub(crate) fn not_threaded(nic: &Nic) -> Result<(), Missing> {
    let napis = nic.napis.known().map(Vec::as_slice).unwrap_or_default();
    if nic.threaded_napi.get() == Some(true) || napis.iter().any(|n| n.threaded.get() == Some(true))
    {
        return Err(Missing(format!(
            "CPU time of {}'s polls: its NAPI runs in kernel threads, which are not sampled",
            nic.name
        )));
    }
    Ok(())
}

/// A software device has no bus to judge: its hypervisor accesses memory.
pub(crate) fn emulated(nic: &Nic) -> Option<Result<Judgement, Missing>> {
    let driver = nic.driver.known().map_or("driver not known", String::as_str);
    let text = format!(
        "{}: an emulated device ({driver}), whose PCIe registers describe no bus",
        nic.name
    );
    if driver == "virtio_net" {
        return Some(clear(text, [&nic.driver]));
    }
    let emulated = nic.pci.known().is_some_and(|p| p.is_emulated());
    emulated.then(|| clear(text, [&nic.pci]))
}

/// A NIC's receive rate in words: `eth0: 12,000/s received`.
pub(crate) fn rx_text(nic: &Nic, rate: f64) -> String {
    format!("{}: {} received", nic.name, text::per_s(rate))
}
