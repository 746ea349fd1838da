//! The parts of a round trip in the network stack and in waking up, as values.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CpuSet, Nanos, coded::coded};

/// Conclusion from the variants of a wait split, or why there is none. In JSON `{code, data,
/// message}`, as a [`crate::Warning`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[serde(rename_all = "snake_case", remote = "Self")]
#[schemars(tag = "code", content = "data", transform = crate::coded::short)]
pub enum SplitAnswer {
    #[error(
        "of {blocking_ns} blocking on two CPUs, {stack_ns} are the stack and {waking_ns} ({:.0}%) \
         waking up",
        100.0 * .waking_ns.0 as f64 / .blocking_ns.0.max(1) as f64
    )]
    Split { blocking_ns: Nanos, stack_ns: Nanos, waking_ns: Nanos },
    #[error("{NOT_REPORTED}: no round trip of \"{variant}\" was measured")]
    NotMeasured { variant: String },
    #[error("{NOT_REPORTED}: this host gives both ends one CPU only")]
    OneCpuOnly,
    /// `server_why` is the reason for the server's placement.
    #[error(
        "{NOT_REPORTED}: both ends ran on CPU {cpus} (the server: {server_why}); wait until other \
         sessions are over, or give each end CPUs of its own with --cpu and --peer-cpu"
    )]
    SharedCpus { cpus: CpuSet, server_why: String },
    #[error(
        "{NOT_REPORTED}: spinning on two CPUs took {spinning_ns}, no less than blocking, \
         {blocking_ns}, {WHERE_ELSE}"
    )]
    SpinningNotShorter { spinning_ns: Nanos, blocking_ns: Nanos },
    #[error(
        "{NOT_REPORTED}: the 95% intervals of spinning on two CPUs, {spinning_ns}, and of blocking, \
         {blocking_ns}, overlap, {WHERE_ELSE}"
    )]
    IntervalsOverlap { spinning_ns: Nanos, blocking_ns: Nanos },

    /// Written by another version of this program.
    #[error("{message}")]
    Other { code: String, message: String },
}

const NOT_REPORTED: &str = "stack and wake-up latency are not reported separately";
const WHERE_ELSE: &str = "as where something else runs on the CPUs";

coded!(SplitAnswer);
