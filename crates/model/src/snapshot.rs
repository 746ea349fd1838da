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
    /// When, seconds since 1970; what the host's clock said.
    pub taken_at_unix_s: u64,
    /// Whether addresses, names, MACs and command lines were replaced.
    pub redacted: bool,
    /// Reads that failed other than by absence: path to errno. A path with `/` behind it could
    /// not be listed, with `@` its link not be read, with `=` its links not be followed.
    pub errors: BTreeMap<String, i32>,
    /// Folder listings as they were, for folders not archived whole: path to names.
    pub listings: BTreeMap<String, Vec<String>>,
    /// When each sample of the counters was taken, nanoseconds of `CLOCK_MONOTONIC` (start
    /// and end of its reading).
    pub samples: Vec<SampleTime>,
}

/// When one sample was read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SampleTime {
    pub start_ns: u64,
    pub end_ns: u64,
}
