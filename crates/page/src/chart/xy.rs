//! Lines and points over an axis: quantiles, intervals over time, sweeps.

use super::{
    MOST_SERIES,
    scale::{Axis, Scale},
    sheet::{fit, line, mark, polyline, rect, sheet, text, wide},
};
use crate::{markup::Markup, unit::Unit};

/// A chart of series over one axis, with strips of counts beneath.
#[derive(Debug, Clone, PartialEq)]
pub struct Xy {
    pub about: String,
    /// Name, scale and unit of the horizontal axis.
    pub x: (String, Scale, Unit),
    pub y: (String, Scale, Unit),
    /// At most [`MOST_SERIES`] are drawn.
    pub series: Vec<Series>,
    /// Ranges of the vertical axis: modes.
    pub bands: Vec<Band>,
    /// Counts by range of the horizontal axis.
    pub strips: Vec<Strip>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    pub name: String,
    pub points: Vec<Point>,
    /// Whether a line joins the points.
    pub joined: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    pub x: f64,
    pub y: f64,
    /// The ends of its interval.
    pub ends: Option<(f64, f64)>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Band {
    pub low: f64,
    pub high: f64,
    pub name: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Strip {
    pub name: String,
    /// Bins: lower end, upper end, number of values.
    pub counts: Vec<(f64, f64, f64)>,
}

const PLOT: f64 = 220.0;
const STRIP: f64 = 46.0;
const HEAD: f64 = 32.0;
const FOOT: f64 = 42.0;

/// The room of the plot on its sheet.
struct Room {
    left: f64,
    right: f64,
    width: f64,
}

impl Xy {
    pub(super) fn draw(&self, width: f64, class: &str, m: &mut Markup) {
        let drawn = || self.series.iter().take(MOST_SERIES);
        let points = || drawn().flat_map(|s| &s.points);
        let ranges = self.strips.iter().flat_map(|s| s.counts.iter().flat_map(|c| [c.0, c.1]));
        let x = Axis::tight(self.x.1, self.x.2, points().map(|p| p.x).chain(ranges));
        let ends = |p: &Point| p.ends.into_iter().flat_map(|(a, b)| [a, b]);
        let y = Axis::holding(self.y.1, self.y.2, points().flat_map(|p| ends(p).chain([p.y])));
        let ticks = y.ticks(5);
        let names = drawn().map(|s| wide(&s.name)).fold(0.0, f64::max);
        let bands = self.bands.iter().map(|b| wide(&b.name)).fold(0.0, f64::max);
        let room = Room {
            left: ticks.iter().map(|t| wide(&t.1)).fold(0.0, f64::max) + 12.0,
            right: (if self.bands.is_empty() { names } else { bands } + 14.0)
                .clamp(18.0, width * 0.3),
            width,
        };
        let floor = HEAD + PLOT;
        let height = floor + FOOT + STRIP * self.strips.len() as f64;
        let at = |p: (f64, f64)| {
            let wide = width - room.left - room.right;
            (room.left + x.at(p.0) * wide, floor - y.at(p.1) * PLOT)
        };
        sheet(m, (width, height), class, &self.about, |m| {
            text(m, (0.0, 12.0), "start", "name", &self.y.0);
            for (v, name) in &ticks {
                let y = at((0.0, *v)).1;
                line(m, (room.left, y), (width - room.right, y), "grid");
                text(m, (room.left - 8.0, y + 4.0), "end", "tick", name);
            }
            self.bands(m, &room, &at);
            let bottom = floor + STRIP * self.strips.len() as f64;
            line(m, (room.left, floor), (width - room.right, floor), "axis");
            self.foot(m, &x, &room, bottom, &at);
            for (n, strip) in self.strips.iter().enumerate() {
                draw_strip(m, strip, &room, floor + STRIP * n as f64, &|v| at((v, 0.0)).0);
            }
            self.series(m, &room, &at);
        });
    }

    /// The horizontal axis, without names that would run into one another.
    fn foot(
        &self,
        m: &mut Markup,
        x: &Axis,
        room: &Room,
        y: f64,
        at: &impl Fn((f64, f64)) -> (f64, f64),
    ) {
        let mut free = f64::NEG_INFINITY;
        // Sweeps are of few numbers, which are named themselves.
        let ticks = match self.x.1 {
            Scale::Log => {
                let mut all: Vec<f64> =
                    self.series.iter().flat_map(|s| &s.points).map(|p| p.x).collect();
                all.sort_by(f64::total_cmp);
                all.dedup();
                all.into_iter().map(|v| (v, self.x.2.show(v))).collect()
            }
            Scale::Linear | Scale::Nines => x.ticks(if room.width < 500.0 { 4 } else { 8 }),
        };
        for (v, name) in ticks {
            let middle = at((v, 0.0)).0;
            line(m, (middle, y), (middle, y + 4.0), "axis");
            if middle - wide(&name) / 2.0 > free {
                text(m, (middle, y + 17.0), "middle", "tick", &name);
                free = middle + wide(&name) / 2.0 + 4.0;
            }
        }
        text(m, (room.width - room.right, y + 34.0), "end", "name", &self.x.0);
    }

    fn bands(&self, m: &mut Markup, room: &Room, at: &impl Fn((f64, f64)) -> (f64, f64)) {
        for (n, band) in self.bands.iter().enumerate() {
            let (top, bottom) = (at((0.0, band.high)).1, at((0.0, band.low)).1);
            let size = (room.width - room.left - room.right, (bottom - top).max(2.0));
            rect(m, (room.left, top), size, if n % 2 == 0 { "band" } else { "band other" });
            let place = (room.width - room.right + 6.0, (top + bottom) / 2.0 + 4.0);
            text(m, place, "start", "tick", &fit(&band.name, room.right - 6.0));
        }
    }

    fn series(&self, m: &mut Markup, room: &Room, at: &impl Fn((f64, f64)) -> (f64, f64)) {
        let mut names: Vec<(f64, usize)> = vec![];
        // Intervals at one place stand side by side.
        let with = |s: &&Series| s.points.iter().any(|p| p.ends.is_some());
        let whiskers = self.series.iter().take(MOST_SERIES).filter(with).count();
        for (n, series) in self.series.iter().take(MOST_SERIES).enumerate() {
            let aside = 6.0 * (n as f64 - (whiskers as f64 - 1.0) / 2.0);
            let aside = if whiskers > 1 { aside } else { 0.0 };
            let place = |p: &Point| {
                let (x, y) = at((p.x, p.y));
                (x + aside, y)
            };
            let places: Vec<(f64, f64)> = series.points.iter().map(place).collect();
            if series.joined && places.len() > 1 {
                polyline(m, &places, &format!("line s{n}"));
            }
            for (p, place) in series.points.iter().zip(&places) {
                if let Some((low, high)) = p.ends {
                    let (bottom, top) = (at((p.x, low)).1, at((p.x, high)).1);
                    let class = format!("whisker s{n}");
                    line(m, (place.0, bottom), (place.0, top), &class);
                    for end in [bottom, top] {
                        line(m, (place.0 - 4.0, end), (place.0 + 4.0, end), &class);
                    }
                }
                if places.len() <= 40 {
                    mark(m, *place, n, &format!("mark s{n}"));
                }
            }
            names.extend(places.last().map(|p| (p.1, n)));
        }
        if !self.bands.is_empty() {
            return;
        }
        names.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut free = 8.0;
        for (y, n) in names {
            let y = (y + 4.0).max(free);
            free = y + 15.0;
            let name = self.series.get(n).map_or("", |s| &s.name);
            let place = (room.width - room.right + 8.0, y);
            text(m, place, "start", &format!("label t{n}"), &fit(name, room.right - 8.0));
        }
    }
}

/// Bars of counts beneath the plot, on the same horizontal axis.
fn draw_strip(m: &mut Markup, strip: &Strip, room: &Room, top: f64, x: &impl Fn(f64) -> f64) {
    let most = strip.counts.iter().map(|c| c.2).fold(0.0, f64::max);
    let floor = top + STRIP;
    line(m, (room.left, floor), (room.width - room.right, floor), "axis");
    let title = format!("{}, at most {} in an interval", strip.name, Unit::Count.show(most));
    text(m, (room.left + 2.0, top + 14.0), "start", "tick", &title);
    for (from, to, count) in strip.counts.iter().filter(|c| c.2 > 0.0) {
        let height = (count / most) * (STRIP - 20.0);
        let (from, to) = (x(*from), x(*to));
        rect(m, (from + 0.5, floor - height), ((to - from - 1.0).max(1.0), height), "count");
    }
}
