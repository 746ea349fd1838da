//! `prove` as text: the verdict, the levels, the metrics, caveats.

mod factors;
mod held;
mod labels;
mod matrix;
mod moved;
#[cfg(test)]
mod tests;

use model::{
    prove::{Design, LevelResult, MetricVerdict, Outcome, ProveDocument, Verdict},
    units::figure,
};

pub(crate) use self::held::still;
use self::labels::Labels;
use crate::{
    text::{Ink, Line, Page, Table, TextStyle},
    words::{many, one_line},
};

pub fn text(d: &ProveDocument, look: TextStyle) -> String {
    let mut page = Page::new(look);
    head(d, &mut page);
    page.gap();
    let labels = Labels::of(d);
    match d.design {
        Design::Ab => {
            medians(d, &labels, &mut page);
            page.gap();
            metrics(d, &mut page);
        }
        Design::Matrix => matrix::show(d, &mut page),
        Design::Sweep | Design::Factorial | Design::OneAtATime => levels(d, &labels, &mut page),
    }
    best(d, &mut page);
    factors::table(d, &mut page);
    if d.design != Design::Ab && !d.metrics.is_empty() {
        page.gap();
        page.line(Line::plain(format!("{}:", d.verdict_of)), 2);
        metrics(d, &mut page);
    }
    moved::show(d, &labels, look.verbose, &mut page);
    page.caveats(d.notes.iter().map(Line::plain));
    page.finish()
}

fn head(d: &ProveDocument, page: &mut Page) {
    let title = Line::new()
        .ink(Ink::Strong, format!("{}: ", d.name))
        .ink(ink(d.verdict.outcome), headline(d))
        .text(detail(&d.verdict).map_or(String::new(), |detail| format!(" · {} {detail}", d.goal)))
        .text(factors::beside(d));
    page.line(title, 2);
    if let Some(limit) = &d.limit {
        let of = share(limit.share, false, false);
        let line = match limit.held {
            true => Line::plain(format!("Within the limit: shown to cost less than {of}.")),
            false => Line::new().ink(Ink::Warn, format!("Not shown to cost less than {of}.")),
        };
        page.line(line, 2);
    }
    let blocks = many(d.verdict.blocks, "block");
    let runs =
        format!("{blocks} in random mirrored order, {}; {}.", many(d.runs.len(), "run"), d.ended);
    page.line(Line::plain(runs), 2);
    page.line(Line::plain(format!("Each run: {}", one_line(&d.workload))), 2);
    still(d.frozen_host.as_ref(), page);
}

/// The verdict in words, with the guard that is worse.
pub fn headline(d: &ProveDocument) -> String {
    let worse = |m: &&MetricVerdict| m.guard && m.verdict.outcome == Outcome::Worse;
    let worse: Vec<&str> = d.metrics.iter().filter(worse).map(|m| m.metric.as_str()).collect();
    let several = matches!(d.design, Design::Factorial | Design::OneAtATime);
    match (d.verdict.outcome, worse.as_slice()) {
        (Outcome::GuardWorse, [_, ..]) => format!("not better: worse in {}", worse.join(", ")),
        (Outcome::NoDifferenceShown, _) if first_is_best(d) => {
            "no other level is better than the first".into()
        }
        (Outcome::Better | Outcome::Worse, _) if several && !d.verdict_of.is_empty() => {
            format!("{}: {}", says(&d.verdict), d.verdict_of)
        }
        _ => says(&d.verdict),
    }
}

/// Whether the best level is the first one, which the others would have to beat.
fn first_is_best(d: &ProveDocument) -> bool {
    let first = d.levels.first().map(|l| &l.level);
    d.best.as_ref().is_some_and(|b| Some(&b.level) == first)
}

/// What a verdict says in words.
pub fn says(v: &Verdict) -> String {
    match v.outcome {
        Outcome::Better => "better".into(),
        Outcome::Worse => "worse".into(),
        Outcome::Mixed => "mixed: one goal better, another worse".into(),
        Outcome::GuardWorse => {
            "not better: a guard metric is worse, or not shown within its limit".into()
        }
        Outcome::NoDifferenceShown => match farther(v) {
            Some(farther) => {
                let beyond = share(farther, v.difference, false);
                format!("no significant difference (ruled out beyond {beyond})")
            }
            None => "no significant difference".into(),
        },
        Outcome::Undecided if v.low.is_some() => "undecided: more blocks are needed".into(),
        Outcome::Undecided if v.blocks == 0 => "undecided: no block is complete yet".into(),
        Outcome::Undecided => "undecided: too few blocks".into(),
    }
}

/// The interval's farther end.
fn farther(v: &Verdict) -> Option<f64> {
    Some(v.low?.abs().max(v.high?.abs()))
}

pub(crate) fn ink(outcome: Outcome) -> Ink {
    match outcome {
        Outcome::Better => Ink::Good,
        Outcome::Worse | Outcome::GuardWorse => Ink::Bad,
        Outcome::Mixed | Outcome::Undecided => Ink::Warn,
        Outcome::NoDifferenceShown => Ink::Plain,
    }
}

/// `+5.1% (95% CI +4.8% to +5.4%), p 0.004`; `None` without a comparison.
fn detail(v: &Verdict) -> Option<String> {
    Some(format!("{}, p {}", effect(v), chance(v.effect.and(v.p)?)))
}

/// As [`change`], with the interval's level: `+5.1% (95% CI +4.8% to +5.4%)`.
pub fn effect(v: &Verdict) -> String {
    change(v).replacen('(', "(95% CI ", 1)
}

