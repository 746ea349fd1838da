//! Pairs of tables: programs add to the open one, while the other is read and emptied. A count that
//! was about to be added to a table as it closed is reported with the next interval. So every count
//! is reported exactly once.

use std::{collections::HashMap, hash::Hash, io};

use aya::{
    Pod,
    maps::{Array, MapData},
};

use super::{Object, table};

/// What a table adds up for each of its keys.
pub trait Sums: Pod + PartialEq {
    fn add(&mut self, more: &Self);

    /// What was added since then.
    fn since(&self, before: &Self) -> Self;
}

impl Sums for u64 {
    fn add(&mut self, more: &Self) {
        *self += more;
    }

    fn since(&self, before: &Self) -> Self {
        self.wrapping_sub(*before)
    }
}

/// What an object's programs count of themselves on each CPU; the layout of `struct own`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Own {
    /// Runs by program, in the order of the C source.
    pub runs: [u64; 4],
    /// Events that found no room.
    pub lost: u64,
}

// SAFETY: plain numbers without padding, any bits are valid.
unsafe impl Pod for Own {}

impl Own {
    /// What was added since then.
    pub fn since(&self, before: &Self) -> Self {
        let mut grown = *self;
        let pairs = grown.runs.iter_mut().zip(before.runs);
        pairs.for_each(|(now, then)| *now = now.wrapping_sub(then));
        grown.lost = grown.lost.wrapping_sub(before.lost);
        grown
    }
}

/// Two tables `NAME1` and `NAME2`.
#[derive(Debug)]
pub struct TablePair<K, V> {
    names: [String; 2],
    /// The one that programs add to: 0 or 1.
    open: usize,
    /// What the other said as it was read.
    reported: HashMap<K, V>,
    own: Own,
}

/// What one turn brought.
#[derive(Debug)]
pub struct DrainedTable<K, V> {
    /// By key, those that counted.
    pub sums: HashMap<K, V>,
    /// What the programs say of themselves.
    pub own: Own,
}

impl<K: Pod + Eq + Hash, V: Sums> TablePair<K, V> {
    /// Opens the first table: from now on there is counting.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn open(object: &mut Object, name: &str) -> io::Result<Self> {
        let names = [format!("{name}1"), format!("{name}2")];
        set(object, 0)?;
        let own = own(object)?;
        Ok(Self { names, open: 0, reported: HashMap::new(), own })
    }

    /// Ends a turn and begins the next.
    ///
    /// # Errors
    /// The kernel refuses; the turn goes on, and the next reading has it all.
    pub fn take(&mut self, object: &mut Object) -> io::Result<DrainedTable<K, V>> {
        let [first, second] = &self.names;
        let (open, idle) = if self.open == 0 { (first, second) } else { (second, first) };
        // It was closed for a whole interval, so no program adds to it any more.
        let rest: HashMap<K, V> = table::drain(object, idle)?;
        set(object, 1 - self.open)?;
        let now: HashMap<K, V> = table::read(object, open)?;
        self.open = 1 - self.open;
        let late = late(rest, &self.reported);
        self.reported.clone_from(&now);
        let all = own(object)?;
        let grown = all.since(&self.own);
        self.own = all;
        Ok(DrainedTable { sums: merged(now, late), own: grown })
    }
}

/// What came to a table after it was read.
fn late<K: Eq + Hash, V: Sums>(rest: HashMap<K, V>, reported: &HashMap<K, V>) -> Vec<(K, V)> {
    let grown = |(key, sums): (K, V)| match reported.get(&key) {
        Some(before) if *before == sums => None,
        Some(before) => Some((key, sums.since(before))),
        None => Some((key, sums)),
    };
    rest.into_iter().filter_map(grown).collect()
}

fn merged<K: Eq + Hash, V: Sums>(mut now: HashMap<K, V>, late: Vec<(K, V)>) -> HashMap<K, V> {
    for (key, more) in late {
        now.entry(key).and_modify(|sums| sums.add(&more)).or_insert(more);
    }
    now
}

/// Tells the programs which table is open, 0 or 1.
fn set(object: &mut Object, which: usize) -> io::Result<()> {
    let mut map: Array<&mut MapData, u32> = object.map_mut("turn")?;
    map.set(0, if which == 0 { 1 } else { 2 }, 0).map_err(io::Error::other)
}

fn own(object: &Object) -> io::Result<Own> {
    let mut sum = Own::default();
    for (_, own) in object.of_cpus::<Own>("own")? {
        sum.runs.iter_mut().zip(own.runs).for_each(|(sum, n)| *sum += n);
        sum.lost += own.lost;
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_after_the_reading_is_reported_once_with_the_next() {
        let reported = HashMap::from([(1, 10_u64), (2, 5)]);
        let rest = HashMap::from([(1, 13_u64), (2, 5), (3, 1)]);
        let mut late = late(rest, &reported);
        late.sort_unstable();
        assert_eq!(late, [(1, 3), (3, 1)]);
        let all = merged(HashMap::from([(1, 100_u64), (4, 7)]), late);
        assert_eq!(all, HashMap::from([(1, 103), (3, 1), (4, 7)]));
    }

    #[test]
    fn a_counter_that_wraps_has_grown_by_what_was_added() {
        assert_eq!(3_u64.since(&(u64::MAX - 1)), 5);
        let before = Own { runs: [u64::MAX, 0, 7, 0], lost: u64::MAX };
        let after = Own { runs: [9, 0, 8, 0], lost: 0 };
        assert_eq!(after.since(&before), Own { runs: [10, 0, 1, 0], lost: 1 });
    }
}
