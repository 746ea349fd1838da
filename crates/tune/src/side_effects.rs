//! Changes of one plan whose write moves along what another one of it sets: that write comes first. Pure.

use std::collections::{BTreeMap, BTreeSet};

use model::tune::Planned;

use crate::{knob::mtu_of, knobs};

/// By knob, the knobs whose values its write may move along.
pub type Sweeps = BTreeMap<String, Vec<String>>;

/// Puts what is moved along right after the last of what moves it; all else stays in the order in
/// which it is.
pub fn in_order(sweeps: &Sweeps, changes: Vec<Planned>) -> Vec<Planned> {
    let pairs = pairs(sweeps, &changes);
    let mut left: BTreeMap<usize, Planned> = changes.into_iter().enumerate().collect();
    let mut done = Vec::with_capacity(left.len());
    loop {
        let waits = |n: usize| pairs.iter().any(|(a, b)| *b == n && left.contains_key(a));
        let free = left.keys().find(|n| !waits(**n));
        // In a circle nothing is free; what came of it is found after the last write.
        let Some(next) = free.or_else(|| left.keys().next()).copied() else { return done };
        done.extend(left.remove(&next));
    }
}

/// Places of two changes of which the first moves along what the second sets, and not the other way
/// round too.
fn pairs(sweeps: &Sweeps, changes: &[Planned]) -> BTreeSet<(usize, usize)> {
    let places = changes.iter().enumerate();
    let places: BTreeMap<String, (usize, &Planned)> =
        places.map(|(n, c)| (knobs::value(&c.knob), (n, c))).collect();
    let mut all = BTreeSet::new();
    for (a, change) in changes.iter().enumerate() {
        let moved = sweeps.get(&change.knob).into_iter().flatten();
        let set = moved.filter_map(|m| places.get(&knobs::value(m)));
        let set = set.filter(|(b, other)| *b != a && !have_their_own(change, other));
        all.extend(set.map(|(b, _)| (a, *b)));
    }
    let both_ways = |(a, b): &(usize, usize)| all.contains(&(*b, *a));
    all.iter().filter(|pair| !both_ways(pair)).copied().collect()
}

/// Two whose order is another matter's: MTUs on top of each other, and a process's affinity, which its
/// cpuset gives back as it was in it.
fn have_their_own(a: &Planned, b: &Planned) -> bool {
    let is_mtu = |c: &Planned| mtu_of(&c.knob).is_some();
    is_mtu(a) && is_mtu(b) || a.knob.starts_with("process.")
}

#[cfg(test)]
mod tests;
