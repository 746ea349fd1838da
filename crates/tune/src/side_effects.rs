//! Orders changes of a plan so that a value moved by another change's write is written after it.
//! Pure.

use std::collections::{BTreeMap, BTreeSet};

use model::tune::Planned;

use crate::{knob::mtu_of, knobs};

/// For each knob, the knobs that its write may change.
pub type CoupledKnobs = BTreeMap<String, Vec<String>>;

/// Moves a change right after the last change that moves its value; all others keep their order.
pub fn in_order(coupled: &CoupledKnobs, changes: Vec<Planned>) -> Vec<Planned> {
    let pairs = pairs(coupled, &changes);
    let mut left: BTreeMap<usize, Planned> = changes.into_iter().enumerate().collect();
    let mut done = Vec::with_capacity(left.len());
    loop {
        let waits = |n: usize| pairs.iter().any(|(a, b)| *b == n && left.contains_key(a));
        let free = left.keys().find(|n| !waits(**n));
        // A cycle has no free change; verification after the last write finds any damage.
        let Some(next) = free.or_else(|| left.keys().next()).copied() else { return done };
        done.extend(left.remove(&next));
    }
}

/// Pairs of changes where the first moves the second's value, but not the reverse.
fn pairs(coupled: &CoupledKnobs, changes: &[Planned]) -> BTreeSet<(usize, usize)> {
    let places = changes.iter().enumerate();
    let places: BTreeMap<String, (usize, &Planned)> =
        places.map(|(n, c)| (knobs::value(&c.knob), (n, c))).collect();
    let mut all = BTreeSet::new();
    for (a, change) in changes.iter().enumerate() {
        let moved = coupled.get(&change.knob).into_iter().flatten();
        let set = moved.filter_map(|m| places.get(&knobs::value(m)));
        let set = set.filter(|(b, other)| *b != a && !have_their_own(change, other));
        all.extend(set.map(|(b, _)| (a, *b)));
    }
    let both_ways = |(a, b): &(usize, usize)| all.contains(&(*b, *a));
    all.iter().filter(|pair| !both_ways(pair)).copied().collect()
}

/// Pairs ordered by other rules: stacked MTUs, and a process's affinity, which leaving a cpuset
/// restores.
fn have_their_own(a: &Planned, b: &Planned) -> bool {
    let is_mtu = |c: &Planned| mtu_of(&c.knob).is_some();
    is_mtu(a) && is_mtu(b) || a.knob.starts_with("process.")
}

#[cfg(test)]
mod tests;
