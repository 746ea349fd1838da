//! Remarks on a NIC's packet path, from facts alone. Whether something costs anything depends on
//! counters over a window, which `doctor` judges.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    BitsPerSec, CpuId, CpuSet, Facts, IrqId, NumaNode,
    ids::Direction,
    nic::{Nic, PciFunction},
};

use crate::{
    path::{self, Irqs, Row},
    places::CpuPlaces,
    words::{cpus, many, queues, ranges},
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Whether it is probably wrong, not only worth knowing.
    pub warning: bool,
    pub text: String,
}

fn warn(text: String) -> Note {
    Note { warning: true, text }
}

fn note(text: String) -> Note {
    Note { warning: false, text }
}

/// All remarks on a NIC, warnings first.
pub fn of_nic(nic: &Nic, facts: &Facts, irqs: &Irqs<'_>, places: &CpuPlaces<'_>) -> Vec<Note> {
    let rows = path::rows(nic, irqs, places);
    let mut notes = vec![];
    notes.extend(link(nic));
    notes.extend(nic.pci.known().and_then(pcie));
    notes.extend(off_node(nic, &rows));
    notes.extend(piled_up(nic, &rows, places));
    notes.extend(not_as_asked(&rows, irqs));
    notes.extend(isolated(&rows, places));
    notes.extend(channels(nic, facts, places));
    notes.extend(rps(&rows));
    notes.extend(xps(&rows, places));
    notes.sort_by_key(|n| !n.warning);
    notes
}

fn link(nic: &Nic) -> Vec<Note> {
    let mut notes = vec![];
    if nic.up.get() == Some(true) && nic.carrier.get() == Some(false) {
        notes.push(warn("no carrier: check the cable and the link partner".into()));
    }
    if nic.up.get() == Some(false) {
        notes.push(note("administratively down".into()));
    }
    if nic.duplex.known().is_some_and(|d| d == "half") {
        notes.push(warn("half duplex: the two ends disagree on autonegotiation".into()));
    }
    notes
}

/// A link slower or narrower than both ends could.
fn pcie(pci: &PciFunction) -> Option<Note> {
    if pci.is_emulated() {
        return None;
    }
    let (speed, most) = (pci.link_speed_mts.get()?, pci.max_link_speed_mts.get()?);
    let (width, widest) = (pci.link_width.get()?, pci.max_link_width.get()?);
    if speed >= most && width >= widest {
        return None;
    }
    let gts = |mts: u32| f64::from(mts) / 1000.0;
    let usable = pci.usable_bps.get().map(|b: BitsPerSec| format!(", {b} each way"));
    Some(warn(format!(
        "PCIe link runs at {} GT/s x{width} of {} GT/s x{widest}{}",
        gts(speed),
        gts(most),
        usable.unwrap_or_default()
    )))
}

/// Interrupts that go to another node than the NIC's.
fn off_node(nic: &Nic, rows: &[Row]) -> Option<Note> {
    let home = nic.numa_node.get()?;
    let away: Vec<&Row> = rows
        .iter()
        .filter(|r| !r.queues.is_empty() && !r.nodes.is_empty() && !r.nodes.contains(&home))
        .collect();
    let first = away.first()?;
    let nodes: BTreeSet<NumaNode> = away.iter().flat_map(|r| r.nodes.iter().copied()).collect();
    let target = together(&away);
    let irqs = ranges(away.iter().flat_map(|r| r.irqs.iter().map(|i| i.0)));
    let what = if away.len() == 1 {
        format!("IRQ {irqs} ({}) goes", queues(&first.queues))
    } else {
        format!("{} ({irqs}) go", many(away.len(), "IRQ"))
    };
    Some(warn(format!(
        "{what} to {} on {} {}; the NIC is on node {home}",
        cpus(&target),
        if nodes.len() == 1 { "node" } else { "nodes" },
        ranges(nodes.iter().map(|n| n.0))
    )))
}

