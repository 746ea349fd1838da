//! A heat map: rows by CPU, each cell with its share of the row.

use super::sheet::{fit, rect, sheet, text, wide};
use crate::{markup::Markup, unit::Unit};

/// Counts by row and column. Each row is shaded on its own.
#[derive(Debug, Clone, PartialEq)]
pub struct Heat {
    pub about: String,
    /// What the columns are: `CPU`.
    pub across: String,
    pub columns: Vec<String>,
    /// A label, and a count for each column; `None` where there is none.
    pub rows: Vec<(String, Vec<Option<f64>>)>,
}

const CELL: f64 = 30.0;
const HEAD: f64 = 22.0;

/// Steps of shade, as the style sheet has them.
const SHADES: f64 = 8.0;

impl Heat {
    pub(super) fn draw(&self, width: f64, class: &str, m: &mut Markup) {
        let narrow = width < 500.0;
        let longest = self.rows.iter().map(|r| wide(&r.0)).fold(0.0, f64::max);
        let left = if narrow { 0.0 } else { (longest + 12.0).min(width * 0.36) };
        let above = if narrow { 18.0 } else { 0.0 };
        let cell = ((width - left) / self.columns.len().max(1) as f64).min(96.0);
        let row = CELL + above;
        let height = HEAD + row * self.rows.len() as f64;
        sheet(m, (width, height), class, &self.about, |m| {
            self.head(m, left, cell);
            for (n, (label, counts)) in self.rows.iter().enumerate() {
                let top = HEAD + row * n as f64;
                match narrow {
                    true => text(m, (0.0, top + 13.0), "start", "label", &fit(label, width)),
                    false => {
                        let label = fit(label, left - 10.0);
                        text(m, (left - 10.0, top + 20.0), "end", "label", &label);
                    }
                }
                let sum: f64 = counts.iter().flatten().sum();
                for (c, count) in counts.iter().enumerate() {
                    let place = (left + cell * c as f64, top + above);
                    self.cell(m, place, cell, *count, sum);
                }
            }
        });
    }

    /// Names of the columns, as many as fit.
    fn head(&self, m: &mut Markup, left: f64, cell: f64) {
        let mut free = f64::NEG_INFINITY;
        for (n, name) in self.columns.iter().enumerate() {
            let name = if n == 0 { format!("{} {name}", self.across) } else { name.clone() };
            let middle = left + cell * (n as f64 + 0.5);
            let from = (middle - wide(&name) / 2.0).max(left);
            if from > free {
                text(m, (from, 13.0), "start", "tick", &name);
                free = from + wide(&name) + 4.0;
            }
        }
    }

    fn cell(&self, m: &mut Markup, (x, y): (f64, f64), wide_of: f64, count: Option<f64>, sum: f64) {
        let share = count.filter(|_| sum > 0.0).map(|c| c / sum);
        let shade = share.map_or(0.0, |s| (s * SHADES).ceil());
        let size = ((wide_of - 2.0).max(1.0), CELL - 2.0);
        rect(m, (x, y), size, &format!("heat h{shade:.0}"));
        let Some(share) = share.filter(|s| *s > 0.0) else { return };
        let shown = match share {
            s if s < 0.001 => "< 0.1%".to_owned(),
            s => Unit::Share.show(s),
        };
        if wide(&shown) + 4.0 < wide_of {
            let class = if shade > 4.0 { "tick on-dark" } else { "tick on-light" };
            text(m, (x + wide_of / 2.0 - 1.0, y + 18.0), "middle", class, &shown);
        }
    }
}
