//! The types that all crates share, as serialisable values: facts ([`Facts`]), samples over a
//! window ([`Samples`]), findings ([`Finding`]), and their units and ids. No I/O.
//!
//! Serialised keys carry their unit (`rx_bytes`, `exit_latency_ns`). An unreadable value is never
//! zero: see [`Reading`].

pub mod applied;
mod coded;
pub mod compare;
pub mod cpu;
pub mod cpuset;
pub mod drivers;
pub mod explain;
pub mod facts;
pub mod finding;
pub mod fix;
pub mod fleet;
pub mod history;
pub mod host;
pub mod ids;
pub mod irq;
pub mod json;
pub mod kernel_log;
pub mod knob;
pub mod link;
pub mod lint;
pub mod measure;
pub mod mesh;
pub mod napi;
pub mod netns;
pub mod nic;
pub mod passive;
pub mod placement;
pub mod process;
pub mod prove;
pub mod quote;
pub mod reading;
pub mod samples;
pub mod snapshot;
pub mod spread;
pub mod storage;
pub mod sysctl;
pub mod sysctl_versions;
pub mod sysctls;
pub mod tune;
pub mod tuner;
pub mod units;
pub mod warning;
pub mod watch;

pub use cpuset::CpuSet;
pub use facts::{Facts, SCHEMA_VERSION};
pub use finding::{Change, Confidence, Evidence, Finding, Goal, Severity, SkippedRule};
pub use ids::{CpuId, IrqId, NumaNode, QueueId};
pub use reading::Reading;
pub use samples::Samples;
pub use units::{BitsPerSec, Bytes, Nanos, seconds};
pub use warning::Warning;