/// `+5.1% (+4.8% to +5.4%)`, or `-` without a comparison; the column's head has the confidence
/// level.
pub fn change(v: &Verdict) -> String {
    let Some(effect) = v.effect.map(|e| share(e, v.difference, true)) else { return "-".into() };
    match (v.low, v.high) {
        (Some(low), Some(high)) => format!(
            "{effect} ({} to {})",
            share(low, v.difference, true),
            share(high, v.difference, true)
        ),
        _ => effect,
    }
}

pub(crate) fn share(x: f64, difference: bool, sign: bool) -> String {
    match (difference, sign) {
        (true, true) => format!("{x:+.3}"),
        (true, false) => format!("{x:.3}"),
        (false, true) => format!("{:+.1}%", 100.0 * x),
        (false, false) => format!("{:.1}%", 100.0 * x),
    }
}

pub(crate) fn chance(p: f64) -> String {
    match p {
        p if p < 0.001 => "< 0.001".into(),
        p if p > 0.999 => "1".into(),
        p => format!("{p:.3}"),
    }
}

fn medians(d: &ProveDocument, labels: &Labels<'_>, page: &mut Page) {
    let names = d.metrics.iter().map(|m| &m.metric);
    let mut table = names.clone().fold(Table::new().left("LEVEL"), |t, n| t.right(n)).right("RUNS");
    for level in &d.levels {
        let mut row = vec![Line::plain(labels.label(&level.level))];
        row.extend(names.clone().map(|n| middle(level, n)));
        row.push(Line::plain(level.runs));
        table.row(row);
    }
    page.table(&table, 0);
    labels.legend(page);
}

fn middle(level: &LevelResult, metric: &str) -> Line {
    level.medians.get(metric).map_or(Line::plain("-"), |m| Line::plain(figure(*m)))
}

fn metrics(d: &ProveDocument, page: &mut Page) {
    let mut table = Table::new().left("METRIC").right("CHANGE (95% CI)").right("P").left("VERDICT");
    for m in &d.metrics {
        let role = if m.guard { " (guard)" } else { "" };
        table.row([
            Line::plain(format!("{}{role}", m.metric)),
            Line::plain(change(&m.verdict)),
            Line::plain(m.verdict.p.map_or("-".into(), chance)),
            Line::new().ink(ink(m.verdict.outcome), says(&m.verdict)),
        ]);
    }
    page.table(&table, 0);
}

fn levels(d: &ProveDocument, labels: &Labels<'_>, page: &mut Page) {
    let metric = goal(d);
    let most =
        d.levels.iter().filter_map(|l| l.medians.get(&metric)).fold(0.0f64, |a, b| a.max(*b));
    let mut table = Table::new()
        .left("LEVEL")
        .right(&metric)
        .left("")
        .right("VS FIRST (95% CI)")
        .left("VS BEST");
    // Before the first block there is no comparison.
    let judged = d.levels.iter().any(|l| l.against_best.is_some());
    let alone = if judged { "the best" } else { "-" };
    for level in &d.levels {
        let at = level.medians.get(&metric).copied().unwrap_or(0.0);
        let bar = if most > 0.0 { (20.0 * at.max(0.0) / most).round() as usize } else { 0 };
        let against = |v: &Option<Verdict>, none: &str| {
            v.as_ref().map_or(Line::plain(none), |v| Line::plain(change(v)))
        };
        let best = level.against_best.as_ref().map_or(Line::plain(alone), |v| {
            Line::new().ink(
                ink(v.outcome),
                match v.outcome {
                    Outcome::Worse => {
                        let by = v.effect.map(|e| share(e.abs(), v.difference, false));
                        format!("{} worse", by.unwrap_or_default())
                    }
                    Outcome::Undecided => "undecided".to_owned(),
                    _ => "within the noise".to_owned(),
                },
            )
        });
        table.row([
            Line::plain(labels.label(&level.level)),
            middle(level, &metric),
            Line::plain("#".repeat(bar)),
            against(&level.against_first, "-"),
            best,
        ]);
    }
    page.table(&table, 0);
    labels.legend(page);
}

/// The goal's name: verdicts of levels are about the first goal.
fn goal(d: &ProveDocument) -> String {
    d.goal.clone()
}

fn best(d: &ProveDocument, page: &mut Page) {
    let Some(best) = &d.best else { return };
    page.gap();
    let line = Line::new().text("Best: ").ink(Ink::Strong, &best.level);
    let undecided =
        |l: &&LevelResult| l.against_best.as_ref().is_some_and(|v| v.outcome == Outcome::Undecided);
    let line = match best.within_noise.len() {
        1 => match d.levels.iter().filter(undecided).count() {
            0 => line.text(", better than every other."),
            n => line.text(format!(" by its median; {n} of {} are undecided.", d.levels.len())),
        },
        n => line.text(format!(
            ". {} of {} levels are within its noise, the {} of them: {}.",
            n,
            d.levels.len(),
            if best.within_noise.iter().all(|l| l.trim().parse::<f64>().is_ok()) {
                "smallest"
            } else {
                "first"
            },
            best.smallest_within_noise
        )),
    };
    page.line(line, 2);
    margin(d, page);
}

/// How far the best is ahead of the next.
fn margin(d: &ProveDocument, page: &mut Page) {
    let behind = |l: &LevelResult| l.against_best.as_ref()?.effect.map(f64::abs);
    let each = d.levels.iter().filter_map(|l| Some((behind(l)?, l)));
    let Some((_, next)) = each.min_by(|a, b| a.0.total_cmp(&b.0)) else { return };
    let Some(v) = &next.against_best else { return };
    page.line(Line::plain(format!("Next best: {}, {}.", next.level, effect(v))), 2);
}
