//! `measure stream` as text.

use model::{
    Bytes, Nanos,
    measure::{
        Datagrams, Direction, GoesWith, StreamDocument, StreamInterval, StreamMode, StreamRun,
        Transport,
    },
    units::grouped,
};

use super::{
    Run, cpu, ends,
    head::{Head, waits, waits_said},
    intervals::{self, figure},
    numbers::{bits, none, share, width},
    rest,
    runs::{self, Aspect, Value, about, alike, flows, tell_apart, windows},
    sweep,
};
use crate::{
    inspect::dotted,
    text::{Ink, Line, Page, Table, TextStyle},
    words::{many, reading_as},
};

/// The most intervals that are shown without `-v`.
const MOST_INTERVALS: usize = 60;

pub fn text(d: &StreamDocument, look: TextStyle) -> String {
    let mut page = Page::new(look);
    let (apart, said) = tell_apart(&d.runs, aspects());
    Head {
        what: "Stream",
        common: &d.request.common,
        local: &d.local,
        peer: &d.peer,
        said,
        runs: &d.runs,
        interrupted: d.interrupted,
        missing: String::new(),
    }
    .show(answer(&d.runs), &mut page);
    let (rates, again, datagrams) = values(&d.runs);
    runs::table(&mut page, &d.runs, &apart, &[&rates, &again, &datagrams]);
    let interval = |r: &'_ StreamRun| r.bits_per_s_interval.clone();
    intervals::show(&d.runs, "throughput", &interval, &mut page);
    let missing = |r: &StreamRun| r.bytes > 0 && r.bits_per_s_interval.is_none();
    rest::no_interval(&d.runs, missing, &mut page);
    details(&d.runs, &mut page);
    rest::warnings(&d.runs, &mut page);
    each_interval(&d.runs, &mut page);
    let unit = cpu::Unit { name: "MIB RECEIVED", of: 1_048_576.0 };
    ends::show(&d.runs, &unit, &d.floor, None, &mut page);
    page.finish()
}

/// The throughput of a single run, or of two directions at once; the range over several runs.
fn answer(runs: &[StreamRun]) -> Option<Line> {
    if let ([forward, reverse], [_]) = (runs, windows(runs).as_slice()) {
        let sum = bits(forward.bits_per_s + reverse.bits_per_s).bare();
        let [there, back] = [forward, reverse]
            .map(|r| format!("{} {}", way(r.direction), bits(r.bits_per_s).bare()));
        return Some(Line::new().ink(Ink::Strong, format!("{there} + {back} = {sum}")));
    }
    let [r] = runs else {
        let rates: Vec<f64> = runs.iter().map(|r| r.bits_per_s).collect();
        return sweep::range("throughput", &rates, bits);
    };
    if r.bytes == 0 {
        return None;
    }
    let rate = figure(&bits(r.bits_per_s), r.bits_per_s_interval.as_ref(), bits);
    Some(Line::new().ink(Ink::Strong, rate))
}

fn aspects() -> Vec<Aspect<StreamRun>> {
    vec![
        Aspect {
            head: "DIRECTION",
            cell: |r| way(r.direction).into(),
            said: |r| {
                format!(
                    "{} sends",
                    if r.direction == Direction::Reverse { "server" } else { "client" }
                )
            },
        },
        Aspect { head: "FLOWS", cell: |r| grouped(r.flows.into()), said: |r| flows(r.flows) },
        runs::threads(),
        Aspect {
            head: "MESSAGE",
            cell: |r| Bytes(r.message_bytes).to_string(),
            said: |r| match r.transport {
                Transport::Udp => format!("datagrams of {}", Bytes(r.message_bytes)),
                _ => format!("sends of {}", Bytes(r.message_bytes)),
            },
        },
        Aspect { head: "WAIT", cell: |r| waits(r.waits()), said: |r| waits_said(r.waits()) },
    ]
}

fn way(d: Direction) -> &'static str {
    match d {
        Direction::Forward => "forward",
        Direction::Reverse => "reverse",
        Direction::Both => "both",
    }
}

