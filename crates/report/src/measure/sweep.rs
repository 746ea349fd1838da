//! Several runs in one line: where the throughput of a sweep stops growing, or the range of a
//! figure.

use model::units::grouped;

use super::numbers::per_second;
use crate::{
    text::{Ink, Line},
    words::many,
};

/// A count counts as the knee from this share of the best rate on.
const NEARLY_BEST: f64 = 0.95;

/// The smallest of `points` (count, rate per second) that has nearly the best rate, and its rate
/// against linear growth from the first point. None unless the counts grow and each has a rate.
pub fn knee(points: &[(u32, f64)], one: &str) -> Option<Line> {
    let grows = points.windows(2).all(|p| matches!(p, [a, b] if a.0 < b.0));
    let rated = points.iter().all(|p| p.0 > 0 && p.1.is_finite() && p.1 > 0.0);
    let (&[first, _, ..], true, true) = (points, grows, rated) else { return None };
    let best = points.iter().map(|p| p.1).fold(0.0, f64::max);
    let &(count, rate) = points.iter().find(|p| p.1 >= NEARLY_BEST * best)?;
    let says = match points.last() {
        Some(last) if last.0 == count => "Throughput still grows at",
        _ => "Throughput stops growing at",
    };
    let linear = rate / (first.1 * f64::from(count) / f64::from(first.0));
    let mut text = format!("{says} {}: {}/s", counted(count, one), per_second(rate).bare());
    if count != first.0 {
        let share = (linear * 100.0).round();
        text += &format!(", {share}% of linear scaling from {}", grouped(first.0.into()));
    }
    Some(Line::new().ink(Ink::Strong, format!("{text}.")))
}

/// The smallest and the largest of the runs' figures, each with its run: `p50 from 53.1 µs (run 1)
/// to 91 µs (run 3)`. None for fewer than two figures; a run without one has NaN.
pub fn range(what: &str, figures: &[f64], print: fn(f64) -> Line) -> Option<Line> {
    let measured = || figures.iter().zip(1..).filter(|(f, _)| f.is_finite() && **f > 0.0);
    let (low, first) = measured().min_by(|a, b| a.0.total_cmp(b.0))?;
    let (high, last) = measured().max_by(|a, b| a.0.total_cmp(b.0))?;
    let said = |figure: f64, run: i32| format!("{} (run {run})", print(figure).bare());
    let text = match measured().count() {
        0 | 1 => return None,
        _ if print(*low).bare() == print(*high).bare() => {
            format!("{what} {} in all runs", print(*low).bare())
        }
        _ => format!("{what} from {} to {}", said(*low, first), said(*high, last)),
    };
    Some(Line::new().ink(Ink::Strong, text))
}

fn counted(n: u32, one: &str) -> String {
    many(n as usize, one)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(points: &[(u32, f64)]) -> String {
        knee(points, "flow").map_or_else(String::new, |l| l.bare())
    }

    #[test]
    fn the_knee_is_the_smallest_count_that_is_nearly_as_fast_as_the_best() {
        assert_eq!(
            says(&[(1, 1_000.0), (4, 3_900.0), (8, 4_000.0), (16, 3_000.0)]),
            "Throughput stops growing at 4 flows: 3,900/s, 98% of linear scaling from 1."
        );
        assert_eq!(
            says(&[(1, 1_000.0), (2, 1_500.0)]),
            "Throughput still grows at 2 flows: 1,500/s, 75% of linear scaling from 1."
        );
        assert_eq!(
            says(&[(1, 1_000.0), (2, 900.0)]),
            "Throughput stops growing at 1 flow: 1,000/s."
        );
    }

    #[test]
    fn a_range_names_the_runs_of_both_ends_and_leaves_out_runs_without_a_figure() {
        let says = |figures: &[f64]| {
            range("rate", figures, per_second).map_or_else(String::new, |l| l.bare())
        };
        assert_eq!(says(&[300.0, f64::NAN, 100.0]), "rate from 100 (run 3) to 300 (run 1)");
        assert_eq!(says(&[300.0, 300.2]), "rate 300 in all runs");
        assert_eq!(says(&[300.0, f64::NAN]) + &says(&[]), "");
    }

    #[test]
    fn there_is_no_knee_of_one_point_a_missing_rate_or_counts_that_do_not_grow() {
        for points in [&[(1, 5.0)][..], &[(1, 0.0), (2, 9.0)], &[(2, 5.0), (2, 5.0)], &[]] {
            assert_eq!(says(points), "");
        }
    }
}
