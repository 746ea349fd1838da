//! 29: the connection tracking table filling up.

use model::{Bytes, Change, Confidence, Severity};

use crate::{
    Case, Rule,
    knob::{self, advice},
    rule::{Draft, Gain, Judgement, Missing, need, settle},
    text,
};

/// Catalogue number 29.
pub static RULE: Rule = Rule {
    id: "conntrack_filling",
    number: 29,
    title: "the connection tracking table fills up",
    needs: &["nf_conntrack_count and nf_conntrack_max", "conntrack counters over a window"],
    explained_by: &["below_kernel_default"],
    judge,
};

const COUNT: &str = "net.netfilter.nf_conntrack_count";
const MAX: &str = "net.netfilter.nf_conntrack_max";
/// Share of the table that makes a warning, and a critical finding.
const WARN: f64 = 0.85;
const CRITICAL: f64 = 0.95;
/// About what an entry takes, with its extensions.
const ENTRY: u64 = 320;

fn judge(case: &Case<'_>) -> Vec<Judgement> {
    vec![settle("", one(case))]
}

/// Growth of `drop`, `early_drop`, `insert_failed`; `None` where not known.
fn lost(case: &Case<'_>, name: &str) -> Option<u64> {
    let counters = need("conntrack", &case.samples().ok()?.conntrack).ok()?;
    counters.get(name)?.get()
}

fn one(case: &Case<'_>) -> Result<Judgement, Missing> {
    let count = case.sysctl_number(COUNT)?;
    let max = case.sysctl_number(MAX)?;
    if max == 0 {
        return Err(Missing(format!("{MAX}: is 0")));
    }
    let share = count as f64 / max as f64;
    let dropped = lost(case, "drop").unwrap_or(0) + lost(case, "early_drop").unwrap_or(0);
    let failed = lost(case, "insert_failed").unwrap_or(0);
    let full = share >= WARN;
    if !full && dropped == 0 && failed == 0 {
        let counters = if lost(case, "drop").is_some() { ", none dropped" } else { "" };
        return Ok(Judgement::Clear(format!(
            "{} of {} entries{counters}",
            text::count(count),
            text::count(max)
        )));
    }
    let (severity, confidence) = if dropped > 0 {
        (Severity::Critical, Confidence::High)
    } else if share >= CRITICAL {
        (Severity::Critical, Confidence::Medium)
    } else if full {
        (Severity::Warning, Confidence::Medium)
    } else {
        (Severity::Info, Confidence::Low)
    };
    let title = if full || dropped > 0 {
        format!(
            "connection tracking holds {} of {} entries ({})",
            text::count(count),
            text::count(max),
            text::percent(share)
        )
    } else {
        format!("{} connections could not be entered into connection tracking", text::count(failed))
    };
    let mut draft = Draft::new(MAX, title)
        .weigh(severity, confidence)
        .explain(if full || dropped > 0 {
            "When the table is full, packets of new connections are dropped, whatever the CPUs and \
             the links could still do."
        } else {
            "With room in the table these are packets of one connection that raced each other \
             (often DNS over UDP), or addresses translated onto one another: the packet is dropped."
        })
        .gain(Gain::Unblocks, "new connections are no longer dropped")
        .show_sysctl(case, COUNT)
        .show_sysctl(case, MAX);
    for name in ["drop", "early_drop", "insert_failed"] {
        if let Some(n) = lost(case, name) {
            draft = draft.show(
                format!("{name} {}", case.over()),
                text::count(n),
                "/proc/net/stat/nf_conntrack",
            );
        }
    }
    let changes = if full || dropped > 0 { larger(case, max) } else { vec![] };
    Ok(draft.changes(changes).on_sysctl(MAX).found())
}

fn larger(case: &Case<'_>, max: u64) -> Vec<Change> {
    let new = max.saturating_mul(2);
    let memory = Bytes(new.saturating_sub(max).saturating_mul(ENTRY));
    let mut changes = vec![knob::sysctl(
        case,
        MAX,
        &new.to_string(),
        &format!("up to {memory} more kernel memory when full"),
    )];
    let buckets = "net.netfilter.nf_conntrack_buckets";
    if let Ok(now) = case.sysctl_number(buckets)
        && now < new / 4
    {
        changes.push(knob::sysctl(
            case,
            buckets,
            &(new / 4).to_string(),
            "a rehash of the table; only from the host's own namespace",
        ));
    }
    changes.push(advice(
        "all traffic tracked",
        "no tracking for traffic that needs none",
        "nft/iptables rules with notrack (CT --notrack) for it",
        "rules that match on connection state no longer see that traffic",
    ));
    changes
}
