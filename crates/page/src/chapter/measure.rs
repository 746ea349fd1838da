//! `measure`: distributions, intervals, placement and sweeps of every kind of traffic.

mod over_time;
mod placement;
mod sweep;

use super::{
    Part, Written,
    shared::{Distribution, capital, distributions, interval_cells, many, messages, remarks},
};
use crate::{
    block::{Cell, Chapter, Table, Text, Tone},
    chart::Band,
    document::{Document, Kind},
    unit::Unit,
};

/// Where a kind of measurement has its figures.
struct Form {
    what: &'static str,
    /// Keys of the distributions of a run, and their names.
    distributions: &'static [(&'static str, &'static str)],
    /// The interval of the median of the first of them.
    median: Option<&'static str>,
    /// The key of the rate, with its interval at the same key and `_interval`.
    rate: &'static str,
    unit: Unit,
    /// Keys that tell runs apart, and their names.
    aspects: &'static [(&'static str, &'static str, Unit)],
}

const SERVED: &[(&str, &str)] = &[
    ("latency_ns", "response time"),
    ("latency_from_send_ns", "service latency"),
    ("send_lag_ns", "send lag"),
    ("first_byte_ns", "first byte"),
    ("connect_ns", "connecting"),
    ("tls_handshake_ns", "TLS handshake"),
];

const CLIENTS: &[(&str, &str, Unit)] = &[("clients", "clients", Unit::Count)];

fn form(kind: &Kind) -> Form {
    let served = |what| Form {
        what,
        distributions: SERVED,
        median: Some("latency_p50_interval_ns"),
        rate: "transactions_per_s",
        unit: Unit::PerSecond,
        aspects: CLIENTS,
    };
    match kind {
        Kind::Stream(_) => Form {
            what: "Streams",
            distributions: &[],
            median: None,
            rate: "bits_per_s",
            unit: Unit::BitsPerSecond,
            aspects: &[
                ("direction", "", Unit::Plain),
                ("message_bytes", "message", Unit::Bytes),
                ("flows", "flows", Unit::Count),
            ],
        },
        Kind::Connect(_) => Form {
            what: "Connections",
            distributions: &[
                ("connect_ns", "connecting"),
                ("first_byte_ns", "first byte"),
                ("start_lag_ns", "start lag"),
            ],
            median: None,
            rate: "connections_per_s",
            unit: Unit::PerSecond,
            aspects: &[("flows", "flows", Unit::Count)],
        },
        Kind::Http(_) => served("HTTP requests"),
        Kind::Pg(_) => served("PostgreSQL transactions"),
        Kind::Redis(_) => served("Redis requests"),
        _ => Form {
            what: "Round trips",
            distributions: &[
                ("rtt_ns", "round trip"),
                ("rtt_from_send_ns", "service latency"),
                ("send_lag_ns", "send lag"),
            ],
            median: Some("rtt_p50_interval_ns"),
            rate: "transactions_per_s",
            unit: Unit::PerSecond,
            aspects: &[
                ("request_bytes", "request", Unit::Bytes),
                ("response_bytes", "response", Unit::Bytes),
                ("flows", "flows", Unit::Count),
                ("wait", "", Unit::Plain),
            ],
        },
    }
}

pub fn write(d: &Document) -> Written {
    let form = form(&d.kind);
    let target = d.text("/request/common/target");
    let title = format!("{} to {target}", form.what);
    let mut w = Written { chapter: Chapter::new("", title), ..Written::default() };
    let runs = d.len("/runs");
    let names: Vec<String> = (0..runs).map(|n| name(d, &form, n)).collect();
    story(d, &form, &target, &names, &mut w);
    let chapter = &mut w.chapter;
    ends(d, chapter);
    rates(d, &form, &names, chapter);
    response_times(d, &form, &names, chapter);
    modes(d, &names, chapter);
    over_time::show(d, &names, chapter);
    placement::show(d, &names, chapter);
    sweep::show(d, &form, chapter);
    cpu(d, &names, chapter);
    evidence(d, &names, chapter);
    warnings(d, &names, chapter);
    w
}

