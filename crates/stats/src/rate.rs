//! A rate that was seen, with its interval.

/// Wilson's 95% interval of a rate (Journal of the American Statistical Association 22, 1927):
/// the rate, and the interval's ends. Of nothing, all are possible.
pub fn wilson(hits: usize, of: usize) -> (f64, f64, f64) {
    if of == 0 {
        return (0.0, 0.0, 1.0);
    }
    let (n, p, z) = (of as f64, hits as f64 / of as f64, 1.96);
    let middle = (p + z * z / (2.0 * n)) / (1.0 + z * z / n);
    let half = z / (1.0 + z * z / n) * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt();
    (p, (middle - half).max(0.0), (middle + half).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_published_example_is_met_and_nothing_says_nothing() {
        // Newcombe, Statistics in Medicine 17 (1998), table I, method 3: 81 of 263, 0 of 20.
        let (p, low, high) = wilson(81, 263);
        assert!((p - 0.3080).abs() < 1e-4, "{p}");
        assert!((low - 0.2553).abs() < 1e-4 && (high - 0.3662).abs() < 1e-4, "{low} {high}");
        let (_, low, high) = wilson(0, 20);
        assert!(low < 1e-12 && (high - 0.1611).abs() < 1e-4, "{low} {high}");
        assert_eq!(wilson(0, 0), (0.0, 0.0, 1.0));
    }
}
