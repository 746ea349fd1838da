//! Predictions as a table, with their verification, the knee, and changes.

use model::{
    explain::{Bound, ExplainDocument, OtherPath, Prediction, Verified},
    units::grouped,
};

use super::{chart::bar, percent, time};
use crate::{
    text::{Ink, Line, Page, Table},
    words::{interval, many},
};

/// Below it there is no room for bars.
const WIDE: usize = 100;

pub fn show(d: &ExplainDocument, page: &mut Page) {
    if !d.predictions.is_empty() {
        predictions(d, page);
    }
    if let Some(v) = &d.verified {
        page.line(verified(v), 2);
    }
    limits(d, page);
    changes(d, page);
}

fn verified(v: &Verified) -> Line {
    if let Some(drift) = v.drift {
        let text = format!(
            "Points of the curve did not repeat when they were measured again ({:+.1}%): the host or \
             the server changed in between. ERROR is not the model's error.",
            drift * 100.0
        );
        return Line::new().ink(Ink::Warn, text);
    }
    let (Some(median), Some(worst)) = (v.median_error, v.worst_error) else { return Line::new() };
    let text = format!(
        "Verified by {} beside the curve: median error {}, worst error {}.",
        many(v.cells as usize, "measurement"),
        percent(median),
        percent(worst)
    );
    Line::new().ink(Ink::Strong, text)
}

fn rate(per_s: f64) -> Line {
    match per_s {
        r if !r.is_finite() || r <= 0.0 => Line::new().ink(Ink::Faint, "-"),
        r if r < 100.0 => Line::plain(format!("{r:.1}")),
        r => Line::plain(grouped(r.round() as u64)),
    }
}

fn predictions(d: &ExplainDocument, page: &mut Page) {
    page.heading("PREDICTIONS");
    let verified = d.predictions.iter().any(|p| p.measured_per_s.is_some());
    let wide = page.look().width >= WIDE;
    let mut table =
        Table::new().left("PATH").right("CLIENTS").right("PER S").right("95% CI").right("NAIVE");
    if verified {
        table = table.right("MEASURED").right("ERROR");
    }
    table = table.left("LIMIT");
    if wide {
        table = table.left("");
    }
    let most = d.predictions.iter().map(|p| p.predicted_per_s).fold(0.0, f64::max);
    for p in &d.predictions {
        let mut cells = row(p, verified);
        if wide {
            cells.push(Line::plain(bar(p.predicted_per_s, most, 16)));
        }
        table.row(cells);
    }
    page.table(&table, 0);
    for path in &d.other_paths {
        page.line(other(path), 2);
    }
}

/// How a transaction differs there from one on this path.
fn other(path: &OtherPath) -> Line {
    let more = |ns: f64| format!("{}{}", if ns < 0.0 { "" } else { "+" }, time(ns));
    let mut parts = vec![format!("network {}", more(path.added_ns))];
    if path.idle_ns > 0.0 {
        // Other paths leave the server idle for longer.
        parts.push(format!("server {}", more(path.idle_ns)));
    }
    match path.reconnecting_ns {
        None => parts.push("reconnecting not known".into()),
        Some(0.0) => {}
        Some(ns) => parts.push(format!("reconnecting {}", more(ns))),
    }
    if let Some(cpu) = path.cpu_ns.filter(|ns| *ns > 0.0) {
        parts.push(format!("this host's CPU time {}", more(cpu)));
    }
    Line::new()
        .ink(Ink::Strong, &path.path)
        .text(format!(": per transaction, against this path: {}", parts.join(", ")))
}

/// Predictions not to rely on, and why.
pub fn unreliable(d: &ExplainDocument) -> Option<String> {
    let wide = |p: &&Prediction| p.inconclusive;
    let wide: Vec<String> = d
        .predictions
        .iter()
        .filter(wide)
        .map(|p| {
            format!("{} with {} client{}", p.path, p.clients, if p.clients == 1 { "" } else { "s" })
        })
        .collect();
    match (wide.is_empty(), d.sum.conclusive) {
        (true, _) => None,
        (false, false) => {
            Some("Predictions come from the inconclusive result above: do not rely on them.".into())
        }
        (false, true) => Some(format!(
            "Inconclusive, with a 95% CI wider than a factor of two: {}. Run longer or on a quieter host.",
            wide.join(", ")
        )),
    }
}

fn row(p: &Prediction, verified: bool) -> Vec<Line> {
    let or_none = |r: Option<f64>| rate(r.unwrap_or(0.0));
    let ends = interval(&rate(p.low_per_s).bare(), &rate(p.high_per_s).bare());
    let mut cells = vec![
        Line::plain(&p.path),
        Line::plain(grouped(p.clients.into())),
        rate(p.predicted_per_s),
        Line::plain(ends),
        or_none(p.naive_per_s),
    ];
    if verified {
        cells.push(or_none(p.measured_per_s));
        cells.push(match p.error {
            Some(e) => Line::plain(format!("{:+.1}%", e * 100.0)),
            None => Line::new().ink(Ink::Faint, "-"),
        });
    }
    cells.push(Line::new().ink(Ink::Faint, p.limiting.as_deref().unwrap_or("-")));
    cells
}

fn limits(d: &ExplainDocument, page: &mut Page) {
    if d.demands.is_empty() {
        return;
    }
    page.gap();
    let demands: Vec<String> = d
        .demands
        .iter()
        .map(|m| match m.servers {
            Some(n) if n > 1 => format!("{} {} ({n} in parallel)", m.place, time(m.ns)),
            _ => format!("{} {}", m.place, time(m.ns)),
        })
        .collect();
    let from = d.knee_clients.map(|knee| many_about(knee.max(1.0)));
    let limits = match (&d.limiting, from) {
        (Some(place), Some(from)) => format!("The {place} saturates at about {from}."),
        (Some(place), None) => format!("The {place} saturates first."),
        (None, Some(from)) => {
            format!("Throughput stops growing at about {from}; the limit is not known.")
        }
        (None, None) => "The limit with many clients is not known.".into(),
    };
    let text = format!("{limits} Demand per transaction: {}.", demands.join(", "));
    page.line(Line::plain(text), 2);
}

/// `1 client`, `2.5 clients`.
fn many_about(clients: f64) -> String {
    match format!("{clients:.1}").as_str() {
        "1.0" => "1 client".into(),
        n => format!("{} clients", n.trim_end_matches(".0")),
    }
}

fn changes(d: &ExplainDocument, page: &mut Page) {
    if d.what_if.is_empty() {
        return;
    }
    page.gap();
    let head = format!("WHAT IF, WITH {}", many(d.clients as usize, "client").to_uppercase());
    let mut table = Table::new().left(&head).right("PER S").right("FACTOR");
    for w in &d.what_if {
        let bound = match w.bound {
            None => "",
            Some(Bound::AtMost) => "at most ",
            Some(Bound::AtLeast) => "at least ",
        };
        let mut change = Line::plain("  ").text(&w.change);
        if w.inconclusive {
            change = change.ink(Ink::Warn, " (inconclusive)");
        }
        let per_s = format!("{bound}{}", rate(w.predicted_per_s).bare());
        table.row([change, Line::plain(per_s), Line::plain(format!("×{:.2}", w.factor))]);
    }
    page.table(&table, 0);
}
