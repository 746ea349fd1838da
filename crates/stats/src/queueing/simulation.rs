//! The same networks played through event by event, as a truth that knows no formula.

use super::station::{Station, StationKind};
use crate::random::SplitMix64;

/// Plays `transactions` through stations in a ring; gives transactions a second by batch.
pub fn play(stations: &[Station], clients: usize, transactions: usize, seed: u64) -> Vec<f64> {
    const BATCHES: usize = 20;
    let mut random = SplitMix64::new(seed);
    let mut waiting = vec![0usize; stations.len()];
    // When somebody is done, and where.
    let mut working: Vec<(f64, usize)> = vec![];
    let servers = |s: &Station| match s.kind {
        StationKind::Servers(n) => n as usize,
        StationKind::Delay => usize::MAX,
        StationKind::Rates(_) => panic!("not played"),
    };
    waiting[0] = clients;
    let (mut now, mut done) = (0.0, 0usize);
    let mut ends = vec![0.0];
    let by_batch = transactions / BATCHES;
    while ends.len() <= BATCHES {
        for (i, s) in stations.iter().enumerate() {
            let busy = working.iter().filter(|w| w.1 == i).count();
            let begin = waiting[i].min(servers(s) - busy);
            waiting[i] -= begin;
            for _ in 0..begin {
                working.push((now + s.demand_ns * random.exponential(), i));
            }
        }
        let next = (0..working.len()).min_by(|a, b| working[*a].0.total_cmp(&working[*b].0));
        let (at, station) = working.swap_remove(next.unwrap());
        now = at;
        let to = (station + 1) % stations.len();
        waiting[to] += 1;
        if to == 0 {
            done += 1;
            if done == by_batch {
                ends.push(now);
                done = 0;
            }
        }
    }
    ends.windows(2).map(|w| by_batch as f64 * 1e9 / (w[1] - w[0])).collect()
}
