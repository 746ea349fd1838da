//! Units of figures, and how a figure is printed.

use model::{BitsPerSec, Bytes, Nanos, units};

/// The unit of a figure in a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds, printed with the unit that fits.
    Nanos,
    /// Seconds from the beginning of a window.
    Seconds,
    PerSecond,
    BitsPerSecond,
    Bytes,
    Count,
    /// A share of 1, printed in percent.
    Share,
    /// A change as a share of 1, printed in percent with its sign.
    Change,
    /// A figure whose unit only its name has.
    Plain,
    /// A difference of such figures, with its sign.
    Difference,
    Probability,
}

/// Printed where a document has no figure.
pub const NONE: &str = "–";

impl Unit {
    /// A figure of this unit as people read it.
    pub fn show(self, x: f64) -> String {
        if !x.is_finite() {
            return NONE.into();
        }
        match self {
            Self::Nanos => nanos(x),
            Self::Seconds => format!("{x:.2} s"),
            Self::PerSecond if x.abs() < 100.0 => format!("{x:.1}/s"),
            Self::PerSecond => format!("{}/s", units::figure(x)),
            Self::BitsPerSecond => BitsPerSec(x.max(0.0).round() as u64).to_string(),
            Self::Bytes => Bytes(x.max(0.0).round() as u64).to_string(),
            Self::Count => match x < 0.0 {
                true => format!("-{}", units::grouped(x.abs().round() as u64)),
                false => units::grouped(x.round() as u64),
            },
            Self::Share => format!("{:.1}%", 100.0 * x),
            Self::Change => format!("{:+.1}%", 100.0 * x),
            Self::Plain => units::figure(x),
            Self::Difference => format!("{x:+.3}"),
            Self::Probability if x < 0.001 => "< 0.001".into(),
            Self::Probability => format!("{x:.3}"),
        }
    }
}

fn nanos(ns: f64) -> String {
    let size = ns.abs();
    let text = match size {
        n if n > 0.0 && n < 10.0 => format!("{n:.2} ns"),
        n => Nanos(n.round() as u64).to_string(),
    };
    if ns < 0.0 { format!("-{text}") } else { text }
}