fn together(rows: &[&Row]) -> CpuSet {
    rows.iter().filter_map(|r| r.target.known()).fold(CpuSet::new(), |a, b| a.union(b))
}

/// Several queues' interrupts on one CPU while others of the node have none.
fn piled_up(nic: &Nic, rows: &[Row], places: &CpuPlaces<'_>) -> Vec<Note> {
    let mut on: BTreeMap<CpuId, Vec<&Row>> = BTreeMap::new();
    for row in rows.iter().filter(|r| !r.queues.is_empty()) {
        if let Some(cpu) = row.target.known().filter(|t| t.len() == 1).and_then(CpuSet::first) {
            on.entry(cpu).or_default().push(row);
        }
    }
    let home = nic.numa_node.get();
    let used: CpuSet = on.keys().copied().collect();
    let free = places.online(home).difference(&used);
    if free.is_empty() {
        return vec![];
    }
    let wide = |r: &Row| r.queues.len() > 1 && r.irqs.len() == 1 && shares_vector(r);
    let mut notes: Vec<Note> = on
        .iter()
        .filter(|(_, rows)| rows.len() > 1 && distinct_rx(rows) != 1)
        .map(|(cpu, rows)| {
            let irqs = ranges(rows.iter().flat_map(|r| r.irqs.iter().map(|i| i.0)));
            warn(format!(
                "{} ({irqs}) all go to CPU {cpu}, while {} none",
                many(rows.len(), "queue IRQ"),
                of_node(free.len(), home),
            ))
        })
        .collect();
    notes.extend(rows.iter().filter(|r| wide(r)).map(|r| {
        warn(format!(
            "{} share one interrupt ({})",
            queues(&r.queues),
            ranges(r.irqs.iter().map(|i| i.0))
        ))
    }));
    notes
}

/// Receive queues in these rows. The rx and tx vectors of one channel on one CPU are fine.
fn distinct_rx(rows: &[&Row]) -> usize {
    let of = |way| {
        rows.iter()
            .flat_map(|r| &r.queues)
            .filter(|q| q.direction == way)
            .map(|q| q.index)
            .collect::<BTreeSet<_>>()
    };
    let (rx, tx) = (of(Direction::Rx), of(Direction::Tx));
    rx.union(&tx).count()
}

/// More than one channel on a vector.
fn shares_vector(row: &Row) -> bool {
    distinct_rx(&[row]) > 1
}

fn of_node(n: usize, node: Option<NumaNode>) -> String {
    let whose = node.map(|n| format!(" of node {n}")).unwrap_or_default();
    if n == 1 { format!("1 CPU{whose} has") } else { format!("{n} CPUs{whose} have") }
}

/// The kernel delivers to another CPU than requested.
fn not_as_asked(rows: &[Row], irqs: &Irqs<'_>) -> Vec<Note> {
    let off = rows.iter().flat_map(|r| &r.irqs).filter_map(|id| {
        let irq = irqs.get(id).filter(|i| !i.move_waits())?;
        let (asked, real) = (irq.affinity.known()?, irq.effective_affinity.known()?);
        (!real.is_empty() && !real.is_subset(asked)).then(|| {
            warn(format!("IRQ {id}: affinity {}, effective affinity {}", cpus(asked), cpus(real)))
        })
    });
    let mut notes: Vec<Note> = off.collect();
    // Most chips apply a new target at the next interrupt; the rows have the new one.
    let waits = |id: &&IrqId| irqs.get(id).is_some_and(|i| i.move_waits());
    let waiting: Vec<u32> = rows.iter().flat_map(|r| &r.irqs).filter(waits).map(|i| i.0).collect();
    if !waiting.is_empty() {
        let what = if waiting.len() == 1 {
            format!("IRQ {}", ranges(waiting))
        } else {
            format!("{} ({})", many(waiting.len(), "IRQ"), ranges(waiting))
        };
        notes.push(note(format!("{what}: the affinity takes effect at the first interrupt")));
    }
    notes
}

