//! The packet path of one NIC: queues → interrupt → CPUs → node and L3.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    CpuSet, Facts, IrqId, NumaNode, QueueId, Reading,
    irq::Irq,
    nic::{Nic, Queue},
    reading::Known,
};

use crate::places::CpuPlaces;

/// A row of the path: an interrupt with its queues, queues without a known interrupt, or several
/// equal neighbours (see [`collapse`]).
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The queues, ascending; empty for configuration and event vectors.
    pub queues: Vec<QueueId>,
    /// The interrupts; empty when none is known, and [`Row::no_irq`] says why.
    pub irqs: Vec<IrqId>,
    /// Why there is no interrupt; `None` where there is one.
    pub no_irq: Reading<()>,
    pub name: String,
    /// The target CPUs ([`Irq::target`]).
    pub target: Reading<CpuSet>,
    pub count: Reading<u64>,
    /// Nodes of the target.
    pub nodes: BTreeSet<NumaNode>,
    /// L3s of the target.
    pub l3s: CpuSet,
    /// CPUs that RPS steers to, all queues together.
    pub rps: CpuSet,
    /// RFS entries, all queues together.
    pub rfs: u64,
    /// CPUs that XPS lets send on these queues.
    pub xps: CpuSet,
}

pub type Irqs<'a> = BTreeMap<IrqId, &'a Irq>;

/// The host's interrupts by number; empty when they are not known.
pub fn irqs(facts: &Facts) -> Irqs<'_> {
    facts.irqs.known().into_iter().flatten().map(|i| (i.irq, i)).collect()
}

/// The rows of one NIC: queues by their lowest number, then interrupts that serve no queue.
pub fn rows(nic: &Nic, irqs: &Irqs<'_>, places: &CpuPlaces<'_>) -> Vec<Row> {
    let mut by_irq: BTreeMap<IrqId, Vec<&Queue>> = BTreeMap::new();
    let mut without: BTreeMap<u32, Vec<&Queue>> = BTreeMap::new();
    for q in &nic.queues {
        match irq_of(q, nic, irqs) {
            Some(irq) => by_irq.entry(irq).or_default().push(q),
            None => without.entry(q.id.index).or_default().push(q),
        }
    }
    let others = nic.irqs.iter().filter(|i| !by_irq.contains_key(i)).copied().collect::<Vec<_>>();
    let mut rows: Vec<Row> =
        by_irq.iter().map(|(irq, queues)| row(Some(*irq), queues, irqs, places)).collect();
    rows.extend(without.values().map(|queues| row(None, queues, irqs, places)));
    rows.sort_by_key(|r| r.queues.iter().map(|q| (q.index, q.direction)).min());
    rows.extend(others.into_iter().map(|irq| row(Some(irq), &[], irqs, places)));
    rows
}

fn irq_of(q: &Queue, nic: &Nic, irqs: &Irqs<'_>) -> Option<IrqId> {
    q.irq.get().or_else(|| {
        let ours = |i: &Irq| i.nic.known() == Some(&nic.name) || i.also_nics.contains(&nic.name);
        let serves = |i: &&&Irq| ours(i) && i.queues.contains(&q.id);
        irqs.values().find(serves).map(|i| i.irq)
    })
}

fn row(irq: Option<IrqId>, queues: &[&Queue], irqs: &Irqs<'_>, places: &CpuPlaces<'_>) -> Row {
    let known = irq.and_then(|i| irqs.get(&i));
    let mut ids: Vec<QueueId> = queues.iter().map(|q| q.id).collect();
    ids.sort();
    let no_irq = match queues.first().map(|q| &q.irq) {
        Some(reading) if irq.is_none() => reading.clone().map(|_| ()),
        _ => Known(()),
    };
    let nothing = || Reading::absent("no interrupt is known");
    let target = known.map_or_else(nothing, |i| i.target());
    let set = target.get().unwrap_or_default();
    Row {
        irqs: irq.into_iter().collect(),
        no_irq,
        name: known.map(|i| i.name.clone()).unwrap_or_default(),
        count: known.map_or_else(
            || Reading::absent("no interrupt is known"),
            |i| i.counts.as_ref().map(|c| c.iter().map(|n| n.count).sum()),
        ),
        nodes: places.nodes(&set),
        l3s: places.l3s(&set),
        rps: union(queues.iter().filter_map(|q| q.rps_cpus.known())),
        rfs: queues.iter().filter_map(|q| q.rfs_flows.get()).map(u64::from).sum(),
        xps: union(queues.iter().filter_map(|q| q.xps_cpus.known())),
        queues: ids,
        target,
    }
}

fn union<'a>(sets: impl Iterator<Item = &'a CpuSet>) -> CpuSet {
    sets.fold(CpuSet::new(), |a, b| a.union(b))
}

/// Merges neighbours that differ only in their numbers: one CPU each, on the same node and L3, with
/// the same steering.
pub fn collapse(rows: Vec<Row>) -> Vec<Row> {
    let mut out: Vec<Row> = vec![];
    for row in rows {
        match out.last_mut() {
            Some(last) if alike(last, &row) => join(last, row),
            _ => out.push(row),
        }
    }
    out
}

fn alike(a: &Row, b: &Row) -> bool {
    let directions = |r: &Row| r.queues.iter().map(|q| q.direction).collect::<BTreeSet<_>>();
    !a.queues.is_empty()
        && directions(a) == directions(b)
        && a.irqs.is_empty() == b.irqs.is_empty()
        && std::mem::discriminant(&a.target) == std::mem::discriminant(&b.target)
        && (a.nodes == b.nodes && a.l3s == b.l3s)
        && a.rps == b.rps
        && (a.rfs == 0) == (b.rfs == 0)
        && a.xps.is_empty() == b.xps.is_empty()
}

fn join(a: &mut Row, b: Row) {
    a.queues.extend(b.queues);
    a.irqs.extend(b.irqs);
    a.rfs += b.rfs;
    a.xps = a.xps.union(&b.xps);
    a.count = match (a.count.known(), b.count.known()) {
        (Some(x), Some(y)) => Known(x + y),
        _ => Reading::absent("not known of every interrupt in the row"),
    };
    if let (Known(x), Known(y)) = (&a.target, &b.target) {
        a.target = Known(x.union(y));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn sixty_four_queues_collapse_by_l3_and_configuration_vectors_stay() {
        let shape = testing::MachineShape { packages: 2, nodes: 1, l3s: 2, cores: 16, threads: 1 };
        let mut f = testing::machine(shape);
        testing::add_nic(&mut f, "eth0", 0, 64, 40, &(0..64).collect::<Vec<_>>());
        f.nics[0].irqs.push(IrqId(39));
        let (places, irqs) = (CpuPlaces::new(&f), irqs(&f));
        let all = rows(&f.nics[0], &irqs, &places);
        assert_eq!(all.len(), 65);
        let few = collapse(all);
        assert_eq!(few.len(), 5);
        assert_eq!(crate::words::queues(&few[1].queues), "rx+tx 16-31");
        assert_eq!(few[1].target, Known("16-31".parse().unwrap()));
        assert_eq!(few[1].count, Known((16..32).map(|i| 1000 + i).sum()));
        assert!(few[4].queues.is_empty());
        assert_eq!(few[4].target.known(), None, "an interrupt nobody listed");
    }
}
