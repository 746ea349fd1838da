//! What was fine, what could not be judged, what could not be seen.

use std::collections::BTreeMap;

use model::facts::NoAccess;

use crate::{
    document::Diagnosed,
    text::{Ink, Line, Page, split_at_width, width},
    words::many,
};

/// So many rules with the same reason are told in one line.
const ALIKE: usize = 3;

/// Rules that found nothing wrong: a line each, those with the same reason together.
pub fn fine(d: &Diagnosed, page: &mut Page) {
    if d.passed.is_empty() {
        return;
    }
    page.heading("PASSED");
    let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for c in &d.passed {
        by_reason.entry(&c.because).or_default().push(&c.rule);
    }
    by_reason.retain(|_, rules| rules.len() >= ALIKE);
    let alone = || d.passed.iter().filter(|c| !by_reason.contains_key(c.because.as_str()));
    let longest = alone().map(|c| width(&c.rule)).max().unwrap_or(0).min(28);
    for c in alone() {
        let label = Line::plain("  ").ink(Ink::Good, format!("{:<longest$}", c.rule)).text("  ");
        if page.look().verbose {
            page.labelled(label, &Line::plain(&c.because));
        } else {
            let room = page.look().width.saturating_sub(label.width()).max(20);
            page.raw(&label.text(shortened(&c.because, room)));
        }
    }
    for (why, rules) in by_reason {
        page.line(Line::plain("  ").ink(Ink::Good, rules.join(", ")).text(format!(": {why}")), 4);
    }
}

/// At most `room` columns, cut at a word.
fn shortened(text: &str, room: usize) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let (head, _) = split_at_width(text, room.saturating_sub(2));
    let head = head.rsplit_once(' ').map_or(head, |(h, _)| h);
    format!("{} …", head.trim_end_matches([',', ';', ':']))
}

/// Rules without evidence, those with the same reason together.
pub fn skipped(d: &Diagnosed, page: &mut Page) {
    if d.skipped.is_empty() {
        return;
    }
    page.heading("SKIPPED");
    let mut by_reason: Vec<(&str, BTreeMap<&str, Vec<&str>>)> = vec![];
    for n in &d.skipped {
        let at = match by_reason.iter().position(|(why, _)| *why == n.why) {
            Some(at) => at,
            None => {
                by_reason.push((&n.why, BTreeMap::new()));
                by_reason.len() - 1
            }
        };
        if let Some((_, rules)) = by_reason.get_mut(at) {
            let subjects = rules.entry(&n.rule).or_default();
            if !n.subject.is_empty() {
                subjects.push(&n.subject);
            }
        }
    }
    for (why, rules) in by_reason {
        let names: Vec<String> = rules
            .into_iter()
            .map(|(rule, subjects)| match subjects.len() {
                0 => rule.to_owned(),
                1..=4 => format!("{rule} ({})", subjects.join(", ")),
                n => format!("{rule} ({})", many(n, "subject")),
            })
            .collect();
        page.line(
            Line::plain("  ").text(names.join(", ")).ink(Ink::Faint, ": ").ink(Ink::Faint, why),
            4,
        );
    }
}

/// What this run could not see, and what would grant it.
pub fn not_visible(d: &Diagnosed, page: &mut Page) {
    let mut no_access = d.no_access.clone();
    no_access.extend(softirq_time(d));
    crate::inspect::not_visible(&no_access, page);
}

/// Why softirq time is only what the kernel claims, of a host that runs.
fn softirq_time(d: &Diagnosed) -> Option<NoAccess> {
    let why = d.window.known()?.softirq.why_not().filter(|_| d.source.kind == "live")?;
    Some(NoAccess {
        what: "softirq time by eBPF".into(),
        why: format!("{why}; shares of softirqs are /proc/stat's claim"),
        remedy: String::new(),
    })
}