fn isolated(rows: &[Row], places: &CpuPlaces<'_>) -> Option<Note> {
    let target = together(&rows.iter().filter(|r| !r.queues.is_empty()).collect::<Vec<_>>());
    let hit = places.isolated(&target);
    let verb = if hit.len() == 1 { "takes" } else { "take" };
    (!hit.is_empty()).then(|| warn(format!("isolated {} {verb} its interrupts", cpus(&hit))))
}

fn channels(nic: &Nic, facts: &Facts, places: &CpuPlaces<'_>) -> Option<Note> {
    let c = nic.channels.known()?;
    let online = facts.host.cpus_online.get().unwrap_or_else(|| places.online(None)).len() as u32;
    let (now, most) = if c.max_combined > 0 {
        (c.combined + c.rx.min(c.tx), c.max_combined)
    } else {
        (c.rx, c.max_rx)
    };
    let useful = if online > 0 { most.min(online) } else { most };
    (now < useful).then(|| {
        note(format!(
            "{} in use, {most} possible, {online} CPUs online",
            many(now as usize, "channel")
        ))
    })
}

fn rps(rows: &[Row]) -> Option<Note> {
    let set: Vec<&Row> = rows.iter().filter(|r| !r.rps.is_empty()).collect();
    let first = set.first()?;
    let target = set.iter().fold(CpuSet::new(), |a, r| a.union(&r.rps));
    let rx = set.iter().flat_map(|r| &r.queues).filter(|q| q.direction == Direction::Rx);
    let rfs = if first.rfs > 0 { " with RFS" } else { "" };
    Some(note(format!("RPS{rfs} steers rx {} to {}", ranges(rx.map(|q| q.index)), cpus(&target))))
}

fn xps(rows: &[Row], places: &CpuPlaces<'_>) -> Vec<Note> {
    let set: Vec<&Row> = rows.iter().filter(|r| !r.xps.is_empty()).collect();
    if set.is_empty() {
        return vec![];
    }
    let mut notes = vec![];
    let all = set.iter().fold(CpuSet::new(), |a, r| a.union(&r.xps));
    let none = places.online(None).difference(&all);
    if !none.is_empty() {
        notes.push(note(format!("XPS names no tx queue for {}", cpus(&none))));
    }
    let apart: Vec<&&Row> = set
        .iter()
        .filter(|r| {
            // Judged by node: the sending and the completing CPU may well differ.
            let senders = places.nodes(&r.xps);
            !senders.is_empty() && !r.nodes.is_empty() && senders.is_disjoint(&r.nodes)
        })
        .collect();
    if !apart.is_empty() {
        let tx = apart.iter().flat_map(|r| &r.queues).filter(|q| q.direction == Direction::Tx);
        notes.push(warn(format!(
            "XPS lets CPUs send on tx {} whose interrupts go to another node",
            ranges(tx.map(|q| q.index))
        )));
    }
    notes
}

#[cfg(test)]
mod tests {
    use model::{QueueId, Reading, reading::Known};

    use super::*;
    use crate::testing::{self, MachineShape};

    fn texts(f: &Facts) -> Vec<String> {
        let mark = |n: Note| format!("{}{}", if n.warning { "! " } else { "" }, n.text);
        of_nic(&f.nics[0], f, &path::irqs(f), &CpuPlaces::new(f)).into_iter().map(mark).collect()
    }

    fn two_nodes(cpus: &[u32]) -> Facts {
        let shape = MachineShape { packages: 2, nodes: 1, l3s: 1, cores: 4, threads: 1 };
        let mut f = testing::machine(shape);
        testing::add_nic(&mut f, "eth0", 0, 4, 40, cpus);
        f
    }

    #[test]
    fn a_well_placed_nic_draws_no_remark() {
        assert_eq!(texts(&two_nodes(&[0, 1, 2, 3])), [""; 0]);
    }

