//! The changes that would remedy findings, and the command that rolls one out.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    fleet::{FleetChange, FleetHost},
    knob::Target,
};

use super::{
    host, label,
    queries::{Answers, Part},
};

/// Up to so many hosts stand in a command; more are read from a file.
const IN_COMMAND: usize = 10;

/// The hosts and the rules of one knob and value.
#[derive(Default)]
struct Helped<'a> {
    hosts: BTreeSet<&'a str>,
    rules: BTreeSet<&'a str>,
}

/// All changes of findings that are listed, those that help most hosts first.
pub(super) fn changes(answers: &Answers, hosts: &[FleetHost]) -> Vec<FleetChange> {
    // A change counts where its finding is listed.
    let listed: BTreeSet<(&str, &str, &str)> = hosts
        .iter()
        .flat_map(|h| {
            h.findings.iter().map(|f| (h.name.as_str(), f.rule.as_str(), f.subject.as_str()))
        })
        .collect();
    let mut all: BTreeMap<(&str, &str), Helped<'_>> = BTreeMap::new();
    for series in answers.of(Part::Changes) {
        let Some(name) = host(series) else { continue };
        let rule = label(series, "rule");
        let knob = label(series, "knob");
        if knob.is_empty() || !listed.contains(&(name, rule, label(series, "subject"))) {
            continue;
        }
        let helped = all.entry((knob, label(series, "value"))).or_default();
        helped.hosts.insert(name);
        helped.rules.insert(rule);
    }
    let rank: BTreeMap<&str, usize> =
        hosts.iter().enumerate().map(|(i, h)| (h.name.as_str(), i)).collect();
    let mut changes: Vec<(usize, FleetChange)> = all
        .into_iter()
        .map(|((knob, value), helped)| {
            let mut names: Vec<&str> = helped.hosts.into_iter().collect();
            names.sort_by_key(|n| rank.get(n));
            let first = names.first().and_then(|n| rank.get(n).copied()).unwrap_or(usize::MAX);
            let change = FleetChange {
                knob: knob.to_owned(),
                value: value.to_owned(),
                command: command(knob, value, &names),
                hosts: names.into_iter().map(str::to_owned).collect(),
                rules: helped.rules.into_iter().map(str::to_owned).collect(),
            };
            (first, change)
        })
        .collect();
    changes.sort_by(|(first, a), (other, b)| {
        (b.hosts.len(), first, &a.knob).cmp(&(a.hosts.len(), other, &b.knob))
    });
    changes.into_iter().map(|(_, change)| change).collect()
}

/// The command that rolls the change out by Ansible; empty where a label would mean something to a
/// shell, to YAML or to Ansible. Labels come from whoever answers a scrape.
fn command(knob: &str, value: &str, hosts: &[&str]) -> String {
    let plain = |text: &str, also: &[u8]| {
        (1..=200).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || also.contains(&b))
    };
    // Of process IDs and interrupts the number is another one on each host.
    let same = matches!(
        Target::parse(knob),
        Some(Target::Sysctl(_) | Target::Nic(..) | Target::Queue(..) | Target::Irqbalance(_))
    );
    if !same || !plain(knob, b"._-/") || !plain(value, b"._-/,: ") {
        return String::new();
    }
    let names: Vec<&str> = hosts.iter().map(|h| without_port(h)).collect();
    if !names.iter().all(|n| plain(n, b"._-") && !n.starts_with(['-', '.'])) {
        return String::new();
    }
    let value = match value.parse::<u64>() {
        Ok(number) if number.to_string() == value => value.to_owned(),
        _ => format!("\"{value}\""),
    };
    let limit = if names.len() <= IN_COMMAND { names.join(",") } else { "@hosts".to_owned() };
    format!(
        "ansible-playbook -i inventory netwright.tuning.rollout --limit {limit} -e \
         '{{\"settings\": {{\"{knob}\": {value}}}}}'"
    )
}

/// The host of an `instance`, as an inventory names it.
pub(super) fn without_port(instance: &str) -> &str {
    match instance.rsplit_once(':') {
        Some((host, port)) if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => host,
        _ => instance,
    }
}
