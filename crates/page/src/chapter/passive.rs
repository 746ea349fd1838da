//! `explain --port`, `explain --pid`: the exchanges of a running server.

use model::passive::PassiveDocument;

use super::{
    Part, Written,
    shared::{many, messages, remarks},
};
use crate::{
    block::{Cell, Chapter, Table, Text, Tone},
    chart::{Row, Rows},
    document::Document,
    unit::Unit,
};

const PARTS: [(&str, &str); 3] =
    [("path_least_rtt_ns", "path"), ("queueing_ns", "queueing"), ("service_ns", "service")];

pub fn write(d: &Document, typed: &PassiveDocument) -> Written {
    let mut w =
        Written { chapter: Chapter::new("", "A running server, observed"), ..Written::default() };
    let seen = format!(
        "Observed for {}: to cost the server little, its calls in {} of that time.",
        d.shown("/window_ns", Unit::Nanos),
        d.shown("/observed_share", Unit::Share)
    );
    w.chapter.say(Text::plain(seen));
    if typed.classes.is_empty() {
        w.tell(Part::Limits, Text::plain("The observed server had no exchange in the window."));
    }
    for (n, class) in typed.classes.iter().enumerate() {
        one(d, n, &class.process, &mut w);
    }
    remarks("Limits of these figures", messages(d, "/warnings"), &mut w.chapter);
    w
}

fn one(d: &Document, n: usize, process: &str, w: &mut Written) {
    let at = |key: &str| format!("/classes/{n}/{key}");
    let port = d.number(&at("port")).map_or_else(String::new, |p| format!(", port {p:.0}"));
    let title = format!("{process}{port}");
    let exchanges = many(d.number(&at("exchanges")).unwrap_or(0.0) as usize, "exchange");
    let rate = d.shown(&at("exchanges_per_s"), Unit::PerSecond);
    w.chapter.heading(&title);
    let scaled =
        format!("{exchanges} observed; {rate} over the whole time, scaled by the observed part.");
    w.chapter.say(Text::plain(scaled));
    let mut table = Table::new(format!("Times of an exchange of {title}"))
        .words("part")
        .figures("exchanges")
        .figures("mean")
        .figures("p50")
        .figures("p90")
        .figures("p99");
    let mut rows = vec![];
    for (key, name) in PARTS {
        let of = |what: &str| format!("{}/{what}", at(key));
        let mean = d.number(&of("mean"));
        let count = match mean {
            Some(_) => d.cell(&of("count"), Unit::Count),
            None => d.cell(&at(key), Unit::Count),
        };
        let times = ["mean", "p50", "p90", "p99"].map(|k| d.cell(&of(k), Unit::Nanos));
        table.row([Cell::text(name), count].into_iter().chain(times));
        let text = mean.map_or_else(|| "not known".to_owned(), |x| Unit::Nanos.show(x));
        rows.push(Row { label: name.into(), value: mean, ends: None, text, tone: Tone::Plain });
    }
    let largest = rows.iter().filter(|r| r.value.is_some());
    if let Some(r) =
        largest.max_by(|a, b| a.value.unwrap_or(0.0).total_cmp(&b.value.unwrap_or(0.0)))
    {
        let text =
            format!(": {} takes most of an exchange, {} on average; {rate}.", r.label, r.text);
        w.tell(Part::Limits, Text::strong(&title).and(text));
    }
    let chart = Rows {
        about: format!(
            "Mean time of an exchange of {title}, by part; the path by its minimum round trip."
        ),
        unit: Unit::Nanos,
        changes: false,
        rows,
    };
    w.chapter.figure(chart, table);
}
