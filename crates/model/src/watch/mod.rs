//! An interval of `watch`: the counters' growth, and the sums of eBPF programs over the same time.
//!
//! Each part is a separate [`Reading`]: a host that lacks a tracepoint, or denies BPF, lacks only
//! that part, with the reason.

mod filter;
mod movement;
mod queue;
mod recording;
mod softirq;
mod status;
pub mod test_data;
mod victim;
mod wait;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use filter::WatchFilter;
pub use movement::{
    Ipc, Messages, MigratedThread, MigrationPath, PacketDrops, ProcessIpc, Retransmits,
};
pub use queue::{NapiOnCpu, NapiWatch};
pub use recording::{CpuNode, RECORDING_VERSION, WatchHost, WatchRecord};
pub use softirq::{ByContext, CpuWatch, ProcStatNs, SoftirqAccounting, SoftirqGap, VectorNs};
pub use status::{Observer, ProgramStatus, Ran};
pub use victim::{EndedProcess, InterruptedTask};
pub use wait::{ProcessWaits, WaitNs};

use crate::{Nanos, Reading, Samples};

/// One interval. **Shape**: one JSON object a line of `watch --json`, and one record of
/// `watch --record`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchInterval {
    /// The version of this shape.
    pub schema_version: u32,
    /// When the interval ended, nanoseconds since 1970.
    pub ended_unix_ns: Nanos,
    /// Its real length in seconds.
    pub interval_s: f64,
    /// By CPU, ascending; CPUs that were online over the whole interval.
    pub cpus: Vec<CpuWatch>,
    /// Share of the interval in which softirqs were observed (`--softirq`), 0 to 1: below 1, their
    /// time and the time that threads lost to them are scaled from that share to the whole
    /// interval.
    #[serde(default = "whole")]
    pub softirq_observed_share: f64,
    /// Reason for which the softirq time of `/proc/stat` differs from the measured one.
    #[serde(default = "not_recorded::<SoftirqAccounting>")]
    pub softirq_accounting: Reading<SoftirqAccounting>,
    /// Threads by the time that packets cost them: most time lost to IRQs and softirqs first, then
    /// most time of their own softirqs.
    pub interrupted_tasks: Reading<Vec<InterruptedTask>>,
    /// NAPI instances that were polled, by NIC and queue.
    pub napi: Reading<Vec<NapiWatch>>,
    /// Waiting times of packets, by process.
    pub waits: Reading<Vec<ProcessWaits>>,
    /// Threads that migrated, most migrations first.
    pub migrated_threads: Reading<Vec<MigratedThread>>,
    /// Sends and receives of processes, most calls first.
    pub messages: Reading<Vec<Messages>>,
    /// Share of the interval in which messages were observed (`--messages`), 0 to 1. An empty list
    /// says that little.
    #[serde(default = "whole")]
    pub messages_observed_share: f64,
    /// Connections that retransmitted, most first.
    pub retransmits: Reading<Vec<Retransmits>>,
    /// Dropped packets by reason, most first.
    #[serde(default = "not_recorded::<Vec<PacketDrops>>")]
    pub drops: Reading<Vec<PacketDrops>>,
    /// Share of the interval in which drops were observed (`--drops`), 0 to 1.
    #[serde(default = "whole")]
    pub drops_observed_share: f64,
    /// IPC by process, for followed processes.
    pub process_ipc: Reading<Vec<ProcessIpc>>,
    /// Followed processes (`--pid`) that ended within the interval; later intervals have no data of
    /// them.
    #[serde(default)]
    pub ended_processes: Vec<EndedProcess>,
    /// State and overhead of the observer itself.
    pub observer: Observer,
    /// Deltas of the counters over the same interval.
    pub samples: Reading<Samples>,
}

pub const SCHEMA_VERSION: u32 = 1;

/// The observed share in recordings older than this field.
fn whole() -> f64 {
    1.0
}

/// Value for recordings older than this field.
fn not_recorded<T>() -> Reading<T> {
    Reading::absent("this recording is older")
}
