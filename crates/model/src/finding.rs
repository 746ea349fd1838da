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
    /// Costs something or soon will.
    Warning,
    /// Holds the host back now, or loses data.
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
    /// Counters fit, other causes are possible.
    Medium,
    /// Counters over the window show it.
    High,
}

/// What the host should be good at.
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

/// One value that a judgement rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// What it is: `time_squeeze on CPU 3 over 5.0 s`.
    pub what: String,
    /// The value with its unit.
    pub value: String,
    /// Where it was read: a path, a call, a netlink command.
    pub source: String,
}

/// A change that would remedy a finding. Nothing is applied by the one who proposes it. Made by
/// [`Change::of`] or [`Change::advice`] alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Change {
    /// Knob in `tune`'s spelling: `nic.eth0.channels`, `sysctl.net.ipv4.tcp_sack`,
    /// `irq.38.affinity`. Empty for advice that no knob covers.
    pub knob: String,
    /// Value now, as text.
    pub old: String,
    pub new: String,
    /// The classic command that does the same, to read and to trust.
    pub command: String,
    /// What it may disturb.
    pub risk: String,
}

impl Change {
    /// Of a knob, from a value that was read to one that is known.
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

    /// What no knob covers; `old` is empty where it is not known.
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
    /// Its number in the catalogue.
    pub number: u32,
    /// One line for people, naming the thing.
    pub title: String,
    pub severity: Severity,
    pub confidence: Confidence,
    /// Order: 1 is to be dealt with first (root causes before symptoms, then expected gain).
    pub rank: u32,
    /// What it is about: `eth0`, `cpu 3`, `net.ipv4.tcp_sack`.
    pub subject: String,
    /// What it costs and why, in one or two sentences.
    pub explanation: String,
    /// What remedying it should bring, in words; no invented percentages.
    pub expected_benefit: String,
    /// The values it rests on; never empty.
    pub evidence: Vec<Evidence>,
    /// What to change, in order.
    pub changes: Vec<Change>,
    /// Rules whose findings explain this one: deal with those first.
    pub caused_by: Vec<String>,
}

/// A rule that could not judge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SkippedRule {
    pub rule: String,
    /// Its number in the catalogue.
    pub number: u32,
    /// What it would have been about, empty for the whole host.
    pub subject: String,
    /// Which evidence was missing and why.
    pub why: String,
}

/// Everything `diagnose` says of one host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Diagnosis {
    pub findings: Vec<Finding>,
    /// Rules that looked and found nothing wrong, with what they looked at.
    pub passed: Vec<Passed>,
    /// Rules that lacked evidence.
    pub skipped: Vec<SkippedRule>,
}

/// A rule that found nothing wrong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Passed {
    pub rule: String,
    /// Its number in the catalogue.
    pub number: u32,
    /// The values it looked at, in one line.
    pub because: String,
}
