use super::*;
use crate::{random::SplitMix64, series::NotAlike};

/// The batches of one length as a plain program would find them.
fn plain(samples: &[(u64, u64)], length: u64, until: u64) -> Vec<(u64, u128)> {
    let mut batches = vec![(0, 0); (until / length) as usize];
    for (at, value) in samples {
        if let Some(batch) = batches.get_mut((at / length) as usize) {
            *batch = (batch.0 + 1, batch.1 + u128::from(*value));
        }
    }
    batches
}

fn read(series: &Series) -> Vec<(u64, u128)> {
    series.counts().into_iter().zip(series.sums()).collect()
}

#[test]
fn holds_every_sample_in_its_batch_at_every_length_of_the_run() {
    let mut random = SplitMix64::new(7);
    let mut batches = Batches::new(0, 10, 8);
    let mut samples = Vec::new();
    for at in 0..3_000 {
        let value = 500 + random.below(100_000) as u64;
        batches.record(at, value);
        samples.push((at, value));
        // Looked at after every sample, so in every state of joining.
        let series = batches.series(at + 1);
        let length = series.batch_ns();
        assert_eq!(read(&series), plain(&samples, length, at + 1), "at {at}, batches of {length}");
        assert!(series.len() <= 8 && (at < 80 || series.len() >= 4), "{} at {at}", series.len());
    }
    assert_eq!(batches.series(3_000).batch_ns(), 640);
}

#[test]
fn quantiles_are_exact_to_the_bucket_however_often_batches_were_joined() {
    let mut random = SplitMix64::new(3);
    let mut batches = Batches::new(1_000, 100, 4);
    for at in 0..100_000 {
        batches.record(1_000 + at, random.lognormal(20_000.0, 0.2) as u64);
    }
    let series = batches.series(101_000);
    let medians = series.quantiles(0.5);
    assert_eq!(medians.len(), series.len());
    for median in medians {
        // 25,000 samples or more each: the median is within 0.4% but for 1 in 1,000.
        let off = median.unwrap() / 20_000.0 - 1.0;
        assert!(off.abs() < 0.01, "{off}");
    }
    for mean in series.means() {
        let off = mean.unwrap() / (20_000.0 * (0.02f64).exp()) - 1.0;
        assert!(off.abs() < 0.01, "{off}");
    }
}

#[test]
fn silence_makes_empty_batches_and_costs_no_time() {
    let mut batches = Batches::new(0, 10, 8);
    batches.record(5, 1_000);
    batches.record(47, 3_000);
    assert_eq!(read(&batches.series(60)), [(1, 1_000), (0, 0), (0, 0), (0, 0), (1, 3_000), (0, 0)]);
    assert_eq!(batches.series(49).len(), 4);
    // A pause of centuries, then the end of time.
    batches.record(u64::MAX / 2, 5_000);
    batches.record(u64::MAX, 7_000);
    let series = batches.series(u64::MAX);
    // The last one's batch never ends.
    assert_eq!(series.counts().iter().sum::<u64>(), 3);
    assert!((4..=8).contains(&series.len()), "{}", series.len());
}

#[test]
fn a_time_that_runs_backwards_is_counted_in_the_open_batch() {
    let mut batches = Batches::new(100, 10, 8);
    batches.record(125, 1_000);
    batches.record(3, 1_000);
    assert_eq!(batches.series(130).counts(), [0, 0, 2]);
}

#[test]
fn threads_add_though_one_fell_silent_early() {
    let mut sum = Batches::new(0, 10, 8);
    let mut early = Batches::new(0, 10, 8);
    for at in 0..1_000 {
        sum.record(at, 1_000);
        if at < 45 {
            early.record(at, 2_000);
        }
    }
    assert!(early.length_ns < sum.length_ns);
    let mut series = sum.series(1_000);
    series.add(&early.series(1_000)).unwrap();
    assert_eq!(series.batch_ns(), 160);
    assert_eq!(series.counts(), [160 + 45, 160, 160, 160, 160, 160]);
    assert_eq!(series.sums()[0], 160 * 1_000 + 45 * 2_000);
    let elsewhere = Batches::new(1, 10, 8).series(1_000);
    assert_eq!(series.add(&elsewhere), Err(NotAlike));
}

#[test]
fn rounds_follow_one_another() {
    let (mut first, mut second) = (Batches::new(0, 10, 8), Batches::new(1_000, 10, 8));
    (0..160).for_each(|at| first.record(at, 1));
    (0..75).for_each(|at| second.record(1_000 + at, 2));
    let mut series = first.series(160);
    series.append(&second.series(1_080)).unwrap();
    assert_eq!(series.batch_ns(), 20);
    assert_eq!(series.counts(), [20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 15]);
    assert_eq!(series.append(&Batches::new(0, 13, 8).series(100)), Err(NotAlike));
}

#[test]
fn any_number_of_rounds_stays_small_and_complete() {
    let round = |start: u64| {
        let mut batches = Batches::new(start, 10, 8);
        (0..50).for_each(|at| batches.record(start + at, start));
        batches.series(start + 50)
    };
    let mut series = round(0);
    for i in 1..1_000 {
        series.append(&round(i * 70)).unwrap();
        assert!(series.len() <= 128);
        // All of it but the rest that is not yet a batch.
        let samples: u64 = series.counts().iter().sum();
        assert!(samples <= (i + 1) * 50 && samples + series.batch_ns() > (i + 1) * 50, "{i}");
        assert!(series.counts().iter().all(|n| *n == series.batch_ns()), "{:?}", series.counts());
    }
    assert_eq!(series.batch_ns(), 640);
    // In order of time.
    assert!(series.means().is_sorted_by(|a, b| a.unwrap() < b.unwrap()));
}

#[test]
fn no_time_is_no_batch_and_no_sample_no_mean() {
    let batches = Batches::new(50, 0, 0);
    assert!(batches.series(0).is_empty());
    let series = batches.series(53);
    assert_eq!((series.means(), series.quantiles(0.5)), (vec![None; 3], vec![None; 3]));
}

#[test]
fn memory_is_what_the_text_says() {
    let batches = Batches::new(0, 1, Batches::CAPACITY);
    assert_eq!(batches.counts.len() * 4, 384 << 10);
}
