//! `explain`: what a response time is made of, and what other paths and loads would give.

use std::net::IpAddr;

use model::explain::{Bound, ExplainDocument, Prediction};

use super::{
    Part, Written,
    shared::{Distribution, distributions, many, messages, remarks},
};
use crate::{
    block::{Cell, Chapter, Table, Text, Tone},
    chart::{Point, Row, Rows, Scale, Series, Xy},
    document::Document,
    unit::{NONE, Unit},
};

pub fn write(d: &Document, typed: &ExplainDocument) -> Written {
    let title = format!("Response time of {}", typed.target);
    let mut w = Written { chapter: Chapter::new("", title), ..Written::default() };
    let clients = many(typed.clients as usize, "client");
    let here = typed.levels.iter().position(|l| l.clients == typed.clients);
    let rate = here.map(|n| {
        let rate = d.shown(&format!("/levels/{n}/per_s"), Unit::PerSecond);
        format!("{rate} on this path. ")
    });
    let lead = Text::strong(format!("{} with {clients}: ", typed.target));
    w.tell(Part::Limits, lead.and(rate.unwrap_or_default()).also(answer(d, typed, 1)));
    if let Some(text) = elsewhere(d, typed) {
        w.tell(Part::Limits, text);
    }
    let chapter = &mut w.chapter;
    chapter.say(answer(d, typed, usize::MAX));
    let how = format!(
        "{} of rounds, workload and network alone, {} each; {clients}; responder {}.",
        many(typed.rounds as usize, "pair"),
        d.shown("/round_ns", Unit::Nanos),
        typed.responder
    );
    chapter.say(Text::plain(how));
    breakdown(d, typed, chapter);
    response_times(d, chapter);
    predictions(d, typed, chapter);
    demands(d, typed, chapter);
    what_if(d, typed, chapter);
    let mut limits = messages(d, "/warnings");
    limits.extend(typed.left_out.iter().map(|(why, n)| {
        format!("{} failed and was measured again: {why}", many(*n as usize, "round"))
    }));
    if typed.interrupted {
        limits.push("ended early: the figures cover the time until then".into());
    }
    remarks("Limits of these figures", limits, chapter);
    w
}

/// The answer in a sentence, with at most `most` reasons where it is inconclusive.
fn answer(d: &Document, typed: &ExplainDocument, most: usize) -> Text {
    let measured = d.shown("/sum/measured_ns", Unit::Nanos);
    if !typed.sum.conclusive {
        let mut all = messages(d, "/sum/disturbed");
        let more = all.len().saturating_sub(most);
        all.truncate(most);
        let more =
            if more > 0 { format!(", and {} more", many(more, "reason")) } else { String::new() };
        let why = format!("{}{more}", all.join("; "));
        let why = if why.is_empty() { "the components do not add up".to_owned() } else { why };
        return Text::default()
            .then(Tone::Warn, "Inconclusive")
            .and(format!(", {measured} on average: {why}."));
    }
    let largest = (0..typed.components.len())
        .filter(|n| typed.components.get(*n).is_some_and(|c| c.reported))
        .max_by(|a, b| {
            let ns = |n: &usize| typed.components.get(*n).map_or(0.0, |c| c.ns);
            ns(a).total_cmp(&ns(b))
        });
    let Some(n) = largest else { return Text::plain(format!("{measured} on average.")) };
    let at = |key: &str| format!("/components/{n}/{key}");
    let time = |key: &str| d.shown(&at(key), Unit::Nanos);
    let name = d.text(&at("name"));
    let mut text = Text::strong(format!("The {name} is the largest component: {}", time("ns")));
    text = text.and(format!(
        " (95% interval {} to {}) of a mean of {measured}",
        time("low_ns"),
        time("high_ns")
    ));
    if name == "network" && is_loopback(&typed.target) {
        text = text.and(", which on loopback is the kernel's time for sending and receiving");
    }
    if let Some(place) = &typed.limiting {
        let knee = d.number("/knee_clients").map(|k| format!(" from about {k:.1} clients on"));
        let knee = knee.unwrap_or_default();
        text = text.and(format!("; by the model the {place} limits throughput{knee}"));
    }
    text.and(".")
}

/// Whether the target is reached without a wire: a Unix socket, or an address of loopback.
fn is_loopback(target: &str) -> bool {
    let rest = target.split_once("://").map_or(target, |(_, rest)| rest);
    let authority = rest.split('/').next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let host = match host.strip_prefix('[').and_then(|h| h.split_once(']')) {
        Some((v6, _)) => v6,
        None => host.split(':').next().unwrap_or_default(),
    };
    host == "localhost"
        || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
        || (host.is_empty() && rest.starts_with('/'))
}

