//! 42: the neighbour table (ARP, NDP) is full.

use model::{Confidence, Severity, samples::NeighbourTable};

use crate::{
    Case, Rule,
    case::delta,
    knob::advice,
    rate::sustained,
    rule::{Draft, Gain, Judgement, Missing, clear, need, settle},
    text,
};

/// Catalogue number 42. The table is one for all network namespaces of the host, and so is its limit.
pub static RULE: Rule = Rule {
    id: "neighbour_table",
    number: 42,
    title: "the neighbour table is full",
    needs: &["neighbour tables and their limits (of the first network namespace)"],
    explained_by: &[],
    judge,
};

/// Share of the limit that warns. Our proposal, as for connection tracking (rule 29).
const WARN: f64 = 0.85;

fn judge(case: &Case<'_>) -> Vec<Judgement> {
    let tables = case.samples().and_then(|s| need("neighbour tables", &s.neighbours));
    match tables {
        Ok(all) => all.iter().map(|t| settle(&t.family, one(case, t))).collect(),
        Err(missing) => vec![missing.of("")],
    }
}

fn one(case: &Case<'_>, table: &NeighbourTable) -> Result<Judgement, Missing> {
    let (family, name, file) = match table.family.as_str() {
        "ipv6" => ("ipv6", "IPv6", "ndisc_cache"),
        _ => ("ipv4", "IPv4", "arp_cache"),
    };
    let source = format!("/proc/net/stat/{file}");
    let key = format!("net.{family}.neigh.default.gc_thresh3");
    let entries = *need(&source, &table.entries)?;
    let most = *need(&key, &table.most)?;
    let fulls = delta(&format!("{source}, table_fulls"), Some(&table.table_fulls));
    let share = entries as f64 / most.max(1) as f64;
    let full = fulls.clone().ok().and_then(|n| sustained(n, case.window_s().ok()?));
    let held = format!("{} of {} entries", text::count(entries), text::count(most));
    let (severity, confidence, title) = match full {
        Some(sure) => (
            if sure == Confidence::Low { Severity::Info } else { Severity::Critical },
            sure,
            format!(
                "the {name} neighbour table was full {} {}",
                text::times(fulls.clone().unwrap_or(0)),
                case.over()
            ),
        ),
        None if share >= WARN => (
            Severity::Warning,
            Confidence::Medium,
            format!("the {name} neighbour table holds {held}"),
        ),
        None => return clear(format!("{name}: {held}"), [&fulls]),
    };
    let mut draft = Draft::new(family, title)
        .weigh(severity, confidence)
        .explain(
            "A packet to a host of the link that has no entry is dropped while the table is full. The \
             table is one for the host: containers and namespaces share it. A smaller subnet needs \
             fewer entries.",
        )
        .gain(Gain::Unblocks, "packets to new neighbours are no longer dropped")
        .show(format!("{name} neighbour table"), held, source.clone())
        .show(key.clone(), text::count(most), crate::knob::sysctl_path(&key));
    if let Ok(n) = fulls {
        draft = draft.show(format!("table_fulls {}", case.over()), text::count(n), source);
    }
    let new = most.max(entries).saturating_mul(4);
    Ok(draft
        .change(advice(
            &text::count(most),
            &text::count(new),
            &format!("sysctl -w {key}={new}"),
            "up to 0.5 KiB of kernel memory for each entry; only the first network namespace has it",
        ))
        .on_sysctl(&key)
        .found())
}
