//! Whether this kernel has a setting, and takes a value for it.

use model::{
    lint::LineVerdict,
    sysctl_versions::{self, Access, Existence, SysctlFacts},
};

use super::Known;
use crate::judge::{Context, Judged};

/// The verdict on a setting that this kernel does not have, or only shows; `None` for one that it has,
/// or of which neither is known.
pub fn judge(context: &Context<'_>, known: &Known<'_>) -> Option<Judged> {
    if known.shown.is_some_and(|s| s.value.is_known()) {
        return only_shown(known);
    }
    let kernel = context.kernel?;
    if let Some(gone) = sysctl_versions::gone_before_the_table(known.key) {
        let (oldest, _) = sysctl_versions::versions();
        let why = match known.row.and_then(|r| r.gone) {
            Some(gone) => format!("gone since Linux {}: {}", version(gone.since), gone.why),
            None => format!("Linux {} does not have it any more", version(oldest)),
        };
        let source = known.row.and_then(|r| r.gone).map_or(gone.source, |g| g.source);
        return (kernel >= oldest).then(|| Judged::new(LineVerdict::Gone, why, source));
    }
    let facts = known.facts?;
    match facts.exists_at(kernel) {
        Existence::Unknown => None,
        Existence::Yes => only_shown(known),
        Existence::No => match facts.until().filter(|until| kernel >= *until) {
            Some(until) => Some(gone(known, facts, until)),
            None => not_yet(context, facts, kernel),
        },
    }
}

fn gone(known: &Known<'_>, facts: &SysctlFacts, until: (u32, u32)) -> Judged {
    let (why, source) = match known.row.and_then(|r| r.gone) {
        Some(gone) => {
            (format!("gone since Linux {}: {}", version(gone.since), gone.why), gone.source)
        }
        None => (format!("Linux {} does not have it any more", version(until)), facts.source),
    };
    Judged::new(LineVerdict::Gone, why, source)
}

/// A setting of a later kernel.
fn not_yet(context: &Context<'_>, facts: &SysctlFacts, kernel: (u32, u32)) -> Option<Judged> {
    let since = facts.since()?;
    if context.backports {
        let why = format!(
            "depends on whether the vendor carried it back: Linux {} is the first with it",
            version(since)
        );
        let judged = Judged::new(LineVerdict::Depends, why, facts.source);
        return Some(Judged { find_out: format!("`sysctl {}`", facts.name), ..judged });
    }
    let why =
        format!("Linux {} does not have it yet, Linux {} has", version(kernel), version(since));
    Some(Judged::new(LineVerdict::NoEffect, why, facts.source))
}

/// A setting that shows a state. Outside `net` what root may write also follows from the build.
fn only_shown(known: &Known<'_>) -> Option<Judged> {
    let facts = known.facts.filter(|f| f.access == Access::ReadOnly)?;
    facts.name.starts_with("net.").then(|| {
        let why = "the kernel shows a state by it, and takes no value";
        Judged::new(LineVerdict::NoEffect, why, facts.source)
    })
}

fn version((major, minor): (u32, u32)) -> String {
    format!("{major}.{minor}")
}