/// What the first other path would give with the fewest clients, where one was predicted.
fn elsewhere(d: &Document, typed: &ExplainDocument) -> Option<Text> {
    let (n, p) = typed.predictions.iter().enumerate().find(|(_, p)| p.path != "this")?;
    let rate = |key: &str| d.shown(&format!("/predictions/{n}/{key}"), Unit::PerSecond);
    let interval = format!("(95% interval {} to {})", rate("low_per_s"), rate("high_per_s"));
    let clients = many(p.clients as usize, "client");
    let path = match p.path.strip_prefix("host=") {
        Some(host) => format!("to {host}"),
        None => p.path.clone(),
    };
    let lead = Text::plain(format!("Predicted over the path {path} with {clients}: "));
    let text = lead.also(Text::strong(rate("predicted_per_s"))).and(format!(" {interval}"));
    Some(text.and(match p.inconclusive {
        true => ". The interval is too wide to rely on: run it longer or on a quieter host.",
        false => ".",
    }))
}

fn breakdown(d: &Document, typed: &ExplainDocument, chapter: &mut Chapter) {
    chapter.heading("What the response time is made of");
    let mut table = Table::new("Components: the mean per transaction, with its 95% interval")
        .words("component")
        .figures("time")
        .figures("from")
        .figures("to")
        .figures("share")
        .words("what it is");
    let mut rows = vec![];
    for (n, c) in typed.components.iter().enumerate() {
        let at = |key: &str| format!("/components/{n}/{key}");
        let time = if c.reported {
            d.cell(&at("ns"), Unit::Nanos)
        } else {
            Cell::text("within noise of 0")
        };
        table.row([
            Cell::text(&c.name),
            time.clone(),
            d.cell(&at("low_ns"), Unit::Nanos),
            d.cell(&at("high_ns"), Unit::Nanos),
            d.cell(&at("share"), Unit::Share),
            Cell::text(&c.about),
        ]);
        let share = c.share.map(|s| format!(", {}", Unit::Share.show(s))).unwrap_or_default();
        rows.push(Row {
            label: c.name.clone(),
            value: c.reported.then_some(c.ns),
            ends: Some((c.low_ns, c.high_ns)),
            text: format!("{}{share}", time.text),
            tone: Tone::Plain,
        });
    }
    let chart = Rows {
        about: "Components of the time between two transactions of a client, with 95% intervals."
            .into(),
        unit: Unit::Nanos,
        changes: false,
        rows,
    };
    chapter.figure(chart, table);
    let text = format!(
        "The components add up to {}; {} was measured from one request to the next ({}; {} is allowed).",
        d.shown("/sum/sum_ns", Unit::Nanos),
        d.shown("/sum/measured_ns", Unit::Nanos),
        d.shown("/sum/error", Unit::Change),
        d.shown("/sum/allowed", Unit::Share)
    );
    chapter.say(Text::plain(text));
}

fn response_times(d: &Document, chapter: &mut Chapter) {
    chapter.heading("Distribution");
    let rounds = d.number("/rounds").unwrap_or(1.0);
    let one = |name: &str, key: &str| Distribution {
        name: name.into(),
        at: format!("/quantiles/{key}"),
        rounds,
    };
    let all = [one("workload", "workload_ns"), one("network alone", "network_ns")];
    distributions(d, "Response time", &all, vec![], chapter);
}

fn predictions(d: &Document, typed: &ExplainDocument, chapter: &mut Chapter) {
    chapter.heading("Predicted against measured");
    let mut measured = Table::new("Measured on this path")
        .words("clients")
        .figures("rate")
        .figures("slowest round")
        .figures("fastest round");
    let mut points = vec![];
    for (n, level) in typed.levels.iter().enumerate() {
        let at = |key: &str| format!("/levels/{n}/{key}");
        measured.row([
            d.cell(&at("clients"), Unit::Count),
            d.cell(&at("per_s"), Unit::PerSecond),
            d.cell(&at("low_per_s"), Unit::PerSecond),
            d.cell(&at("high_per_s"), Unit::PerSecond),
        ]);
        let ends = Some((level.low_per_s, level.high_per_s));
        points.push(Point { x: level.clients.into(), y: level.per_s, ends });
    }
    let mut table = Table::new("Predictions, with their 95% intervals")
        .words("path")
        .figures("clients")
        .figures("predicted")
        .figures("from")
        .figures("to")
        .figures("naive")
        .figures("measured")
        .figures("error")
        .words("limit")
        .words("");
    let mut series = vec![Series { name: "measured".into(), points, joined: false }];
    for (n, p) in typed.predictions.iter().enumerate() {
        let at = |key: &str| format!("/predictions/{n}/{key}");
        table.row([
            Cell::text(&p.path),
            d.cell(&at("clients"), Unit::Count),
            d.cell(&at("predicted_per_s"), Unit::PerSecond),
            d.cell(&at("low_per_s"), Unit::PerSecond),
            d.cell(&at("high_per_s"), Unit::PerSecond),
            d.cell(&at("naive_per_s"), Unit::PerSecond),
            d.cell(&at("measured_per_s"), Unit::PerSecond),
            d.cell(&at("error"), Unit::Change),
            Cell::text(p.limiting.as_deref().unwrap_or(NONE)),
            if p.inconclusive { Cell::toned(Tone::Warn, "inconclusive") } else { Cell::none() },
        ]);
        let name = format!("predicted, {}", if p.path == "this" { "this path" } else { &p.path });
        let ends = Some((p.low_per_s, p.high_per_s));
        let point = Point { x: p.clients.into(), y: p.predicted_per_s, ends };
        match series.iter_mut().find(|s| s.name == name) {
            Some(s) => s.points.push(point),
            None => series.push(Series { name, points: vec![point], joined: true }),
        }
    }
    if typed.predictions.is_empty() && typed.levels.is_empty() {
        return chapter.say(Text::plain("The document has no predictions."));
    }
    series.iter_mut().for_each(|s| s.points.sort_by(|a, b| a.x.total_cmp(&b.x)));
    let loads = series.iter().flat_map(|s| &s.points).map(|p| p.x.to_bits());
    let several = loads.collect::<std::collections::BTreeSet<_>>().len() > 1;
    let table = table.without_empty_columns();
    match several {
        false => chapter.table(table),
        true => {
            let chart = Xy {
                about: "Transactions per second of all clients: points are measured with the \
                        slowest and fastest round, lines are predicted with their 95% interval."
                    .into(),
                x: ("clients".into(), Scale::Log, Unit::Count),
                y: ("Rate".into(), Scale::Linear, Unit::PerSecond),
                series,
                bands: vec![],
                strips: vec![],
            };
            chapter.figure(chart, table);
        }
    }
    chapter.table(measured);
    let fitted =
        |p: &Prediction| p.path == "this" && typed.levels.iter().any(|l| l.clients == p.clients);
    if typed.predictions.iter().any(fitted) {
        chapter.say(Text::plain(
            "On this path the model is fitted to what was measured, so that it meets these points; \
             other paths and other numbers of clients are predictions.",
        ));
    }
    verified(d, typed, chapter);
}

