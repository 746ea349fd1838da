//! Assigns queues of a NIC to CPUs: the same way for findings and for changes.

use std::collections::BTreeMap;

use crate::{CpuId, NumaNode, cpu::Cpu};

/// The first threads of all cores before the second ones, within them the NIC's node first, and
/// by turns one of each L3 cache.
pub fn ordered(cpus: &[&Cpu], node: Option<NumaNode>) -> Vec<CpuId> {
    let thread = |c: &Cpu| {
        let earlier =
            |o: &&&Cpu| o.id < c.id && c.smt_siblings.known().is_some_and(|s| s.contains(o.id));
        cpus.iter().filter(earlier).count()
    };
    let ranked: Vec<(usize, bool, &Cpu)> =
        cpus.iter().map(|c| (thread(c), node.is_some() && c.numa_node.get() != node, *c)).collect();
    let turn = |(t, peer, c): &(usize, bool, &Cpu)| {
        let before = |(ot, ofar, o): &&(usize, bool, &Cpu)| {
            (ot, ofar) == (t, peer) && o.l3_id.get() == c.l3_id.get() && o.id < c.id
        };
        ranked.iter().filter(before).count()
    };
    let mut keyed: Vec<_> =
        ranked.iter().map(|r| ((r.0, r.1, turn(r), r.2.l3_id.get(), r.2.id), r.2.id)).collect();
    keyed.sort();
    keyed.into_iter().map(|(_, id)| id).collect()
}

/// A CPU for each queue number: the one with the fewest queues so far, the first of those. Receive
/// and transmit queues of one number share a CPU, for most packets sent are answers to packets
/// received. `None` without CPUs. `taken` counts the queues of each CPU.
pub fn assignments(
    numbers: impl IntoIterator<Item = u32>,
    places: &[CpuId],
    taken: &mut BTreeMap<CpuId, u32>,
) -> BTreeMap<u32, CpuId> {
    let mut numbers: Vec<u32> = numbers.into_iter().collect();
    numbers.sort_unstable();
    numbers.dedup();
    let mut assignments = BTreeMap::new();
    for number in numbers {
        let count = |c: &CpuId| taken.get(c).copied().unwrap_or(0);
        let Some(cpu) = places.iter().copied().min_by_key(count) else { break };
        *taken.entry(cpu).or_default() += 1;
        assignments.insert(number, cpu);
    }
    assignments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_of_queues_shares_a_cpu_and_the_emptiest_is_first() {
        let places = [0, 1, 2, 3].map(CpuId);
        let of = |numbers: &[u32], taken: &[u32]| {
            let mut taken = taken.iter().map(|c| (CpuId(*c), 1)).collect();
            let assignments = assignments(numbers.iter().copied(), &places, &mut taken);
            assignments.into_iter().map(|(n, c)| (n, c.0)).collect::<Vec<_>>()
        };
        assert_eq!(of(&[0, 0, 1, 1], &[]), [(0, 0), (1, 1)]);
        assert_eq!(of(&[2, 1, 0], &[1]), [(0, 0), (1, 2), (2, 3)]);
        assert_eq!(of(&[4, 5, 6, 7, 8], &[0, 1]), [(4, 2), (5, 3), (6, 0), (7, 1), (8, 2)]);
        assert!(super::assignments([1], &[], &mut BTreeMap::new()).is_empty());
    }
}
