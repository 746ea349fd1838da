//! The kernel settings that Netwright knows, one per row: unit, range, the kernel's default, and
//! judgements of values with their reason and source. Data only: facts are read by this table,
//! plans and profiles are judged by it.

mod judge;
mod rules;
mod table;

pub use judge::{JudgedValue, ProposedValue, command, further_reasons, judge};
pub use table::{FAMILIES, TABLE};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One setting, or a family of them.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Dotted name. In the name of a family, a part that ends in `*` matches every part with that
    /// prefix.
    pub key: &'static str,
    /// Unit of the value; empty where it is not known.
    pub unit: &'static str,
    /// Its default, for settings that are among the facts of a host.
    pub known: Option<Known>,
    /// Minimum and maximum of each of its numbers.
    pub range: Option<(i128, i128)>,
    /// Whether the kernel rounds it to a power of two.
    pub power_of_two: bool,
    /// Judgements of its values; the first that applies counts, and none means good.
    pub rules: &'static [Rule],
    /// The first kernel without it, the reason, and the source.
    pub gone: Option<Removal>,
}

/// Scope and default of a setting.
#[derive(Debug, Clone, Copy)]
pub struct Known {
    /// Scope of the setting.
    pub scope: Scope,
    pub default: KernelDefault,
    /// Location of the default in the kernel's source.
    pub source: &'static str,
}

/// Scope of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// One value for the whole host.
    Host,
    /// Each network namespace has its own value, and a new namespace starts with the kernel's
    /// default: a new namespace shows the default. On older kernels with one value for the host, a
    /// new namespace does not show the setting, and the table is used.
    Namespace,
    /// Each network namespace has its own value, copied from the initial namespace: a new namespace
    /// does not show the default.
    Inherited,
}

/// Source of the kernel's default without reading it from the kernel.
#[derive(Debug, Clone, Copy)]
pub enum KernelDefault {
    /// By version, ascending: the first version, and the value.
    Since(&'static [((u32, u32), &'static str)]),
    /// Computed by the kernel at boot.
    By(Computed),
    /// No default: it is a state, not a setting.
    State,
}

/// Placeholder for a default that is not established for a range of versions.
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

/// Removal of a setting from newer kernels.
#[derive(Debug, Clone, Copy)]
pub struct Removal {
    /// The first kernel without it.
    pub since: (u32, u32),
    /// The replacement, or the reason for the removal.
    pub why: &'static str,
    /// The commit that removed it.
    pub source: &'static str,
}

/// A judgement of some values of a setting.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    pub when: ValueMatch,
    pub verdict: Verdict,
    /// The reason, in words; empty where the comparison states it.
    pub why: &'static str,
    /// Source of the reason; a threshold without a source is marked as Netwright's own.
    pub source: &'static str,
}

/// The values that a rule applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueMatch {
    Always,
    /// All values, on a kernel of at least this version.
    Since((u32, u32)),
    /// The first number is equal to this one.
    Is(i128),
    /// The number at this place (from 0) is less than this.
    Below(usize, i128),
    /// The number at this place (from 0) is more than this.
    Above(usize, i128),
    /// A number is less than the present value, and than the default where that is known.
    Lower,
    /// A number is more than the present value, and than the default where that is known.
    Higher,
    /// All numbers are the same.
    Equal,
    /// The last number is more than a quarter of memory. The field is the unit in bytes; `None` is
    /// a page.
    MostOfMemory(Option<u32>),
}

/// Judgement of a value, for the performance and the safety of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Nothing is known against it.
    Good,
    /// It has no effect on the purpose of the setting.
    NoEffect,
    /// It reduces what the kernel allows by default.
    Lowers,
    /// It is harmful on every host.
    Harmful,
    /// It weakens the security of the host, or can hang it: a program that root runs, a security
    /// setting.
    Dangerous,
    /// The old value cannot be restored: an action, a one-way switch, a secret.
    NotUndone,
    /// Kernels of this version do not have it.
    Gone,
}

/// The row of a setting: its own, otherwise that of its family.
pub fn find(key: &str) -> Option<&'static Setting> {
    match TABLE.binary_search_by(|s| s.key.cmp(key)) {
        Ok(i) => TABLE.get(i),
        Err(_) => FAMILIES.iter().find(|f| belongs(key, f.key)),
    }
}

/// Whether a name matches a family, part by part.
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
