//! From figures to positions, and which figures an axis names.

use crate::unit::Unit;

/// How figures are spread over an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    Linear,
    Log,
    /// Quantiles: a figure is -log10 of the share beyond, so each nine takes equal room.
    Nines,
}

/// A scale over a range.
#[derive(Debug, Clone, Copy)]
pub struct Axis {
    scale: Scale,
    low: f64,
    high: f64,
    unit: Unit,
}

/// The quantiles with a mark on the axis: -log10(1 - q), and the label.
const QUANTILES: [(f64, &str); 7] = [
    (0.0, "min"),
    (std::f64::consts::LOG10_2, "p50"),
    (1.0, "p90"),
    (2.0, "p99"),
    (3.0, "p99.9"),
    (4.0, "p99.99"),
    (5.0, "p99.999"),
];

impl Axis {
    /// As [`Axis::holding`], without room beyond the largest figure.
    pub fn tight(scale: Scale, unit: Unit, figures: impl IntoIterator<Item = f64>) -> Self {
        let all: Vec<f64> = figures.into_iter().filter(|x| x.is_finite()).collect();
        let most = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let axis = Self::holding(scale, unit, all);
        let within = scale == Scale::Linear && most > axis.low;
        if within { Self { high: most, ..axis } } else { axis }
    }

    /// An axis that holds all figures. A linear one begins at 0 where no figure is below.
    pub fn holding(scale: Scale, unit: Unit, figures: impl IntoIterator<Item = f64>) -> Self {
        let usable = |x: &f64| x.is_finite() && (scale != Scale::Log || *x > 0.0);
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for x in figures.into_iter().filter(usable) {
            (low, high) = (low.min(x), high.max(x));
        }
        if low > high {
            (low, high) = (1.0, 2.0);
        }
        match scale {
            Scale::Linear => {
                low = low.min(0.0);
                high = if high > low { high } else { low + 1.0 };
                let step = step((high - low) / 4.0);
                high = (high / step - 1e-9).ceil() * step;
                low = (low / step + 1e-9).floor() * step;
            }
            Scale::Log if high / low < 1.5 => (low, high) = (low / 1.3, high * 1.3),
            Scale::Log => (low, high) = (low / 1.12, high * 1.12),
            Scale::Nines => (low, high) = (0.0, high.max(1.0)),
        }
        Self { scale, low, high, unit }
    }

    /// The position of a figure, from 0 to 1.
    pub fn at(&self, x: f64) -> f64 {
        let part = match self.scale {
            Scale::Log => (x.max(self.low) / self.low).ln() / (self.high / self.low).ln(),
            Scale::Linear | Scale::Nines => (x - self.low) / (self.high - self.low),
        };
        part.clamp(0.0, 1.0)
    }

    /// The figures to name, ascending, about `most` of them.
    pub fn ticks(&self, most: usize) -> Vec<(f64, String)> {
        match self.scale {
            Scale::Nines => QUANTILES
                .iter()
                .filter(|(x, _)| *x <= self.high + 1e-9)
                .map(|(x, name)| (*x, (*name).to_owned()))
                .collect(),
            Scale::Linear => {
                let step = step((self.high - self.low) / most.max(1) as f64);
                let first = (self.low / step).ceil() as i64;
                let last = (self.high / step + 1e-9).floor() as i64;
                (first..=last.min(first + 50)).map(|n| self.named(n as f64 * step)).collect()
            }
            Scale::Log => self.log_ticks(most),
        }
    }

    fn named(&self, x: f64) -> (f64, String) {
        // An axis names round figures: 500%, 2 s.
        let name = self.unit.show(x);
        let name = match self.unit {
            Unit::Share | Unit::Change => name.replace(".0%", "%"),
            Unit::Seconds => name.replace(".00 s", " s"),
            _ => name,
        };
        (x, if x == 0.0 { name.trim_start_matches('+').to_owned() } else { name })
    }

    fn log_ticks(&self, most: usize) -> Vec<(f64, String)> {
        let mut all = vec![];
        for parts in [&[1.0, 2.0, 5.0][..], &[1.0, 3.0], &[1.0]] {
            all.clear();
            let mut decade = 10f64.powf(self.low.log10().floor());
            while decade <= self.high {
                let within = |x: &f64| (self.low..=self.high).contains(x);
                all.extend(parts.iter().map(|p| p * decade).filter(within));
                decade *= 10.0;
            }
            if all.len() <= most {
                break;
            }
        }
        if all.len() < 2 {
            all = vec![self.low * 1.12, self.high / 1.12];
        }
        all.into_iter().map(|x| self.named(x)).collect()
    }
}

/// The next larger step of 1, 2 or 5 times a power of ten.
fn step(least: f64) -> f64 {
    let power = 10f64.powf(least.max(1e-300).log10().floor());
    let parts = [1.0, 2.0, 5.0, 10.0];
    parts.into_iter().map(|p| p * power).find(|s| *s >= least * 0.999).unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_linear_axis_begins_at_zero_and_names_round_figures() {
        let axis = Axis::holding(Scale::Linear, Unit::Count, [3.0, 87.0]);
        let names: Vec<String> = axis.ticks(4).into_iter().map(|t| t.1).collect();
        assert_eq!(names, ["0", "50", "100"]);
        assert_eq!(axis.at(0.0), 0.0);
        assert_eq!(axis.at(50.0), 0.5);
    }

    #[test]
    fn a_logarithmic_axis_gives_each_factor_the_same_room() {
        let axis = Axis::holding(Scale::Log, Unit::Nanos, [1e3, 1e6]);
        let rooms = [(1e3, 1e4), (1e4, 1e5), (1e5, 1e6)].map(|(a, b)| axis.at(b) - axis.at(a));
        assert!(rooms.iter().all(|r| (r - rooms[0]).abs() < 1e-9), "{rooms:?}");
        assert!(axis.ticks(5).len() >= 3);
    }

    #[test]
    fn each_nine_takes_the_same_room() {
        let axis = Axis::holding(Scale::Nines, Unit::Count, [0.0, 4.0]);
        let ticks = axis.ticks(9);
        assert_eq!(ticks.last().unwrap().1, "p99.99");
        assert!((axis.at(2.0) - axis.at(1.0) - (axis.at(3.0) - axis.at(2.0))).abs() < 1e-9);
    }

    #[test]
    fn an_axis_of_nothing_or_of_one_figure_still_has_a_range() {
        for scale in [Scale::Linear, Scale::Log, Scale::Nines] {
            for figures in [vec![], vec![5.0], vec![0.0], vec![f64::NAN, -1.0]] {
                let axis = Axis::holding(scale, Unit::Plain, figures.clone());
                assert!(axis.at(1.0).is_finite(), "{scale:?} {figures:?}");
                assert!(!axis.ticks(4).is_empty(), "{scale:?} {figures:?}");
            }
        }
    }
}
