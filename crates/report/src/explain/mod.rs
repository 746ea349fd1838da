//! `explain` as text.

mod chart;
mod outlook;
pub mod passive;
#[cfg(test)]
mod tests;

use model::{
    Bytes, Nanos,
    explain::{Component, Exchange, ExplainDocument},
    measure::Quantiles,
};

use crate::{
    text::{Ink, Line, Page, Table, TextStyle},
    words::{grouped, many},
};

/// The whole result.
pub fn text(d: &ExplainDocument, look: TextStyle) -> String {
    let mut page = Page::new(look);
    head(d, &mut page);
    components(d, &mut page);
    sum(d, &mut page);
    quantiles(d, &mut page);
    outlook::show(d, &mut page);
    for warning in &d.warnings {
        page.line(Line::new().ink(Ink::Warn, "warning: ").text(warning), 2);
    }
    page.finish()
}

fn head(d: &ExplainDocument, page: &mut Page) {
    let title = Line::new().ink(Ink::Strong, format!("What {} takes", d.target)).text(format!(
        " · {} · {}",
        many(d.clients as usize, "client"),
        exchange(&d.exchange)
    ));
    page.line(title, 2);
    let interleaving = format!(
        "{} of workload and network interleaved, {} each; the network alone against {}.",
        many(d.rounds as usize, "pair"),
        d.round_ns,
        d.responder
    );
    page.line(Line::plain(interleaving), 2);
    let each: Vec<String> =
        d.statuses.iter().map(|(status, n)| format!("{} × {status}", grouped(*n))).collect();
    if !each.is_empty() {
        page.line(Line::plain(format!("Responses: {}.", each.join(", "))), 2);
    }
    if let Some(ns) = d.injected_service_ns {
        let said = format!("The server says that it spins {} for each response.", time(ns));
        page.line(Line::plain(said), 2);
    }
    if d.interrupted {
        let text = "Ended early: this is what was measured until then.";
        page.line(Line::new().ink(Ink::Warn, text), 2);
    }
}

/// What a transaction moves: bytes, and round trips where it is not one.
fn exchange(e: &Exchange) -> String {
    let bytes = format!("{} there, {} back", Bytes(e.request_bytes), Bytes(e.response_bytes));
    match e.round_trips {
        n if n < 1.005 => bytes,
        n if (n - n.round()).abs() < 0.005 => format!("{bytes} in {n:.0} round trips"),
        n => format!("{bytes} in {n:.2} round trips"),
    }
}

/// A duration that may be negative.
pub(super) fn time(ns: f64) -> String {
    let whole = Nanos(ns.abs().round() as u64);
    if ns <= -0.5 { format!("-{whole}") } else { whole.to_string() }
}

/// A share in per cent.
pub(super) fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

fn components(d: &ExplainDocument, page: &mut Page) {
    page.gap();
    let mut table = Table::new()
        .left("PART")
        .right("TAKES")
        .right("95% FROM")
        .right("TO")
        .right("SHARE")
        .left("")
        .wrapping("");
    let most = d.components.iter().filter_map(|c| c.share).fold(0.0, f64::max);
    for c in &d.components {
        let (takes, part, bar) = match c.share {
            Some(part) => (Line::plain(time(c.ns)), percent(part), chart::bar(part, most, 20)),
            None => (Line::new().ink(Ink::Warn, "unresolved"), "-".into(), String::new()),
        };
        table.row([
            Line::new().ink(Ink::Strong, &c.name),
            takes,
            Line::plain(time(c.low_ns)),
            Line::plain(time(c.high_ns)),
            Line::plain(part),
            Line::plain(bar),
            Line::new().ink(Ink::Faint, &c.about),
        ]);
    }
    page.table(&table, 0);
    let untold: Vec<&str> =
        d.components.iter().filter(|c| !c.reported).map(|c| c.name.as_str()).collect();
    if !untold.is_empty() {
        let text = format!(
            "Within noise of 0: {}, a difference of two measurements that their spread is as large \
             as. All that is known is that it lies in its interval and is no less than nothing; shares \
             are of the rest.",
            untold.join(", ")
        );
        page.line(Line::new().ink(Ink::Warn, text), 2);
    }
}

fn sum(d: &ExplainDocument, page: &mut Page) {
    let s = &d.sum;
    let text = format!(
        "Together {}; measured {} from one transaction to a client's next ({:+.1}%).",
        time(s.sum_ns),
        time(s.measured_ns),
        s.error * 100.0
    );
    page.line(Line::plain(text), 2);
    match s.conclusive {
        true => page.line(verdict(d), 2),
        false => {
            let why = match s.disturbed.as_slice() {
                [] => String::new(),
                all => format!(": {}", all.join("; ")),
            };
            page.line(Line::new().ink(Ink::Bad, "Inconclusive").text(format!("{why}.")), 2);
            page.line(
                Line::plain("Try again with less running beside it, or longer: --max-duration."),
                2,
            );
        }
    }
}

/// The answer in a sentence.
fn verdict(d: &ExplainDocument) -> Line {
    let part = |name: &str| d.components.iter().find(|c| c.name == name);
    let largest = d.components.iter().filter(|c| c.reported).max_by(|a, b| a.ns.total_cmp(&b.ns));
    let (Some(network), Some(largest)) = (part("network"), largest) else { return Line::new() };
    let within = |c: &Component| format!("{} to {}", time(c.low_ns), time(c.high_ns));
    let line = Line::new().ink(
        Ink::Strong,
        format!("The network is {} of it", percent(network.share.unwrap_or(0.0))),
    );
    match largest.name.as_str() {
        "network" => line.text(format!(" and the largest part ({}).", within(network))),
        name => line.text(format!("; the largest part is {name} ({}).", within(largest))),
    }
}

fn quantiles(d: &ExplainDocument, page: &mut Page) {
    page.gap();
    let mut table = Table::new().left("").right("P50").right("P90").right("P99").right("MEAN");
    let mut row = |name: &str, q: &Quantiles| {
        let cells = [q.p50 as f64, q.p90 as f64, q.p99 as f64, q.mean];
        let name = Line::new().ink(Ink::Faint, name);
        table.row([name].into_iter().chain(cells.iter().map(|ns| Line::plain(time(*ns)))));
    };
    row("response time", &d.quantiles.workload_ns);
    row("network alone", &d.quantiles.network_ns);
    page.table(&table, 0);
    let text = match &d.typical {
        Some(t) => {
            let service = match t.low_ns > 0.0 {
                true => time(t.service_ns),
                false => "within noise of 0".into(),
            };
            format!(
                "At the median, with one client: network {}, service {service} ({} to {}){}.",
                time(t.network_ns),
                time(t.low_ns),
                time(t.high_ns),
                match d.sum.conclusive {
                    true => "",
                    false => "; what disturbed most transactions moved it, too",
                }
            )
        }
        None => "Transactions are of several kinds: means alone are said, there is no typical one."
            .into(),
    };
    page.line(Line::plain(text), 2);
    let left = match d.naive.service_ns {
        ns if ns > 0.0 => format!("{} in the server", time(ns)),
        _ => "nothing is left for the server, which cannot be".into(),
    };
    let text = format!(
        "Naive estimate (clients / rate - 2 × {} one way): {left}.",
        time(d.naive.one_way_ns)
    );
    page.line(Line::new().ink(Ink::Faint, text), 2);
}
