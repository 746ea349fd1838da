//! Growth of sums between readings. Sums are in two places: pending on CPUs, and in a common map,
//! to which a CPU moves them when it needs the slot.

use std::collections::BTreeMap;

/// Sums that only grow, in a fixed order.
pub type Row<const N: usize> = [u64; N];

/// Looks after which an element of the map for all that did not grow is dropped from it, so
/// that reading stays cheap however many threads come and go.
const QUIET: u32 = 10;

/// One thing's sums as of the last look.
#[derive(Debug)]
struct Last<const N: usize> {
    /// When its element of the map for all was made; 0 for none.
    born: u64,
    sums: Row<N>,
    quiet: u32,
    /// Looks in a row in which there was less than before.
    less: u32,
    /// Looks in which it was in neither place.
    missing: u32,
}

#[derive(Debug)]
pub struct Deltas<K, const N: usize>(BTreeMap<K, Last<N>>);

impl<K, const N: usize> Default for Deltas<K, N> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

/// One reading's sums of an object.
#[derive(Debug, Clone, Copy)]
pub struct LastReading<const N: usize> {
    /// As in the map for all; 0 for none.
    pub born: u64,
    pub stored: Row<N>,
    pub pending: Row<N>,
}

impl<const N: usize> Default for LastReading<N> {
    fn default() -> Self {
        Self { born: 0, stored: [0; N], pending: [0; N] }
    }
}

impl<const N: usize> LastReading<N> {
    /// Adds what a CPU holds.
    pub fn add_pending(&mut self, row: &Row<N>) {
        add(&mut self.pending, row);
    }

    fn total(&self) -> Row<N> {
        let mut total = self.stored;
        add(&mut total, &self.pending);
        total
    }
}

fn add<const N: usize>(to: &mut Row<N>, row: &Row<N>) {
    to.iter_mut().zip(row).for_each(|(to, more)| *to = to.wrapping_add(*more));
}

impl<K: Ord + Copy, const N: usize> Deltas<K, N> {
    /// What each grew by since the last look, and which elements of the map for all can go.
    pub fn look(&mut self, seen: &BTreeMap<K, LastReading<N>>) -> (BTreeMap<K, Row<N>>, Vec<K>) {
        let mut grown = BTreeMap::new();
        let mut idle = Vec::new();
        for (key, now) in seen {
            let last = self.0.entry(*key).or_insert(Last::new([0; N]));
            let row = last.grow(now);
            if row.iter().any(|n| *n > 0) {
                grown.insert(*key, row);
            }
            if now.born != 0 && last.quiet >= QUIET {
                idle.push(*key);
                *last = Last::new(now.pending);
            }
        }
        self.0.retain(|key, last| {
            last.missing = if seen.contains_key(key) { 0 } else { last.missing + 1 };
            // Once it may be on its way from one place to the other.
            last.missing < 2
        });
        (grown, idle)
    }
}

impl<const N: usize> Last<N> {
    fn new(sums: Row<N>) -> Self {
        Self { born: 0, sums, quiet: 0, less: 0, missing: 0 }
    }

    fn grow(&mut self, now: &LastReading<N>) -> Row<N> {
        let total = now.total();
        let less = total.iter().zip(&self.sums).any(|(now, then)| now < then);
        if less && (now.born == self.born || now.born == 0) {
            // On its way between the places it is whole at the next look; else the element gave
            // way to others.
            self.less += 1;
            if self.less > 1 {
                *self = Self::new(total);
            }
            return [0; N];
        }
        self.less = 0;
        let mut row = total;
        // Less than there was, in an element made since: the old one gave way.
        if !less {
            row.iter_mut().zip(&self.sums).for_each(|(now, then)| *now -= then);
        }
        self.quiet = if row.iter().any(|n| *n > 0) { 0 } else { self.quiet + 1 };
        self.born = now.born;
        self.sums = total;
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(born: u64, stored: u64, pending: u64) -> BTreeMap<u8, LastReading<1>> {
        [(1, LastReading { born, stored: [stored], pending: [pending] })].into()
    }

    fn all(looks: &[BTreeMap<u8, LastReading<1>>]) -> Vec<u64> {
        let mut grown = Deltas::default();
        let mut of = |l| grown.look(l).0.get(&1).map_or(0, |[n]| *n);
        looks.iter().map(&mut of).collect()
    }

    #[test]
    fn what_moves_between_the_places_is_counted_once() {
        let moved = [seen(0, 0, 5), seen(7, 5, 1), seen(7, 5, 4), seen(7, 9, 0)];
        assert_eq!(all(&moved), [5, 1, 3, 0]);
    }

    #[test]
    fn what_is_missed_on_its_way_is_counted_at_the_next_look() {
        assert_eq!(all(&[seen(0, 0, 5), BTreeMap::new(), seen(7, 6, 0)]), [5, 0, 1]);
        assert_eq!(all(&[seen(7, 5, 5), seen(7, 5, 0), seen(7, 10, 2)]), [10, 0, 2]);
    }

    #[test]
    fn an_element_made_anew_counts_from_nothing() {
        assert_eq!(all(&[seen(7, 50, 0), seen(9, 3, 0), seen(9, 4, 0)]), [50, 3, 1]);
    }

    #[test]
    fn what_gave_way_is_counted_from_what_is_left() {
        assert_eq!(
            all(&[seen(7, 50, 1), seen(0, 0, 1), seen(0, 0, 2), seen(0, 0, 3)]),
            [51, 0, 0, 1]
        );
    }

    #[test]
    fn a_thing_long_gone_may_come_back_from_nothing() {
        let gone = BTreeMap::new;
        assert_eq!(all(&[seen(7, 50, 0), gone(), gone(), seen(9, 60, 0)]), [50, 0, 0, 60]);
    }

    #[test]
    fn a_quiet_element_is_dropped_and_what_comes_after_is_counted() {
        let mut grown = Deltas::default();
        let quiet: Vec<_> = (0..=QUIET).map(|_| grown.look(&seen(7, 50, 2))).collect();
        let [first, .., last] = quiet.as_slice() else { panic!("eleven looks") };
        assert_eq!((first.0.get(&1), last.0.get(&1)), (Some(&[52]), None));
        assert_eq!((first.1.len(), last.1.len()), (0, 1));
        assert_eq!(grown.look(&seen(0, 0, 3)).0.get(&1), Some(&[1]));
        assert_eq!(grown.look(&seen(9, 3, 4)).0.get(&1), Some(&[4]));
    }
}
