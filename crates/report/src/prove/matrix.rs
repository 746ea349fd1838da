//! A placement matrix as a heat map: a row for each CPU of this end, a column for each of the
//! far end, each cell against the best.

use model::prove::{LevelResult, Outcome, ProveDocument};

use super::{figure, share};
use crate::text::{Ink, Line, Page, Table};

/// The map, and what its marks mean.
pub(super) fn show(d: &ProveDocument, page: &mut Page) {
    let of = |name: &str| {
        let mut seen: Vec<&String> = Vec::new();
        for level in d.levels.iter().filter_map(|l| l.settings.get(name)) {
            if !seen.contains(&level) {
                seen.push(level);
            }
        }
        seen
    };
    let (here, there) = (of("cpu"), of("peer_cpu"));
    let head = |t: Table, c: &&String| t.right(&format!("far {c}"));
    let mut table = there.iter().fold(Table::new().left("cpu"), head);
    for cpu in &here {
        let mut row = vec![Line::plain(cpu)];
        for peer in &there {
            let cell = d.levels.iter().find(|l| {
                l.settings.get("cpu") == Some(cpu) && l.settings.get("peer_cpu") == Some(peer)
            });
            row.push(cell.map_or(Line::new(), |l| heat(l, &d.goal)));
        }
        table.row(row);
    }
    page.table(&table, 0);
    let text = format!("{}, and how much worse than the best; `=` is within its noise.", d.goal);
    page.line(Line::plain(text), 2);
}

fn heat(level: &LevelResult, goal: &str) -> Line {
    let Some(at) = level.medians.get(goal).map(|m| figure(*m)) else { return Line::plain("-") };
    let Some(v) = &level.against_best else {
        return Line::new().ink(Ink::Good, format!("{at} best"));
    };
    match v.outcome {
        Outcome::Worse => {
            let hot = if v.effect.abs() > 0.2 { Ink::Bad } else { Ink::Warn };
            let by = share(v.effect.abs(), v.difference, false);
            Line::plain(at).text(" ").ink(hot, format!("-{by}"))
        }
        Outcome::Undecided => Line::plain(at),
        _ => Line::plain(format!("{at} =")),
    }
}
