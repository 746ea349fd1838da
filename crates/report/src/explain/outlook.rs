//! What would happen elsewhere: predictions as a table with bars, the knee, changes, and how
//! far off it was.

use model::{
    explain::{Bound, ExplainDocument, Prediction, Verified},
    units::grouped,
};

use super::{chart::bar, percent, time};
use crate::{
    text::{Ink, Line, Page, Table},
    words::many,
};

/// Writes it.
pub fn show(d: &ExplainDocument, page: &mut Page) {
    if !d.predictions.is_empty() {
        predictions(d, page);
    }
    limits(d, page);
    changes(d, page);
    if let Some(v) = &d.verified {
        page.line(verified(v), 2);
    }
}

fn verified(v: &Verified) -> Line {
    if let Some(drift) = v.drift {
        let text = format!(
            "Points of the curve did not repeat when they were measured again ({:+.1}%): the host or the \
             server has changed meanwhile. How far off predictions are cannot be told from that, and OFF \
             is no error of the model.",
            drift * 100.0
        );
        return Line::new().ink(Ink::Warn, text);
    }
    let (Some(median), Some(worst)) = (v.median_error, v.worst_error) else { return Line::new() };
    let text = format!(
        "Held against {} beside the curve: the median error is {}, the worst {}.",
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
    page.heading("Transactions a second, predicted");
    if let Some(text) = unreliable(d) {
        page.line(Line::new().ink(Ink::Bad, text), 2);
    }
    let verified = d.predictions.iter().any(|p| p.measured_per_s.is_some());
    let mut table = Table::new()
        .left("PATH")
        .right("CLIENTS")
        .right("PER S")
        .right("FROM")
        .right("TO")
        .right("NAIVE");
    if verified {
        table = table.right("MEASURED").right("OFF");
    }
    table = table.left("LIMIT").left("");
    let most = d.predictions.iter().map(|p| p.predicted_per_s).fold(0.0, f64::max);
    for p in &d.predictions {
        table.row(row(p, verified, most));
    }
    page.table(&table, 0);
    for path in &d.other_paths {
        let mut text = format!("{}: a transaction's network takes ", path.path);
        text += &match path.added_ns {
            more if more >= 0.0 => format!("{} longer than here", time(more)),
            less => format!("{} less than here", time(-less)),
        };
        if path.idle_ns > 0.0 {
            let idle = time(path.idle_ns);
            text += &format!(", and the server {idle} longer: it is idle for longer in between");
        }
        text += &match path.reconnecting_ns {
            None => "; what connecting anew takes there is not known".to_owned(),
            Some(more) if more > 0.0 => format!("; connecting anew takes {} longer", time(more)),
            Some(less) if less < 0.0 => format!("; connecting anew takes {} less", time(-less)),
            Some(_) => String::new(),
        };
        if let Some(cpu) = path.cpu_ns.filter(|ns| *ns > 0.0) {
            text += &format!("; it takes {} more of this host's CPU time", time(cpu));
        }
        page.line(Line::plain(text + "."), 2);
    }
}

/// Which predictions not to rely on, and why.
fn unreliable(d: &ExplainDocument) -> Option<String> {
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
        (false, false) => Some(
            "Not to be relied on: they are made of what was measured above, which is inconclusive."
                .into(),
        ),
        (false, true) => Some(format!(
            "Inconclusive, for FROM and TO are more than a factor of two apart: {}. Run longer or on a \
             quieter host.",
            wide.join(", ")
        )),
    }
}

fn row(p: &Prediction, verified: bool, most: f64) -> Vec<Line> {
    let or_none = |r: Option<f64>| rate(r.unwrap_or(0.0));
    let mut cells = vec![
        Line::plain(&p.path),
        Line::plain(grouped(p.clients.into())),
        Line::new().also(rate(p.predicted_per_s)),
        rate(p.low_per_s),
        rate(p.high_per_s),
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
    cells.push(Line::plain(bar(p.predicted_per_s, most, 16)));
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
            Some(n) if n > 1 => format!("{} {} over {n}", m.place, time(m.ns)),
            _ => format!("{} {}", m.place, time(m.ns)),
        })
        .collect();
    let from = d.knee_clients.map(|knee| many_about(knee.max(1.0)));
    let limits = match (&d.limiting, from) {
        (Some(place), Some(from)) => format!("The {place} limits from about {from} on."),
        (Some(place), None) => format!("The {place} limits with many clients."),
        (None, Some(from)) => {
            format!("More than about {from} give no more; what limits is not known.")
        }
        (None, None) => "What limits with many clients is not known.".into(),
    };
    let text = format!("{limits} A transaction takes of each: {}.", demands.join(", "));
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
    let said: Vec<String> = d
        .what_if
        .iter()
        .map(|w| {
            let per_s = rate(w.predicted_per_s).bare();
            let bound = match w.bound {
                None => "",
                Some(Bound::AtMost) => "at most ",
                Some(Bound::AtLeast) => "at least ",
            };
            format!("{} {bound}{per_s} a second (×{:.2})", w.change, w.factor)
        })
        .collect();
    if !said.is_empty() {
        let clients = d.clients;
        let unsure = match d.what_if.iter().any(|w| w.inconclusive) {
            true => " (from what is inconclusive: not to be relied on)",
            false => "",
        };
        let clients = many(clients as usize, "client");
        let text = format!("With {clients} it would be{unsure}: {}.", said.join(", "));
        page.line(Line::plain(text), 2);
    }
}
