//! The event of an interval: its figures as `watch` prints them, with values for lines and bars.

use model::{
    Severity,
    watch::{WatchHost, WatchInterval, WatchRecord},
};
use report::{
    clean,
    watch::{
        Titled, accounting, clock, contexts, costs, ended,
        listing::{Cell, Listing},
        missing, panes, softirq_shares, tables, traffic,
    },
};
use serde::Serialize;

/// The most CPUs with a bar: the busiest.
const BARS: usize = 16;
/// The most rows of a table.
const ROWS: usize = 100;

#[derive(Debug, Serialize)]
pub struct Event {
    /// The end of the interval, UTC.
    at: String,
    /// Length of the interval.
    length: String,
    /// What watching costs, for people.
    costs: String,
    pub headline: Vec<Figure>,
    bars: Bars,
    cpus: Table,
    tables: Vec<Table>,
    found: Vec<Finding>,
    missing: Vec<String>,
    ended: Vec<String>,
}

/// A figure of the headline, with a history.
#[derive(Debug, Clone, Serialize)]
pub struct Figure {
    name: &'static str,
    text: String,
    /// What the figure is of, or its part.
    about: String,
    /// The value of the history line, in the unit of `text`'s base: bit/s, a count, a share.
    value: f64,
}

/// Each CPU's time by context.
#[derive(Debug, Serialize)]
struct Bars {
    /// The contexts, in the order of the shares.
    legend: Vec<&'static str>,
    about: String,
    /// The share of a full bar, 0 to 1.
    full: f64,
    cpus: Vec<Bar>,
}

#[derive(Debug, Serialize)]
struct Bar {
    cpu: u32,
    shares: Vec<f64>,
    text: String,
}

#[derive(Debug, Serialize)]
struct Table {
    title: &'static str,
    heads: Vec<&'static str>,
    /// Whether a column has figures.
    right: Vec<bool>,
    rows: Vec<Vec<String>>,
    /// Rows before the bound of this event.
    of: usize,
    note: Option<String>,
}

#[derive(Debug, Serialize)]
struct Finding {
    tone: &'static str,
    severity: String,
    title: String,
    evidence: Vec<String>,
}

impl Event {
    pub fn of(record: &WatchRecord, host: &WatchHost) -> Self {
        let interval = &record.interval;
        let mut cpus = panes::cpus(interval, host);
        if cpus.rows.len() > BARS {
            cpus.sort(2);
        }
        let lacks = |m: report::watch::Missing| clean(&format!("{}: {}", m.what, m.why));
        let why = accounting(interval).map(|why| format!("/proc si: {why}"));
        let interrupts = Titled { title: "interrupts", list: panes::interrupts(interval) };
        let mut rest = tables(interval, false);
        rest.insert(1, interrupts);
        Self {
            at: clock(interval.ended_unix_ns.0),
            length: format!("{:.2} s", interval.interval_s),
            costs: costs(interval),
            headline: headline(interval),
            bars: bars(interval),
            cpus: Table { note: why, ..table("CPUs", cpus) },
            tables: rest.into_iter().map(|t| table(t.title, t.list)).collect(),
            found: record.findings.iter().map(finding).collect(),
            missing: missing(interval).into_iter().map(lacks).collect(),
            ended: interval.ended_processes.iter().map(|p| clean(&ended(p))).collect(),
        }
    }
}

fn headline(interval: &WatchInterval) -> Vec<Figure> {
    let mut all = vec![];
    let mut add = |name, text: String, about: String, value| {
        all.push(Figure { name, text, about, value });
    };
    if let Some(traffic) = traffic(interval) {
        if let Some(nic) = &traffic.nic {
            for (name, rate) in [("Received", nic.received), ("Sent", nic.sent)] {
                let whole = rate.to_string();
                let bits = rate.bits.to_string();
                // The text of `watch` has both; here the packets stand below.
                let packets = whole.get(bits.len()..).unwrap_or_default().trim();
                let about = format!("{} {packets}", clean(&nic.name));
                add(name, bits, about, rate.bits.0 as f64);
            }
        }
        let drops = Cell::count(traffic.drops).text;
        add("Drops", drops, "packets, datagrams".into(), traffic.drops as f64);
        if let Some(again) = traffic.retransmits {
            let value = again.segments as f64;
            add("Retransmits", again.to_string(), "TCP segments".into(), value);
        }
    }
    if let Some(softirq) = softirq_shares(interval) {
        let (cpu, most) = softirq.busiest;
        add("Softirq, busiest CPU", Cell::percent(most).text, format!("CPU {cpu}"), most);
        let mean = Cell::percent(softirq.mean).text;
        add("Softirq, mean", mean, format!("CPUs: {}", softirq.cpus), softirq.mean);
    }
    all
}

fn bars(interval: &WatchInterval) -> Bars {
    let measured = contexts::measured(interval);
    let contexts = match measured {
        true => contexts::Context::MEASURED,
        false => contexts::Context::CLAIMED,
    };
    let full = contexts::scale(interval);
    let what = if measured { "Softirq time by context" } else { "CPU time of /proc/stat" };
    let mut cpus: Vec<Bar> = interval
        .cpus
        .iter()
        .map(|cpu| {
            let shares = contexts::shares(cpu, interval.interval_s, measured);
            let shares: Vec<f64> = shares.into_iter().map(|s| s.1).collect();
            let text = if shares.is_empty() { "-".into() } else { sum(&shares) };
            Bar { cpu: cpu.id.0, shares, text }
        })
        .collect();
    let all = cpus.len();
    let mut about = format!("{what}; a full bar is {:.0}% of a CPU", full * 100.0);
    if all > BARS {
        let total = |b: &Bar| b.shares.iter().sum::<f64>();
        cpus.sort_by(|a, b| total(b).total_cmp(&total(a)));
        cpus.truncate(BARS);
        about += &format!("; the busiest {BARS} of {all} CPUs");
    }
    Bars { legend: contexts.iter().map(|c| c.name()).collect(), about, full, cpus }
}

fn sum(shares: &[f64]) -> String {
    Cell::percent(shares.iter().sum()).text
}

fn table(title: &'static str, list: Listing) -> Table {
    let list = list.without_empty_columns();
    let texts = |row: Vec<Cell>| row.into_iter().map(|c| c.text).collect();
    Table {
        title,
        heads: list.columns.iter().map(|c| c.head).collect(),
        right: list.columns.iter().map(|c| c.right).collect(),
        of: list.rows.len(),
        rows: list.rows.into_iter().take(ROWS).map(texts).collect(),
        note: list.note.map(|note| clean(&note)),
    }
}

fn finding(f: &model::Finding) -> Finding {
    let tone = match f.severity {
        Severity::Critical => "bad",
        Severity::Warning => "warn",
        Severity::Info => "plain",
    };
    let evidence = f.evidence.iter().map(|e| clean(&format!("{}: {}", e.what, e.value)));
    Finding {
        tone,
        severity: f.severity.to_string(),
        title: clean(&f.title),
        evidence: evidence.collect(),
    }
}