    #[test]
    fn off_the_node_and_piled_up() {
        assert_eq!(
            texts(&two_nodes(&[4, 5, 6, 7])),
            ["! 4 IRQs (40-43) go to CPUs 4-7 on node 1; the NIC is on node 0"]
        );
        assert_eq!(
            texts(&two_nodes(&[0])),
            ["! 4 queue IRQs (40-43) all go to CPU 0, while 3 CPUs of node 0 have none"]
        );
        let mut f = two_nodes(&[4, 5, 6, 7]);
        f.nics[0].numa_node = Reading::absent("-1");
        assert_eq!(texts(&f), [""; 0], "a NIC without a node is on no wrong one");
    }

    #[test]
    fn rx_and_tx_vectors_of_one_channel_belong_together() {
        let mut f = two_nodes(&[0, 0, 1, 1]);
        let mut irqs = f.irqs.get().unwrap();
        for (irq, q) in
            irqs.iter_mut().zip([QueueId::rx(0), QueueId::tx(0), QueueId::rx(1), QueueId::tx(1)])
        {
            irq.queues = vec![q];
        }
        f.nics[0].queues.retain(|q| q.id.index < 2);
        for q in &mut f.nics[0].queues {
            q.irq = Known(irqs.iter().find(|i| i.queues == [q.id]).unwrap().irq);
        }
        f.irqs = Known(irqs);
        assert_eq!(texts(&f), [""; 0]);
    }

    #[test]
    fn asked_isolated_down_and_narrow() {
        let mut f = two_nodes(&[0, 1, 2, 3]);
        f.cpus[1].isolated = Known(true);
        let mut irqs = f.irqs.get().unwrap();
        irqs[0].affinity = Known("2-3".parse().unwrap());
        f.irqs = Known(irqs);
        f.nics[0].carrier = Known(false);
        let mut channels = f.nics[0].channels.get().unwrap();
        channels.max_combined = 16;
        f.nics[0].channels = Known(channels);
        assert_eq!(
            texts(&f),
            [
                "! no carrier: check the cable and the link partner",
                "! IRQ 40: affinity CPUs 2-3, effective affinity CPU 0",
                "! isolated CPU 1 takes its interrupts",
                "4 channels in use, 16 possible, 8 CPUs online",
            ]
        );
        let mut irqs = f.irqs.get().unwrap();
        irqs[0].counts = Known(vec![]);
        f.irqs = Known(irqs);
        let waits = "IRQ 40: the affinity takes effect at the first interrupt";
        assert!(texts(&f).contains(&waits.to_owned()), "{:?}", texts(&f));
    }

    #[test]
    fn a_move_waits_for_the_first_interrupt() {
        let mut f = two_nodes(&[0, 1, 2, 3]);
        let mut irqs = f.irqs.get().unwrap();
        for (n, asked) in [(2, "3"), (3, "2")] {
            irqs[n].affinity = Known(asked.parse().unwrap());
            irqs[n].counts = Known(vec![]);
        }
        f.irqs = Known(irqs.clone());
        let waits = "2 IRQs (42-43): the affinity takes effect at the first interrupt";
        assert_eq!(texts(&f), [waits], "each has its CPU of the right node");
        irqs[2].affinity = Known("5".parse().unwrap());
        f.irqs = Known(irqs);
        assert_eq!(
            texts(&f),
            ["! IRQ 42 (rx+tx 2) goes to CPU 5 on node 1; the NIC is on node 0", waits],
            "and that may be wrong already"
        );
    }

    #[test]
    fn rps_and_xps_are_noted_where_they_cross_nodes_or_leave_cpus_out() {
        let mut f = two_nodes(&[0, 1, 2, 3]);
        f.nics[0].queues[0].rps_cpus = Known("0-3".parse().unwrap());
        f.nics[0].queues[4].xps_cpus = Known("4-7".parse().unwrap());
        assert_eq!(
            texts(&f),
            [
                "! XPS lets CPUs send on tx 0 whose interrupts go to another node",
                "RPS steers rx 0 to CPUs 0-3",
                "XPS names no tx queue for CPUs 0-3",
            ]
        );
    }
}
