//! From a NIC to its queues, their interrupts, and the CPUs that serve them.

use model::{CpuId, CpuSet, QueueId, ids::Direction, irq::Irq, nic::Nic};

use crate::{
    Case,
    case::by_id,
    load::{self, Load},
    rule::{Judgement, Missing, need, settle},
    text,
};

/// Interrupts a second from which one counts as busy. Our proposal: an idle host's NIC raises a
/// few, a single interactive session some dozens.
pub(crate) const BUSY_IRQ_PER_S: f64 = 100.0;

/// Received packets a second from which a NIC counts as carrying traffic. Our proposal.
pub(crate) const BUSY_NIC_PER_S: f64 = 1_000.0;

/// Share of an interrupt's growth from which a CPU counts as serving it.
const SERVES: f64 = 0.10;

/// Whether a NIC carries traffic at all; `Err` when that cannot be told.
fn is_running(nic: &Nic) -> Result<bool, Missing> {
    match (nic.up.get(), nic.carrier.get(), nic.operstate.known().map(String::as_str)) {
        (Some(false), _, _) | (_, Some(false), _) => Ok(false),
        // The kernel works `operstate` out up to a second after the carrier came; packets do
        // not wait for it.
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

/// Judges every NIC with a device behind it that is up; virtual devices have neither rings nor
/// interrupts, and a NIC that is down does no work.
pub(crate) fn each_physical(
    case: &Case<'_>,
    judge: impl Fn(&Nic) -> Result<Judgement, Missing>,
) -> Vec<Judgement> {
    each_nic(case, |nic| nic.kind == "physical", "no physical NIC is up", judge)
}

/// Judges every NIC that is wanted and up.
pub(crate) fn each_nic(
    case: &Case<'_>,
    wanted: impl Fn(&Nic) -> bool,
    none: &str,
    judge: impl Fn(&Nic) -> Result<Judgement, Missing>,
) -> Vec<Judgement> {
    if case.facts.nics.is_empty() {
        return vec![Missing("network interfaces: none was read".into()).of("")];
    }
    let mut out = vec![];
    for nic in case.facts.nics.iter().filter(|n| wanted(n)) {
        match is_running(nic) {
            Ok(true) => out.push(settle(&nic.name, judge(nic))),
            Ok(false) => {}
            Err(missing) => out.push(missing.of(&nic.name)),
        }
    }
    if out.is_empty() {
        out.push(Judgement::Clear(none.into()));
    }
    out
}

/// The names of the NICs with a device behind them that are up.
pub(crate) fn running_physical<'a>(case: &Case<'a>) -> Vec<&'a Nic> {
    let nics = case.facts.nics.iter();
    nics.filter(|n| n.kind == "physical" && is_running(n).unwrap_or(false)).collect()
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

    /// `rx-0+tx-0`.
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
        let told = nic.queues.iter().filter(|q| q.irq.get() == Some(irq.irq)).map(|q| q.id);
        queues.extend(told);
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

/// An interrupt's growth by CPU over the window; one that is not listed did not grow.
pub(crate) fn growth(case: &Case<'_>, irq: &Irq) -> Result<Vec<(CpuId, u64)>, Missing> {
    let all = need("/proc/interrupts over the window", &case.samples()?.irqs)?;
    let Some(sample) = by_id(all, irq.irq, |s| s.irq) else { return Ok(vec![]) };
    let what = format!("growth of IRQ {}", irq.irq);
    let cells = sample.cpus.iter();
    cells.map(|d| Ok((d.cpu, *need(&what, &d.count)?))).collect()
}

/// Sum over CPUs.
pub(crate) fn total(growth: &[(CpuId, u64)]) -> u64 {
    growth.iter().map(|g| g.1).sum()
}

/// The CPUs that serve an interrupt: where it counted over the window, else where it would go.
///
/// A saturated queue is polled with its interrupt off and may hardly count: then the effective
/// affinity answers.
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

/// Queues of one direction that the NIC has now.
pub(crate) fn count(nic: &Nic, direction: Direction) -> usize {
    nic.queues.iter().filter(|q| q.id.direction == direction).count()
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

/// Nothing is said about the bus of a device that is software: its hypervisor reads memory.
pub(crate) fn emulated(nic: &Nic) -> Option<Judgement> {
    let driver = nic.driver.known().map_or("driver not known", String::as_str);
    let vendor = nic.pci.known().is_some_and(|p| p.is_emulated());
    (vendor || driver == "virtio_net").then(|| {
        Judgement::Clear(format!(
            "{}: an emulated device ({driver}), whose PCIe registers describe no bus",
            nic.name
        ))
    })
}

/// `eth0: 12,000/s received`.
pub(crate) fn rx_text(nic: &Nic, rate: f64) -> String {
    format!("{}: {} received", nic.name, text::per_s(rate))
}
