//! A row for each name: a bar from 0, or a dot, with its interval and its figure beside it.

use super::{
    scale::{Axis, Scale},
    sheet::{fit, line, mark, rect, sheet, text, wide},
};
use crate::{markup::Markup, tone::Tone, unit::Unit};

/// Rows of bars or dots on one axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Rows {
    pub about: String,
    pub unit: Unit,
    /// Dots with intervals around a line at 0, for changes; otherwise bars from 0.
    pub changes: bool,
    pub rows: Vec<Row>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub label: String,
    /// `None` where it is not known: the row has its text alone.
    pub value: Option<f64>,
    /// The ends of its interval.
    pub ends: Option<(f64, f64)>,
    /// Printed at the end of the row.
    pub text: String,
    pub tone: Tone,
}

const HEIGHT: f64 = 30.0;
const AXIS: f64 = 28.0;

impl Rows {
    pub(super) fn draw(&self, width: f64, class: &str, m: &mut Markup) {
        let narrow = width < 500.0;
        let longest =
            |of: fn(&Row) -> &str| self.rows.iter().map(|r| wide(of(r))).fold(0.0, f64::max);
        let left = if narrow { 2.0 } else { (longest(|r| &r.label) + 12.0).min(width * 0.42) };
        let right = (longest(|r| &r.text) + 12.0).min(width * 0.42);
        let row = if narrow { HEIGHT + 14.0 } else { HEIGHT };
        let height = row * self.rows.len() as f64 + AXIS;
        let figures = self.rows.iter().flat_map(|r| {
            let ends = r.ends.into_iter().flat_map(|(a, b)| [a, b]);
            r.value.into_iter().chain(ends)
        });
        let axis = Axis::holding(Scale::Linear, self.unit, figures);
        let x = |v: f64| left + axis.at(v) * (width - left - right);
        sheet(m, (width, height), class, &self.about, |m| {
            let floor = height - AXIS;
            for (v, name) in axis.ticks(if narrow { 2 } else { 5 }) {
                let zero = if v == 0.0 { "axis" } else { "grid" };
                line(m, (x(v), 0.0), (x(v), floor + 4.0), zero);
                text(m, (x(v), floor + 18.0), "middle", "tick", &name);
            }
            for (n, r) in self.rows.iter().enumerate() {
                let top = row * n as f64;
                let middle = top + row / 2.0 + if narrow { 8.0 } else { 0.0 };
                match narrow {
                    true => text(m, (0.0, top + 14.0), "start", "label", &fit(&r.label, width)),
                    false => {
                        let label = fit(&r.label, left - 10.0);
                        text(m, (left - 10.0, middle + 4.0), "end", "label", &label);
                    }
                }
                self.row(m, r, middle, &x);
                let place = (width - right + 10.0, middle + 4.0);
                text(m, place, "start", "value", &fit(&r.text, right - 10.0));
            }
        });
    }

    fn row(&self, m: &mut Markup, r: &Row, y: f64, x: &impl Fn(f64) -> f64) {
        let tone = match r.tone {
            Tone::Good => "good",
            Tone::Bad => "bad",
            Tone::Warn => "warn",
            Tone::Plain | Tone::Strong | Tone::Code => "s0",
        };
        if let (Some(v), false) = (r.value, self.changes) {
            let (from, to) = (x(0.0).min(x(v)), x(0.0).max(x(v)));
            rect(m, (from, y - 7.0), (to - from, 14.0), &format!("bar {tone}"));
        }
        if let Some((low, high)) = r.ends {
            let class = format!("whisker {tone}");
            line(m, (x(low), y), (x(high), y), &class);
            for end in [low, high] {
                line(m, (x(end), y - 5.0), (x(end), y + 5.0), &class);
            }
        }
        if let (Some(v), true) = (r.value, self.changes) {
            mark(m, (x(v), y), 0, &format!("mark {tone}"));
        }
    }
}