/// The share of retransmitted segments, 0 to 1. It assumes full segments, as in a bulk transfer.
fn resent(r: &StreamRun) -> Option<f64> {
    let (again, mss) = (*r.retransmits.known()?, *r.mss_bytes.known()?);
    let first = r.bytes as f64 / mss as f64;
    (mss > 0 && first > 0.0).then(|| again as f64 / (first + again as f64))
}

type Values = Vec<Value<StreamRun>>;

fn values(runs: &[StreamRun]) -> (Values, Values, Values) {
    let rates: Values = vec![
        Value { head: "THROUGHPUT", cell: |r| bits(r.bits_per_s) },
        Value { head: "±", cell: |r| width(r.bits_per_s_interval.as_ref()) },
        Value { head: "RECEIVED", cell: |r| Line::plain(Bytes(r.bytes)) },
    ];
    let mut again: Values = vec![];
    if runs.iter().any(|r| r.retransmits.is_known()) {
        let cell: fn(&StreamRun) -> Line = |r| reading_as(&r.retransmits, |n| grouped(*n));
        again.push(Value { head: "RETR", cell });
        if runs.iter().any(|r| resent(r).is_some()) {
            again.push(Value {
                head: "RETR %",
                cell: |r| resent(r).map_or_else(none, |s| Line::plain(share(s))),
            });
        }
    }
    let mut datagrams: Values = vec![];
    if runs.iter().any(|r| r.datagrams.is_some()) {
        datagrams.extend::<[Value<StreamRun>; 5]>([
            Value { head: "LOST", cell: |r| of(r, lost) },
            Value {
                head: "OUT OF ORDER",
                cell: |r| of(r, |d| reading_as(&d.reordered, |n| grouped(*n))),
            },
            Value {
                head: "DUPLICATES",
                cell: |r| of(r, |d| reading_as(&d.duplicates, |n| grouped(*n))),
            },
            Value {
                head: "JITTER",
                cell: |r| of(r, |d| reading_as(&d.jitter_ns, |n| Nanos(*n).to_string())),
            },
            Value { head: "TX FULL", cell: |r| of(r, |d| Line::plain(grouped(d.send_refused))) },
        ]);
    }
    (rates, again, datagrams)
}

fn of(r: &StreamRun, show: fn(&Datagrams) -> Line) -> Line {
    r.datagrams.as_ref().map_or_else(none, show)
}

/// Number and share: `120 (0.4%)`.
fn lost(d: &Datagrams) -> Line {
    match d.lost {
        0 => Line::plain("0"),
        n => {
            let part = share(n as f64 / d.sent.max(1) as f64);
            Line::new().ink(Ink::Warn, format!("{} ({part})", grouped(n)))
        }
    }
}

/// What else is known of the connections.
fn details(runs: &[StreamRun], page: &mut Page) {
    for detail in [connections, zero_copy, spread, modes] {
        let found = runs.iter().enumerate().map(|(n, r)| (n + 1, detail(r)));
        for (line, runs_so) in alike(found).into_iter().filter(|(l, _)| !l.is_empty()) {
            let about = about(&runs_so, runs.len());
            page.line(Line::new().ink(Ink::Faint, about).also(line), 2);
        }
    }
}

fn connections(r: &StreamRun) -> Line {
    let congestion = r.congestion.known().map(|c| format!("congestion control {c}"));
    let mss = r.mss_bytes.known().map(|m| format!("MSS {} B", grouped(*m)));
    dotted([congestion, mss].into_iter().flatten().map(Line::plain))
}

fn zero_copy(r: &StreamRun) -> Line {
    match &r.zerocopy_copied {
        None => Line::new(),
        Some(z) if z.completed == 0 => Line::plain("no zero-copy send was completed"),
        Some(z) => Line::new().ink(
            if z.copied > 0 { Ink::Warn } else { Ink::Good },
            format!(
                "{} of {} zero-copy sends were copied after all",
                grouped(z.copied),
                grouped(z.completed)
            ),
        ),
    }
}

