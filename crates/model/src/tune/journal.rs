//! The writes to a host, in their order: one record per line, as JSON.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::plan::{HostId, NicId, Planned};
use crate::Reading;

/// One line of a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// Number of the line, from 1, without gaps. A line that a crash left incomplete has no number
    /// of its own: the next line takes it.
    pub seq: u64,
    /// Time, milliseconds since 1970 by the host's clock.
    pub at_unix_ms: u64,
    #[serde(flatten)]
    pub event: Event,
    /// CRC-32 (IEEE 802.3) of the line up to the comma before this field, eight hexadecimal digits.
    /// The last field of a line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub crc32: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct By {
    pub pid: u32,
    /// Its start time, in ticks since boot; together with the pid it identifies the process.
    pub start_ticks: u64,
    pub uid: u32,
    /// The login behind `sudo`, and its origin (`SUDO_USER`, `SSH_CONNECTION`).
    pub login: Reading<String>,
    /// Version of the `netwright` that wrote it.
    pub version: String,
}

/// An old value, to be restored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Saved {
    pub knob: String,
    /// The exact bytes that were read, line end included.
    pub old: String,
    /// The interface of the setting, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nic: Option<NicId>,
}

/// A value after a write that changed it as a side effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReadBack {
    pub knob: String,
    /// The exact bytes that were read, line end included.
    pub read_back: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum Event {
    /// The first record: the intended changes. It is on disk before anything is written to the
    /// host.
    Begin {
        /// [`crate::SCHEMA_VERSION`] of the writer.
        schema_version: u32,
        /// Number of the change set; also the name of the file.
        id: u64,
        host: HostId,
        by: By,
        /// The whole plan, in order.
        changes: Vec<Planned>,
    },
    /// A watchdog runs and will undo everything.
    Armed {
        pid: u32,
        /// Its start time, in ticks since boot.
        start_ticks: u64,
        /// Deadline, milliseconds of the clock that also runs while the host is suspended
        /// (`CLOCK_BOOTTIME`).
        deadline_boot_ms: u64,
    },
    /// The change is on trial: an experiment made it and undoes it. It is kept when
    /// [`Event::Applied`] follows.
    OnTrial {
        /// The experiment: `prove channels`, `fix`.
        by: String,
    },
    /// The next write is about to be made; the record is on disk before the write.
    Writing {
        /// Index of the change, from 0.
        n: usize,
        /// The value that the write replaces.
        saved: Saved,
        /// Values of other knobs that this write can change, in the order in which they are undone.
        coupled_settings: Vec<Saved>,
    },
    /// The write was made, and the value read back is the requested one.
    Written {
        n: usize,
        /// The exact bytes that were read back.
        read_back: String,
        /// Values of its coupled settings after the write, and of other settings that this or an
        /// earlier write of the set changed as a side effect. Left out: values that cannot be read,
        /// and values that change by themselves.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        coupled_settings: Vec<ReadBack>,
    },
    /// The write failed, or the value did not hold.
    Failed { n: usize, why: String },
    /// All changes are in force.
    Applied,
    /// The operator confirmed the changes: the watchdog ends.
    Confirmed,
    Undoing {
        /// Reason: `it was asked for`, `it was not confirmed in time`, `step 3 of 7 failed`.
        why: String,
    },
    /// A value was restored and read back.
    Undone {
        knob: String,
        /// The exact bytes that were read back.
        read_back: String,
        /// The value found before the restore, where it was neither the written nor the restored
        /// value.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        overwrote: Option<String>,
        /// The name of its interface by then, where it had been renamed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        renamed: Option<String>,
        /// Reason for which nothing was restored: the object of the setting is gone, and the value
        /// with it; `read_back` is empty then.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        gone: Option<String>,
    },
    /// A value differed from the written one and was left unchanged.
    LeftAsFound {
        knob: String,
        found: String,
        /// The exact bytes that were read. They are written again where the undo of other changes
        /// alters the value as a side effect.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exact: Option<String>,
    },
    /// A value could not be restored.
    NotUndone { knob: String, why: String },
    /// The network namespace of the change is gone, and its settings with it.
    NamespaceGone,
    /// The undo ended: all old values are restored, except those that could not be restored.
    RolledBack,
    /// The host was rebooted since: the written values are gone.
    GoneWithBoot,
}
