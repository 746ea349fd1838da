//! Measured values as cells.

use model::{
    BitsPerSec, Nanos,
    measure::{Interval, Quantiles},
    units::grouped,
};

use crate::text::{Ink, Line};

/// A faint `-`: no value.
pub fn none() -> Line {
    Line::new().ink(Ink::Faint, "-")
}

pub fn time(ns: u64) -> Line {
    Line::plain(Nanos(ns))
}

/// A duration that is the result of a division.
pub fn time_of(ns: f64) -> Line {
    if !ns.is_finite() || ns < 0.0 {
        return none();
    }
    match ns {
        n if n > 0.0 && n < 10.0 => Line::plain(format!("{n:.2} ns")),
        n => time(n.round() as u64),
    }
}

/// A quantile; `-` where too few samples lie beyond it.
pub fn quantile(q: &Quantiles, share: f64, pick: fn(&Quantiles) -> u64) -> Line {
    let beyond = q.count as f64 * (1.0 - share);
    if q.count == 0 || beyond < 0.9995 { none() } else { time(pick(q)) }
}

/// The standard deviation; `-` of one sample, which has no spread.
pub fn deviation(q: &Quantiles) -> Line {
    if q.count < 2 { none() } else { time_of(q.sd) }
}

pub fn largest(q: &Quantiles) -> Line {
    if q.count == 0 { none() } else { time(q.max) }
}

/// A count per second.
pub fn per_second(rate: f64) -> Line {
    match rate {
        r if !r.is_finite() || r < 0.0 => none(),
        r if r > 0.0 && r < 100.0 => Line::plain(format!("{r:.1}")),
        r => Line::plain(grouped(r.round() as u64)),
    }
}

/// A rate in bits per second.
pub fn bits(rate: f64) -> Line {
    if rate.is_finite() && rate >= 0.0 {
        Line::plain(BitsPerSec(rate.round() as u64))
    } else {
        none()
    }
}

/// The distance to an interval's farther end, as a share of the value.
pub fn width(interval: Option<&Interval>) -> Line {
    let Some(i) = interval else { return none() };
    let reach = (i.high - i.value).max(i.value - i.low) / i.value;
    if !reach.is_finite() || reach < 0.0 {
        return none();
    }
    Line::plain(share(reach))
}

/// A share in per cent, with a digit more where it is small.
pub fn share(share: f64) -> String {
    match share * 100.0 {
        p if !p.is_finite() => "-".into(),
        p if p >= 9.95 => format!("{p:.0}%"),
        p if p >= 0.095 || p == 0.0 => format!("{p:.1}%"),
        p => format!("{p:.2}%"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_without_samples_beyond_it_is_not_shown() {
        let q = Quantiles { count: 999, p99: 5_000, p999: 9_000, max: 9_100, ..Default::default() };
        assert_eq!(quantile(&q, 0.99, |q| q.p99).bare(), "5 µs");
        assert_eq!(quantile(&q, 0.999, |q| q.p999).bare(), "-");
        assert_eq!(largest(&q).bare(), "9.10 µs");
        assert_eq!(largest(&Quantiles::default()).bare(), "-");
        let enough = Quantiles { count: 1_000, p999: 9_000, ..Default::default() };
        assert_eq!(quantile(&enough, 0.999, |q| q.p999).bare(), "9 µs");
    }

    #[test]
    fn shares_rates_and_intervals() {
        assert_eq!([0.5, 0.042, 0.0004, 0.0].map(share), ["50%", "4.2%", "0.04%", "0.0%"]);
        assert_eq!([12.34, 1234.5, f64::NAN].map(|r| per_second(r).bare()), ["12.3", "1,235", "-"]);
        assert_eq!(
            [0.12, 53_000.4, f64::INFINITY].map(|n| time_of(n).bare()),
            ["0.12 ns", "53 µs", "-"]
        );
        let i = Interval { value: 50.0, low: 49.0, high: 52.0, level: 0.95, method: String::new() };
        assert_eq!(width(Some(&i)).bare(), "4.0%");
        assert_eq!(width(None).bare(), "-");
    }
}
