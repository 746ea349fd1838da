//! What recording one sample costs, by itself and without the clock: 65,536 lognormal round
//! trips over and over, the best of 30 rounds (another program on the CPU only adds), less the
//! same loop that only adds the values up.
//!
//! `cargo bench -p stats --bench record`.
#![allow(clippy::disallowed_methods, reason = "a benchmark is the place for a clock")]

use std::{hint::black_box, time::Instant};

use stats::{Batches, Histogram, random::SplitMix64};

const SAMPLES: usize = 1 << 16;
const ROUNDS: usize = 30;
const REPEATS: u64 = 16;

/// The best time of a sample in nanoseconds. `one` takes the time and the value.
fn best(values: &[u64], mut one: impl FnMut(u64, u64)) -> f64 {
    let mut now = 0;
    let rounds = (0..ROUNDS).map(|_| {
        let began = Instant::now();
        for _ in 0..REPEATS {
            for value in values {
                now += 10_000;
                one(now, *value);
            }
        }
        began.elapsed().as_nanos() as f64 / (SAMPLES as u64 * REPEATS) as f64
    });
    rounds.fold(f64::INFINITY, f64::min)
}

fn main() {
    let mut random = SplitMix64::new(1);
    let mut normal = || (0..12).map(|_| random.unit()).sum::<f64>() - 6.0;
    let values: Vec<u64> =
        (0..SAMPLES).map(|_| (20_000.0 * (0.2 * normal()).exp()) as u64).collect();
    let mut sum = 0u64;
    let loop_ns = best(&values, |now, v| sum = black_box(sum.wrapping_add(v ^ now)));
    let mut all = Histogram::new();
    let histogram_ns = best(&values, |_, v| black_box(&mut all).record(v));
    let mut batches = Batches::new(0, 100_000_000, Batches::CAPACITY);
    let batches_ns = best(&values, |now, v| black_box(&mut batches).record(now, v));
    let (mut all, mut batches) =
        (Histogram::new(), Batches::new(0, 100_000_000, Batches::CAPACITY));
    let both_ns = best(&values, |now, v| {
        black_box(&mut all).record(v);
        black_box(&mut batches).record(now, v);
    });
    // The dearest moment: batches so short that each sample opens one and joins a pair.
    let mut short = Batches::new(0, 10_000, Batches::CAPACITY);
    let warm = (0..64u64).map(|i| i * 10_000);
    warm.for_each(|now| short.record(now, 20_000));
    let began = Instant::now();
    (64..128u64).step_by(2).for_each(|i| short.record(i * 10_000, 20_000));
    let joined_ns = began.elapsed().as_nanos() as f64 / 32.0;
    println!("the loop itself          {loop_ns:6.2} ns");
    println!("Histogram::record        {histogram_ns:6.2} ns");
    println!("Batches::record          {batches_ns:6.2} ns");
    println!("both, as a generator does{both_ns:6.2} ns");
    println!("opening a batch by joining two: {joined_ns:.0} ns");
    black_box((sum, all.count(), batches.series(u64::MAX).len(), short));
}
