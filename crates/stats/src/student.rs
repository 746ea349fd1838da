//! Student's t distribution for whole degrees of freedom.

use std::f64::consts::FRAC_PI_2;

/// From here on the difference to more degrees is below 0.1%.
const MOST_DEGREES: u32 = 2_000;

/// The share of the distribution between `-t` and `t`.
///
/// **Source**: Abramowitz and Stegun, Handbook of Mathematical Functions (1964), 26.7.3 and
/// 26.7.4: finite sums, exact for whole degrees.
fn within(t: f64, degrees: u32) -> f64 {
    let angle = (t / f64::from(degrees).sqrt()).atan();
    let (sin, cos) = angle.sin_cos();
    let odd = degrees % 2 == 1;
    if degrees == 1 {
        return angle / FRAC_PI_2;
    }
    let mut term = if odd { cos } else { 1.0 };
    let mut sum = term;
    let mut k = if odd { 3 } else { 2 };
    while k < degrees {
        term *= cos * cos * f64::from(k - 1) / f64::from(k);
        sum += term;
        k += 2;
    }
    if odd { (angle + sin * sum) / FRAC_PI_2 } else { sin * sum }
}

/// The `t` that a share `level` (0 to 1) of the distribution lies within, on both sides of 0:
/// 2.262 for 0.95 and 9 degrees. Infinite for no degree, as nothing is known then.
pub fn two_sided_t(level: f64, degrees: u32) -> f64 {
    if degrees == 0 || level >= 1.0 {
        return f64::INFINITY;
    }
    let degrees = degrees.min(MOST_DEGREES);
    let (mut low, mut high) = (0.0, 1.0);
    while within(high, degrees) < level && high < 1e9 {
        high *= 2.0;
    }
    for _ in 0..80 {
        let middle = (low + high) / 2.0;
        if within(middle, degrees) < level { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_printed_table() {
        // Two-sided 95% and 99%, as printed in any table of the t distribution.
        let table = [
            (1, 12.7062, 63.6567),
            (2, 4.3027, 9.9248),
            (3, 3.1824, 5.8409),
            (4, 2.7764, 4.6041),
            (9, 2.2622, 3.2498),
            (10, 2.2281, 3.1693),
            (30, 2.0423, 2.7500),
            (63, 1.9983, 2.6561),
            (100, 1.9840, 2.6259),
        ];
        for (degrees, at95, at99) in table {
            assert!((two_sided_t(0.95, degrees) - at95).abs() < 1e-4, "{degrees}");
            assert!((two_sided_t(0.99, degrees) - at99).abs() < 1e-4, "{degrees}");
        }
        assert!((two_sided_t(0.95, u32::MAX) - 1.96).abs() < 2e-3);
        assert_eq!(two_sided_t(0.95, 0), f64::INFINITY);
    }
}