/// What tells a run from the others: `4 flows`; `all` with a single run.
fn name(d: &Document, form: &Form, n: usize) -> String {
    let shown = |of: usize, (key, name, unit): &(&str, &str, Unit)| {
        let at = format!("/runs/{of}/{key}");
        match (d.number(&at), *unit, *name) {
            (Some(x), Unit::Count, name) => {
                let name = if x == 1.0 { name.trim_end_matches('s') } else { name };
                format!("{} {name}", unit.show(x))
            }
            (Some(x), unit, name) => format!("{name} {}", unit.show(x)),
            (None, ..) => d.text(&at).replace('_', " "),
        }
    };
    let differs =
        |a: &&(&str, &str, Unit)| (1..d.len("/runs")).any(|other| shown(other, a) != shown(0, a));
    let mut parts: Vec<String> = form
        .aspects
        .iter()
        .filter(differs)
        .map(|a| shown(n, a))
        .filter(|p| !p.is_empty())
        .collect();
    // Request and response of one size are said once.
    let sizes = match parts.as_slice() {
        [a, b, ..] => a.strip_prefix("request ").zip(b.strip_prefix("response ")),
        _ => None,
    };
    if let Some(size) = sizes.filter(|(a, b)| a == b).map(|(a, _)| a.to_owned()) {
        parts.splice(0..2, [size]);
    }
    match (parts.is_empty(), d.len("/runs")) {
        (true, 0..=1) => "all".into(),
        (true, _) => format!("run {}", n + 1),
        _ => parts.join(", "),
    }
}

fn story(d: &Document, form: &Form, target: &str, names: &[String], w: &mut Written) {
    let lead = form.distributions.first().map(|x| x.0);
    let figure = |n: usize| {
        let at = format!("/runs/{n}/{}", form.rate);
        let end = |end: &str| d.shown(&format!("{at}_interval/{end}"), form.unit);
        let rate = match d.number(&format!("{at}_interval/low")) {
            Some(_) => {
                format!(
                    "{} (95% interval {} to {})",
                    d.shown(&at, form.unit),
                    end("low"),
                    end("high")
                )
            }
            None => d.shown(&at, form.unit),
        };
        match lead {
            Some(key) if d.number(&format!("/runs/{n}/{key}/count")).unwrap_or(0.0) > 0.0 => {
                format!("p50 {}, {rate}", d.shown(&format!("/runs/{n}/{key}/p50"), Unit::Nanos))
            }
            Some(_) => "nothing was measured".into(),
            None => rate,
        }
    };
    let figures = match names {
        [] => "no run was completed".to_owned(),
        [_] => match d.number("/runs/0/clients") {
            Some(clients) => format!("{} with {}", figure(0), many(clients as usize, "client")),
            None => figure(0),
        },
        many if many.len() <= 4 => {
            let each: Vec<String> =
                many.iter().enumerate().map(|(n, name)| format!("{name}: {}", figure(n))).collect();
            each.join("; ")
        }
        [first, .., last] => {
            format!("{first}: {}; {last}: {}", figure(0), figure(names.len() - 1))
        }
    };
    let lost: f64 =
        (0..names.len()).filter_map(|n| d.number(&format!("/runs/{n}/datagrams/lost"))).sum();
    let sent: f64 =
        (0..names.len()).filter_map(|n| d.number(&format!("/runs/{n}/datagrams/sent"))).sum();
    let mut text = Text::strong(format!("{} to {target}", form.what)).and(format!(": {figures}"));
    if let Some(behind) = behind(d, form, names) {
        text = text.and("; ").then(Tone::Warn, behind);
    }
    if lost > 0.0 {
        let share = Unit::Share.show(lost / sent.max(1.0));
        let count = format!(
            "{} of {} datagrams were lost ({share})",
            Unit::Count.show(lost),
            Unit::Count.show(sent)
        );
        text = text.and("; ").then(Tone::Warn, count);
    }
    w.chapter.say(text.clone().and("."));
    w.tell(Part::Measured, text.and("."));
    if d.at("/interrupted").and_then(serde_json::Value::as_bool) == Some(true) {
        w.chapter.say(
            Text::default().then(Tone::Warn, "Ended early: the figures cover the time until then."),
        );
    }
}

