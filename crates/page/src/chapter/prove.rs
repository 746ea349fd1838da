//! `prove`: whether a change helped, by how much, and how sure that is.

use model::prove::{Design, LevelResult, ProveDocument, Verdict};

use super::{
    Part, Written,
    shared::{capital, many, remarks, tone},
};
use crate::{
    block::{Cell, Chapter, Table, Text, Tone},
    chart::{MOST_SERIES, Point, Row, Rows, Scale, Series, Xy},
    document::{Document, key},
    unit::Unit,
};

pub fn write(d: &Document, typed: &ProveDocument) -> Written {
    let mut w = Written {
        chapter: Chapter::new("", format!("Experiment {}", typed.name)),
        ..Written::default()
    };
    let levels: Vec<&str> = typed.levels.iter().map(|l| l.level.as_str()).collect();
    let compared = match levels.len() {
        0..=6 => levels.join(" → "),
        n => format!("{n} levels, {} first", levels.first().copied().unwrap_or_default()),
    };
    w.tell(Part::Changed, Text::strong(format!("{}: ", typed.name)).and(format!("{compared}.")));
    let answer = Text::default()
        .then(tone(typed.verdict.outcome), report::prove::headline(typed))
        .and(effect(d, typed));
    w.tell(Part::Gained, Text::strong(format!("{}: ", typed.name)).also(answer.clone()));
    if let Some(limit) = limit(typed) {
        w.tell(Part::Gained, Text::strong(format!("{}: ", typed.name)).also(limit.clone()));
        w.chapter.say(limit);
    }
    let chapter = &mut w.chapter;
    chapter.say(answer);
    let how = format!(
        "{} in random mirrored order, {}; {}. Each run: ",
        many(typed.verdict.blocks, "block"),
        many(typed.runs.len(), "run"),
        typed.ended
    );
    chapter.say(Text::plain(how).then(Tone::Code, &typed.workload));
    metrics(d, typed, chapter);
    levels_table(d, typed, chapter);
    runs(d, typed, chapter);
    effects(d, typed, chapter);
    moved(d, typed, chapter);
    held(typed, chapter);
    remarks(
        "Limits of these figures",
        typed.notes.iter().map(ToString::to_string).collect(),
        chapter,
    );
    w
}

/// Whether the change is shown to cost less than the limit that was asked for.
fn limit(typed: &ProveDocument) -> Option<Text> {
    let limit = typed.limit?;
    let of = format!("cost less than {:.1}%.", 100.0 * limit.share);
    Some(match limit.held {
        true => Text::default().then(Tone::Good, format!("Shown to {of}")),
        false => Text::default().then(Tone::Warn, format!("Not shown to {of}")),
    })
}

fn effect(d: &Document, typed: &ProveDocument) -> String {
    let unit = unit(&typed.verdict);
    let Some(x) = typed.verdict.effect else { return ".".into() };
    let ci = d.ends("/verdict/low", "/verdict/high");
    let ci = ci.map(|(low, high)| format!(" (95% CI {} to {})", unit.show(low), unit.show(high)));
    let p = typed.verdict.p.map(|p| match Unit::Probability.show(p) {
        p if p.starts_with('<') => format!(", p {p}"),
        p => format!(", p = {p}"),
    });
    format!(
        "; {} {}{}{}.",
        spoken(&typed.goal),
        unit.show(x),
        ci.unwrap_or_default(),
        p.unwrap_or_default()
    )
}

/// The unit of a verdict's effect.
pub fn unit(v: &Verdict) -> Unit {
    if v.difference { Unit::Difference } else { Unit::Change }
}

/// The unit that a metric's name ends with.
pub fn unit_of(metric: &str) -> Unit {
    match metric {
        m if m.ends_with("_ns") => Unit::Nanos,
        m if m.ends_with("bits_per_s") => Unit::BitsPerSecond,
        m if m.ends_with("_per_s") => Unit::PerSecond,
        _ => Unit::Plain,
    }
}

/// A metric's name in a sentence; tables have the name of the JSON.
pub fn spoken(metric: &str) -> String {
    let metric = metric.strip_suffix("_ns").unwrap_or(metric);
    match metric.strip_suffix("_per_s") {
        Some("bits") => "throughput".into(),
        Some(counted) => format!("{} per second", counted.replace('_', " ")),
        None => metric.replace('_', " "),
    }
}

