//! `compare`: what changed between two groups of runs that existed already.

use model::{
    compare::{CompareDocument, Comparison, RunOrder},
    prove::Direction,
};

use super::{
    Part, Written,
    prove::{changes, spoken, unit_of},
    shared::{capital, many, remarks, tone},
};
use crate::{
    block::{Cell, Chapter, Table, Text, Tone},
    chart::{Point, Row, Scale, Series, Xy},
    document::Document,
    unit::{NONE, Unit},
};

/// The most metrics that have a chart of their runs.
const MOST: usize = 4;

pub fn write(d: &Document, typed: &CompareDocument) -> Written {
    let (before, after) = match (&typed.before, &typed.after) {
        (Some(b), Some(a)) => (b.name.clone(), a.name.clone()),
        _ => (String::new(), String::new()),
    };
    let title =
        if before.is_empty() { "Noise floor".into() } else { format!("{before} → {after}") };
    let mut w = Written { chapter: Chapter::new("", title), ..Written::default() };
    if typed.before.is_some() {
        let runs = |at: &str| many(d.number(at).unwrap_or(0.0) as usize, "run");
        let text = format!(": {} and {}.", runs("/before/runs"), runs("/after/runs"));
        w.tell(Part::Measured, Text::strong(format!("{before} → {after}")).and(text));
        let answer = Text::default()
            .then(typed.outcome.map_or(Tone::Plain, tone), report::compare::headline(typed))
            .and(telling(typed));
        w.tell(Part::Gained, Text::strong(format!("{before} → {after}: ")).also(answer.clone()));
        if let Some(limit) = typed.limit {
            let of = format!("to be worse by less than {:.1}%.", 100.0 * limit);
            let text = match typed.passed {
                true => Text::default().then(Tone::Good, format!("Each metric is shown {of}")),
                false => Text::default().then(Tone::Warn, format!("Not each metric is shown {of}")),
            };
            w.tell(Part::Gained, text.clone());
            w.chapter.say(text);
        }
        w.chapter.say(answer);
        let order = match typed.order {
            RunOrder::Unknown => "The files do not say when each run was made.",
            RunOrder::OneAfterTheOther => {
                "All runs of one group were made before those of the other."
            }
            RunOrder::Interleaved => "The runs of both groups alternate.",
        };
        w.chapter.say(Text::plain(order));
        metrics(d, typed, &mut w.chapter);
        runs_of_each(typed, &mut w.chapter);
    }
    noise_floor(d, typed, &mut w.chapter);
    remarks(
        "Limits of these figures",
        typed.notes.iter().map(ToString::to_string).collect(),
        &mut w.chapter,
    );
    w
}

/// The metric behind the verdict, with its change.
fn telling(typed: &CompareDocument) -> String {
    let Some(c) = report::compare::telling(typed) else { return ".".into() };
    let unit = unit(c);
    let ci =
        c.low.zip(c.high).map(|(l, h)| format!(" (95% CI {} to {})", unit.show(l), unit.show(h)));
    format!("; {} {}{}.", spoken(&c.metric), unit.show(c.effect), ci.unwrap_or_default())
}

fn unit(c: &Comparison) -> Unit {
    if c.difference { Unit::Difference } else { Unit::Change }
}

fn name(typed: &CompareDocument, c: &Comparison) -> String {
    let several = typed.comparisons.iter().any(|o| o.case != c.case);
    if several && !c.case.is_empty() {
        format!("{} ({})", c.metric, c.case)
    } else {
        c.metric.clone()
    }
}

/// The same in words, for charts.
fn drawn(typed: &CompareDocument, c: &Comparison) -> String {
    name(typed, c).replacen(&c.metric, &capital(&spoken(&c.metric)), 1)
}

