//! Lines that set something, and what each is worth on one host.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{BitsPerSec, Bytes, Reading};

/// One setting of one line, as a file states it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetLine {
    /// Number of the line, from 1.
    pub line: u32,
    pub place: Place,
    /// The full name of the knob (`sysctl.net.core.somaxconn`, `nic.eth0.mtu`). Where no knob exists:
    /// a path below `/sys`, the first words of a command, or `tuned.PLUGIN.OPTION`.
    pub setting: String,
    /// The value as it stands. May hold variables.
    pub value: String,
    pub mode: SetMode,
    /// Whether the line holds nothing else, so that it can be taken out of the file.
    pub whole: bool,
}

/// How a value is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetMode {
    Exactly,
    /// Only where that raises the value: tuned's `=>`.
    AtLeast,
    /// Only where that lowers the value: tuned's `=<`.
    AtMost,
    /// Only on hosts that a condition names: tuned's `uname_regex` and `cpuinfo_regex`.
    Sometimes,
}

/// Who carries out a line, and when.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// A file of sysctl.d or sysctl.conf: at boot.
    SysctlFile,
    /// A profile of tuned: after the sysctl files.
    TunedProfile,
    /// A command of a script or a recipe: when it runs.
    Script,
    /// The settings file of irqbalance: when irqbalance starts.
    IrqbalanceFile,
    /// A task of Ansible: when the playbook runs.
    Ansible,
    /// `RUN` of a Dockerfile: while the image is built.
    ImageBuild,
    /// `securityContext.sysctls` of a Kubernetes pod: when the pod starts.
    Pod,
    /// The command of a container of a Kubernetes pod.
    PodCommand,
}

/// What a line is worth on a host.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum LineVerdict {
    /// It can hang the host, or opens it to others.
    Dangerous,
    /// It costs performance or reliability on every host.
    Harmful,
    /// The value was meant in another unit than the kernel's.
    WrongUnit,
    /// It sets less than this kernel starts with.
    BelowDefault,
    /// This kernel does not have the setting any more.
    Gone,
    /// The line changes nothing that it is written for.
    NoEffect,
    /// It helps one host and not another; the line says what decides, and how to find out.
    Depends,
    /// The host starts with it.
    Good,
    /// Netwright does not know the setting, or has no judgement of the value.
    Unknown,
}

impl LineVerdict {
    /// All of them, the worst first.
    pub const ALL: [Self; 9] = [
        Self::Dangerous,
        Self::Harmful,
        Self::WrongUnit,
        Self::BelowDefault,
        Self::Gone,
        Self::NoEffect,
        Self::Depends,
        Self::Good,
        Self::Unknown,
    ];

    /// Whether it makes the answer of `lint` a no.
    pub fn is_bad(self) -> bool {
        matches!(self, Self::Dangerous | Self::Harmful | Self::WrongUnit)
    }

    /// Whether the file is better without the line.
    pub fn should_go(self) -> bool {
        self.is_bad() || matches!(self, Self::BelowDefault | Self::Gone | Self::NoEffect)
    }

    /// Its key in JSON and SARIF.
    pub fn key(self) -> &'static str {
        match self {
            Self::Dangerous => "dangerous",
            Self::Harmful => "harmful",
            Self::WrongUnit => "wrong_unit",
            Self::BelowDefault => "below_default",
            Self::Gone => "gone",
            Self::NoEffect => "no_effect",
            Self::Depends => "depends",
            Self::Good => "good",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for LineVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::WrongUnit => "wrong unit",
            Self::BelowDefault => "below default",
            Self::NoEffect => "no effect",
            Self::Good => "good here",
            Self::Unknown => "unknown to us",
            other => other.key(),
        })
    }
}

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct LinePlace {
    pub file: String,
    /// Number of the line, from 1.
    pub line: u32,
}

impl fmt::Display for LinePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// A line with its verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LintLine {
    /// The file as it was named, or the path of a profile that it includes.
    pub file: String,
    /// Number of the line, from 1.
    pub line: u32,
    /// Who carries it out, and when.
    pub place: Place,
    /// The full name of the knob; where no knob exists a path, `tuned.PLUGIN.OPTION` or the first words
    /// of a command.
    pub setting: String,
    /// The value as the file has it.
    pub value: String,
    pub verdict: LineVerdict,
    /// The reason, in words.
    pub why: String,
    /// How to find out what the verdict depends on; empty where it depends on nothing.
    pub find_out: String,
    /// What the reason rests on; empty where the reason says it.
    pub source: String,
    /// The default of the kernel that the line was judged for, in its own unit.
    pub default: Reading<String>,
    /// Unit of the value; empty where it has none.
    pub unit: String,
    /// The line that sets the same to another value later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overridden_by: Option<LinePlace>,
    /// Whether the line can be taken out without touching others.
    pub whole: bool,
}

/// What the lines were judged for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LintHost {
    /// `live`, or the path of `--root`.
    pub source: String,
    pub name: Reading<String>,
    /// The kernel's release, or `--kernel`.
    pub kernel: Reading<String>,
    /// Memory of the host, or `--memory`.
    pub memory_bytes: Reading<Bytes>,
    /// Speed of the fastest NIC, or `--nic-speed`.
    pub nic_speed_bps: Reading<BitsPerSec>,
    /// What the command line said instead of the host: `kernel`, `memory`, `nic_speed`.
    pub given: Vec<String>,
}

/// The document of `lint --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LintDocument {
    pub schema_version: u32,
    pub host: LintHost,
    /// The files that were read, in the order in which their lines are carried out.
    pub files: Vec<String>,
    /// Every line that sets something, by file and line.
    pub lines: Vec<LintLine>,
    /// What may set something and is not followed, by file and line.
    pub not_followed: Vec<NotFollowed>,
    /// What else the reader must know, in words.
    pub notes: Vec<String>,
}

/// A command or a text that may set something, and that is not followed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct NotFollowed {
    pub file: String,
    /// Number of the line, from 1.
    pub line: u32,
    /// What it does, and what would have it judged.
    pub what: String,
}

impl LintDocument {
    /// The number of lines with this verdict.
    pub fn count(&self, verdict: LineVerdict) -> usize {
        self.lines.iter().filter(|l| l.verdict == verdict).count()
    }
}
