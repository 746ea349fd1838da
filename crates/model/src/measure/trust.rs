//! Measurement noise: the value below which figures are unreliable, and why.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Nanos, coded::coded};

/// A limit on the trust in a figure. In JSON `{code, data, message}`, as a [`crate::Warning`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[serde(rename_all = "snake_case", remote = "Self")]
#[schemars(tag = "code", content = "data", transform = crate::coded::short)]
pub enum TrustLimit {
    #[error("not measured: {why}")]
    NotMeasured { why: String },
    #[error("client overhead, {sample_ns} a sample, is over 1% of figures below {below_ns}")]
    ClientOverhead { sample_ns: Nanos, below_ns: Nanos },
    #[error("a step of the clock, {step_ns}, is over 1% of figures below {below_ns}")]
    ClockStep { step_ns: Nanos, below_ns: Nanos },
    #[error("the clock takes {read_ns}: this clock source is read by a system call")]
    SlowClock { read_ns: Nanos },
    /// The largest wake-up delay of this many sleeps.
    #[error(
        "excursions up to {latest_ns} can be wake-up jitter of this machine: one wake-up in \
         {sleeps} was that late, and rarer ones may be later"
    )]
    LateTimers { latest_ns: Nanos, sleeps: u64 },
    #[error("the wake-up jitter of this host is not known")]
    LateTimersNotKnown,
    /// `share` is of the CPUs' time.
    #[error(
        "steal time {steal_ns}, {:.2}% of the CPUs' time: values above the quantile {:.2}% can be \
         caused by it",
        .share * 100.0, (1.0 - .share) * 100.0
    )]
    Steal { steal_ns: Nanos, share: f64 },
    #[error("the steal time is not known")]
    StealNotKnown,

    /// Written by another version of this program.
    #[error("{message}")]
    Other { code: String, message: String },
}

coded!(TrustLimit);
