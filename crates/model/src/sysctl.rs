//! Kernel settings below `/proc/sys`: value, default, origin.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Reading;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sysctl {
    /// The value as the kernel prints it, blanks folded to one space.
    pub value: Reading<String>,
    /// Default of the running kernel, in the same form.
    pub default: Reading<String>,
    /// Source of the default.
    pub default_from: DefaultFrom,
    /// Evidence for the default, for people: the kernel's source file with the commit that changed
    /// it, or the reason why it is not known.
    #[serde(default)]
    pub default_source: String,
    /// Where the value was set.
    pub origin: Origin,
    /// The unit: `bytes`, `pages`, `packets`, `us`, `s`, `boolean`, `ports`, …
    pub unit: String,
}

/// Source of a default.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum DefaultFrom {
    /// Read from the kernel, in a network namespace made for the purpose.
    FreshNamespace,
    /// From a table by kernel version and memory size.
    VersionTable,
    /// No default is known for this kernel.
    Unknown,
}

/// Origin of a value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Origin {
    /// The value is the default; nothing set it.
    Default,
    /// A sysctl file that is read at boot; the last file that has the key wins.
    File {
        path: String,
        /// Line number from 1.
        line: u32,
        /// The value in the file.
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
    /// It differs from the default, or the default is not known, and no origin was found. Also
    /// where a file has another value than the one in force.
    Unknown,
}