/// Open loop: the runs that did not keep their rate, with what they reached.
fn behind(d: &Document, form: &Form, names: &[String]) -> Option<String> {
    let one = |(n, name): (usize, &String)| {
        let at = |key: &str| format!("/runs/{n}/{key}");
        let warned = (0..d.len(&at("warnings"))).any(|w| {
            matches!(
                d.text(&at(&format!("warnings/{w}/code"))).as_str(),
                "rate_not_kept" | "rate_not_kept_by_program" | "rate_not_reached"
            )
        });
        let target = d.number(&at("target_per_s")).filter(|_| warned)?;
        let of = if names.len() > 1 { format!("{name}: ") } else { String::new() };
        let reached = d.shown(&at(form.rate), form.unit);
        Some(format!("{of}the rate of {} was not kept: {reached}", Unit::PerSecond.show(target)))
    };
    let all: Vec<String> = names.iter().enumerate().filter_map(one).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

fn ends(d: &Document, chapter: &mut Chapter) {
    let end = |at: &str| {
        let get = |key: &str| d.text(&format!("{at}/{key}"));
        let cpus = d.number(&format!("{at}/cpus")).filter(|n| *n > 0.0);
        let cpus = cpus.map_or_else(String::new, |n| many(n as usize, "CPU"));
        let kernel = get("kernel");
        let kernel = if kernel.is_empty() { kernel } else { format!("Linux {kernel}") };
        let parts = [get("address"), get("program"), kernel, get("arch"), cpus];
        parts.into_iter().filter(|p| !p.is_empty()).collect::<Vec<_>>().join(", ")
    };
    let same =
        d.at("/runs/0/placement/same_host").and_then(serde_json::Value::as_bool) == Some(true);
    let mut both = vec![
        Text::strong("Client: ").and(end("/local")),
        Text::strong("Server: ").and(end("/peer")),
    ];
    if same {
        both.push(Text::plain("Both ends are on one host."));
    }
    chapter.list(both);
}

fn rates(d: &Document, form: &Form, names: &[String], chapter: &mut Chapter) {
    let mut table = Table::new("Rate of each run, with its 95% interval")
        .words("run")
        .figures("rate")
        .figures("from")
        .figures("to")
        .figures("median")
        .figures("from")
        .figures("to")
        .figures("target")
        .figures("lost")
        .figures("datagrams sent")
        .figures("datagrams lost")
        .figures("failed")
        .figures("retransmits");
    for (n, name) in names.iter().enumerate() {
        let at = |key: &str| format!("/runs/{n}/{key}");
        let mut row = vec![Cell::text(name), d.cell(&at(form.rate), form.unit)];
        row.extend(interval_cells(d, &at(&format!("{}_interval", form.rate)), form.unit));
        match form.median {
            Some(key) => {
                row.push(d.cell(&at(&format!("{key}/value")), Unit::Nanos));
                row.extend(interval_cells(d, &at(key), Unit::Nanos));
            }
            None => row.extend([(); 3].map(|()| Cell::none())),
        }
        row.push(d.cell(&at("target_per_s"), Unit::PerSecond));
        let counts = ["lost", "datagrams/sent", "datagrams/lost", "failed", "retransmits"];
        row.extend(counts.map(|key| d.cell(&at(key), Unit::Count)));
        table.row(row);
    }
    chapter.heading("Rate");
    chapter.table(table.without_empty_columns());
}

fn response_times(d: &Document, form: &Form, names: &[String], chapter: &mut Chapter) {
    if form.distributions.is_empty() {
        return;
    }
    chapter.heading("Distribution");
    let single = names.len() <= 1;
    let modes = if single { bands(d) } else { vec![] };
    for (n, (key, title)) in form.distributions.iter().enumerate() {
        let one = |(run, name): (usize, &String)| Distribution {
            name: if single { (*title).to_owned() } else { name.clone() },
            at: format!("/runs/{run}/{key}"),
            rounds: 1.0,
        };
        let all: Vec<Distribution> = names.iter().enumerate().map(one).collect();
        let modes = if n == 0 { modes.clone() } else { vec![] };
        distributions(d, &capital(title), &all, modes, chapter);
    }
}

/// The modes of the only run.
fn bands(d: &Document) -> Vec<Band> {
    let one = |n: usize| {
        let (low, high) =
            d.ends(&format!("/runs/0/modes/{n}/low_ns"), &format!("/runs/0/modes/{n}/high_ns"))?;
        let share = d.number(&format!("/runs/0/modes/{n}/share"))?;
        Some(Band { low, high, name: Unit::Share.show(share) })
    };
    (0..d.len("/runs/0/modes")).filter_map(one).collect()
}

fn modes(d: &Document, names: &[String], chapter: &mut Chapter) {
    let mut table = Table::new("Modes of the distribution")
        .words("run")
        .figures("share")
        .figures("p50")
        .figures("from")
        .figures("to")
        .words("what sets it apart");
    for (n, name) in names.iter().enumerate() {
        for mode in 0..d.len(&format!("/runs/{n}/modes")) {
            let at = |key: &str| format!("/runs/{n}/modes/{mode}/{key}");
            table.row([
                Cell::text(name),
                d.cell(&at("share"), Unit::Share),
                d.cell(&at("p50_ns"), Unit::Nanos),
                d.cell(&at("low_ns"), Unit::Nanos),
                d.cell(&at("high_ns"), Unit::Nanos),
                Cell::text(d.text(&at("name"))),
            ]);
        }
    }
    chapter.table(table);
}

fn cpu(d: &Document, names: &[String], chapter: &mut Chapter) {
    let per = if matches!(d.kind, Kind::Stream(_)) { "byte" } else { "unit of work" };
    let mut table = Table::new(format!("CPU time of both ends per {per}, and context switches"))
        .words("run, end")
        .figures("threads")
        .figures("whole host")
        .figures("voluntary switches")
        .figures("involuntary switches");
    for (n, name) in names.iter().enumerate() {
        for (key, end) in [("local", "client"), ("peer", "server")] {
            let at = |of: &str| format!("/runs/{n}/cpu/{key}/{of}");
            let row = if names.len() > 1 { format!("{name}, {end}") } else { end.to_owned() };
            let whole = d.cell(&format!("/runs/{n}/cpu/{key}"), Unit::Nanos);
            if whole.missing.is_some() {
                table.row([Cell::text(row), whole, Cell::none(), Cell::none(), Cell::none()]);
                continue;
            }
            table.row([
                Cell::text(row),
                d.cell(&at("threads_per_unit_ns"), Unit::Nanos),
                d.cell(&at("host_busy_per_unit_ns"), Unit::Nanos),
                d.cell(&at("voluntary_switches"), Unit::Count),
                d.cell(&at("involuntary_switches"), Unit::Count),
            ]);
        }
    }
    if !table.rows.is_empty() {
        chapter.heading("CPU time");
        chapter.table(table);
    }
}

/// Kernel counters that grew within the window, of each run.
fn evidence(d: &Document, names: &[String], chapter: &mut Chapter) {
    let title = "Kernel counters that grew within the window";
    let mut table = Table::new(title);
    if names.len() > 1 {
        table = table.words("run").words("counter");
    } else {
        table = table.words("counter");
    }
    table = table.figures("client").figures("server");
    for (n, name) in names.iter().enumerate() {
        let at = |end: &str| format!("/runs/{n}/evidence/{end}");
        let mut counters = d.keys(&at("local"));
        counters.extend(d.keys(&at("peer")));
        counters.sort();
        counters.dedup();
        for counter in counters {
            let key = crate::document::key(&counter);
            let of = |end: &str| match d.cell(&format!("{}/{key}", at(end)), Unit::Count) {
                // The document has the counters that grew.
                cell if cell.pointer.is_none() && cell.missing.is_none() => Cell::zero(),
                cell => cell,
            };
            let run = (names.len() > 1).then(|| Cell::text(name));
            table.row(run.into_iter().chain([Cell::text(&counter), of("local"), of("peer")]));
        }
    }
    if !table.rows.is_empty() {
        chapter.heading("Evidence of the kernel");
        chapter.table(table);
    }
}

fn warnings(d: &Document, names: &[String], chapter: &mut Chapter) {
    let mut all: Vec<String> = vec![];
    for (n, name) in names.iter().enumerate() {
        for text in messages(d, &format!("/runs/{n}/warnings")) {
            all.push(if names.len() > 1 { format!("{name}: {text}") } else { text });
        }
    }
    all.extend(messages(d, "/floor/why"));
    remarks("Limits of these figures", all, chapter);
}
