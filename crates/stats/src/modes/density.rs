//! A histogram's density on the scale of natural logarithms, smoothed.

use crate::Histogram;

/// Places to a kernel's deviation.
const PLACES: f64 = 4.0;

/// A comb of teeth a step apart is flat to 0.1% when smoothed by this share of the step.
const OF_STEP: f64 = 0.7;

/// How far a kernel reaches, in its deviations.
const REACH: f64 = 4.0;

/// A kernel is never wider than this: only values of one or two clock steps would need more.
const WIDEST: f64 = 0.7;

#[derive(Debug)]
pub(super) struct Density {
    /// The logarithm of the first place's value, and the places to a unit of it.
    from: f64,
    by_unit: f64,
    heights: Vec<f64>,
    /// Samples below each place's value.
    below: Vec<u64>,
    smoothing: f64,
    step: f64,
}

/// The clock's step as the data show it: the distance between neighbouring filled buckets,
/// the median by weight. 0 for fewer than four filled buckets: two constants are two modes.
pub(super) fn step(all: &Histogram) -> f64 {
    let places: Vec<(f64, u64)> =
        all.buckets().map(|(low, high, n)| ((low + high - 1) as f64 / 2.0, n)).collect();
    if places.len() < 4 {
        return 0.0;
    }
    let mut distances: Vec<(f64, u64)> =
        places.windows(2).map(|p| (p[1].0 - p[0].0, p[0].1.min(p[1].1))).collect();
    distances.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let half = distances.iter().map(|d| d.1).sum::<u64>() / 2;
    let mut below = 0;
    for (distance, weight) in distances {
        below += weight;
        if below > half {
            return distance;
        }
    }
    0.0
}

impl Density {
    /// Each bucket is spread by a Gaussian kernel around its middle, a wider one where the
    /// clock's step is wider than `smoothing`.
    pub(super) fn new(all: &Histogram, smoothing: f64, step: f64) -> Self {
        let place = |low: u64, high: u64| ((low + high - 1) as f64 / 2.0).max(step / 2.0).max(0.5);
        let ends = |v: Option<u64>| v.unwrap_or(0).min(1 << 41);
        let first = place(ends(all.min()), ends(all.min()) + 1).ln();
        let last = place(ends(all.max()), ends(all.max()) + 1).ln();
        // Room for the widest kernel on both sides, so that the density ends at 0.
        let by_unit = PLACES / smoothing;
        let room = REACH * WIDEST.max(smoothing) + 2.0 / by_unit;
        let from = first - room;
        let places = ((last + room - from) * by_unit).ceil() as usize + 1;
        let mut this =
            Self { from, by_unit, heights: vec![0.0; places], below: Vec::new(), smoothing, step };
        for (low, high, n) in all.buckets() {
            this.spread(place(low, high).ln(), n as f64);
        }
        this.below = this.counts_below(all);
        this
    }

    fn counts_below(&self, all: &Histogram) -> Vec<u64> {
        let mut buckets = all.buckets().peekable();
        let mut sum = 0;
        let mut below = |place| {
            let value = self.value(place);
            while let Some((_, _, n)) = buckets.next_if(|(low, _, _)| *low < value) {
                sum += n;
            }
            sum
        };
        (0..self.heights.len()).map(&mut below).collect()
    }

    /// How many samples are below the value of a place.
    pub(super) fn below(&self, place: usize) -> u64 {
        self.below.get(place).copied().unwrap_or(0)
    }

    fn kernel(&self, ln: f64) -> f64 {
        (OF_STEP * self.step / ln.exp()).min(WIDEST).max(self.smoothing)
    }

    fn spread(&mut self, ln: f64, samples: f64) {
        let h = self.kernel(ln);
        let scale = samples / (h * std::f64::consts::TAU.sqrt());
        let begin = ((ln - REACH * h - self.from) * self.by_unit).max(0.0) as usize;
        let end = ((ln + REACH * h - self.from) * self.by_unit).max(0.0) as usize;
        for (i, height) in self.heights.iter_mut().enumerate().take(end + 1).skip(begin) {
            let z = (self.from + i as f64 / self.by_unit - ln) / h;
            *height += scale * (-z * z / 2.0).exp();
        }
    }

    /// Samples by unit of the logarithm, at each place.
    pub(super) fn heights(&self) -> &[f64] {
        &self.heights
    }

    /// How many samples a height rests on.
    pub(super) fn supported(&self, place: usize) -> f64 {
        let h = self.kernel(self.from + place as f64 / self.by_unit);
        2.0 * std::f64::consts::PI.sqrt() * h * self.heights.get(place).unwrap_or(&0.0)
    }

    /// The lowest place between two; the middle one of equally low ones.
    pub(super) fn lowest(&self, a: usize, b: usize) -> usize {
        let between = self.heights.get(a..=b).unwrap_or_default();
        let least = between.iter().copied().fold(f64::INFINITY, f64::min);
        let first = between.iter().position(|h| *h <= least).unwrap_or(0);
        let last = between.iter().rposition(|h| *h <= least).unwrap_or(0);
        a + usize::midpoint(first, last)
    }

    /// The value at a place, at the beginning of a histogram's bucket.
    pub(super) fn value(&self, place: usize) -> u64 {
        Histogram::bucket_begin((self.from + place as f64 / self.by_unit).exp() as u64)
    }
}
