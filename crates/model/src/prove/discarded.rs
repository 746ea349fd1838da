//! Why a run of an experiment is discarded, as values.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{coded::coded, samples::HostChange};

/// Reason for discarding a run. In JSON `{code, data, message}`, as a [`crate::Warning`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[serde(rename_all = "snake_case", remote = "Self")]
#[schemars(tag = "code", content = "data", transform = crate::coded::short)]
pub enum Discarded {
    #[error("the host was suspended for {:.1} s", *.suspended_ns as f64 / 1e9)]
    Suspended { suspended_ns: u64 },
    #[error("the clock was set by {:+.3} s", *.step_ns as f64 / 1e9)]
    ClockSet { step_ns: i64 },
    #[error("links: {}", first(.changes))]
    LinksChanged { changes: Vec<HostChange> },
    #[error("frequency limits: {}", first(.changes))]
    FrequencyLimitsChanged { changes: Vec<HostChange> },
    #[error("CPUs were throttled for heat {times} times")]
    Throttled { times: u64 },
    #[error("steal time was {:.0}% of CPU time", .share * 100.0)]
    Stolen { share: f64, usual_share: f64 },
    #[error(
        "CPUs ran at {:.1} GHz, {:.1} are usual at this level",
        *.khz as f64 / 1e6, .usual_khz / 1e6
    )]
    SlowCpus { khz: u64, usual_khz: f64 },
    #[error("others used {cpus:.1} CPUs, {usual_cpus:.1} are usual at this level")]
    OthersBusy { cpus: f64, usual_cpus: f64 },
    #[error("the workload {why}")]
    WorkloadFailed { why: String },
    /// The workload succeeded, but its output lacks the figure. The figure may be missing from
    /// certain runs only, which would bias the result.
    #[error("the workload {why}")]
    FigureMissing { why: String },

    /// Written by another version of this program.
    #[error("{message}")]
    Other { code: String, message: String },
}

fn first(of: &[HostChange]) -> String {
    let rest = of.len().saturating_sub(1);
    let more = if rest > 0 { format!(", and {rest} more") } else { String::new() };
    format!("{}{more}", of.first().map_or_else(|| "?".to_owned(), HostChange::to_string))
}

coded!(Discarded);
