//! The writes to a host, in their order: one record per line, as JSON.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::plan::{HostId, NicId, Planned};
use crate::Reading;

/// One line of a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// From 1, without gaps. A line that was torn by a crash has no number of its own: the next
    /// one takes it.
    pub seq: u64,
    /// When, milliseconds since 1970 by the host's clock.
    pub at_unix_ms: u64,
    #[serde(flatten)]
    pub event: Event,
    /// CRC-32 (IEEE 802.3) of the line up to the comma before this field, eight hexadecimal digits. The
    /// last field of a line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub crc32: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct By {
    pub pid: u32,
    /// Its start, in ticks since boot: with the number its identity.
    pub start_ticks: u64,
    pub uid: u32,
    /// The login behind `sudo`, and where from (`SUDO_USER`, `SSH_CONNECTION`).
    pub login: Reading<String>,
    /// Version of the `netwright` that wrote it.
    pub version: String,
}

/// A value as it was, to be put back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Saved {
    pub knob: String,
    /// Exactly what was read, line end included.
    pub old: String,
    /// The interface that it is a setting of, where it is one's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nic: Option<NicId>,
}

/// A value as a write left it that moved it along.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReadBack {
    pub knob: String,
    /// Exactly what was read, line end included.
    pub read_back: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum Event {
    /// The first record: what is going to be done. Nothing is written to the host before it is
    /// on disk.
    Begin {
        /// [`crate::SCHEMA_VERSION`] of the writer.
        schema_version: u32,
        /// Number of the change set, the file's name.
        id: u64,
        host: HostId,
        by: By,
        /// The whole plan, in order.
        changes: Vec<Planned>,
    },
    /// A watchdog stands by and will undo everything.
    Armed {
        pid: u32,
        /// Its start, in ticks since boot.
        start_ticks: u64,
        /// When it will, milliseconds of the clock that runs on while the host sleeps
        /// (`CLOCK_BOOTTIME`).
        deadline_boot_ms: u64,
    },
    /// It is only to see what it does: an experiment's, which undoes it. Kept when
    /// [`Event::Applied`] comes.
    OnTrial {
        /// Whose: `prove channels`, `fix`.
        by: String,
    },
    /// The next write is about to be made; on disk before it is.
    Writing {
        /// Which change, from 0.
        n: usize,
        /// What is there now.
        saved: Saved,
        /// Values of other knobs that this write may disturb, in the order of their undoing.
        coupled_settings: Vec<Saved>,
    },
    /// It was made, read back and found to be what was asked for.
    Written {
        n: usize,
        /// Exactly what was read back.
        read_back: String,
        /// What its coupled settings read then, and other values that this or an earlier write of the set
        /// moved along where they read otherwise than before. Left out: what cannot be read, what moves
        /// by itself.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        coupled_settings: Vec<ReadBack>,
    },
    /// It was not made, or did not hold.
    Failed { n: usize, why: String },
    /// All changes are in force.
    Applied,
    /// The operator said that all is well: the watchdog goes.
    Confirmed,
    Undoing {
        /// Why: `it was asked for`, `it was not confirmed in time`, `step 3 of 7 failed`.
        why: String,
    },
    /// A value was put back and read back.
    Undone {
        knob: String,
        /// Exactly what was read back.
        read_back: String,
        /// What was found before, where that was neither what we had written nor what is put back.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        overwrote: Option<String>,
        /// What its interface was called by then, where it had been renamed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        renamed: Option<String>,
        /// Why there was nothing to put back: what it was a setting of is gone, and the value with it;
        /// `read_back` is empty then.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        gone: Option<String>,
    },
    /// A value was found to be another than was written, and left so.
    LeftAsFound {
        knob: String,
        found: String,
        /// Exactly what was read: what is set again where undoing the others moves it along.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exact: Option<String>,
    },
    /// A value could not be put back.
    NotUndone { knob: String, why: String },
    /// The network namespace that it was made in is gone, and what was set there with it.
    NamespaceGone,
    /// Undoing ended: all is as it was before, but for the values that could not be put back.
    RolledBack,
    /// The host was booted since: what was written is gone with it.
    GoneWithBoot,
}
