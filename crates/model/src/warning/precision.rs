//! Why a run misses its requested precision, and what would reach it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Nanos;

/// Reason for which an interval does not become narrow enough. Half widths are shares of the value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum NotPrecise {
    #[error("the value is 0")]
    ValueIsZero,
    #[error("it drifts, by {:+.1}% over the run", .trend * 100.0)]
    Drifts { trend: f64 },
    #[error(
        "batches of {batch_ns} are still autocorrelated ({correlation:.2}) and {left_ns} are left"
    )]
    BatchesResemble { batch_ns: Nanos, correlation: f64, left_ns: Nanos },
    #[error(
        "it is ±{:.1}% after {elapsed_ns}; ±{:.1}% takes about {further_ns} more and {left_ns} are \
         left",
        .half_width * 100.0, .goal * 100.0
    )]
    TimeTooShort {
        half_width: f64,
        goal: f64,
        elapsed_ns: Nanos,
        further_ns: Nanos,
        left_ns: Nanos,
    },
    #[error(
        "there are too few batches after {elapsed_ns}; give it a longer --duration{}",
        if *.max_time_too { " and --max-time" } else { "" }
    )]
    FewBatches { elapsed_ns: Nanos, max_time_too: bool },
    #[error(
        "it is ±{:.1}% after {elapsed_ns}, and {max_time_ns} leave no room for another round",
        .half_width * 100.0
    )]
    NoRoom { half_width: f64, elapsed_ns: Nanos, max_time_ns: Nanos },
}

/// Remedy that makes it precise enough.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum PrecisionAdvice {
    /// About this much time in all; `half_width` is the reached half width.
    #[error("{}", would_do(*.needed_ns, *.half_width))]
    MoreTime { needed_ns: Nanos, half_width: f64 },
    #[error("a longer --warmup may let it settle, more time does not")]
    LongerWarmup,
}

/// Upper limit of a suggested time; above it another parameter must change.
const PATIENCE_S: u64 = 1_800;

/// The flag to give, a tenth more than the estimate and rounded up as such an estimate may be;
/// or what else would help.
fn would_do(needed: Nanos, half_width: f64) -> String {
    let s = (needed.0 as f64 * 1.1 / 1e9).ceil() as u64;
    match s {
        0..120 => format!("--max-time {}s should do", s.next_multiple_of(10)),
        120..=PATIENCE_S => format!("--max-time {}m should do", s.div_ceil(60)),
        _ => format!(
            "that would take {}: ask for --precision {}%, or find what makes it vary (other load at \
             either end, --cpu for CPUs of its own, a longer --warmup)",
            roughly(s),
            (half_width * 100.0).ceil().clamp(1.0, 50.0)
        ),
    }
}

/// The required time is more than half an hour.
fn roughly(s: u64) -> String {
    match s {
        0..7_200 => format!("some {} minutes", s.div_ceil(600) * 10),
        7_200..172_800 => format!("some {} hours", s.div_ceil(3_600)),
        _ => "days".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_take_hours_is_not_advised_and_something_else_is() {
        let second = 1_000_000_000;
        let would_do = |ns, half_width| {
            PrecisionAdvice::MoreTime { needed_ns: Nanos(ns), half_width }.to_string()
        };
        assert_eq!(would_do(37 * second, 0.02), "--max-time 50s should do");
        assert_eq!(would_do(25 * 60 * second, 0.02), "--max-time 28m should do");
        let said = would_do(254 * 60 * second, 0.083);
        assert!(said.contains("some 5 hours") && !said.contains("--max-time"), "{said}");
        assert!(said.contains("--precision 9%") && said.contains("--cpu"), "{said}");
        assert!(would_do(u64::MAX / 2, 0.5).contains("days: "));
    }
}
