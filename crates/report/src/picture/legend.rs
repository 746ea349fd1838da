//! The legend of the marks.

use super::{
    draw::{ALARM, DISC, FAINT, INK, Scene},
    marks::{COLOURS, colour},
    svg::{Font, Paint, Svg, fit, text_width},
};
use crate::words::many;

const LINE: f64 = 20.0;
const SIZE: f64 = 11.0;

enum Mark<'a> {
    Chip(&'static str),
    Hollow,
    Away,
    Disc(char),
    Cell(Paint<'a>),
}

/// Draws the legend in rows of at most `width`; returns the y below it.
pub fn draw(scene: &Scene<'_>, (x, y): (f64, f64), width: f64, out: &mut Svg) -> f64 {
    let entries: Vec<(Mark<'_>, String)> = entries(scene);
    let widest = entries.iter().map(|(_, t)| text_width(t, SIZE)).fold(0.0, f64::max);
    let column = (widest + 40.0).min(width);
    let columns = (width / column).floor().max(1.0) as usize;
    for (i, (mark, text)) in entries.iter().enumerate() {
        let at = (x + (i % columns) as f64 * column, y + (i / columns) as f64 * LINE);
        paint(mark, at, out);
        let text = fit(text, SIZE, column - 24.0);
        out.text((at.0 + 20.0, at.1 + 10.0), Font::new(SIZE, INK), &text);
    }
    let mut top = y + entries.len().div_ceil(columns) as f64 * LINE;
    for note in &scene.marks.left_out {
        out.text((x, top + 10.0), Font::new(SIZE, FAINT), &fit(note, SIZE, width));
        top += LINE;
    }
    top
}

fn entries<'a>(scene: &Scene<'_>) -> Vec<(Mark<'a>, String)> {
    let mut list = vec![];
    let all = || scene.marks.landings.values().flatten();
    let with: Vec<usize> =
        scene.drawn.iter().copied().filter(|nic| all().any(|l| l.nic == *nic)).collect();
    for nic in with.iter().take(COLOURS.len() - 1) {
        let name = scene.facts.nics.get(*nic).map(|n| n.name.clone()).unwrap_or_default();
        list.push((Mark::Chip(colour(*nic, &scene.drawn)), format!("interrupts of {name}")));
    }
    if with.len() >= COLOURS.len() {
        let more = with.len() + 1 - COLOURS.len();
        let last = COLOURS.last().copied().unwrap_or("#4b5563");
        list.push((Mark::Chip(last), format!("interrupts of {}", many(more, "other NIC"))));
    }
    if all().any(|l| l.shared) {
        list.push((Mark::Hollow, "may go to other CPUs too".into()));
    }
    if all().any(|l| l.away) {
        list.push((Mark::Away, "lands on another node than its NIC's".into()));
    }
    for g in &scene.marks.groups {
        let how_many = match g.processes {
            1 => many(g.threads, "thread"),
            n => format!("{n} processes, {}", many(g.threads, "thread")),
        };
        list.push((Mark::Disc(g.letter), format!("{} ({how_many}) last ran here", g.name)));
    }
    let cpus = &scene.facts.cpus;
    if cpus.iter().any(|c| c.online == model::Reading::Known(false)) {
        let paint = Paint { dashed: true, ..Paint::framed("#f3f4f6", "#9ca3af") };
        list.push((Mark::Cell(paint), "offline".into()));
    }
    if cpus.iter().any(|c| c.isolated == model::Reading::Known(true)) {
        let paint = Paint { width: 1.6, ..Paint::framed("#ffffff", INK) };
        list.push((Mark::Cell(paint), "isolated".into()));
    }
    list
}

fn paint(mark: &Mark<'_>, (x, y): (f64, f64), out: &mut Svg) {
    let chip = |p: Paint<'_>, out: &mut Svg| out.rect((x + 1.0, y), (13.0, 12.0), 2.0, p);
    match mark {
        Mark::Chip(ink) => chip(Paint::framed(ink, ink), out),
        Mark::Hollow => chip(Paint::framed("#ffffff", "#4b5563"), out),
        Mark::Away => {
            chip(Paint { width: 2.0, ..Paint::framed("#9ca3af", ALARM) }, out);
        }
        Mark::Disc(letter) => {
            out.circle((x + 7.5, y + 6.0), 7.0, Paint::fill(DISC));
            let font = Font::new(10.0, "#ffffff").bold().centred();
            out.text((x + 7.5, y + 9.6), font, &letter.to_string());
        }
        Mark::Cell(p) => chip(*p, out),
    }
}
