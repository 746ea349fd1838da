//! Whether one group's values lie above another's: the rank-sum test (Wilcoxon, Biometrics
//! Bulletin 1, 1945; Mann and Whitney, Annals of Mathematical Statistics 18, 1947), by its normal
//! approximation with the correction for ties.

/// The share of pairs in which the first group's value is the larger (ties are half), and how
/// likely a share as far from a half is by chance, two-sided. `None` where a group is empty.
pub fn above(first: &[f64], second: &[f64]) -> Option<(f64, f64)> {
    let (n, m) = (first.len() as f64, second.len() as f64);
    if first.is_empty() || second.is_empty() {
        return None;
    }
    let pair = |a: f64, b: f64| match a.total_cmp(&b) {
        std::cmp::Ordering::Greater => 1.0,
        std::cmp::Ordering::Equal => 0.5,
        std::cmp::Ordering::Less => 0.0,
    };
    let sum: f64 = first.iter().flat_map(|a| second.iter().map(move |b| pair(*a, *b))).sum();
    let mut all: Vec<f64> = first.iter().chain(second).copied().collect();
    all.sort_unstable_by(f64::total_cmp);
    let tied: f64 =
        all.chunk_by(|a, b| a == b).map(|t| (t.len() as f64).powi(3) - t.len() as f64).sum();
    let total = n + m;
    let variance = n * m / 12.0 * (total + 1.0 - tied / (total * (total - 1.0).max(1.0)));
    let share = sum / (n * m);
    if variance <= 0.0 {
        return Some((share, 1.0));
    }
    // Half a step towards the middle: the statistic is discrete.
    let off = ((sum - n * m / 2.0).abs() - 0.5).max(0.0) / variance.sqrt();
    Some((share, 2.0 * upper_tail(off)))
}

/// The normal distribution's share above, by Abramowitz and Stegun, Handbook of Mathematical
/// Functions, 1964, 26.2.17: off by less than 1e-7.
fn upper_tail(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * x);
    let by = [0.319_381_530, -0.356_563_782, 1.781_477_937, -1.821_255_978, 1.330_274_429];
    let sum = by.iter().rev().fold(0.0, |sum, b| (sum + b) * t);
    (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt() * sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SplitMix64;

    #[test]
    fn it_is_what_the_tables_say() {
        assert!((upper_tail(1.959_964) - 0.025).abs() < 1e-6);
        // R: wilcox.test(1:8, 6:13, exact = FALSE): W = 4.5, p = 0.004534
        let (a, b): (Vec<f64>, Vec<f64>) =
            ((1..=8).map(f64::from).collect(), (6..=13).map(f64::from).collect());
        let (share, p) = above(&a, &b).unwrap();
        assert!((share - 4.5 / 64.0).abs() < 1e-12, "{share}");
        assert!((p - 0.004_534).abs() < 3e-4, "{p}");
        assert_eq!(above(&[1.0; 9], &[1.0; 9]), Some((0.5, 1.0)));
        assert_eq!(above(&[], &a), None);
    }

    #[test]
    fn chance_is_seen_as_often_as_it_says() {
        let mut random = SplitMix64::new(11);
        let mut draw = |n: usize| (0..n).map(|_| random.normal()).collect::<Vec<_>>();
        let rare = (0..2_000).filter(|_| above(&draw(12), &draw(30)).unwrap().1 < 0.05).count();
        assert!((60..140).contains(&rare), "{rare} of 2,000");
    }
}
