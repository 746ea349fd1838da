//! `doctor --fleet`: many hosts, worst first, their causes, and the change that helps most of them.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use model::{
    Severity,
    fleet::{FleetChange, FleetDocument, FleetHost, HostState},
};

use crate::{
    text::{Ink, Line, Page, Table, TextStyle},
    words::many,
};

/// Names in a cell.
const NAMES: usize = 3;

/// The page: the answer, hosts without an answer, hosts with findings, causes, changes. Each list has
/// at most `top` rows.
pub fn text(d: &FleetDocument, top: usize, look: TextStyle) -> String {
    let mut page = Page::new(look);
    page.line(Line::new().ink(Ink::Strong, headline(d)), 2);
    page.line(Line::plain(from(d)), 2);
    silent(d, top, &mut page);
    hosts(d, top, &mut page);
    causes(d, top, &mut page);
    changes(d, top, &mut page);
    page.caveats(d.warnings.iter().map(|w| Line::plain(format!("Prometheus warns: {w}"))));
    page.finish()
}

/// The answer: how many hosts have findings, and the commonest cause.
pub fn headline(d: &FleetDocument) -> String {
    let bad = d.hosts.iter().filter(|h| !h.findings.is_empty()).count();
    let of = |state| d.hosts.iter().filter(|h| h.state == state).count();
    let (known, starting) = (of(HostState::Judged), of(HostState::Starting));
    let mut text = match (bad, d.causes.first()) {
        (0, _) | (_, None) if known == 0 => "The findings of no host are known".to_owned(),
        (0, _) | (_, None) => format!("No finding on {}", many(known, "host")),
        (_, Some(cause)) => format!(
            "{bad} of {} have findings; the commonest cause is {}, on {}",
            many(d.hosts.len(), "host"),
            cause.rule,
            many(cause.hosts.len(), "host")
        ),
    };
    let unclear = of(HostState::Unclear);
    match d.hosts.len() - known - starting - unclear {
        0 => {}
        1 => text.push_str("; 1 host does not answer"),
        n => text.push_str(&format!("; {n} hosts do not answer")),
    }
    match starting {
        0 => {}
        1 => text.push_str("; 1 host has just started"),
        n => text.push_str(&format!("; {n} hosts have just started")),
    }
    match unclear {
        0 => {}
        1 => text.push_str("; 1 host reports invalid counts"),
        n => text.push_str(&format!("; {n} hosts report invalid counts")),
    }
    text
}

/// The source, what is listed, and what is left out.
fn from(d: &FleetDocument) -> String {
    let mut versions: BTreeMap<&str, usize> = BTreeMap::new();
    for version in d.hosts.iter().filter_map(|h| h.version.as_deref()) {
        *versions.entry(version).or_default() += 1;
    }
    let versions: Vec<String> =
        versions
            .iter()
            .map(|(version, n)| {
                if versions.len() > 1 { format!("{version} ({n})") } else { (*version).to_owned() }
            })
            .collect();
    let versions = match versions.len() {
        0 => String::new(),
        n if n > NAMES => format!(" · exporters of {n} versions"),
        _ => format!(" · netwright {}", versions.join(", ")),
    };
    let least = match d.min_severity {
        Severity::Info => "all severities",
        Severity::Warning => "warnings and worse",
        Severity::Critical => "critical findings",
    };
    let infos: u64 = d.hosts.iter().map(|h| h.info).sum();
    let rest = match d.min_severity > Severity::Info && infos > 0 {
        true => format!(" ({infos} info: --min-severity info)"),
        false => String::new(),
    };
    format!("{}{versions} · {least}{rest}", d.target)
}

fn silent(d: &FleetDocument, top: usize, page: &mut Page) {
    let of = |state| d.hosts.iter().filter(move |h| h.state == state).collect::<Vec<_>>();
    let states = [
        (HostState::Down, "down: Prometheus cannot scrape the exporter"),
        (HostState::Gone, "gone: scraped within the last hour, no exporter answers now"),
        (HostState::Stalled, "stalled: no new interval for 5 minutes, findings are old"),
        (HostState::Starting, "just started: the first interval is not over"),
        (HostState::Unclear, "unclear: its exporter reports invalid counts of findings"),
    ];
    if states.iter().all(|(state, _)| of(*state).is_empty()) {
        return;
    }
    page.heading("NO ANSWER");
    for (state, why) in states {
        let hosts = of(state);
        if !hosts.is_empty() {
            let names = listed(hosts.iter().map(|h| h.name.as_str()), top);
            let label = Line::new().ink(Ink::Bad, format!("{} ", many(hosts.len(), "host")));
            page.line(Line::plain("  ").also(label).text(format!("{why}: {names}")), 4);
        }
    }
}

fn hosts(d: &FleetDocument, top: usize, page: &mut Page) {
    let bad: Vec<&FleetHost> =
        d.hosts.iter().filter(|h| !h.findings.is_empty() || !h.drifted.is_empty()).collect();
    if bad.is_empty() {
        return;
    }
    page.gap();
    let mut table = Table::new().left("HOST").right("CRIT").right("WARN").right("INFO");
    table = table.wrapping("FINDINGS");
    for host in bad.iter().take(top) {
        let count = |n: u64, ink| match n {
            0 => Line::plain("–"),
            n => Line::new().ink(ink, n),
        };
        table.row([
            Line::plain(short(&host.name)),
            count(host.critical, Ink::Bad),
            count(host.warning, Ink::Warn),
            count(host.info, Ink::Plain),
            Line::plain(findings(host, page.look().verbose)),
        ]);
    }
    page.table(&table, 0);
    more(bad.len(), top, "host", page);
}