fn verified(d: &Document, typed: &ExplainDocument, chapter: &mut Chapter) {
    let text = match &typed.verified {
        None => "This run did not measure what it predicts; `--verify` does.".to_owned(),
        Some(v) if v.drift.is_some() => format!(
            "Points of the curve did not repeat when they were measured again ({}): the errors are \
             not the model's.",
            d.shown("/verified/drift", Unit::Change)
        ),
        Some(v) => format!(
            "Verified by {} beside the curve: median error {}, worst error {}.",
            many(v.cells as usize, "measurement"),
            d.shown("/verified/median_error", Unit::Share),
            d.shown("/verified/worst_error", Unit::Share)
        ),
    };
    chapter.say(Text::with_code(&text));
}

fn demands(d: &Document, typed: &ExplainDocument, chapter: &mut Chapter) {
    let mut table = Table::new("Demand of a transaction on each place: the input of the model")
        .words("place")
        .figures("demand")
        .figures("at once")
        .words("source");
    for (n, m) in typed.demands.iter().enumerate() {
        let at = |key: &str| format!("/demands/{n}/{key}");
        table.row([
            Cell::text(&m.place),
            d.cell(&at("ns"), Unit::Nanos),
            d.cell(&at("servers"), Unit::Count),
            Cell::text(&m.source),
        ]);
    }
    chapter.table(table);
    let mut paths = Table::new("What each other path adds to a transaction")
        .words("path")
        .figures("network")
        .figures("idle server")
        .figures("reconnecting")
        .figures("CPU of this host");
    for (n, p) in typed.other_paths.iter().enumerate() {
        let at = |key: &str| d.cell(&format!("/other_paths/{n}/{key}"), Unit::Nanos);
        paths.row([
            Cell::text(&p.path),
            at("added_ns"),
            at("idle_ns"),
            at("reconnecting_ns"),
            at("cpu_ns"),
        ]);
    }
    chapter.table(paths);
}

fn what_if(d: &Document, typed: &ExplainDocument, chapter: &mut Chapter) {
    let mut table = Table::new(format!("What if, with {}", many(typed.clients as usize, "client")))
        .words("change")
        .figures("rate")
        .figures("factor")
        .words("");
    for (n, w) in typed.what_if.iter().enumerate() {
        let at = |key: &str| format!("/what_if/{n}/{key}");
        let bound = match w.bound {
            None => "",
            Some(Bound::AtMost) => "at most",
            Some(Bound::AtLeast) => "at least",
        };
        let remark = if w.inconclusive {
            Cell::toned(Tone::Warn, "inconclusive")
        } else {
            Cell::text(bound)
        };
        table.row([
            Cell::text(&w.change),
            d.cell(&at("predicted_per_s"), Unit::PerSecond),
            d.cell(&at("factor"), Unit::Plain),
            remark,
        ]);
    }
    chapter.table(table);
}

#[cfg(test)]
mod tests {
    #[test]
    fn loopback_is_an_address_or_a_socket_and_no_beginning_of_a_name() {
        for target in [
            "redis://127.0.0.1:6379",
            "pg://postgres@localhost/db",
            "http://[::1]:8080/path",
            "rtt://127.0.0.5:7471",
            "redis:///run/redis.sock",
        ] {
            assert!(super::is_loopback(target), "{target}");
        }
        for target in ["redis://127.db.example", "http://localhost.example/", "pg://[fd00::1]/db"] {
            assert!(!super::is_loopback(target), "{target}");
        }
    }
}
