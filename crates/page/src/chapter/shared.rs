//! Parts that several kinds of documents share.

use model::prove::Outcome;
use report::TextStyle;

use crate::{
    block::{Cell, Chapter, Table, Text, Tone},
    chart::{Band, MOST_SERIES, Point, Scale, Series, Xy},
    document::{Document, Kind},
    unit::Unit,
};

/// The whole document as the terminal shows it.
pub fn terminal(d: &Document) -> String {
    let style = TextStyle { width: 100, colour: false, verbose: true };
    match &d.kind {
        Kind::Doctor(t) => report::doctor::text(t, style),
        Kind::Inspect(t) => report::inspect::overview(t, style),
        Kind::Rtt(t) => report::measure::rtt(t, style),
        Kind::Stream(t) => report::measure::stream(t, style),
        Kind::Connect(t) => report::measure::connect(t, style),
        Kind::Http(t) => report::measure::http(t, style),
        Kind::Pg(t) => report::measure::pg(t, style),
        Kind::Redis(t) => report::measure::redis(t, style),
        Kind::Explain(t) => report::explain::text(t, style),
        Kind::Passive(t) => report::explain::passive::text(t, style),
        Kind::Prove(t) => report::prove::text(t, style),
        Kind::Fix(t) => report::fix::text(t, style),
        Kind::Compare(t) => report::compare::text(t, style),
    }
}

/// The text with its first letter in upper case.
pub fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |c| c.to_uppercase().chain(chars).collect())
}

/// `1 run`, `3 runs`.
pub fn many(n: usize, noun: &str) -> String {
    let s = if n == 1 { "" } else { "s" };
    format!("{} {noun}{s}", model::units::grouped(n as u64))
}

/// The tone of a verdict.
pub fn tone(outcome: Outcome) -> Tone {
    match outcome {
        Outcome::Better => Tone::Good,
        Outcome::Worse | Outcome::GuardWorse => Tone::Bad,
        Outcome::Mixed | Outcome::Undecided => Tone::Warn,
        Outcome::NoDifferenceShown => Tone::Plain,
    }
}

/// Remarks of a document, under a heading.
pub fn remarks(title: &str, texts: Vec<String>, chapter: &mut Chapter) {
    if !texts.is_empty() {
        chapter.heading(title);
        // A name from elsewhere may have a backquote of its own.
        let text = |text: &String| match text.matches('`').count() % 2 {
            0 => Text::with_code(text),
            _ => Text::plain(text),
        };
        chapter.list(texts.iter().map(text).collect());
    }
}

/// The messages of a list of remarks in the document.
pub fn messages(d: &Document, list: &str) -> Vec<String> {
    (0..d.len(list)).map(|n| d.text(&format!("{list}/{n}/message"))).collect()
}

/// A distribution in the document: its name, and where its quantiles stand.
pub struct Distribution {
    pub name: String,
    pub at: String,
    /// The number of rounds over which each quantile is a median; 1 where it is of all samples.
    pub rounds: f64,
}

/// The named quantiles: the key, the head of its column, the share beyond.
const QUANTILES: [(&str, &str, f64); 6] = [
    ("p50", "p50", 0.5),
    ("p75", "p75", 0.25),
    ("p90", "p90", 0.1),
    ("p99", "p99", 0.01),
    ("p999", "p99.9", 0.001),
    ("p9999", "p99.99", 0.0001),
];

/// Whether enough samples lie beyond a quantile: one, as for the terminal.
fn supported(count: f64, beyond: f64) -> bool {
    count * beyond >= 0.9995
}

/// Distributions on a quantile axis, over a table of their quantiles. `modes`: of a single one.
pub fn distributions(
    d: &Document,
    title: &str,
    all: &[Distribution],
    modes: Vec<Band>,
    chapter: &mut Chapter,
) {
    let count = |one: &Distribution| {
        d.number(&format!("{}/count", one.at)).unwrap_or(0.0) / one.rounds.max(1.0)
    };
    let measured: Vec<&Distribution> = all.iter().filter(|one| count(one) > 0.0).collect();
    let mut table = Table::new(title).words("distribution").figures("samples").figures("min");
    for (_, head, _) in QUANTILES {
        table = table.figures(head);
    }
    table = table.figures("max").figures("mean").figures("SD");
    for one in &measured {
        let cell = |key: &str, unit| d.cell(&format!("{}/{key}", one.at), unit);
        let mut row =
            vec![Cell::text(&one.name), cell("count", Unit::Count), cell("min", Unit::Nanos)];
        row.extend(QUANTILES.iter().map(|(key, _, beyond)| {
            if supported(count(one), *beyond) { cell(key, Unit::Nanos) } else { Cell::none() }
        }));
        row.extend(["max", "mean"].map(|key| cell(key, Unit::Nanos)));
        // One sample has no spread.
        row.push(if count(one) < 2.0 { Cell::none() } else { cell("sd", Unit::Nanos) });
        table.row(row);
    }
    if measured.is_empty() {
        return;
    }
    if measured.iter().all(|one| count(one) < 2.0) {
        // One sample is no distribution to draw.
        return chapter.table(table);
    }
    let series: Vec<Series> = measured.iter().map(|one| curve(d, one, count(one))).collect();
    let ys = || series.iter().take(MOST_SERIES).flat_map(|s| s.points.iter().map(|p| p.y));
    let (low, high) = ys().fold((f64::INFINITY, 0.0f64), |(a, b), y| (a.min(y), b.max(y)));
    let scale = if low > 0.0 && high / low > 8.0 { Scale::Log } else { Scale::Linear };
    let bands = modes.iter().map(|b| b.name.clone()).collect::<Vec<_>>();
    let mut about =
        format!("{title} by quantile; each nine takes equal room, the last point is the maximum");
    if scale == Scale::Log {
        about += "; times are on a logarithmic scale";
    }
    if all.iter().any(|one| one.rounds > 1.0) {
        about += "; each quantile is the median over the rounds";
    }
    if !bands.is_empty() {
        about += "; shaded: the modes, with their share of the samples";
    }
    if measured.len() > MOST_SERIES {
        about += &format!("; the first {MOST_SERIES} of {} are drawn", measured.len());
    }
    chapter.figure(
        Xy {
            about: format!("{about}."),
            x: ("quantile".into(), Scale::Nines, Unit::Share),
            y: (title.to_owned(), scale, Unit::Nanos),
            series,
            bands: modes,
            strips: vec![],
        },
        table,
    );
}

fn curve(d: &Document, one: &Distribution, count: f64) -> Series {
    let value = |key: &str| d.number(&format!("{}/{key}", one.at));
    let point = |x: f64, y: f64| Point { x, y, ends: None };
    let mut points: Vec<Point> = value("min").map(|y| point(0.0, y)).into_iter().collect();
    for (key, _, beyond) in QUANTILES {
        if supported(count, beyond) {
            points.extend(value(key).map(|y| point(-beyond.log10(), y)));
        }
    }
    let last = count.max(1.0).log10().max(points.last().map_or(0.0, |p| p.x));
    points.extend(value("max").map(|y| point(last, y)));
    Series { name: one.name.clone(), points, joined: true }
}

/// An interval of the document as a cell: `36.9 µs to 38.1 µs`.
pub fn interval_cells(d: &Document, at: &str, unit: Unit) -> [Cell; 2] {
    [d.cell(&format!("{at}/low"), unit), d.cell(&format!("{at}/high"), unit)]
}
