//! The results of `doctor`: findings, passed rules, skipped rules.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Worth knowing, costs nothing measurable now.
    Info,
    /// Costs something now or soon will.
    Warning,
    /// Limits the host now, or loses data.
    Critical,
}

/// How sure the rule is.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// A setting only; no counter shows that it hurts.
    Low,
    /// Counters are consistent with it; other causes are possible.
    Medium,
    /// Counters over the window show it.
    High,
}

/// The optimisation goal of the host.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Goal {
    /// Bits and requests per second.
    Throughput,
    /// Time of one request.
    Latency,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Critical => "critical",
        })
    }
}

impl fmt::Display for Confidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        })
    }
}

/// One value that a finding is based on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// Name of the value: `time_squeeze on CPU 3 over 5.0 s`.
    pub what: String,
    /// The value with its unit.
    pub value: String,
    /// Source of the value: a path, a call, a netlink command.
    pub source: String,
}

/// A change that would remedy a finding. The rule that proposes it applies nothing. Only
/// [`Change::of`] and [`Change::advice`] make one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Change {
    /// Knob in `tune`'s spelling: `nic.eth0.channels`, `sysctl.net.ipv4.tcp_sack`,
    /// `irq.38.affinity`. Empty for advice that no knob covers.
    pub knob: String,
    /// Present value, as text.
    pub old: String,
    pub new: String,
    /// The equivalent classic command, for reading and checking.
    pub command: String,
    /// Impact of the change.
    pub risk: String,
}

impl Change {
    /// A change of a knob, from a value that was read to a known one.
    pub fn of(
        knob: impl Into<String>,
        old: impl Into<String>,
        new: impl Into<String>,
        command: impl Into<String>,
        risk: impl Into<String>,
    ) -> Self {
        Self {
            knob: knob.into(),
            old: old.into(),
            new: new.into(),
            command: command.into(),
            risk: risk.into(),
        }
    }

    /// Advice that no knob covers; `old` is empty where it is not known.
    pub fn advice(
        old: impl Into<String>,
        new: impl Into<String>,
        command: impl Into<String>,
        risk: impl Into<String>,
    ) -> Self {
        Self::of("", old, new, command, risk)
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Rule id, such as `few_channels`.
    pub rule: String,
    /// Rule number in the catalogue.
    pub number: u32,
    /// One line for people that names the affected object.
    pub title: String,
    pub severity: Severity,
    pub confidence: Confidence,
    /// Order: 1 comes first (root causes before symptoms, then expected benefit).
    pub rank: u32,
    /// The affected object: `eth0`, `cpu 3`, `net.ipv4.tcp_sack`.
    pub subject: String,
    /// Cost and cause, in one or two sentences.
    pub explanation: String,
    /// Expected benefit of the remedy, in words; no invented percentages.
    pub expected_benefit: String,
    /// The values that the finding is based on; never empty.
    pub evidence: Vec<Evidence>,
    /// The changes, in order.
    pub changes: Vec<Change>,
    /// Rules whose findings explain this one; remedy those first.
    pub caused_by: Vec<String>,
}

/// A rule that was skipped because evidence was missing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SkippedRule {
    pub rule: String,
    /// Rule number in the catalogue.
    pub number: u32,
    /// The object of the rule; empty for the whole host.
    pub subject: String,
    /// The missing evidence and the reason.
    pub why: String,
}

/// The complete result of `diagnose` for one host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Diagnosis {
    pub findings: Vec<Finding>,
    /// Rules that passed, with the values that they checked.
    pub passed: Vec<Passed>,
    /// Rules that were skipped because evidence was missing.
    pub skipped: Vec<SkippedRule>,
}

/// A rule that passed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Passed {
    pub rule: String,
    /// Rule number in the catalogue.
    pub number: u32,
    /// The values that it checked, in one line.
    pub because: String,
}
