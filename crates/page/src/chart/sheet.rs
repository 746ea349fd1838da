//! The sheet that a chart is drawn on: texts, lines and marks whose colours are the style sheet's.

use crate::markup::Markup;

/// The size of all texts of a chart, in px.
pub const TEXT: f64 = 12.0;

/// The width of a text, rounded up to the widest of the usual fonts.
pub fn wide(text: &str) -> f64 {
    text.chars().count() as f64 * TEXT * 0.58
}

/// The text, cut with `…` where it is wider than `room`.
pub fn fit(text: &str, room: f64) -> String {
    if wide(text) <= room {
        return text.to_owned();
    }
    let most = (room / (TEXT * 0.58)).floor().max(2.0) as usize - 1;
    let head: String = text.chars().take(most).collect();
    format!("{}…", head.trim_end())
}

/// A whole picture of a size, with what it shows.
pub fn sheet(
    m: &mut Markup,
    (w, h): (f64, f64),
    class: &str,
    about: &str,
    f: impl FnOnce(&mut Markup),
) {
    let size = format!("0 0 {w:.0} {h:.0}");
    let (w, h) = (format!("{w:.0}"), format!("{h:.0}"));
    let attributes: [crate::markup::Attribute<'_>; 6] = [
        ("class", &class),
        ("viewBox", &size),
        ("width", &w),
        ("height", &h),
        ("role", &"img"),
        ("aria-label", &about),
    ];
    m.element("svg", &attributes, f);
}

/// A text with its base line at `y`. `anchor`: `start`, `middle` or `end`.
pub fn text(m: &mut Markup, (x, y): (f64, f64), anchor: &str, class: &str, text: &str) {
    let (x, y) = (format!("{x:.1}"), format!("{y:.1}"));
    m.says("text", &[("x", &x), ("y", &y), ("text-anchor", &anchor), ("class", &class)], text);
}

pub fn line(m: &mut Markup, (x1, y1): (f64, f64), (x2, y2): (f64, f64), class: &str) {
    let [x1, y1, x2, y2] = [x1, y1, x2, y2].map(|n| format!("{n:.1}"));
    m.leaf("line", &[("x1", &x1), ("y1", &y1), ("x2", &x2), ("y2", &y2), ("class", &class)]);
}

pub fn rect(m: &mut Markup, (x, y): (f64, f64), (w, h): (f64, f64), class: &str) {
    let [x, y, w, h] = [x, y, w.max(0.0), h.max(0.0)].map(|n| format!("{n:.1}"));
    m.leaf("rect", &[("x", &x), ("y", &y), ("width", &w), ("height", &h), ("class", &class)]);
}

/// A mark of a series: each has a shape of its own besides its colour.
pub fn mark(m: &mut Markup, (x, y): (f64, f64), series: usize, class: &str) {
    let r = 3.5;
    let points = match series % 3 {
        0 => {
            let [x, y, r] = [x, y, r].map(|n| format!("{n:.1}"));
            return m.leaf("circle", &[("cx", &x), ("cy", &y), ("r", &r), ("class", &class)]);
        }
        1 => vec![(x - r, y - r), (x + r, y - r), (x + r, y + r), (x - r, y + r)],
        _ => vec![(x, y - r - 1.0), (x + r + 1.0, y + r), (x - r - 1.0, y + r)],
    };
    m.leaf("polygon", &[("points", &path(&points)), ("class", &class)]);
}

/// A line through points.
pub fn polyline(m: &mut Markup, points: &[(f64, f64)], class: &str) {
    m.leaf("polyline", &[("points", &path(points)), ("class", &class)]);
}

fn path(points: &[(f64, f64)]) -> String {
    points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect::<Vec<_>>().join(" ")
}
