//! In which order the runs of a block are made.

use crate::random::SplitMix64;

/// Each of `levels` twice: shuffled (Fisher and Yates, by Durstenfeld, CACM 7, 1964), then
/// mirrored. For two levels A B B A or B A A B.
///
/// **Shape**: indices of levels in the order of the runs, `2 * levels` of them. The same seed and
/// block give the same order, so that an experiment can be resumed.
pub fn of_block(levels: usize, seed: u64, block: usize) -> Vec<usize> {
    let mut random = SplitMix64::new(seed ^ (block as u64).wrapping_mul(0xd1b5_4a32_d192_ed03));
    let mut order: Vec<usize> = (0..levels).collect();
    for last in (1..levels).rev() {
        order.swap(last, random.below(last + 1));
    }
    order.extend(order.clone().into_iter().rev());
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_holds_each_level_twice_about_the_same_middle() {
        for levels in 1..9 {
            for block in 0..50 {
                let order = of_block(levels, 7, block);
                for level in 0..levels {
                    let at: Vec<usize> = (0..order.len()).filter(|i| order[*i] == level).collect();
                    assert_eq!((at.len(), at.iter().sum::<usize>()), (2, 2 * levels - 1));
                }
            }
        }
    }

    #[test]
    fn the_coin_is_fair_and_repeats_itself() {
        let first = |seed| (0..4_000).filter(|b| of_block(2, seed, *b)[0] == 0).count();
        assert!((1_850..2_150).contains(&first(3)), "{}", first(3));
        assert_eq!(of_block(5, 11, 4), of_block(5, 11, 4));
    }
}
