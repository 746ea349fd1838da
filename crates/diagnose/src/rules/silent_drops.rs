//! 40: packets that the kernel dropped for a reason that no other rule judges.

use std::collections::BTreeMap;

use model::{Confidence, Reading, Severity, watch::PacketDrops};

use crate::{
    Case, Rule,
    drop_reasons::{self, Meaning},
    knob::advice,
    rate,
    rule::{Draft, Gain, Judgement, Missing, clear, need, settle},
    text,
};

/// Catalogue number 40. Intended drops (a packet filter, a closed port) are no fault.
pub static RULE: Rule = Rule {
    id: "silent_drops",
    number: 40,
    title: "packets dropped for a reason that no counter of an interface shows",
    needs: &["dropped packets by reason over a window (eBPF, Linux 5.17)"],
    explained_by: &[],
    judge,
};

fn judge(case: &Case<'_>) -> Vec<Judgement> {
    match all(case) {
        Ok(said) => said,
        Err(missing) => vec![missing.of("")],
    }
}

fn all(case: &Case<'_>) -> Result<Vec<Judgement>, Missing> {
    let drops = need("dropped packets by reason", &case.samples()?.drops)?;
    let mut faults: BTreeMap<&str, (&str, &str, Vec<&PacketDrops>)> = BTreeMap::new();
    let mut unknown: BTreeMap<&str, u64> = BTreeMap::new();
    for d in drops {
        let Reading::Known(reason) = &d.reason else { continue };
        match drop_reasons::of(reason) {
            Some(Meaning::Fault(what, remedy)) => {
                faults.entry(reason).or_insert((what, remedy, vec![])).2.push(d);
            }
            Some(Meaning::Rule(_) | Meaning::Expected(_)) => {}
            None => *unknown.entry(reason).or_default() += d.packets,
        }
    }
    let (mut said, mut found_any) = (vec![], false);
    for (reason, (what, remedy, drops)) in faults {
        let count = drops.iter().map(|d| d.packets).sum();
        if let Some(sure) = rate::sustained(count, case.window_s()?) {
            found_any = true;
            said.push(found(case, reason, (what, remedy), count, sure, &drops));
        }
    }
    // Unknown whether it is a fault.
    for (reason, count) in unknown {
        if rate::sustained(count, case.window_s()?).is_some() {
            let why = format!(
                "{} packets dropped for {reason}, which tells no cause",
                text::count(count)
            );
            said.push(Missing(why).of(reason));
        }
    }
    if !found_any {
        said.push(settle("", no_fault(case, drops)));
    }
    Ok(said)
}

fn no_fault(case: &Case<'_>, drops: &[PacketDrops]) -> Result<Judgement, Missing> {
    let packets: u64 = drops.iter().map(|d| d.packets).sum();
    let text = format!(
        "{} dropped {}, none of them for a fault that lasts",
        text::plural(usize::try_from(packets).unwrap_or(usize::MAX), "packet"),
        case.over()
    );
    let reasons = drops.iter().try_for_each(|d| need("reason of a drop", &d.reason).map(drop));
    clear(text, [&case.samples()?.drops, &reasons])
}

fn found(
    case: &Case<'_>,
    reason: &str,
    (what, remedy): (&str, &str),
    count: u64,
    sure: Confidence,
    drops: &[&PacketDrops],
) -> Judgement {
    let severity = if sure == Confidence::Low { Severity::Info } else { Severity::Warning };
    let mut draft = Draft::new(reason, format!("{} packets dropped: {what}", text::count(count)))
        .weigh(severity, sure)
        .explain(
            "The kernel dropped them on their way; the interface counts them as received or sent.",
        )
        .gain(Gain::Improves, "fewer retransmits, no lost datagrams");
    for d in drops.iter().take(3) {
        draft = draft.show(drop_reasons::what(case, d), text::count(d.packets), "skb:kfree_skb");
    }
    draft
        .change(advice("as it is", "see the command", remedy, "depends on the cause"))
        .alone()
        .found()
}