/// The cells of a verdict in the document: effect, interval, p, words.
pub fn verdict_cells(d: &Document, at: &str, v: &Verdict) -> [Cell; 5] {
    let unit = unit(v);
    [
        d.cell(&format!("{at}/effect"), unit),
        d.cell(&format!("{at}/low"), unit),
        d.cell(&format!("{at}/high"), unit),
        d.cell(&format!("{at}/p"), Unit::Probability),
        Cell::toned(tone(v.outcome), report::prove::says(v)),
    ]
}

/// Heads of the columns of [`verdict_cells`].
pub fn verdict_heads(table: Table) -> Table {
    table.figures("change").figures("from").figures("to").figures("p").words("verdict")
}

/// A row of a chart of changes.
pub fn change_row(label: &str, v: &Verdict) -> Option<Row> {
    let effect = v.effect?;
    Some(Row {
        label: label.to_owned(),
        value: Some(effect),
        ends: v.low.zip(v.high),
        text: unit(v).show(effect),
        tone: tone(v.outcome),
    })
}

fn metrics(d: &Document, typed: &ProveDocument, chapter: &mut Chapter) {
    if typed.metrics.is_empty() {
        return;
    }
    chapter.heading("Change of each metric");
    let title = match typed.verdict_of.as_str() {
        "" => "Change of each metric, with its 95% interval".to_owned(),
        of => format!("Change of each metric, with its 95% interval: {of}"),
    };
    let mut table = verdict_heads(Table::new(&title).words("metric").words("role"));
    let mut rows = vec![];
    for (n, m) in typed.metrics.iter().enumerate() {
        let role = if m.guard { "guard" } else { "goal" };
        let cells = verdict_cells(d, &format!("/metrics/{n}/verdict"), &m.verdict);
        table.row([Cell::text(&m.metric), Cell::text(role)].into_iter().chain(cells));
        rows.extend(change_row(&m.metric, &m.verdict).filter(|_| !m.verdict.difference));
    }
    changes(
        format!("{title}. Green is shown to be better, red to be worse."),
        rows,
        table,
        chapter,
    );
}

/// A chart of changes over its table, or the table alone where nothing can be drawn.
pub fn changes(about: String, rows: Vec<Row>, table: Table, chapter: &mut Chapter) {
    match rows.is_empty() {
        true => chapter.table(table),
        false => chapter.figure(Rows { about, unit: Unit::Change, changes: true, rows }, table),
    }
}

