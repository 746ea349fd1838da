//! The kernel settings that Netwright knows, one per row: unit, range, the kernel's default, and
//! judgements of values with their reason and source. Data only: facts are read by this table,
//! plans and profiles are judged by it.

mod judge;
mod rules;
mod table;

pub use judge::{Judgement, ProposedValue, command, judge};
pub use table::{FAMILIES, TABLE};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One setting, or a family of them.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Dotted name. In a family's, a part that ends in `*` stands for every part that begins so.
    pub key: &'static str,
    /// Unit of the value; empty where it is not known.
    pub unit: &'static str,
    /// Its default, of those that are among the facts of a host.
    pub known: Option<Known>,
    /// The least and the most that each of its numbers may be.
    pub range: Option<(i128, i128)>,
    /// Whether the kernel makes a power of two of it.
    pub power_of_two: bool,
    /// What is known of its values; the first that holds counts, and none means good.
    pub rules: &'static [Rule],
    /// Since which kernel it is not there, why, and the source.
    pub gone: Option<Removal>,
}

/// Scope and default of a setting.
#[derive(Debug, Clone, Copy)]
pub struct Known {
    /// Who has an own copy.
    pub scope: Scope,
    pub default: KernelDefault,
    /// Where the default stands in the kernel's source.
    pub source: &'static str,
}

/// Who has an own copy of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// One value for the whole host.
    Host,
    /// Each network namespace has its own, and a new one starts with the kernel's default: a
    /// fresh namespace is evidence of it. Where an older kernel kept one value for the host, a
    /// fresh namespace does not show the setting, and the table answers.
    Namespace,
    /// Each network namespace has its own, copied from the initial one: a fresh namespace
    /// says nothing about the default.
    Inherited,
}

/// How the kernel's default is known without asking it.
#[derive(Debug, Clone, Copy)]
pub enum KernelDefault {
    /// By version, ascending: since which one, and the value.
    Since(&'static [((u32, u32), &'static str)]),
    /// Computed by the kernel at boot.
    By(Computed),
    /// No default: it is a state and no setting.
    State,
}

/// Stands for a default that is not established for a range of versions.
pub const UNSURE: &str = "?";

/// Defaults that the kernel computes at boot from memory, page size, tick rate or build options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Computed {
    BudgetUsecs,
    CongestionControl,
    ConntrackBuckets,
    ConntrackMax,
    DefaultQdisc,
    EmptyMask,
    FileMax,
    MaxOrphans,
    MaxSynBacklog,
    MaxTwBuckets,
    NumaBalancing,
    Page,
    TcpMem,
    TcpRmem,
    TcpWmem,
    UdpMem,
}

/// Of a setting that newer kernels do not have.
#[derive(Debug, Clone, Copy)]
pub struct Removal {
    /// The first kernel without it.
    pub since: (u32, u32),
    /// What to do instead, or why it went.
    pub why: &'static str,
    /// The commit that took it away.
    pub source: &'static str,
}

/// What is known of some values of a setting.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    pub when: ValueMatch,
    pub verdict: Verdict,
    /// Why, in words; empty where the comparison says it.
    pub why: &'static str,
    /// What the reason rests on; a threshold that no source names is called ours.
    pub source: &'static str,
}

/// Which values a rule is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueMatch {
    Always,
    /// All, on a kernel of at least this version.
    Since((u32, u32)),
    /// The first number is this one.
    Is(i128),
    /// The number at this place (from 0) is less than this.
    Below(usize, i128),
    /// The number at this place (from 0) is more than this.
    Above(usize, i128),
    /// A number is less than the value now, and than the default where that is known.
    Lower,
    /// A number is more than the value now, and than the default where that is known.
    Higher,
    /// All numbers are the same.
    Equal,
    /// The last number is more than a quarter of memory; how many bytes its unit has, `None` a page.
    MostOfMemory(Option<u32>),
}

/// What a value of a setting is, for the performance and the safety of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Nothing is known against it.
    Good,
    /// It changes nothing of what it is set for.
    NoEffect,
    /// It takes away from what the kernel allows by itself.
    Lowers,
    /// It does harm on every host.
    Harmful,
    /// It opens the host, or may wedge it: a program that root runs, a security setting.
    Dangerous,
    /// What was there cannot be put back: an act, a one-way switch, a secret.
    NotUndone,
    /// Kernels of this version do not have it.
    Gone,
}

/// The row of a setting: its own, else its family's.
pub fn find(key: &str) -> Option<&'static Setting> {
    match TABLE.binary_search_by(|s| s.key.cmp(key)) {
        Ok(i) => TABLE.get(i),
        Err(_) => FAMILIES.iter().find(|f| belongs(key, f.key)),
    }
}

/// Whether a name is of a family, part by part.
fn belongs(key: &str, family: &str) -> bool {
    let (mut parts, mut of) = (key.split('.'), family.split('.'));
    loop {
        match (parts.next(), of.next()) {
            (None, None) => return true,
            (Some(part), Some(of)) => match of.strip_suffix('*') {
                Some(start) if part.starts_with(start) => {}
                None if part == of => {}
                _ => return false,
            },
            _ => return false,
        }
    }
}

const fn row(key: &'static str, unit: &'static str) -> Setting {
    Setting { key, unit, known: None, range: None, power_of_two: false, rules: &[], gone: None }
}

impl Setting {
    const fn facts(self, scope: Scope, default: KernelDefault, source: &'static str) -> Self {
        Self { known: Some(Known { scope, default, source }), ..self }
    }

    const fn range(self, least: i128, most: i128) -> Self {
        Self { range: Some((least, most)), ..self }
    }

    const fn power_of_two(self) -> Self {
        Self { power_of_two: true, ..self }
    }

    const fn rules(self, rules: &'static [Rule]) -> Self {
        Self { rules, ..self }
    }

    const fn gone(self, since: (u32, u32), why: &'static str, source: &'static str) -> Self {
        Self { gone: Some(Removal { since, why, source }), ..self }
    }
}
