//! Which of many counters moved with a change, from the same blocks as its verdict.
//!
//! Under "nothing moved", the coin that chose a block's order turned the signs of all counters in
//! it at once. So the signs are turned, block by block, in every way there is, and each counter's
//! effect is compared with the largest that any counter has by such a turn (Westfall and Young,
//! Resampling-Based Multiple Testing, 1993, algorithm 4.1: stepping down from the largest, as
//! Holm's method does). The chance that any counter that did not move is named stays below the
//! level however alike the counters are; and unlike Holm's, it does not multiply the smallest
//! chance that few blocks have by the number of counters, after which ten blocks and fifty
//! counters could show nothing.
//!
//! An effect is measured by the sum over blocks over the root of the sum of squares, in which an
//! outlier is cut at twice the median size, which turning does not change.

use crate::random::SplitMix64;

/// Up to so many blocks every turn is looked at; of more, as many as these have.
const MOST_EXACT: usize = 14;

/// From here on, in median sizes, a size counts no more.
const CUT: f64 = 2.0;

/// A counter's effect that is smaller than this part of the one it is compared with is the same:
/// sums differ by rounding.
const SAME: f64 = 1.0 - 1e-9;

/// Of each counter, the chance that one that did not move looks as if it had, corrected for there
/// being several.
///
/// **Shape**: `effects` has each counter's effect by block, all over the same blocks; the result
/// is in its order. A counter that never differed has 1.
pub fn p_values(effects: &[Vec<f64>], seed: u64) -> Vec<f64> {
    let blocks = effects.iter().map(Vec::len).min().unwrap_or(0);
    let scaled: Vec<Vec<f64>> = effects.iter().map(|e| scaled(e, blocks)).collect();
    let seen: Vec<f64> = scaled.iter().map(|e| e.iter().sum::<f64>().abs()).collect();
    let mut order: Vec<usize> = (0..effects.len()).collect();
    order.sort_by(|a, b| size(&seen, *b).total_cmp(&size(&seen, *a)));
    let mut as_large = vec![0u32; order.len()];
    let mut permutations = 0u32;
    let mut look = |signs: u64| {
        let mut largest: f64 = 0.0;
        for (place, counter) in order.iter().enumerate().rev() {
            largest = largest.max(turned(&scaled, *counter, signs));
            if largest >= size(&seen, *counter) * SAME
                && let Some(n) = as_large.get_mut(place)
            {
                *n += 1;
            }
        }
        permutations += 1;
    };
    if blocks <= MOST_EXACT {
        // A turn and its opposite say the same.
        (0..1u64 << blocks.saturating_sub(1)).for_each(&mut look);
    } else {
        look(0);
        let mut random = SplitMix64::new(seed);
        (0..1u64 << (MOST_EXACT - 1)).for_each(|_| look(random.bits()));
    }
    let (mut least, mut found) = (0.0f64, vec![1.0; effects.len()]);
    for (place, counter) in order.iter().enumerate() {
        let count = as_large.get(place).copied().unwrap_or(permutations);
        least = least.max(f64::from(count) / f64::from(permutations.max(1)));
        if let Some(p) = found.get_mut(*counter).filter(|_| size(&seen, *counter) > 0.0) {
            *p = least;
        }
    }
    found
}

fn size(seen: &[f64], counter: usize) -> f64 {
    seen.get(counter).copied().unwrap_or(0.0)
}

/// The size of a counter's effect when the blocks of these bits are turned; blocks beyond 64 are
/// turned with those 64 before.
fn turned(scaled: &[Vec<f64>], counter: usize, signs: u64) -> f64 {
    let Some(effects) = scaled.get(counter) else { return 0.0 };
    let each = effects.iter().enumerate();
    each.map(|(b, x)| if signs >> (b % 64) & 1 == 1 { -x } else { *x }).sum::<f64>().abs()
}

