//! A thread's samples in batches of equal time, in memory that does not grow with the duration.
//!
//! Neighbouring round trips resemble one another, so an interval from the single samples is far
//! too narrow. Batches that are long against that resemblance are nearly independent, and their
//! spread says how far the result may be off ([`crate::interval`]). How long is long enough is
//! known only afterwards, so many short batches are kept and neighbours joined when they run out.
//!
//! **Memory.** A [`crate::Histogram`] for each of 64 batches would be 2.1 MiB a thread. A batch
//! here is a count, an exact sum, and counters of 32 bits in buckets 1/64 of the value wide from
//! 512 ns (8 ns wide below) to 4.3 s: 6 KiB, so 384 KiB a thread, and no more than a cache line or
//! two of it is touched for a sample. Estimators of one quantile in five numbers (P², Jain and
//! Chlamtac 1985) are smaller still, but two of them cannot be added, neither neighbours in time
//! nor threads; counters add exactly. The coarse buckets cost no accuracy of the result: its
//! value comes from the fine histogram, and the batches say only what share of each lies below
//! a bucket's edge, which they know exactly ([`crate::interval::of_quantile`]).

use crate::{
    bucket::{BUCKETS, index},
    series::{Batch, Series},
};

/// What a slot of the memory holds beside its counters: a closed batch or the open one.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    count: u64,
    sum: u128,
}

/// Collects a thread's samples in batches of equal time.
///
/// **Shape**: when all batches are used up, the length doubles and neighbours are joined, one
/// pair each time a batch is opened, so that no sample waits for more than one joining (about
/// a third of a microsecond; `benches/record.rs`). **Unit**: nanoseconds for times, by custom also for values. Allocates in
/// [`Batches::new`] only.
#[derive(Debug, Clone)]
pub struct Batches {
    /// `BUCKETS` counters for each slot.
    counts: Box<[u32]>,
    slots: Box<[Slot]>,
    /// Slots by time. The last is open. Of the others, first come those already joined, then
    /// `waiting` of half the length, then whole ones.
    order: Vec<usize>,
    joined: usize,
    waiting: usize,
    /// The open slot and where its counters begin.
    open: usize,
    base: usize,
    /// When the open batch ends.
    end_ns: u64,
    length_ns: u64,
    start_ns: u64,
}

impl Batches {
    /// How many batches to keep: enough to join by two and still have the 10 that an interval
    /// needs.
    pub const CAPACITY: usize = 64;

    /// An empty collector whose first batch begins at `start_ns` and lasts `first_batch_ns`
    /// (at least 1). Threads whose batches are to be added need the same three arguments.
    /// `capacity` is made even and at least 4; [`Batches::CAPACITY`] is usual.
    pub fn new(start_ns: u64, first_batch_ns: u64, capacity: usize) -> Self {
        let capacity = capacity.max(4).next_multiple_of(2);
        // Written to here, so that no page of it is first touched while measuring.
        let mut counts = vec![0u32; capacity * BUCKETS].into_boxed_slice();
        std::hint::black_box(&mut counts).fill(0);
        let mut order = Vec::with_capacity(capacity);
        order.push(0);
        let length_ns = first_batch_ns.max(1);
        Self {
            counts,
            slots: vec![Slot::default(); capacity].into_boxed_slice(),
            order,
            joined: 0,
            waiting: 0,
            open: 0,
            base: 0,
            end_ns: start_ns.saturating_add(length_ns),
            length_ns,
            start_ns,
        }
    }

    /// Counts a value at a time. Times may not run backwards: an earlier one than the open
    /// batch's is counted there.
    #[inline]
    pub fn record(&mut self, now_ns: u64, value: u64) {
        if now_ns >= self.end_ns {
            self.advance(now_ns);
        }
        if let Some(bucket) = self.counts.get_mut(self.base + index(value)) {
            *bucket = bucket.saturating_add(1);
        }
        if let Some(slot) = self.slots.get_mut(self.open) {
            slot.count += 1;
            slot.sum += u128::from(value);
        }
    }

    /// Opens the batch that holds a time. However late, this opens at most some 1,700 batches,
    /// because their length doubles on the way.
    #[cold]
    #[inline(never)]
    fn advance(&mut self, now_ns: u64) {
        while now_ns >= self.end_ns && self.end_ns < u64::MAX {
            self.open_next();
        }
    }

    fn open_next(&mut self) {
        let slot = if self.order.len() < self.slots.len() {
            self.order.len()
        } else {
            if self.waiting == 0 {
                self.length_ns = self.length_ns.saturating_mul(2);
                self.joined = 0;
                self.waiting = self.order.len();
            }
            self.join_pair()
        };
        self.order.push(slot);
        self.open = slot;
        self.base = slot * BUCKETS;
        self.end_ns = self.end_ns.saturating_add(self.length_ns);
    }

    /// Joins the first two batches of half the length and returns the slot this sets free.
    fn join_pair(&mut self) -> usize {
        let freed = self.order.remove(self.joined + 1);
        let kept = self.order[self.joined];
        self.joined += 1;
        self.waiting -= 2;
        let from = std::mem::take(&mut self.slots[freed]);
        if from.count > 0 {
            self.slots[kept].count += from.count;
            self.slots[kept].sum += from.sum;
            // Two slices apart, so that the compiler adds several counters at once.
            let (low, high) = self.counts.split_at_mut(kept.max(freed) * BUCKETS);
            let low = &mut low[kept.min(freed) * BUCKETS..][..BUCKETS];
            let high = &mut high[..BUCKETS];
            let (into, from) = if kept < freed { (low, high) } else { (high, low) };
            for (into, from) in into.iter_mut().zip(from.iter()) {
                *into = into.saturating_add(*from);
            }
            from.fill(0);
        }
        freed
    }

    /// The whole batches that ended by `until_ns`, all of one length, those in which nothing
    /// was recorded included. Copies, so off the hot path.
    pub fn series(&self, until_ns: u64) -> Series {
        let mut batches: Vec<Batch> = Vec::with_capacity(self.slots.len());
        for (i, slot) in self.order.iter().enumerate() {
            let Slot { count, sum } = self.slots[*slot];
            let this = Batch::new(count, sum, &self.counts[slot * BUCKETS..][..BUCKETS]);
            // Of those waiting, the second of each pair belongs to the one before.
            let second =
                i >= self.joined && i < self.joined + self.waiting && (i - self.joined) % 2 == 1;
            match batches.last_mut() {
                Some(first) if second => first.add(&this),
                _ => batches.push(this),
            }
        }
        let mut series = Series::new(self.start_ns, self.length_ns, batches);
        let wanted = |length_ns| until_ns.saturating_sub(self.start_ns) / length_ns;
        while wanted(series.batch_ns()) > self.slots.len() as u64 {
            series = series.joined(2, true);
        }
        series.resize(wanted(series.batch_ns()) as usize);
        series
    }
}

#[cfg(test)]
mod tests;
