//! Public measurements with many repetitions: Karsten and Damato's experiments with the suspension
//! of interrupts (github.com/martinkarsten/irqsuspend, commit 664164f3, `results/v6`), 12 settings
//! of the kernel at 6 loads of memcached, each 18 or 19 times. `data/irq_suspension.csv` has of each
//! `mutilate-*.out` the mean, the 95th and the 99th percentile of the line `read`, and `Total QPS`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use compare::{Choice, Group, Request, compare};
use model::{
    compare::{BenchmarkRun, Comparison},
    prove::{Direction, Outcome},
};
use parse::number_table::{runs, table};
use stats::{random::SplitMix64, rate::wilson};

const METRICS: [&str; 2] = ["avg_us", "p99_us"];

/// The runs by load and setting.
fn measured() -> BTreeMap<(String, String), Vec<BenchmarkRun>> {
    let table = table(include_str!("data/irq_suspension.csv")).unwrap();
    let mut measured: BTreeMap<_, Vec<BenchmarkRun>> = BTreeMap::new();
    for (row, mut run) in table.rows.iter().zip(runs(&table, Some(0))) {
        let setting = std::mem::take(&mut run.case);
        measured.entry((row[1].clone(), setting)).or_default().push(run);
    }
    measured
}

fn group(name: &str, runs: &[BenchmarkRun]) -> Group {
    Group { name: name.into(), files: 1, runs: runs.to_vec() }
}

fn compared(before: &[BenchmarkRun], after: &[BenchmarkRun]) -> Vec<Comparison> {
    let lower = |metric: &&str| Choice {
        metric: (*metric).into(),
        direction: Some(Direction::LowerIsBetter),
    };
    let request = Request {
        groups: Some((group("before", before), group("after", after))),
        choices: METRICS.iter().map(lower).collect(),
        ..Request::default()
    };
    compare(&request).unwrap().comparisons
}

fn called(c: &Comparison) -> bool {
    matches!(c.outcome, Outcome::Better | Outcome::Worse)
}

/// One setting against itself, its runs dealt into two groups by chance.
#[test]
fn a_setting_against_itself_is_called_in_at_most_a_twentieth() {
    let (mut wrong, mut all) = (0, 0);
    let mut random = SplitMix64::new(6);
    for runs in measured().values() {
        for _ in 0..10 {
            let mut dealt = runs.clone();
            for last in (1..dealt.len()).rev() {
                dealt.swap(last, random.below(last + 1));
            }
            let (before, after) = dealt.split_at(dealt.len() / 2);
            wrong += usize::from(compared(before, after).iter().any(called));
            all += 1;
        }
    }
    let rate = wilson(wrong, all);
    println!("{wrong} of {all} null pairs called: {rate:.3?}");
    assert!(all == 720 && rate.1 <= 0.05, "{wrong} of {all}");
}

/// Two settings at one load. Their runs do not overlap, and their medians are a fifth apart.
#[test]
fn a_large_effect_is_called_with_its_sign() {
    let measured = measured();
    let (mut large, mut found, mut held) = (0, 0, 0);
    for ((load, setting), before) in &measured {
        let others = measured.iter().filter(|((l, s), _)| l == load && s > setting);
        for (_, after) in others {
            for c in compared(before, after) {
                let ends = |f: &[f64]| {
                    let up = f.iter().copied().fold(f64::MIN, f64::max);
                    (f.iter().copied().fold(f64::MAX, f64::min), up)
                };
                let (b, a) = (ends(&c.before.figures), ends(&c.after.figures));
                let change = c.after.median / c.before.median - 1.0;
                if (b.1 < a.0 || a.1 < b.0) && change.abs() >= 0.2 {
                    large += 1;
                    let sign = if change > 0.0 { Outcome::Worse } else { Outcome::Better };
                    found += usize::from(c.outcome == sign);
                    held += usize::from(c.low.unwrap() <= change && change <= c.high.unwrap());
                }
            }
        }
    }
    println!("{found} of {large} large effects called; {held} intervals hold the ratio of medians");
    assert!(large > 200 && found == large, "{found} of {large}");
    assert!(held * 100 >= large * 95, "{held} of {large}");
}
