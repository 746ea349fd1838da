//! A plan as text: a summary, the changes as a table, refusals, and warnings.

use std::collections::BTreeMap;

use model::tune::{Disruption, Impact, Plan, Planned};

use crate::{
    inspect::dotted,
    text::{Ink, Line, Page, Table, TextStyle},
    words::many,
};

/// A plan: changes, refusals, and settings that need no change.
pub fn plan(plan: &Plan, look: TextStyle) -> String {
    let mut page = Page::new(look);
    let host = plan.host.name.get().unwrap_or_else(|| "unnamed host".into());
    let head = [
        Line::new().ink(Ink::Strong, host),
        Line::plain("tune plan"),
        Line::plain("nothing was changed"),
    ];
    page.line(dotted(head), 2);
    page.line(result(plan), 2);
    if plan.reaches_operator() {
        let text = "WARNING: may cut your own connection; auto-rollback undoes it unless confirmed";
        page.line(Line::new().ink(Ink::Bad, text), 2);
    }
    if !plan.changes.is_empty() {
        page.gap();
        page.table(&table(plan), 0);
    }
    if look.verbose {
        for (i, change) in plan.changes.iter().enumerate() {
            page.gap();
            details(i, change, &mut page);
        }
    }
    refused(plan, &mut page);
    unchanged(plan, &mut page);
    caveats(plan, &mut page);
    page.finish()
}

/// `4 changes: 3 without impact, 1 brief stall (eth0); 1 refused`.
fn result(plan: &Plan) -> Line {
    let mut by: BTreeMap<Disruption, Vec<&Planned>> = BTreeMap::new();
    for c in &plan.changes {
        by.entry(c.impact.disruption).or_default().push(c);
    }
    let mut parts = vec![];
    for (disruption, of) in by {
        parts.push(match disruption {
            Disruption::None => format!("{} without impact", of.len()),
            some => format!("{} {some}{}", of.len(), whose(&of)),
        });
    }
    let mut line = Line::new().ink(Ink::Strong, many(plan.changes.len(), "change"));
    if !parts.is_empty() {
        line.push(Ink::Strong, format!(": {}", parts.join(", ")));
    }
    if !plan.refused.is_empty() {
        line = line.text("; ").ink(Ink::Bad, format!("{} refused", plan.refused.len()));
    }
    if !plan.unchanged.is_empty() {
        let need = if plan.unchanged.len() == 1 { "needs" } else { "need" };
        line = line.text(format!("; {} {need} no change", plan.unchanged.len()));
    }
    line
}

/// ` (eth0, eth1)`: the interfaces, where all changes belong to one.
fn whose(of: &[&Planned]) -> String {
    let nics = of.iter().filter_map(|c| c.knob.strip_prefix("nic.")?.split('.').next());
    let nics: std::collections::BTreeSet<&str> = nics.collect();
    match nics.len() {
        0 => String::new(),
        1..=3 => format!(" ({})", nics.into_iter().collect::<Vec<_>>().join(", ")),
        n => format!(" ({} interfaces)", n),
    }
}

fn shown(value: &str) -> &str {
    if value.is_empty() { "(empty)" } else { value }
}

/// `4096 bytes`; a name, a list or a switch has no unit.
pub(super) fn with_unit(value: &str, unit: &str) -> String {
    if unit.is_empty() { value.to_owned() } else { format!("{value} {unit}") }
}

fn table(plan: &Plan) -> Table {
    let mut table = Table::new()
        .right("#")
        .wrapping("KNOB")
        .wrapping("NOW")
        .wrapping("NEW")
        .wrapping("IMPACT")
        .wrapping("UNDO");
    for (i, c) in plan.changes.iter().enumerate() {
        table.row([
            Line::plain(i + 1),
            Line::new().ink(Ink::Strong, &c.knob),
            Line::plain(shown(&c.old)),
            Line::plain(with_unit(shown(&c.new), &c.unit)),
            Line::new().ink(severity(&c.impact), c.impact.disruption),
            Line::plain(undo(c)),
        ]);
    }
    table
}

