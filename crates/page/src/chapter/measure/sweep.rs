//! Runs that differ in one number: the rate and the median over it, with their intervals.

use super::{super::shared::capital, Form};
use crate::{
    block::{Cell, Chapter, Table},
    chart::{Point, Scale, Series, Xy},
    document::Document,
    unit::Unit,
};

/// Draws the sweep, where the runs are one: three or more of them, in one number.
pub fn show(d: &Document, form: &Form, chapter: &mut Chapter) {
    let runs = d.len("/runs");
    let values = |key: &str| -> Vec<Option<f64>> {
        (0..runs).map(|n| d.number(&format!("/runs/{n}/{key}"))).collect()
    };
    let differs = |key: &str| {
        let all = values(key);
        all.iter().any(|v| Some(v) != all.first())
    };
    let mut moving: Vec<_> = form.aspects.iter().filter(|a| differs(a.0)).collect();
    if let [a, b] = moving.as_slice() {
        // A response of the request's size is the same number.
        if values(a.0) == values(b.0) {
            moving.truncate(1);
        }
    }
    let [(key, name, unit)] = moving.as_slice() else { return };
    let xs: Vec<f64> = values(key).into_iter().flatten().collect();
    if xs.len() != runs || runs < 3 {
        return;
    }
    chapter.heading(format!("Sweep over {name}"));
    let rate = format!("{}_interval", form.rate);
    draw(d, (key, name, *unit, &xs), ("Rate", form.rate, &rate, form.unit), chapter);
    if let (Some(interval), Some((lead, what))) = (form.median, form.distributions.first()) {
        let median = (format!("Median {what}"), format!("{lead}/p50"));
        draw(d, (key, name, *unit, &xs), (&median.0, &median.1, interval, Unit::Nanos), chapter);
    }
}

fn draw(
    d: &Document,
    (key, name, unit, xs): (&str, &str, Unit, &[f64]),
    (what, value, interval, of): (&str, &str, &str, Unit),
    chapter: &mut Chapter,
) {
    let title = format!("{} by {name}, with its 95% interval", capital(what));
    let mut table = Table::new(&title)
        .words("run")
        .figures(name)
        .figures(what.to_lowercase())
        .figures("from")
        .figures("to");
    let mut points = vec![];
    for (n, x) in xs.iter().enumerate() {
        let at = |key: &str| format!("/runs/{n}/{key}");
        let (low, high) = (at(&format!("{interval}/low")), at(&format!("{interval}/high")));
        table.row([
            Cell::text(format!("{}", n + 1)),
            d.cell(&at(key), unit),
            d.cell(&at(value), of),
            d.cell(&low, of),
            d.cell(&high, of),
        ]);
        points.extend(d.number(&at(value)).map(|y| Point { x: *x, y, ends: d.ends(&low, &high) }));
    }
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    let most = xs.iter().copied().fold(0.0, f64::max);
    let least = xs.iter().copied().fold(f64::INFINITY, f64::min);
    let scale = if least > 0.0 && most / least >= 8.0 { Scale::Log } else { Scale::Linear };
    let chart = Xy {
        about: format!("{title}."),
        x: (name.to_owned(), scale, unit),
        y: (capital(what), Scale::Linear, of),
        series: vec![Series { name: String::new(), points, joined: true }],
        bands: vec![],
        strips: vec![],
    };
    chapter.figure(chart, table);
}
