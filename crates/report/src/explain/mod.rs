//! `explain` as text: the answer, the components, predictions, caveats.

mod chart;
mod outlook;
pub mod passive;
#[cfg(test)]
mod tests;

use model::{
    Bytes, Nanos,
    explain::{Disturbance, Exchange, ExplainDocument},
    measure::Quantiles,
};

use crate::{
    text::{Ink, Line, Page, Table, TextStyle},
    words::{grouped, interval, many},
};

pub fn text(d: &ExplainDocument, look: TextStyle) -> String {
    let mut page = Page::new(look);
    head(d, &mut page);
    components(d, &mut page);
    quantiles(d, &mut page);
    outlook::show(d, &mut page);
    caveats(d, &mut page);
    page.finish()
}

fn head(d: &ExplainDocument, page: &mut Page) {
    let title = Line::new()
        .ink(Ink::Strong, format!("Response time of {}", d.target))
        .text(format!(" · {} · {}", many(d.clients as usize, "client"), exchange(&d.exchange)));
    page.line(title, 2);
    page.line(answer(d), 2);
    if !d.sum.conclusive {
        let text = "Run longer (--max-duration) or on a quieter host.";
        page.line(Line::plain(text), 2);
    }
    if d.interrupted {
        let text = "Ended early: the figures cover the time until then.";
        page.line(Line::new().ink(Ink::Warn, text), 2);
    }
    let rounds = many(d.rounds as usize, "pair");
    let mut how = format!(
        "{rounds} of {} rounds, workload and network alone (responder {})",
        d.round_ns, d.responder
    );
    if let Some(ns) = d.injected_service_ns {
        how += &format!("; the server busy-loops {} per response", time(ns));
    }
    page.line(Line::plain(how), 2);
    let each: Vec<String> =
        d.statuses.iter().map(|(status, n)| format!("{} × {status}", grouped(*n))).collect();
    if !each.is_empty() {
        page.line(Line::plain(format!("Responses: {}.", each.join(", "))), 2);
    }
}

/// The bytes of a transaction, and its round trips where it is not one.
fn exchange(e: &Exchange) -> String {
    let bytes = format!("{} request, {} response", Bytes(e.request_bytes), Bytes(e.response_bytes));
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
    let mut table =
        Table::new().left("COMPONENT").right("TIME").right("95% CI").right("SHARE").left("");
    let verbose = page.look().verbose;
    if verbose {
        table = table.wrapping("");
    }
    let most = d.components.iter().filter_map(|c| c.share).fold(0.0, f64::max);
    for c in &d.components {
        let (takes, part, bar) = match c.share {
            Some(part) => (Line::plain(time(c.ns)), percent(part), chart::bar(part, most, 20)),
            None => (Line::new().ink(Ink::Warn, "unresolved"), "-".into(), String::new()),
        };
        let mut row = vec![
            Line::new().ink(Ink::Strong, &c.name),
            takes,
            Line::plain(interval(&time(c.low_ns), &time(c.high_ns))),
            Line::plain(part),
            Line::plain(bar),
        ];
        if verbose {
            row.push(Line::new().ink(Ink::Faint, &c.about));
        }
        table.row(row);
    }
    page.table(&table, 0);
    let s = &d.sum;
    let text = format!(
        "Sum of components {}; measured {} from one request to the next ({:+.1}%).",
        time(s.sum_ns),
        time(s.measured_ns),
        s.error * 100.0
    );
    page.line(Line::plain(text), 2);
}

/// The answer in a sentence.
fn answer(d: &ExplainDocument) -> Line {
    let s = &d.sum;
    if !s.conclusive {
        let why = match s.disturbed.as_slice() {
            [] => format!("measured {}, sum of components {}", time(s.measured_ns), time(s.sum_ns)),
            all => all.iter().map(Disturbance::to_string).collect::<Vec<_>>().join("; "),
        };
        return Line::new().ink(Ink::Bad, "Inconclusive").text(format!(": {why}"));
    }
    let part = |name: &str| d.components.iter().find(|c| c.name == name);
    let largest = d.components.iter().filter(|c| c.reported).max_by(|a, b| a.ns.total_cmp(&b.ns));
    let (Some(network), Some(largest)) = (part("network"), largest) else { return Line::new() };
    let ci = interval(&time(largest.low_ns), &time(largest.high_ns));
    let size = format!("{} (95% CI {ci})", time(largest.ns));
    let line =
        Line::new().ink(Ink::Strong, format!("Network {}", percent(network.share.unwrap_or(0.0))));
    match largest.name.as_str() {
        "network" => line.text(format!(", the largest component: {size}")),
        name => line.text(format!("; largest component: {name}, {size}")),
    }
}

fn quantiles(d: &ExplainDocument, page: &mut Page) {
    page.gap();
    let mut table =
        Table::new().left("RESPONSE TIME").right("P50").right("P90").right("P99").right("MEAN");
    let mut row = |name: &str, q: &Quantiles| {
        let cells = [q.p50 as f64, q.p90 as f64, q.p99 as f64, q.mean];
        table.row(
            [Line::plain(name)].into_iter().chain(cells.iter().map(|ns| Line::plain(time(*ns)))),
        );
    };
    row("  workload", &d.quantiles.workload_ns);
    row("  network alone", &d.quantiles.network_ns);
    page.table(&table, 0);
    if let Some(t) = &d.typical {
        let ci = format!("95% CI {}", interval(&time(t.low_ns), &time(t.high_ns)));
        let service = match t.low_ns > 0.0 {
            true => format!("{} ({ci})", time(t.service_ns)),
            false => format!("within noise of 0 ({ci})"),
        };
        let network = time(t.network_ns);
        page.line(
            Line::plain(format!("P50 with one client: network {network}, service {service}.")),
            2,
        );
    }
    if page.look().verbose {
        naive(d, page);
    }
}

/// The usual estimate by hand.
fn naive(d: &ExplainDocument, page: &mut Page) {
    let left = match d.naive.service_ns {
        ns if ns > 0.0 => format!("{} in the server", time(ns)),
        _ => "invalid: nothing is left for the server".into(),
    };
    let text = format!(
        "Naive estimate (clients / rate - 2 × {} one way): {left}.",
        time(d.naive.one_way_ns)
    );
    page.line(Line::new().ink(Ink::Faint, text), 2);
}

fn caveats(d: &ExplainDocument, page: &mut Page) {
    let mut lines = vec![];
    lines.extend(outlook::unreliable(d).map(|text| Line::new().ink(Ink::Bad, text)));
    let noise: Vec<&str> =
        d.components.iter().filter(|c| !c.reported).map(|c| c.name.as_str()).collect();
    if !noise.is_empty() {
        let text = format!("{}: within noise of 0, left out of SHARE.", noise.join(", "));
        lines.push(Line::new().ink(Ink::Warn, text));
    }
    match &d.typical {
        None => lines
            .push(Line::plain("Transactions of several kinds: only means are reported, no P50.")),
        Some(_) if !d.sum.conclusive => {
            lines.push(Line::plain(
                "The disturbance covers most transactions, so the P50 includes it.",
            ));
        }
        Some(_) => {}
    }
    lines.extend(d.warnings.iter().map(|w| Line::new().ink(Ink::Warn, w.to_string())));
    page.caveats(lines);
}
