//! Profiles: settings that go together, each line with its reason. `tune profiles --json`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The value that a line requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "how", content = "value")]
pub enum ProfileValue {
    Exactly(String),
    /// At least these numbers, in the kernel's unit, word by word. A number that is already larger,
    /// or is larger by the kernel's default, stays.
    AtLeast(String),
}

/// One line of a profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProfileLine {
    /// Knob; `nic.*` stands for each physical interface that is up, or for those chosen.
    pub knob: String,
    pub wanted: ProfileValue,
    /// Reason for the line.
    pub why: String,
    /// Reason for the refusal, in a profile that is a counter-example.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refuted: Option<String>,
    /// Location: `throughput-10g, line 12`.
    pub at: String,
}

/// A profile with the lines that it inherits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Profile {
    /// Its name, or its file.
    pub name: String,
    /// Purpose, in one line.
    pub description: String,
    /// Profiles whose lines it inherits.
    pub inherits: Vec<String>,
    /// The lines in order, the inherited ones first.
    pub lines: Vec<ProfileLine>,
    /// Settings that the profile leaves out, each with its reason.
    pub left_out: Vec<LeftOut>,
}

/// A deliberate omission of a profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOut {
    /// The omitted settings, in the words of the profile.
    pub what: String,
    /// Reason; empty where the profile gives none.
    pub why: String,
}

/// The document of `tune profiles --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Profiles {
    /// [`crate::SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    pub profiles: Vec<Profile>,
}
