//! Batches of equal length as they are read: by thread, added over threads, joined in time.

use std::fmt;

use crate::{
    bucket::{BUCKETS, bucket_low},
    histogram::rank,
};

/// Rounds put behind one another keep at most so many batches.
const MOST_BATCHES: usize = 128;

/// Two series that cannot be put together, because their batches are not alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotAlike;

impl fmt::Display for NotAlike {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("batches of different beginnings or lengths cannot be put together")
    }
}

impl std::error::Error for NotAlike {}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Batch {
    count: u64,
    sum: u128,
    counts: Vec<u64>,
}

impl Batch {
    pub(crate) fn new(count: u64, sum: u128, counts: &[u32]) -> Self {
        let counts = counts.iter().map(|n| u64::from(*n)).collect();
        Self { count, sum, counts }
    }

    fn empty() -> Self {
        Self { count: 0, sum: 0, counts: vec![0; BUCKETS] }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.sum += other.sum;
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
    }
}

/// Adds up choices of batches.
#[derive(Debug)]
pub(crate) struct Resampler {
    from: usize,
    /// For each bucket, how many samples of each batch lie in it or before it.
    up_to: Vec<Vec<u64>>,
}

impl Resampler {
    /// A quantile of the samples of these batches; one that is named twice counts twice.
    pub(crate) fn quantile(&self, picks: &[usize], q: f64) -> Option<f64> {
        let sum = |up_to: &[u64]| picks.iter().filter_map(|i| up_to.get(*i)).sum::<u64>();
        let total = sum(self.up_to.last()?);
        let rank = rank(q, total);
        let bucket = self.up_to.partition_point(|up_to| sum(up_to) < rank);
        let after = sum(self.up_to.get(bucket)?);
        let before = bucket.checked_sub(1).and_then(|b| self.up_to.get(b)).map_or(0, |b| sum(b));
        let inside = after.checked_sub(before).filter(|n| *n > 0)?;
        let place = SeriesMode { bucket: self.from + bucket, before, inside };
        Some(place.value(q * total as f64))
    }
}

/// Where a quantile lies among buckets: in which one, how many samples are in those before and
/// in this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SeriesMode {
    pub(crate) bucket: usize,
    pub(crate) before: u64,
    pub(crate) inside: u64,
}

impl SeriesMode {
    /// The value of a rank, by its place within the bucket.
    fn value(&self, rank: f64) -> f64 {
        let (low, high) = (bucket_low(self.bucket) as f64, bucket_low(self.bucket + 1) as f64);
        let within = (rank - self.before as f64) / self.inside as f64;
        low + (high - low) * within.clamp(0.0, 1.0)
    }
}

fn place(counts: &[u64], q: f64) -> Option<SeriesMode> {
    let total: u64 = counts.iter().sum();
    let rank = rank(q, total);
    let mut before = 0;
    for (bucket, inside) in counts.iter().copied().enumerate() {
        if inside > 0 && before + inside >= rank {
            return Some(SeriesMode { bucket, before, inside });
        }
        before += inside;
    }
    None
}

/// Batches of equal length, one after the other without a gap.
///
/// **Shape**: by time from the beginning; a batch without samples counts as one. **Unit**:
/// nanoseconds for times; values as they were recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    start_ns: u64,
    batch_ns: u64,
    batches: Vec<Batch>,
    /// What rounds put behind the last batch, and its length: not yet a batch.
    rest: Option<(Batch, u64)>,
}

impl Series {
    pub(crate) fn new(start_ns: u64, batch_ns: u64, batches: Vec<Batch>) -> Self {
        Self { start_ns, batch_ns, batches, rest: None }
    }

    /// Cuts off or adds empty ones at the end.
    pub(crate) fn resize(&mut self, batches: usize) {
        self.batches.resize(batches, Batch::empty());
    }

    pub fn len(&self) -> usize {
        self.batches.len()
    }

    /// Whether there is no whole batch.
    pub fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// The length of each.
    pub fn batch_ns(&self) -> u64 {
        self.batch_ns
    }

    /// Samples in each; over the length this is the rate.
    pub fn counts(&self) -> Vec<u64> {
        self.batches.iter().map(|b| b.count).collect()
    }

    /// The sum of each batch's values, for instance bytes.
    pub fn sums(&self) -> Vec<u128> {
        self.batches.iter().map(|b| b.sum).collect()
    }

    /// The exact mean of each; `None` where there is no sample.
    pub fn means(&self) -> Vec<Option<f64>> {
        let mean = |b: &Batch| (b.count > 0).then(|| b.sum as f64 / b.count as f64);
        self.batches.iter().map(mean).collect()
    }

    /// A quantile (0 to 1) of each, placed by rank within a bucket 1/64 of it wide; `None`
    /// where there is no sample.
    pub fn quantiles(&self, q: f64) -> Vec<Option<f64>> {
        let of = |b: &Batch| place(&b.counts, q).map(|p| p.value(q * b.count as f64));
        self.batches.iter().map(of).collect()
    }

    /// Every `by` neighbours as one batch. What is left over at the end becomes a batch of its
    /// own when `keep_rest`, else is dropped: its time is shorter.
    pub fn joined(&self, by: usize, keep_rest: bool) -> Self {
        let by = by.max(1);
        let whole = |part: &&[Batch]| keep_rest || part.len() == by;
        let join = |part: &[Batch]| {
            let mut parts = part.iter();
            let mut sum = parts.next().cloned();
            for other in parts {
                if let Some(sum) = &mut sum {
                    sum.add(other);
                }
            }
            sum
        };
        let batches = self.batches.chunks(by).filter(whole).filter_map(join).collect();
        Self::new(self.start_ns, self.batch_ns.saturating_mul(by as u64), batches)
    }