/// The rules of a host with their number, and drift.
fn findings(host: &FleetHost, all: bool) -> String {
    let mut rules: Vec<(&str, Vec<&str>)> = vec![];
    for f in &host.findings {
        match rules.iter_mut().find(|(rule, _)| *rule == f.rule) {
            Some((_, subjects)) => subjects.push(&f.subject),
            None => rules.push((&f.rule, vec![&f.subject])),
        }
    }
    let of = |(rule, subjects): &(&str, Vec<&str>)| match subjects.len() {
        _ if all => format!("{} {}", short(rule), listed(subjects.iter().copied(), usize::MAX)),
        1 => short(rule),
        n => format!("{} ({n})", short(rule)),
    };
    let most = if all { usize::MAX } else { NAMES };
    let mut parts: Vec<String> = rules.iter().take(most).map(of).collect();
    if rules.len() > most {
        parts.push(format!("and {} more", rules.len() - most));
    }
    if !host.drifted.is_empty() {
        parts.push(format!("drift of {}", listed(host.drifted.iter().map(String::as_str), most)));
    }
    parts.join(", ")
}

fn causes(d: &FleetDocument, top: usize, page: &mut Page) {
    if d.causes.is_empty() {
        return;
    }
    page.gap();
    let mut table = Table::new().left("CAUSE").right("HOSTS").left("WORST").wrapping("ON");
    for cause in d.causes.iter().take(top) {
        let ink = match cause.severity {
            Severity::Critical => Ink::Bad,
            Severity::Warning => Ink::Warn,
            Severity::Info => Ink::Plain,
        };
        let most = if page.look().verbose { usize::MAX } else { NAMES };
        table.row([
            Line::plain(short(&cause.rule)),
            Line::plain(cause.hosts.len()),
            Line::new().ink(ink, cause.severity),
            Line::plain(listed(cause.hosts.iter().map(String::as_str), most)),
        ]);
    }
    page.table(&table, 0);
    more(d.causes.len(), top, "cause", page);
}

fn changes(d: &FleetDocument, top: usize, page: &mut Page) {
    let Some(first) = d.changes.first() else { return };
    page.heading("THE CHANGE THAT HELPS MOST HOSTS");
    let rules = listed(first.rules.iter().map(String::as_str), NAMES);
    let helps = format!("{} on {} ({rules})", set(first), many(first.hosts.len(), "host"));
    page.line(Line::plain("  ").also(Line::new().ink(Ink::Strong, helps)), 4);
    if first.command.is_empty() {
        let host = first.hosts.first().map(|h| short(h)).unwrap_or_default();
        let advice =
            format!("The value is each host's own: `netwright doctor` on {host} has the command.");
        page.line(Line::plain("  ").text(advice), 4);
    } else {
        command(0, first, page);
    }
    if d.changes.len() > 1 {
        page.heading("OTHER CHANGES");
        let mut table = Table::new().right("HOSTS").wrapping("CHANGE").wrapping("FOR");
        for change in d.changes.iter().skip(1).take(top) {
            let rules = listed(change.rules.iter().map(String::as_str), NAMES);
            table.row([
                Line::plain(change.hosts.len()),
                Line::plain(set(change)),
                Line::plain(rules),
            ]);
        }
        page.table(&table, 0);
        more(d.changes.len() - 1, top, "change", page);
        let verbose = page.look().verbose;
        for (n, change) in d.changes.iter().enumerate().skip(1) {
            if verbose && !change.command.is_empty() {
                command(n, change, page);
            }
        }
    }
}

/// The command of the n-th change. Where it reads its hosts from a file, the line that makes this file
/// comes first: each change has hosts of its own.
fn command(n: usize, change: &FleetChange, page: &mut Page) {
    if change.command.contains("@hosts") {
        let list = format!(
            "netwright doctor --fleet … --json | jq -r '.changes[{n}].hosts[]' | sed 's/:[0-9]*$//' >hosts"
        );
        page.raw(&Line::plain("    ").text(list));
    }
    page.raw(&Line::plain("    ").text(&change.command));
}

fn set(change: &FleetChange) -> String {
    match change.value.is_empty() {
        true => short(&change.knob),
        false => format!("{} = {}", short(&change.knob), short(&change.value)),
    }
}

/// `… and 12 more hosts`, where some are left out.
fn more(all: usize, top: usize, what: &str, page: &mut Page) {
    if all > top {
        let rest = all - top;
        let what = if rest == 1 { what.to_owned() } else { format!("{what}s") };
        page.line(Line::new().ink(Ink::Faint, format!("… and {rest} more {what} (-v, --top)")), 2);
    }
}

/// The first names, and how many there are beside them.
fn listed<'a>(names: impl Iterator<Item = &'a str>, most: usize) -> String {
    let mut all: Vec<String> = names.map(short).collect();
    let rest = all.len().saturating_sub(most);
    all.truncate(most);
    match rest {
        0 => all.join(", "),
        n => format!("{} and {n} more", all.join(", ")),
    }
}

/// A label's first 64 characters: whoever answers a scrape may send any.
fn short(label: &str) -> String {
    match label.char_indices().nth(64) {
        Some((at, _)) => format!("{}…", label.get(..at).unwrap_or_default()),
        None => label.to_owned(),
    }
}
