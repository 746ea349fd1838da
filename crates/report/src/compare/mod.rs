//! `compare` as text: the verdict, the metrics, the noise floor, caveats.

mod markdown;
#[cfg(test)]
mod tests;

use model::{
    compare::{CompareDocument, Comparison, GroupSummary, NoiseFloor, RunOrder},
    prove::Outcome,
    units::figure,
};

pub use markdown::markdown;

use crate::{
    prove::{chance, ink, share},
    text::{Ink, Line, Page, Table, TextStyle},
    words::many,
};

pub fn text(d: &CompareDocument, look: TextStyle) -> String {
    let mut page = Page::new(look);
    if let Some((before, after)) = d.before.as_ref().zip(d.after.as_ref()) {
        page.line(title(d), 2);
        page.line(Line::plain(format!("Before: {}.", group(before))), 2);
        page.line(Line::plain(format!("After: {}.", group(after))), 2);
        for line in rules(d) {
            page.line(Line::plain(line), 2);
        }
        metrics(d, &mut page);
    }
    floors(d, &mut page);
    page.caveats(d.notes.iter().map(Line::plain));
    page.finish()
}

fn title(d: &CompareDocument) -> Line {
    let outcome = d.outcome.unwrap_or(Outcome::Undecided);
    let title = Line::new().ink(Ink::Strong, "compare: ").ink(ink(outcome), headline(d));
    let detail = telling(d).map(|c| format!(" · {} {}, p {}", name(d, c), effect(c), chance(c.p)));
    title.text(detail.unwrap_or_default())
}

/// The verdict on all metrics in words.
pub fn headline(d: &CompareDocument) -> String {
    match d.outcome.unwrap_or(Outcome::Undecided) {
        Outcome::Mixed => "mixed: one metric better, another worse".into(),
        _ => telling(d).map_or_else(|| "undecided".into(), says),
    }
}

/// The metric behind the verdict: the first that is called as the whole is.
pub fn telling(d: &CompareDocument) -> Option<&Comparison> {
    let same = d.comparisons.iter().find(|c| Some(c.outcome) == d.outcome);
    same.or_else(|| d.comparisons.iter().find(|c| c.outcome == Outcome::Worse))
        .or_else(|| d.comparisons.first())
}

/// What is said of a metric.
pub fn says(c: &Comparison) -> String {
    match (c.outcome, c.low.zip(c.high)) {
        (Outcome::Better, _) => "better".into(),
        (Outcome::Worse, _) => "worse".into(),
        (Outcome::NoDifferenceShown, Some((low, high))) => {
            let beyond = share(low.abs().max(high.abs()), c.difference, false);
            format!("no significant difference (ruled out beyond {beyond})")
        }
        (Outcome::NoDifferenceShown, None) => "no significant difference".into(),
        (_, Some(_)) => "undecided: more runs are needed".into(),
        (_, None) => "undecided: too few runs".into(),
    }
}

/// `+5.1% (+4.8% to +5.4%)`
fn change(c: &Comparison) -> String {
    let shown = |x: f64| share(x, c.difference, true);
    match c.low.zip(c.high) {
        Some((low, high)) => format!("{} ({} to {})", shown(c.effect), shown(low), shown(high)),
        None => shown(c.effect),
    }
}

fn effect(c: &Comparison) -> String {
    change(c).replacen('(', "(95% CI ", 1)
}

/// A metric's name, with its case where there are several.
fn name(d: &CompareDocument, c: &Comparison) -> String {
    if several_cases(d) { format!("{} ({})", c.metric, c.case) } else { c.metric.clone() }
}

fn several_cases(d: &CompareDocument) -> bool {
    d.comparisons.iter().any(|c| Some(&c.case) != d.comparisons.first().map(|f| &f.case))
}

/// `before/, 10 runs in 10 files, wrk`
fn group(g: &GroupSummary) -> String {
    let files = if g.files > 1 { format!(" in {}", many(g.files, "file")) } else { String::new() };
    format!("{}, {}{files}, {}", g.name, many(g.runs, "run"), g.programs.join(", "))
}