    /// Adds the same stretches of time of another thread. The shorter batches are joined to the
    /// length of the longer ones.
    ///
    /// # Errors
    /// The two began at different times, or no number of batches of one makes one
    /// of the other.
    pub fn add(&mut self, other: &Self) -> Result<(), NotAlike> {
        if self.start_ns != other.start_ns {
            return Err(NotAlike);
        }
        let (mut sum, other) = self.levelled(other)?;
        sum.batches.truncate(other.len());
        for (mine, theirs) in sum.batches.iter_mut().zip(&other.batches) {
            mine.add(theirs);
        }
        *self = sum;
        Ok(())
    }

    /// Adds a later round of the same measurement. What was between the rounds counts as no
    /// time; the shorter batches are joined to the length of the longer ones. From 128 batches
    /// on neighbours are joined, so that any number of rounds takes 1.5 MiB.
    ///
    /// # Errors
    /// No number of batches of one makes one of the other.
    pub fn append(&mut self, later: &Self) -> Result<(), NotAlike> {
        let (longer, shorter) =
            (self.batch_ns.max(later.batch_ns), self.batch_ns.min(later.batch_ns));
        if !longer.is_multiple_of(shorter) {
            return Err(NotAlike);
        }
        self.lengthen((longer / self.batch_ns) as usize);
        for batch in &later.batches {
            self.push(batch, later.batch_ns);
        }
        if self.len() > MOST_BATCHES {
            self.lengthen(self.len().div_ceil(MOST_BATCHES).next_power_of_two());
        }
        Ok(())
    }

    /// Joins every `by` batches; those left over wait for more in the rest.
    fn lengthen(&mut self, by: usize) {
        let each_ns = self.batch_ns;
        let rest = std::mem::take(&mut self.rest);
        let batches = std::mem::take(&mut self.batches);
        self.batch_ns = each_ns.saturating_mul(by as u64);
        batches.iter().for_each(|b| self.push(b, each_ns));
        if let Some((batch, ns)) = rest {
            self.push(&batch, ns);
        }
    }

    /// Adds a batch of at most this length behind the rest, which becomes a batch when it is
    /// whole. A rest that would become too long began within a longer batch and is dropped.
    fn push(&mut self, batch: &Batch, ns: u64) {
        let (mut sum, sum_ns) = self.rest.take().unwrap_or((Batch::empty(), 0));
        if sum_ns + ns > self.batch_ns {
            self.rest = Some((batch.clone(), ns));
            return;
        }
        sum.add(batch);
        if sum_ns + ns == self.batch_ns {
            self.batches.push(sum);
        } else {
            self.rest = Some((sum, sum_ns + ns));
        }
    }

    /// Both with batches of the longer one's length.
    fn levelled(&self, other: &Self) -> Result<(Self, Self), NotAlike> {
        let longer = self.batch_ns.max(other.batch_ns);
        if !longer.is_multiple_of(self.batch_ns) || !longer.is_multiple_of(other.batch_ns) {
            return Err(NotAlike);
        }
        let level = |series: &Self| series.joined((longer / series.batch_ns) as usize, false);
        Ok((level(self), level(other)))
    }

    /// Where a quantile of all samples lies.
    pub(crate) fn place(&self, q: f64) -> Option<SeriesMode> {
        let mut all = vec![0; BUCKETS];
        for batch in &self.batches {
            all.iter_mut().zip(&batch.counts).for_each(|(sum, n)| *sum += n);
        }
        place(&all, q)
    }

    /// Of each batch, how many samples are in the buckets before this one.
    pub(crate) fn below(&self, bucket: usize) -> Vec<u64> {
        self.batches.iter().map(|b| b.counts.iter().take(bucket).sum()).collect()
    }

    /// How far a quantile may be misplaced because samples in one bucket are not reported apart.
    ///
    /// A bucket that holds a share s of the samples may misplace them by s of its width: the
    /// distribution is then at least width / s wide, and that smooth. Where nearly all samples
    /// share a bucket, that is all its width.
    pub(crate) fn unsure(&self, q: f64) -> f64 {
        let samples: u64 = self.batches.iter().map(|b| b.count).sum();
        let Some(SeriesMode { bucket, inside, .. }) = self.place(q) else {
            return 0.0;
        };
        let width = bucket_low(bucket + 1) - bucket_low(bucket);
        width as f64 * inside as f64 / samples as f64 / 2.0
    }

    /// For adding up any choice of batches again and again: only the buckets in use.
    pub(crate) fn resampler(&self) -> Resampler {
        let used = |b: &&Batch| b.count > 0;
        let first = |b: &Batch| b.counts.iter().position(|n| *n > 0);
        let last = |b: &Batch| b.counts.iter().rposition(|n| *n > 0);
        let from = self.batches.iter().filter(used).filter_map(first).min().unwrap_or(0);
        let to = self.batches.iter().filter(used).filter_map(last).max().map_or(0, |l| l + 1);
        let mut sums = vec![0; self.batches.len()];
        let mut up_to = |bucket| {
            for (sum, batch) in sums.iter_mut().zip(&self.batches) {
                *sum += batch.counts.get(bucket).unwrap_or(&0);
            }
            sums.clone()
        };
        Resampler { from, up_to: (from..to).map(&mut up_to).collect() }
    }
}
