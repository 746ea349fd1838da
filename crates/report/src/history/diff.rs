//! Two runs, or two groups of runs: the facts and the figures that differ.

use model::{
    history::{FigureVerdict, HistoryDiff, HistoryRun},
    units::figure,
};

use crate::{
    text::{Ink, Line, Page, Table, TextStyle},
    tune::utc,
    words::many,
};

pub fn diff(d: &HistoryDiff, look: TextStyle) -> String {
    let mut page = Page::new(look);
    page.line(Line::new().ink(Ink::Strong, "Before: ").text(side(&d.before)), 2);
    page.line(Line::new().ink(Ink::Strong, "After:  ").text(side(&d.after)), 2);
    facts(d, &mut page);
    figures(d, &mut page);
    page.finish()
}

/// `run 12, measure-rtt, 2026-07-01 14:02:03 UTC`; of several their number and the newest.
fn side(runs: &[HistoryRun]) -> String {
    let Some(newest) = runs.first() else { return "no run".into() };
    let one = format!("run {}, {}, {}", newest.id, newest.kind, utc(newest.ended_unix_ms));
    match runs.len() {
        1 => format!("{one}, {}", newest.host),
        n => format!("{} with the tag {}, the newest {one}", many(n, "run"), newest.tag),
    }
}

fn facts(d: &HistoryDiff, page: &mut Page) {
    page.gap();
    let Some(facts) = &d.facts else {
        return page.line(Line::plain("Facts: not known of both."), 2);
    };
    if facts.is_empty() {
        return page.line(Line::plain("Facts: no difference."), 2);
    }
    let mut table = Table::new().wrapping("FACT").wrapping("BEFORE").wrapping("AFTER");
    let shown = |value: &Option<String>| {
        Line::plain(value.as_deref().filter(|v| !v.is_empty()).unwrap_or("-"))
    };
    for f in facts {
        table.row([Line::plain(&f.fact), shown(&f.before), shown(&f.after)]);
    }
    page.table(&table, 0);
}

fn figures(d: &HistoryDiff, page: &mut Page) {
    page.gap();
    if d.figures.is_empty() {
        return page.line(Line::plain("Figures: none that both have."), 2);
    }
    let cases = d.figures.iter().any(|f| Some(&f.case) != d.figures.first().map(|g| &g.case));
    let table = Table::new().wrapping("FIGURE").right("BEFORE").right("AFTER").right("CHANGE");
    let mut table = table.last_or_below("VERDICT");
    for f in &d.figures {
        let name = if cases { format!("{} ({})", f.metric, f.case) } else { f.metric.clone() };
        let change = f.change.map_or_else(|| "-".into(), |c| format!("{:+.1}%", 100.0 * c));
        table.row([
            Line::plain(name),
            Line::plain(figure(f.before)),
            Line::plain(figure(f.after)),
            Line::plain(change),
            says(f.verdict),
        ]);
    }
    page.table(&table, 0);
    page.gap();
    let single = d.before.len() == 1 && d.after.len() == 1;
    if single {
        let text = "One run against one cannot show what a change did: runs of one host differ from \
                    one another, and by how much is unknown. Make several under two tags, or use \
                    `netwright prove`.";
        page.line(Line::plain(text), 0);
    } else if d.figures.iter().any(|f| f.verdict == FigureVerdict::Undecided) {
        let text = "Undecided figures need more runs; `netwright compare tag:BEFORE tag:AFTER` has the \
                    intervals.";
        page.line(Line::plain(text), 0);
    }
}

fn says(verdict: FigureVerdict) -> Line {
    let (ink, text) = match verdict {
        FigureVerdict::Better => (Ink::Good, "better"),
        FigureVerdict::Worse => (Ink::Bad, "worse"),
        FigureVerdict::NoDifferenceShown => (Ink::Plain, "no significant difference"),
        FigureVerdict::BeyondNoiseWithinRuns => (Ink::Warn, "beyond the noise within the runs"),
        FigureVerdict::WithinNoise => (Ink::Plain, "within the noise"),
        FigureVerdict::Undecided => (Ink::Plain, "undecided"),
    };
    Line::new().ink(ink, text)
}
