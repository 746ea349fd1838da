//! Kernel settings below `/proc/sys`: value, default, origin.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Reading;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sysctl {
    /// The value as the kernel prints it, blanks folded to one space.
    pub value: Reading<String>,
    /// This kernel's own default in the same form.
    pub default: Reading<String>,
    /// How the default is known.
    pub default_from: DefaultFrom,
    /// What the default rests on, for people: the kernel's own source file with the commit
    /// that changed it, or why it is not known.
    #[serde(default)]
    pub default_source: String,
    /// Where the value was set.
    pub origin: Origin,
    /// The unit: `bytes`, `pages`, `packets`, `us`, `s`, `boolean`, `ports`, …
    pub unit: String,
}

/// How a default is known.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum DefaultFrom {
    /// Read in a network namespace made for the purpose: the kernel itself said so.
    FreshNamespace,
    /// From a table by kernel version and memory size.
    VersionTable,
    /// No default is known for this kernel.
    Unknown,
}

/// Who set a value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Origin {
    /// It is the default; nobody set it.
    Default,
    /// A sysctl file that the boot reads; the last one that names the key wins.
    File {
        path: String,
        /// Line number from 1.
        line: u32,
        /// The value written there.
        value: String,
    },
    /// The active tuned profile.
    Tuned {
        profile: String,
        /// The file of the profile.
        path: String,
        /// Line number from 1.
        line: u32,
    },
    /// `sysctl.KEY=` on the kernel cmdline.
    KernelCmdline,
    /// It differs from the default, or the default is not known, and nothing found says why.
    /// Also where a file names another value than the one in force.
    Unknown,
}
