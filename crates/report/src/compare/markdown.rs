//! `compare` as Markdown, for a pull request.

use model::{compare::CompareDocument, units::figure};

use super::{change, effect, group, headline, name, rules, says, telling};
use crate::{prove::chance, text::clean};

pub fn markdown(d: &CompareDocument) -> String {
    let mut page = String::new();
    if let Some((before, after)) = d.before.as_ref().zip(d.after.as_ref()) {
        let detail =
            telling(d).map(|c| format!(": {} {}, p {}", name(d, c), effect(c), chance(c.p)));
        page += &format!("**{}**{}\n\n", cell(&headline(d)), cell(&detail.unwrap_or_default()));
        page += "| metric | before | after | runs | change (95% CI) | p | verdict |\n";
        page += "|---|---:|---:|---:|---:|---:|---|\n";
        for c in &d.comparisons {
            let cells = [
                name(d, c),
                figure(c.before.median),
                figure(c.after.median),
                format!("{}+{}", c.before.runs, c.after.runs),
                change(c),
                chance(c.p),
                says(c),
            ];
            page += &format!("| {} |\n", cells.map(|c| cell(&c)).join(" | "));
        }
        page += &format!("\nBefore: {}. After: {}.", cell(&group(before)), cell(&group(after)));
        rules(d).iter().for_each(|rule| page += &format!(" {}", cell(rule)));
        page += "\n";
    }
    if !d.noise_floor.is_empty() {
        page += "\n| noise floor | median | runs | 19 of 20 comparisons without a change stay below |\n";
        page += "|---|---:|---:|---|\n";
        for f in &d.noise_floor {
            let at = |a: &model::compare::FloorAt| {
                let effect = crate::prove::share(a.effect, f.difference, false);
                format!("{effect} with {}+{} runs", a.runs, a.runs)
            };
            let floors: Vec<String> = f.floors.iter().map(at).collect();
            let (name, median) = (cell(&super::floor_name(d, f)), figure(f.median));
            page += &format!("| {name} | {median} | {} | {} |\n", f.runs, floors.join(", "));
        }
    }
    if !d.notes.is_empty() {
        page += "\n";
        d.notes.iter().for_each(|note| page += &format!("- {}\n", cell(&note.to_string())));
    }
    page
}

/// A text without the characters of Markdown and HTML: names come from other people's files.
fn cell(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in clean(text).chars() {
        match c {
            '<' => shown += "&lt;",
            '>' => shown += "&gt;",
            '&' => shown += "&amp;",
            '|' | '*' | '`' | '[' | ']' | '_' | '\\' | '#' | '@' => shown.extend(['\\', c]),
            c => shown.push(c),
        }
    }
    shown
}
