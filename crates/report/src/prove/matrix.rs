//! A placement matrix as a heat map. Rows are CPUs of the workload or their classes, columns those
//! of the server or of the interrupts. Each cell is compared with the best.

use model::{
    prove::{LevelResult, Outcome, ProveDocument},
    units::figure,
};

use super::share;
use crate::text::{Ink, Line, Page, Table};

/// The settings that columns can have, with their headings.
const COLUMNS: [(&str, &str); 2] = [("peer_cpu", "server on"), ("irq_cpu", "interrupts on")];

/// The heat map and its legend.
pub(super) fn show(d: &ProveDocument, page: &mut Page) {
    let of = |name: &str| {
        let mut seen: Vec<Option<&String>> = Vec::new();
        for level in d.levels.iter().map(|l| l.settings.get(name)) {
            if !seen.contains(&level) {
                seen.push(level);
            }
        }
        seen
    };
    let has = |name: &str| d.levels.iter().any(|l| l.settings.contains_key(name));
    let by_class = has("class");
    let row_key = if by_class { "class" } else { "cpu" };
    let (key, head) = COLUMNS.into_iter().find(|(key, _)| has(key)).unwrap_or(("", ""));
    let (here, there) = (of(row_key), of(key));
    let heading = |t: Table, c: &Option<&String>| match c {
        Some(cpu) => t.right(&format!("{head} {cpu}")),
        None => t.right(&d.goal),
    };
    let mut table = there.iter().fold(Table::new().left(row_key), heading);
    for row in &here {
        let mut line = vec![Line::plain(row.map_or("", String::as_str))];
        for column in &there {
            let cell = d
                .levels
                .iter()
                .find(|l| l.settings.get(row_key) == *row && l.settings.get(key) == *column);
            line.push(cell.map_or(Line::plain("-"), |l| heat(l, &d.goal, by_class)));
        }
        table.row(line);
    }
    page.table(&table, 0);
    let whose = if by_class {
        " `CPU n`: the CPU that was tried for its class; `-`: not tried."
    } else {
        ""
    };
    let text = format!(
        "Each cell: {} and its distance from the best; `=`: within noise of the best.{whose}",
        d.goal
    );
    page.line(Line::plain(text), 2);
}

fn heat(level: &LevelResult, goal: &str, by_class: bool) -> Line {
    let Some(at) = level.medians.get(goal).map(|m| figure(*m)) else { return Line::plain("-") };
    let cpu = level.settings.get("cpu").filter(|_| by_class);
    let line = cpu.map_or(Line::new(), |cpu| Line::new().ink(Ink::Faint, format!("CPU {cpu}: ")));
    let Some(v) = &level.against_best else {
        return line.ink(Ink::Good, format!("{at} best"));
    };
    match v.outcome {
        Outcome::Worse => {
            let Some(effect) = v.effect else { return line.text(at) };
            let hot = if effect.abs() > 0.2 { Ink::Bad } else { Ink::Warn };
            // Signed as in the line of the next best: a longer time, a lower rate.
            let by = share(effect, v.difference, true);
            line.text(at).text(" ").ink(hot, by)
        }
        Outcome::Undecided => line.text(at),
        _ => line.text(format!("{at} =")),
    }
}