/// The way to undo it, up to the first comma; `-v` has the rest.
fn undo(c: &Planned) -> String {
    let first = c.undo.split([',', ';', '(']).next().unwrap_or_default().trim();
    let old =
        first.strip_suffix(" is written back").or_else(|| first.strip_suffix(" is set again"));
    old.and_then(|old| old.strip_prefix("the ")).unwrap_or(first).to_owned()
}

fn severity(r: &Impact) -> Ink {
    match r.disruption {
        _ if r.own_connection => Ink::Bad,
        Disruption::None => Ink::Plain,
        Disruption::BriefStall => Ink::Warn,
        _ => Ink::Bad,
    }
}

/// One change in full: impact, owner, undo, source, command.
fn details(i: usize, c: &Planned, page: &mut Page) {
    page.line(Line::plain(format!("{:>3}. ", i + 1)).ink(Ink::Strong, &c.knob), 7);
    let detail = |label: &str, text: Line, page: &mut Page| {
        page.labelled(Line::plain("     ").ink(Ink::Faint, format!("{label:<9}")), &text);
    };
    if let Some(mask) = mask(c) {
        detail("mask", Line::plain(mask), page);
    }
    if !c.why.is_empty() {
        detail("because", Line::plain(&c.why), page);
    }
    detail("impact", disturbs(&c.impact), page);
    if !c.owner.is_empty() {
        detail("owner", Line::plain(&c.owner), page);
    }
    detail("undo", Line::plain(&c.undo), page);
    detail("asked by", Line::plain(&c.asked_by), page);
    // Never wrapped: it is to be copied.
    page.raw(&Line::plain("     ").ink(Ink::Faint, "same as  ").text(&c.command));
}

fn refused(plan: &Plan, page: &mut Page) {
    if plan.refused.is_empty() {
        return;
    }
    page.heading("REFUSED");
    for r in &plan.refused {
        let what = if r.knob.is_empty() { "-".into() } else { format!("{}={}", r.knob, r.new) };
        let line = Line::plain("  ").ink(Ink::Bad, what).text(format!(": {} ", r.why));
        page.line(line.ink(Ink::Faint, format!("({})", r.asked_by)), 6);
        if page.look().verbose && !r.source.is_empty() {
            let source = Line::plain("      ").ink(Ink::Faint, format!("source: {}", r.source));
            page.line(source, 8);
        }
    }
}

fn unchanged(plan: &Plan, page: &mut Page) {
    if plan.unchanged.is_empty() {
        return;
    }
    page.heading("NO CHANGE NEEDED");
    for u in &plan.unchanged {
        page.line(Line::plain(format!("  {} is {}", u.knob, shown(&u.value))), 6);
    }
}

/// Each change's impact and its reason, other tuners that set it, and warnings of the whole plan.
fn caveats(plan: &Plan, page: &mut Page) {
    let disturbing = plan.changes.iter().filter(|c| c.impact != Impact::none());
    let mut lines: Vec<Line> = disturbing
        .map(|c| Line::plain(format!("{}: ", c.knob)).also(disturbs(&c.impact)))
        .collect();
    let owned = plan.changes.iter().filter(|c| !c.owner.is_empty());
    lines.extend(owned.map(|c| Line::plain(format!("{}: {}", c.knob, c.owner))));
    lines.extend(plan.notes.iter().map(Line::plain));
    page.caveats(lines);
}

/// The new value as a hex mask, for a list of CPUs.
fn mask(c: &Planned) -> Option<String> {
    let lists = [".affinity", ".cpuset", "irqbalance.banned_cpus"];
    let is_list = lists.iter().any(|end| c.knob.ends_with(end));
    let list = c.new.split_whitespace().next().filter(|_| is_list)?;
    list.parse::<model::CpuSet>().ok().map(|cpus| cpus.to_hex_mask())
}

fn disturbs(r: &Impact) -> Line {
    let ink = if r.disruption >= Disruption::LinkReset || r.own_connection {
        Ink::Bad
    } else {
        Ink::Warn
    };
    let mut line = match r.disruption {
        Disruption::None => Line::plain("none"),
        disruption => Line::new().ink(ink, disruption).text(format!(": {}", r.why)),
    };
    for also in &r.also {
        line = line.text(format!("; {also}"));
    }
    if r.own_connection {
        line = line.text("; ").ink(Ink::Bad, "may cut your own connection");
    }
    line
}