fn metrics(d: &Document, typed: &CompareDocument, chapter: &mut Chapter) {
    chapter.heading("Change of each metric");
    let mut table = Table::new("Median of each group, and the change with its 95% interval")
        .words("metric")
        .words("better is")
        .figures("before")
        .figures("after")
        .figures("change")
        .figures("from")
        .figures("to")
        .figures("p")
        .figures("noise floor")
        .words("verdict");
    let mut rows = vec![];
    for (n, c) in typed.comparisons.iter().enumerate() {
        let at = |key: &str| format!("/comparisons/{n}/{key}");
        let (unit, own) = (unit(c), unit_of(&c.metric));
        let better = match c.direction {
            Direction::HigherIsBetter => "more",
            Direction::LowerIsBetter => "less",
        };
        table.row([
            Cell::text(name(typed, c)),
            Cell::text(better),
            d.cell(&at("before/median"), own),
            d.cell(&at("after/median"), own),
            d.cell(&at("effect"), unit),
            d.cell(&at("low"), unit),
            d.cell(&at("high"), unit),
            d.cell(&at("p"), Unit::Probability),
            d.cell(&at("noise_floor"), unit),
            Cell::toned(tone(c.outcome), report::compare::says(c)),
        ]);
        if !c.difference {
            rows.push(Row {
                label: drawn(typed, c),
                value: Some(c.effect),
                ends: c.low.zip(c.high),
                text: unit.show(c.effect),
                tone: tone(c.outcome),
            });
        }
    }
    let about = "Change from before to after, with 95% intervals. Green is shown to be better, red to be worse.";
    changes(about.into(), rows, table.without_empty_columns(), chapter);
}

/// The figure of every run, in the order of each group.
fn runs_of_each(typed: &CompareDocument, chapter: &mut Chapter) {
    if typed.comparisons.is_empty() {
        return;
    }
    chapter.heading("Every run");
    for (n, c) in typed.comparisons.iter().enumerate().take(MOST) {
        let unit = unit_of(&c.metric);
        let title = format!("{} of each run", name(typed, c));
        let mut table = Table::new(&title).words("run").figures("before").figures("after");
        let groups = [("before", &c.before.figures), ("after", &c.after.figures)];
        for run in 0..c.before.figures.len().max(c.after.figures.len()) {
            let cell = |(group, all): &(&str, &Vec<f64>)| match all.get(run) {
                Some(x) => {
                    Cell::figure(&format!("/comparisons/{n}/{group}/figures/{run}"), *x, unit)
                }
                None => Cell::text(NONE),
            };
            table.row([Cell::text((run + 1).to_string()), cell(&groups[0]), cell(&groups[1])]);
        }
        let point = |(x, y): (usize, &f64)| Point { x: x as f64 + 1.0, y: *y, ends: None };
        let series = groups.map(|(name, all)| Series {
            name: name.into(),
            points: all.iter().enumerate().map(point).collect(),
            joined: false,
        });
        let chart = Xy {
            about: format!("{} of each run, in the order of each group.", drawn(typed, c)),
            x: ("run".into(), Scale::Linear, Unit::Count),
            y: (capital(&spoken(&c.metric)), Scale::Linear, unit),
            series: series.into(),
            bands: vec![],
            strips: vec![],
        };
        chapter.figure(chart, table);
    }
    if typed.comparisons.len() > MOST {
        chapter.say(Text::plain(format!("The runs of the first {MOST} metrics are drawn.")));
    }
}

fn noise_floor(d: &Document, typed: &CompareDocument, chapter: &mut Chapter) {
    let title = "Noise floor: the effect that 19 of 20 comparisons without a change stay below";
    let mut table = Table::new(title)
        .words("metric")
        .figures("median")
        .figures("runs in each group")
        .figures("floor");
    for (n, f) in typed.noise_floor.iter().enumerate() {
        for k in 0..f.floors.len() {
            let at = |key: &str| format!("/noise_floor/{n}/{key}");
            let unit = if f.difference { Unit::Plain } else { Unit::Share };
            table.row([
                Cell::text(&f.metric),
                d.cell(&at("median"), unit_of(&f.metric)),
                d.cell(&at(&format!("floors/{k}/runs")), Unit::Count),
                d.cell(&at(&format!("floors/{k}/effect")), unit),
            ]);
        }
    }
    chapter.table(table);
}
