//! Intervals over time, with migrations and retransmits beneath.

use crate::{
    block::{Cell, Chapter, Table, Text},
    chart::{Point, Scale, Series, Strip, Xy},
    document::{Document, Kind},
    unit::Unit,
};

/// The most runs that have a chart each.
const MOST: usize = 6;

pub fn show(d: &Document, names: &[String], chapter: &mut Chapter) {
    if matches!(d.kind, Kind::Rtt(_) | Kind::Connect(_)) {
        return;
    }
    let with = |n: &usize| d.len(&format!("/runs/{n}/intervals")) > 1;
    let all: Vec<usize> = (0..names.len()).filter(with).collect();
    chapter.heading("Over time");
    if all.is_empty() {
        let text = "No run has more than one interval; a longer --duration has more.";
        chapter.say(Text::plain(text));
    }
    for n in all.iter().take(MOST) {
        one(d, *n, names.get(*n).map_or("", String::as_str), chapter);
    }
    if all.len() > MOST {
        chapter.say(Text::plain(format!("The first {MOST} of {} runs are drawn.", all.len())));
    }
}

fn one(d: &Document, run: usize, name: &str, chapter: &mut Chapter) {
    let stream = matches!(d.kind, Kind::Stream(_));
    let (key, unit, what) = match stream {
        true => ("bits_per_s", Unit::BitsPerSecond, "Throughput"),
        false => ("transactions_per_s", Unit::PerSecond, "Rate"),
    };
    let counts: &[(&str, &str)] = match stream {
        true => &[("migrations", "migrations"), ("retransmits", "retransmits")],
        false => &[("failed", "failed")],
    };
    let of = |name: &str| if name == "all" { String::new() } else { format!(", {name}") };
    let title = format!("{what} by interval{}", of(name));
    let mut table = Table::new(&title)
        .words("interval")
        .figures("from")
        .figures("to")
        .figures(what.to_lowercase());
    for (_, head) in counts {
        table = table.figures(*head);
    }
    table = match stream {
        true => table.figures("congestion window").figures("smoothed round trip"),
        false => table.figures("mean response time"),
    };
    let (mut points, mut strips) = (vec![], vec![]);
    for (_, head) in counts {
        strips.push(Strip { name: (*head).to_owned(), counts: vec![] });
    }
    for n in 0..d.len(&format!("/runs/{run}/intervals")) {
        let at = |key: &str| format!("/runs/{run}/intervals/{n}/{key}");
        let mut row = vec![
            Cell::text((n + 1).to_string()),
            d.cell(&at("start_s"), Unit::Seconds),
            d.cell(&at("end_s"), Unit::Seconds),
            d.cell(&at(key), unit),
        ];
        let Some((from, to)) = d.ends(&at("start_s"), &at("end_s")) else { continue };
        points.extend(d.number(&at(key)).map(|y| Point { x: (from + to) / 2.0, y, ends: None }));
        for ((count, _), strip) in counts.iter().zip(&mut strips) {
            row.push(d.cell(&at(count), Unit::Count));
            strip.counts.extend(d.number(&at(count)).map(|c| (from, to, c)));
        }
        match stream {
            true => {
                row.push(d.cell(&at("cwnd_bytes"), Unit::Bytes));
                row.push(d.cell(&at("rtt_ns"), Unit::Nanos));
            }
            false => row.push(d.cell(&at("latency_mean_ns"), Unit::Nanos)),
        }
        table.row(row);
    }
    strips.retain(|s| s.counts.iter().any(|c| c.2 > 0.0));
    let beneath: Vec<&str> = strips.iter().map(|s| s.name.as_str()).collect();
    let beneath = match beneath.as_slice() {
        [] => "; no interval has migrations, retransmits or failures that are known".to_owned(),
        some => format!("; beneath: {} by interval", some.join(" and ")),
    };
    let chart = Xy {
        about: format!("{title}, over the window{beneath}."),
        x: ("time".into(), Scale::Linear, Unit::Seconds),
        y: (what.into(), Scale::Linear, unit),
        series: vec![Series { name: String::new(), points, joined: true }],
        bands: vec![],
        strips,
    };
    chapter.figure(chart, table.without_empty_columns());
}
