//! Who measures whom: a ring for each degree, each in its own order, which all hosts compute alike.
//!
//! The order of a ring is that of a hash of the seed, the ring's number and the peer's name. Each
//! peer measures its successor in each ring. The first ring alone joins all peers; every ring adds
//! one measurement to each host, and on average one that it answers. A peer that comes or goes moves
//! only its neighbours' targets.

/// The most rings: targets of one host.
pub const MOST_TARGETS: usize = 16;

/// The targets of the peer `own`, at most one for each ring and never twice the same: fewer where
/// there are fewer other peers. `peers` may have any order, and each of them only once.
///
/// Cost: one pass over the peers for each ring, without a sort.
pub fn targets<'p>(peers: &'p [String], own: &str, rings: usize, seed: u64) -> Vec<&'p str> {
    let mut chosen: Vec<&str> = vec![];
    for ring in 0..rings.min(MOST_TARGETS) {
        let here = place(own, ring, seed);
        let others = peers.iter().map(String::as_str).filter(|p| *p != own && !chosen.contains(p));
        // Behind the own place first, then from the ring's begin.
        let next = others.map(|p| (place(p, ring, seed), p)).min_by_key(|(at, p)| {
            let behind = (*at, *p) > (here, own);
            (!behind, *at, *p)
        });
        chosen.extend(next.map(|(_, p)| p));
    }
    chosen
}

/// Where a peer stands in a ring. The same in every version and on every machine: FNV-1a, and the
/// finalizer of splitmix64, since the last bytes of FNV-1a barely reach its high bits.
fn place(peer: &str, ring: usize, seed: u64) -> u64 {
    let numbers = seed.to_le_bytes().into_iter().chain((ring as u64).to_le_bytes());
    let hash = numbers.chain(peer.bytes()).fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use proptest::prelude::*;

    fn named(count: usize) -> Vec<String> {
        (0..count).map(|n| format!("10.0.{}.{}:7471", n / 250, n % 250)).collect()
    }

    /// The targets of every peer.
    fn graph(peers: &[String], rings: usize, seed: u64) -> BTreeMap<String, Vec<String>> {
        let of = |p: &String| targets(peers, p, rings, seed).into_iter().map(str::to_owned);
        peers.iter().map(|p| (p.clone(), of(p).collect())).collect()
    }

    /// How many peers one reaches by going from target to target.
    fn reached(graph: &BTreeMap<String, Vec<String>>, from: &str) -> usize {
        let (mut seen, mut next) = (BTreeSet::from([from]), vec![from]);
        while let Some(peer) = next.pop() {
            next.extend(graph[peer].iter().map(String::as_str).filter(|t| seen.insert(t)));
        }
        seen.len()
    }

    #[test]
    fn a_host_has_as_many_targets_among_10_as_among_1000() {
        for count in [10, 100, 1000] {
            let peers = named(count);
            for rings in [1, 3] {
                let graph = graph(&peers, rings, 7);
                assert!(graph.values().all(|t| t.len() == rings), "{count} peers");
                let mut answers: BTreeMap<&str, usize> = BTreeMap::new();
                for target in graph.values().flatten() {
                    *answers.entry(target).or_default() += 1;
                }
                assert_eq!(answers.len(), count, "everyone is measured");
                let most = answers.values().max().copied().unwrap();
                assert!(most <= rings + 2, "{most} hosts measure one of {count}");
            }
        }
    }

    #[test]
    fn the_places_are_the_same_for_ever() {
        let peers = ["a", "b", "c", "d"].map(str::to_owned);
        assert_eq!(place("a", 0, 0), 0x08cb_6891_ddea_949e);
        assert_eq!(targets(&peers, "a", 2, 0), ["b", "d"]);
    }

    proptest! {
        #[test]
        fn a_graph_joins_all_and_has_no_loop(count in 1usize..60, rings in 1usize..6, seed in any::<u64>()) {
            let peers = named(count);
            let graph = graph(&peers, rings, seed);
            for (peer, targets) in &graph {
                let distinct: BTreeSet<&String> = targets.iter().collect();
                prop_assert_eq!(distinct.len(), rings.min(count - 1));
                prop_assert!(!distinct.contains(peer));
                prop_assert_eq!(reached(&graph, peer), count);
            }
        }

        #[test]
        fn the_order_of_the_list_is_of_no_importance(seed in any::<u64>(), turned in 0usize..30) {
            let peers = named(30);
            let mut other = peers.clone();
            other.rotate_left(turned);
            other.swap(0, 17);
            prop_assert_eq!(graph(&peers, 3, seed), graph(&other, 3, seed));
        }

        /// In ring r a host passes over at most r peers that it measures already, so a new peer can
        /// meet r + 1 hosts there.
        #[test]
        fn a_peer_that_comes_moves_few_targets(count in 5usize..200, rings in 1usize..5, seed in any::<u64>()) {
            let peers = named(count + 1);
            let before = graph(&peers[..count], rings, seed);
            let after = graph(&peers, rings, seed);
            let moved = before.iter().filter(|(peer, targets)| after[*peer] != **targets).count();
            prop_assert!((1..=rings * (rings + 1) / 2).contains(&moved), "{} hosts changed", moved);
        }
    }
}