fn levels_table(d: &Document, typed: &ProveDocument, chapter: &mut Chapter) {
    chapter.heading("Levels");
    let mut names: Vec<&String> = typed.levels.iter().flat_map(|l| l.medians.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let table = Table::new("Median of each level over its runs").words("level").figures("runs");
    let table = names.iter().fold(table, |t, n| t.figures(n.as_str()));
    let mut table = verdict_heads(table);
    let mut rows = vec![];
    for (n, level) in typed.levels.iter().enumerate() {
        let mut row =
            vec![Cell::text(&level.level), d.cell(&format!("/levels/{n}/runs"), Unit::Count)];
        row.extend(
            names.iter().map(|m| d.cell(&format!("/levels/{n}/medians/{}", key(m)), unit_of(m))),
        );
        match &level.against_first {
            Some(v) => row.extend(verdict_cells(d, &format!("/levels/{n}/against_first"), v)),
            None => row.extend([(); 5].map(|()| Cell::none())),
        }
        table.row(row);
        rows.extend(level.against_first.as_ref().and_then(|v| change_row(&level.level, v)));
    }
    let several = typed.design != Design::Ab && rows.len() > 1;
    let about =
        format!("Change of {} against the first level, with 95% intervals.", spoken(&typed.goal));
    changes(about, if several { rows } else { vec![] }, table.without_empty_columns(), chapter);
    if let Some(best) = &typed.best {
        let within = best.within_noise.join(", ");
        let text =
            format!("; within its noise: {within}; recommended: {}.", best.smallest_within_noise);
        chapter.say(Text::plain("Best level: ").then(Tone::Strong, &best.level).and(text));
    }
}

/// The figure of each run, in the order of the blocks.
fn runs(d: &Document, typed: &ProveDocument, chapter: &mut Chapter) {
    let goal = typed.goal.as_str();
    let unit = unit_of(goal);
    let mut table = Table::new(format!("{goal} of each run"))
        .words("run")
        .figures("block")
        .words("level")
        .figures(goal)
        .words("");
    let mut series: Vec<Series> = typed
        .levels
        .iter()
        .map(|l: &LevelResult| Series { name: l.level.clone(), points: vec![], joined: false })
        .collect();
    let all = series.len().max(1) as f64;
    for (n, run) in typed.runs.iter().enumerate() {
        let at = format!("/runs/{n}/figures/{}", key(goal));
        let level = typed.levels.get(run.level).map_or("", |l| &l.level);
        let discarded =
            run.discarded.as_ref().map_or_else(String::new, |why| format!("repeated: {why}"));
        table.row([
            Cell::text((n + 1).to_string()),
            d.cell(&format!("/runs/{n}/block"), Unit::Count),
            Cell::text(level),
            d.cell(&at, unit),
            Cell::text(discarded),
        ]);
        let place = run.block as f64 + 0.8 * (run.level as f64 + 0.5) / all;
        let point = d.number(&at).filter(|_| run.discarded.is_none());
        if let (Some(s), Some(y)) = (series.get_mut(run.level), point) {
            s.points.push(Point { x: place, y, ends: None });
        }
    }
    if series.iter().all(|s| s.points.is_empty()) {
        return;
    }
    chapter.heading("Every run");
    let more = match series.len() > MOST_SERIES {
        true => format!("; the first {MOST_SERIES} of {} levels are drawn", series.len()),
        false => String::new(),
    };
    let said = capital(&spoken(goal));
    let chart = Xy {
        about: format!("{said} of each run by block{more}. Repeated runs are left out."),
        x: ("block".into(), Scale::Linear, Unit::Count),
        y: (said, Scale::Linear, unit),
        series,
        bands: vec![],
        strips: vec![],
    };
    chapter.figure(chart, table);
}

fn effects(d: &Document, typed: &ProveDocument, chapter: &mut Chapter) {
    let title = format!("Effect of each factor on {}", typed.goal);
    let mut table = verdict_heads(Table::new(&title).words("factor").words("level"));
    let mut rows = vec![];
    for (n, e) in typed.effects.iter().enumerate() {
        let cells = verdict_cells(d, &format!("/effects/{n}/verdict"), &e.verdict);
        table.row([Cell::text(&e.factor), Cell::text(&e.level)].into_iter().chain(cells));
        rows.extend(change_row(&format!("{} {}", e.factor, e.level), &e.verdict));
    }
    if !table.rows.is_empty() {
        chapter.heading("Factors");
        changes(format!("{title}, with 95% intervals."), rows, table, chapter);
    }
}

/// Kernel counters that changed together with the level.
fn moved(d: &Document, typed: &ProveDocument, chapter: &mut Chapter) {
    let e = &typed.evidence;
    let title = format!("Kernel counters that differ between the levels, per {}", e.per);
    let mut table = Table::new(title)
        .words("counter")
        .figures(&e.first)
        .figures(&e.second)
        .figures("change")
        .figures("from")
        .figures("to")
        .figures("p");
    for (n, c) in e.moved.iter().enumerate() {
        let at = |key: &str| format!("/evidence/moved/{n}/{key}");
        let unit = if c.difference { Unit::Difference } else { Unit::Change };
        table.row([
            Cell::text(&c.counter),
            d.cell(&at("first"), Unit::Plain),
            d.cell(&at("second"), Unit::Plain),
            d.cell(&at("effect"), unit),
            d.cell(&at("low"), unit),
            d.cell(&at("high"), unit),
            d.cell(&at("p"), Unit::Probability),
        ]);
    }
    chapter.heading("Evidence of the kernel");
    if table.rows.is_empty() {
        let why = e.why_not.clone().unwrap_or_else(|| {
            format!(
                "None of {} is shown to differ between the levels",
                many(e.judged, "compared counter")
            )
        });
        chapter.say(Text::plain(format!("{why}.")));
    }
    chapter.table(table);
}

fn held(typed: &ProveDocument, chapter: &mut Chapter) {
    let Some(frozen) = &typed.frozen_host else { return };
    let mut table =
        Table::new("Settings held meanwhile").words("setting").words("before").words("held at");
    for h in &frozen.held {
        table.row([&h.knob, &h.old, &h.new].map(Cell::text));
    }
    chapter.table(table);
    let not = frozen.not_frozen.iter().map(|n| format!("{}: {}", n.knob, n.why)).collect();
    remarks("Not held", not, chapter);
}
