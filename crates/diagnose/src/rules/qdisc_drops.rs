//! 30: packets dropped before they were sent.

use model::quote;
use model::{Confidence, Severity, nic::Nic, samples::QdiscSample};

use crate::{
    Case, Rule,
    knob::advice,
    queues,
    rule::{Draft, Gain, Judgement, Missing, Proposal, clear, need},
    text,
};

/// Catalogue number 30. Queue managers of the CoDel and PIE family drop by design to slow down
/// senders; only a large share is reported.
pub static RULE: Rule = Rule {
    id: "qdisc_drops",
    number: 30,
    title: "a qdisc drops packets",
    needs: &["qdisc counters over a window"],
    explained_by: &["cloud_allowance", "pause_storm"],
    judge,
};

/// Kinds that drop on purpose, early.
const MANAGERS: [&str; 6] = ["fq_codel", "codel", "cake", "fq_pie", "pie", "red"];
/// Kinds that limit a rate.
const SHAPERS: [&str; 5] = ["tbf", "htb", "hfsc", "cbq", "netem"];
/// Kinds that only sum up their children.
const SUMS: [&str; 3] = ["mq", "mqprio", "taprio"];
/// The share of packets up to which drops of a manager are not reported, and those of a shaper are
/// information. Our proposal.
const BY_DESIGN: f64 = 0.01;
/// Share of packets that makes a warning. Our proposal.
const MANY: f64 = 0.001;

fn judge(case: &Case<'_>) -> Vec<Judgement> {
    queues::each_nic(
        case,
        |n| Ok(n.kind != "loopback"),
        "no interface with a qdisc is up",
        |nic| one(case, nic),
    )
}

fn one(case: &Case<'_>, nic: &Nic) -> Result<Judgement, Missing> {
    let name = &nic.name;
    let all = need(&format!("qdiscs of {name}"), &case.nic_sample(name)?.qdiscs)?;
    // A parent's counters include those of its children.
    let leaves = all.iter().filter(|q| !SUMS.contains(&q.kind.as_str()));
    let mut dropping: Vec<(&QdiscSample, u64, f64)> = vec![];
    for q in leaves {
        let drops = *need(&format!("drops of {} {} on {name}", q.kind, q.handle), &q.drops)?;
        let sent =
            *need(&format!("packets of {} {} on {name}", q.kind, q.handle), &q.sent_packets)?;
        let share = drops as f64 / (drops + sent).max(1) as f64;
        let by_design = MANAGERS.contains(&q.kind.as_str()) && share <= BY_DESIGN;
        if drops > 0 && !by_design {
            dropping.push((q, drops, share));
        }
    }
    let Some((worst, drops, share)) = dropping.iter().max_by_key(|d| d.1).copied() else {
        let text = format!("{name}: {}, no significant drops", text::plural(all.len(), "qdisc"));
        return clear(text, [&case.nic_sample(name)?.qdiscs]);
    };
    let shaper = SHAPERS.contains(&worst.kind.as_str());
    let manager = MANAGERS.contains(&worst.kind.as_str());
    let (severity, confidence) = match (shaper, manager) {
        // It works as configured, and it limits this path.
        (true, _) if share > BY_DESIGN => (Severity::Warning, Confidence::Medium),
        (false, false) if share >= MANY => (Severity::Warning, Confidence::High),
        _ => (Severity::Info, Confidence::Medium),
    };
    let mut draft = Draft::new(
        name,
        format!("{} on {name} dropped {} packets", worst.kind, text::count(drops)),
    )
    .weigh(severity, confidence)
    .explain(match (shaper, manager) {
        (true, _) => {
            "This qdisc enforces a configured rate and drops what exceeds it: nothing \
             else makes this path faster. `tc qdisc show` and `tc class show` tell the rate."
        }
        (_, true) => {
            "This qdisc drops to make senders slow down; so many means that more is sent \
                 than the link carries."
        }
        _ => {
            "More was sent at once than the queue holds: bursts, or a link slower than its senders."
        }
    })
    .gain(
        Gain::Improves,
        if shaper {
            "as much as a higher rate gives, if a higher one is meant"
        } else {
            "fewer retransmits"
        },
    );
    for (q, drops, share) in dropping.iter().take(8) {
        draft = draft.show(
            format!("drops of {} {} (parent {}) {}", q.kind, q.handle, q.parent, case.over()),
            format!("{} ({} of its packets)", text::count(*drops), text::percent(*share)),
            "rtnetlink RTM_GETQDISC (tc -s qdisc)",
        );
    }
    Ok(draft.changes(remedy(nic, worst)).on_nic(name).found())
}

/// Only the plain fifo has a better successor; all other kinds were chosen on purpose.
fn remedy(nic: &Nic, worst: &QdiscSample) -> Vec<Proposal> {
    if !matches!(worst.kind.as_str(), "pfifo_fast" | "pfifo" | "bfifo") {
        return vec![];
    }
    let command = if worst.parent == "root" {
        format!("tc qdisc replace dev {} root fq", quote::shell(&nic.name))
    } else {
        format!(
            "tc qdisc replace dev {} parent {} fq",
            quote::shell(&nic.name),
            quote::shell(&worst.parent)
        )
    };
    vec![advice(
        &worst.kind,
        "fq",
        &command,
        "replacing a qdisc drops the packets in it; the alternative, a larger txqueuelen, only \
         makes the queue longer",
    )]
}