/// Outliers cut, over the root of the sum of squares.
fn scaled(effects: &[f64], blocks: usize) -> Vec<f64> {
    let sizes: Vec<f64> = effects.iter().take(blocks).map(|e| e.abs()).collect();
    let median = crate::paired::median(&sizes);
    let most = if median > 0.0 { CUT * median } else { f64::INFINITY };
    let cut: Vec<f64> = effects.iter().take(blocks).map(|e| e.clamp(-most, most)).collect();
    let root = cut.iter().map(|e| e * e).sum::<f64>().sqrt();
    cut.iter().map(|e| if root > 0.0 { e / root } else { 0.0 }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::{signed_rank, test_martingale::TestMartingale};

    /// Counters that share half of their noise, of which `moved` have an effect of 2 deviations.
    fn counters(seed: u64, blocks: usize, many: usize, moved: usize) -> Vec<Vec<f64>> {
        let mut random = SplitMix64::new(seed);
        let shared: Vec<f64> = (0..blocks).map(|_| random.normal()).collect();
        let mut one = |effect: f64| {
            shared
                .iter()
                .map(|s| effect + s * 0.5f64.sqrt() + random.normal() * 0.5f64.sqrt())
                .collect()
        };
        (0..many).map(|i| one(if i < moved { 2.0 } else { 0.0 })).collect()
    }

    #[test]
    fn of_counters_that_did_not_move_one_is_named_as_rarely_as_promised() {
        for (blocks, series, most) in [(8, 400, 34), (16, 40, 7)] {
            let named = (0..series).filter(|seed| {
                p_values(&counters(*seed, blocks, 20, 0), 1).iter().any(|p| *p <= 0.05)
            });
            let named = named.count();
            assert!(named <= most, "{named} of {series} at {blocks} blocks");
            assert!(blocks > 8 || named >= 6, "{named}: never is too cautious");
        }
    }

    #[test]
    fn the_one_that_moved_is_named_and_no_other_oftener_than_promised() {
        let (mut found, mut wrong) = (0, 0);
        for seed in 0..100 {
            let p = p_values(&counters(seed, 10, 40, 1), 1);
            found += u32::from(p.first().is_some_and(|p| *p <= 0.05));
            wrong += u32::from(p.iter().skip(1).any(|p| *p <= 0.05));
        }
        assert!(found >= 75 && wrong <= 11, "{found} {wrong}");
    }

    #[test]
    fn a_clear_effect_among_fifty_is_named_by_nine_blocks_where_holm_could_not() {
        let mut all = counters(3, 9, 50, 0);
        all[7] = vec![1.0, 1.1, 0.9, 1.05, 1.0, 0.95, 1.1, 1.0, 0.9];
        let p = p_values(&all, 1);
        assert!(p[7] <= 0.05, "{}", p[7]);
        // The least that signed ranks can say of nine blocks, times the number of counters.
        let holm = 50.0 * signed_rank::p_value(&[1.0; 9]);
        assert!(holm > 0.05, "{holm}");
        // One outlier takes nothing from it.
        all[7][4] = 80.0;
        assert!(p_values(&all, 1)[7] <= 0.05);
    }

    #[test]
    fn stopping_when_another_figure_is_clear_spoils_little() {
        let named = (0..300u64).filter(|seed| {
            // The first is the figure that decides; it shares half of its noise with the others.
            let mut all = counters(*seed, 30, 11, 1);
            let stop = |n: &usize| TestMartingale::on(&all[0][..*n], 0.0).p_value() <= 0.01;
            let blocks = (6..30).find(stop).unwrap_or(30).min(13);
            all.remove(0);
            all.iter_mut().for_each(|e| e.truncate(blocks));
            p_values(&all, 1).iter().any(|p| *p <= 0.05)
        });
        let named = named.count();
        println!("{named} of 300 experiments that stopped early named what did not move");
        assert!((4..=27).contains(&named), "{named} of 300");
    }

    #[test]
    fn nothing_that_differs_is_nothing() {
        assert_eq!(p_values(&[vec![0.0; 9], vec![0.0; 9]], 1), [1.0, 1.0]);
        assert_eq!(p_values(&[], 1), [0.0f64; 0]);
        assert_eq!(p_values(&[vec![]], 1), [1.0]);
        // Six blocks on one side: two of 64 turns.
        assert_eq!(p_values(&[vec![1.0; 6]], 1), [2.0 / 64.0]);
    }
}
