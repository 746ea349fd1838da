//! The manifest of a snapshot archive.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The manifest of a snapshot: `netwright/manifest.json` in the archive.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Manifest {
    /// [`crate::SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// Version of the program that wrote it.
    pub tool_version: String,
    /// Time of the snapshot, seconds since 1970 by the host's clock.
    pub taken_at_unix_s: u64,
    /// Whether addresses, names, MACs and command lines were replaced.
    pub redacted: bool,
    /// Failed reads, absent files excepted: path to errno. After the path, `/` means that the
    /// directory could not be listed, `@` that the link could not be read, `=` that its links could
    /// not be followed.
    pub errors: BTreeMap<String, i32>,
    /// Directory listings, for directories that are not archived completely: path to names.
    pub listings: BTreeMap<String, Vec<String>>,
    /// Times of the counter samples, nanoseconds of `CLOCK_MONOTONIC` (start and end of each
    /// reading).
    pub samples: Vec<SampleTime>,
}

/// Time of one sample.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SampleTime {
    pub start_ns: u64,
    pub end_ns: u64,
}
