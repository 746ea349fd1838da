//! The counters that changed together with the levels.

use model::{
    prove::{CorrelatedCounter, ProveDocument},
    units::figure,
};

use super::{chance, labels::Labels, share};
use crate::{
    text::{Ink, Line, Page, Table},
    words::many,
};

/// The most counters shown without `-v`.
const MOST: usize = 12;

pub(super) fn show(d: &ProveDocument, labels: &Labels<'_>, all: bool, page: &mut Page) {
    let e = &d.evidence;
    if e.judged == 0 {
        return;
    }
    page.gap();
    let of = format!("{} in {}", many(e.judged, "counter"), many(e.blocks, "block"));
    if e.moved.is_empty() {
        page.line(Line::new().ink(Ink::Faint, format!("CORRELATED COUNTERS: none of {of}.")), 2);
        return;
    }
    page.line(
        Line::plain(format!("CORRELATED COUNTERS, per {}: {} of {of}", e.per, e.moved.len())),
        2,
    );
    let mut table = Table::new()
        .left("COUNTER")
        .right(labels.label(&e.first))
        .right(labels.label(&e.second))
        .right("CHANGE (95% CI)")
        .right("P");
    let shown = if all { e.moved.len() } else { MOST };
    for m in e.moved.iter().take(shown) {
        table.row([
            Line::plain(&m.counter),
            Line::plain(small(m.first)),
            Line::plain(small(m.second)),
            Line::plain(change(m)),
            Line::plain(chance(m.p)),
        ]);
    }
    page.table(&table, 0);
    if let Some(rest) = e.moved.len().checked_sub(shown).filter(|n| *n > 0) {
        page.line(Line::plain(format!("and {rest} more: -v shows them all")), 2);
    }
}

fn change(m: &CorrelatedCounter) -> String {
    let one = |x: f64| match m.difference {
        true => format!("{}{}", if x < 0.0 { "-" } else { "+" }, small(x.abs())),
        false => share(x, false, true),
    };
    match (m.low, m.high) {
        (Some(low), Some(high)) => format!("{} ({} to {})", one(m.effect), one(low), one(high)),
        _ => one(m.effect),
    }
}

/// A figure that may be far below 1.
fn small(x: f64) -> String {
    match x.abs() {
        0.0 => "0".into(),
        a if a < 0.001 => format!("{x:.1e}"),
        _ => figure(x),
    }
}
