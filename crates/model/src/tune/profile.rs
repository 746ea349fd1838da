//! Profiles: settings that go together, each line with its reason. `tune profiles --json`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a line asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "how", content = "value")]
pub enum ProfileValue {
    Exactly(String),
    /// These numbers, in the kernel's unit, word by word; what is more already, or more by the
    /// kernel's default, stays.
    AtLeast(String),
}

/// One line of a profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProfileLine {
    /// Knob; `nic.*` stands for each physical interface that is up, or for those chosen.
    pub knob: String,
    pub wanted: ProfileValue,
    /// Why the profile has it.
    pub why: String,
    /// Why it is refused all the same, in a profile that is a counter-example.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refuted: Option<String>,
    /// Where it stands: `throughput-10g, line 12`.
    pub at: String,
}

/// A profile with the lines that it inherits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Profile {
    /// Its name, or its file.
    pub name: String,
    /// What it is for, in one line.
    pub description: String,
    /// Those whose lines it takes over.
    pub inherits: Vec<String>,
    /// In order, the inherited ones first.
    pub lines: Vec<ProfileLine>,
    /// What is left out on purpose.
    pub left_out: Vec<LeftOut>,
}

/// What a profile leaves out on purpose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOut {
    /// Settings, or what else it is about, in the words of the profile.
    pub what: String,
    /// The reason; empty where the profile gives none.
    pub why: String,
}

/// The document of `tune profiles --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Profiles {
    /// [`crate::SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    pub profiles: Vec<Profile>,
}