/// What was asked beside the comparison, and in which order the runs were made.
fn rules(d: &CompareDocument) -> Vec<String> {
    let percent = |x: f64| format!("{:.1}%", 100.0 * x);
    let case = d.comparisons.first().filter(|c| !several_cases(d) && !c.case.is_empty());
    let limit = d.limit.map(|l| {
        let outside = d.comparisons.iter().filter(|c| c.within_limit != Some(true));
        let outside: Vec<String> = outside.map(|c| name(d, c)).collect();
        match outside.as_slice() {
            [] => format!("Each metric is shown to be worse by less than {}.", percent(l)),
            some => format!("Not shown within the limit of {}: {}.", percent(l), some.join(", ")),
        }
    });
    let small = d.min_effect.map(|m| format!("Effects below {} do not matter.", percent(m)));
    let order =
        (d.order == RunOrder::Interleaved).then(|| "The runs of both groups alternate.".to_owned());
    [case.map(|c| format!("Measured: {}.", c.case)), limit, small, order]
        .into_iter()
        .flatten()
        .collect()
}

fn metrics(d: &CompareDocument, page: &mut Page) {
    let mut cases: Vec<&str> = Vec::new();
    for c in &d.comparisons {
        if !cases.contains(&c.case.as_str()) {
            cases.push(&c.case);
        }
    }
    let floor = d.comparisons.iter().any(|c| c.noise_floor.is_some());
    for case in &cases {
        page.gap();
        if several_cases(d) {
            page.line(Line::new().ink(Ink::Strong, format!("{case}:")), 2);
        }
        let table = Table::new()
            .wrapping("METRIC")
            .right("BEFORE")
            .right("AFTER")
            .right("RUNS")
            .right("CHANGE (95% CI)");
        let table = if floor { table.right("FLOOR") } else { table };
        let mut table = table.right("P").last_or_below("VERDICT");
        for c in d.comparisons.iter().filter(|c| c.case == *case) {
            let mut row = vec![
                Line::plain(&c.metric),
                Line::plain(figure(c.before.median)),
                Line::plain(figure(c.after.median)),
                Line::plain(format!("{}+{}", c.before.runs, c.after.runs)),
                Line::plain(change(c)),
            ];
            if floor {
                let shown = c.noise_floor.map(|f| share(f, c.difference, false));
                row.push(Line::plain(shown.unwrap_or_else(|| "-".into())));
            }
            row.push(Line::plain(chance(c.p)));
            row.push(Line::new().ink(ink(c.outcome), says(c)));
            table.row(row);
        }
        page.table(&table, 0);
    }
}

/// The noise where nothing was changed, where it is all that was asked or `-v`.
fn floors(d: &CompareDocument, page: &mut Page) {
    if d.noise_floor.is_empty() || (d.outcome.is_some() && !page.look().verbose) {
        return;
    }
    page.gap();
    page.line(
        Line::new()
            .ink(Ink::Strong, "Noise floor: 19 of 20 comparisons without a change stay below."),
        2,
    );
    let counts: Vec<usize> = d
        .noise_floor
        .iter()
        .find(|f| !f.floors.is_empty())
        .map_or(vec![], |f| f.floors.iter().map(|at| at.runs).collect());
    let table = Table::new().left("METRIC").right("MEDIAN").right("RUNS");
    let heads = counts.iter().map(|n| format!("{n}+{n} RUNS"));
    let mut table = heads.fold(table, |t, head| t.right(&head));
    for f in &d.noise_floor {
        let mut row =
            vec![Line::plain(floor_name(d, f)), Line::plain(figure(f.median)), Line::plain(f.runs)];
        for n in &counts {
            let at = f.floors.iter().find(|at| at.runs == *n);
            let shown = at.map(|at| share(at.effect, f.difference, false));
            row.push(Line::plain(shown.unwrap_or_else(|| "-".into())));
        }
        table.row(row);
    }
    page.table(&table, 0);
}

fn floor_name(d: &CompareDocument, f: &NoiseFloor) -> String {
    let several = d.noise_floor.iter().any(|o| o.case != f.case);
    if several { format!("{} ({})", f.metric, f.case) } else { f.metric.clone() }
}