/// How evenly the flows shared the throughput.
fn spread(r: &StreamRun) -> Line {
    let (Some(least), Some(most)) = (r.flow_bytes.iter().min(), r.flow_bytes.iter().max()) else {
        return Line::new();
    };
    let rate = |bytes: u64| bits(bytes as f64 * 8e9 / r.window_ns.0.max(1) as f64).bare();
    match r.flow_bytes.len() {
        0 | 1 => Line::new(),
        _ => Line::plain(format!("slowest flow {}, fastest {}", rate(*least), rate(*most))),
    }
}

/// The two throughputs that the intervals alternate between.
fn modes(r: &StreamRun) -> Line {
    let Some(m) = &r.modes else { return Line::new() };
    let one = |mode: &StreamMode| {
        let moved = mode.migrations_per_s.get();
        let moved = moved.map_or_else(String::new, |n| format!(", {n:.1} migrations/s"));
        format!("{} in {} of the intervals{moved}", bits(mode.bits_per_s).bare(), share(mode.share))
    };
    let p = m.migrations_p.map_or_else(String::new, |p| match p {
        p if p < 0.001 => " (p < 0.001)".into(),
        p => format!(" (p {p:.3})"),
    });
    let goes = match m.with_migrations.known() {
        Some(GoesWith::Slow) => format!("the slower mode goes with migrations{p}"),
        Some(GoesWith::Fast) => format!("the faster mode goes with migrations{p}"),
        Some(GoesWith::Neither) => format!("neither mode goes with migrations{p}"),
        None => "migrations not known".into(),
    };
    Line::new().ink(Ink::Warn, format!("two modes: {}; {}: {goes}", one(&m.slow), one(&m.fast)))
}

/// The lines of every interval.
fn each_interval(runs: &[StreamRun], page: &mut Page) {
    let total: usize = runs.iter().map(|r| r.intervals.len()).sum();
    if total == 0 {
        return;
    }
    page.heading("INTERVALS");
    if total > MOST_INTERVALS && !page.look().verbose {
        let rates = || runs.iter().flat_map(|r| &r.intervals).map(|i| i.bits_per_s);
        let least = rates().fold(f64::INFINITY, f64::min);
        let most = rates().fold(0.0, f64::max);
        let text = format!(
            "  {}, from {} to {} (-v shows each)",
            many(total, "interval"),
            bits(least).bare(),
            bits(most).bare()
        );
        page.line(Line::plain(text), 2);
        return;
    }
    for (n, run) in runs.iter().enumerate().filter(|(_, r)| !r.intervals.is_empty()) {
        if runs.len() > 1 {
            page.line(Line::plain("  ").ink(Ink::Strong, format!("run {}", n + 1)), 2);
        }
        page.table(&interval_table(run), 2);
    }
}

fn interval_table(run: &StreamRun) -> Table {
    let udp = run.datagrams.is_some();
    let heads: &[&str] = match udp {
        true => &["SECONDS", "THROUGHPUT", "LOST", "OUT OF ORDER", "JITTER", "MIGRATIONS"],
        false => &["SECONDS", "THROUGHPUT", "RETR", "CWND", "RTT", "MIGRATIONS"],
    };
    let mut table = heads.iter().fold(Table::new(), |t, h| t.right(h));
    for i in &run.intervals {
        let span = Line::plain(format!("{:.2}-{:.2}", i.start_s, i.end_s));
        let moves = reading_as(&i.migrations, |n| grouped(*n));
        let middle = if udp { udp_cells(i) } else { tcp_cells(i) };
        table.row([span, bits(i.bits_per_s)].into_iter().chain(middle).chain([moves]));
    }
    table
}

fn tcp_cells(i: &StreamInterval) -> [Line; 3] {
    [
        reading_as(&i.retransmits, |n| grouped(*n)),
        reading_as(&i.cwnd_bytes, |n| Bytes(*n).to_string()),
        reading_as(&i.rtt_ns, |n| Nanos(*n).to_string()),
    ]
}

fn udp_cells(i: &StreamInterval) -> [Line; 3] {
    match &i.datagrams {
        Some(d) => [
            lost(d),
            reading_as(&d.reordered, |n| grouped(*n)),
            reading_as(&d.jitter_ns, |n| Nanos(*n).to_string()),
        ],
        None => [none(), none(), none()],
    }
}
