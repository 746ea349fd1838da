//! Several metrics, one promise.

/// The p-values corrected for there being several: the chance that any of those called an effect
/// is none stays below the level (Holm, "A simple sequentially rejective multiple test
/// procedure", Scandinavian Journal of Statistics 6, 1979).
///
/// **Shape**: in the order given.
pub fn corrected(p_values: &[f64]) -> Vec<f64> {
    let mut ascending: Vec<(usize, f64)> = p_values.iter().copied().enumerate().collect();
    ascending.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut corrected = vec![1.0; p_values.len()];
    let mut least: f64 = 0.0;
    for (before, (at, p)) in ascending.into_iter().enumerate() {
        least = least.max(p * (p_values.len() - before) as f64).min(1.0);
        if let Some(place) = corrected.get_mut(at) {
            *place = least;
        }
    }
    corrected
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worked_example() {
        let found = corrected(&[0.01, 0.04, 0.03, 0.005]);
        for (a, b) in found.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((a - b).abs() < 1e-12, "{found:?}");
        }
        assert_eq!(corrected(&[0.7]), [0.7]);
        assert!(corrected(&[]).is_empty());
    }
}
