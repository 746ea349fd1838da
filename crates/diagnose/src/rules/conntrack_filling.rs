//! 29: the connection tracking table filling up.

use model::{Bytes, Confidence, Severity};

use crate::{
    Case, Rule,
    case::delta,
    knob::{self, advice},
    rule::{Draft, Gain, Judgement, Missing, Proposal, clear, need, settle},
    text,
};

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
/// The approximate size of an entry with its extensions, bytes.
const ENTRY: u64 = 320;

const FULL: &str = "When the table is full, old connections are evicted and packets of new ones \
                    dropped, whatever the CPUs and the links could still do.";
const REFUSED: &str = "The table has room now. It was full at some moment of the window, or an \
                       entry could not be made for want of memory.";
const RACED: &str = "With room in the table these are packets of one connection that raced each \
                     other (often DNS over UDP), or addresses translated onto one another: the \
                     packet is dropped.";

fn judge(case: &Case<'_>) -> Vec<Judgement> {
    vec![settle("", one(case))]
}

/// Growth of `drop`, `early_drop`, `insert_failed`; `None` where not known.
fn lost(case: &Case<'_>, name: &str) -> Option<u64> {
    let counters = need("conntrack", &case.samples().ok()?.conntrack).ok()?;
    counters.get(name)?.get()
}

/// Evidence: all three counters.
fn counters_read(case: &Case<'_>) -> Result<(), Missing> {
    let counters = need("conntrack counters", &case.samples()?.conntrack)?;
    let names = ["drop", "early_drop", "insert_failed"];
    names.iter().try_for_each(|n| delta(&format!("conntrack {n}"), counters.get(*n)).map(drop))
}

fn one(case: &Case<'_>) -> Result<Judgement, Missing> {
    let count = case.sysctl_number(COUNT)?;
    let max = case.sysctl_number(MAX)?;
    if max == 0 {
        return Err(Missing(format!("{MAX}: is 0")));
    }
    let share = count as f64 / max as f64;
    let dropped = lost(case, "drop").unwrap_or(0);
    let evicted = lost(case, "early_drop").unwrap_or(0);
    let failed = lost(case, "insert_failed").unwrap_or(0);
    let table = format!(
        "{} of {} entries ({})",
        text::count(count),
        text::count(max),
        text::percent(share)
    );
    let full = share >= WARN || evicted > 0;
    let (severity, confidence) = match (share, dropped, evicted, failed) {
        (_, 1.., ..) => (Severity::Critical, Confidence::High),
        (s, ..) if s >= CRITICAL => (Severity::Critical, Confidence::Medium),
        (_, _, 1.., _) => (Severity::Warning, Confidence::High),
        (s, ..) if s >= WARN => (Severity::Warning, Confidence::Medium),
        (_, _, _, 1..) => (Severity::Info, Confidence::Low),
        _ => {
            return clear(format!("{table}, none dropped"), [&counters_read(case)]);
        }
    };
    let (title, why) = if share >= WARN {
        (format!("connection tracking holds {table}"), FULL)
    } else if evicted > 0 {
        (
            format!(
                "connection tracking evicted {} connections for new ones",
                text::count(evicted)
            ),
            FULL,
        )
    } else if dropped > 0 {
        (format!("connection tracking dropped {} packets", text::count(dropped)), REFUSED)
    } else {
        (
            format!(
                "{} packets could not be entered into connection tracking",
                text::count(failed)
            ),
            RACED,
        )
    };
    let mut draft = Draft::new(MAX, title)
        .weigh(severity, confidence)
        .explain(why)
        .gain(Gain::Unblocks, "packets of new connections are no longer dropped")
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
    let changes = if full { larger(case, max) } else { vec![] };
    Ok(draft.changes(changes).on_sysctl(MAX).found())
}

fn larger(case: &Case<'_>, max: u64) -> Vec<Proposal> {
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
