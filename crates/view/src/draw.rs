//! Draws one screen: header, grid of CPUs, tables, keys.

use std::borrow::Cow;

use model::watch::{WatchInterval, WatchRecord};
use ratatui::{
    buffer::Buffer,
    layout::Rect,
    text::{Line, Span},
    widgets::Widget,
};
use report::{
    clean,
    watch::{
        clock,
        contexts::{self, Context},
        costs, traffic,
    },
};

use crate::{
    Screen, grid, help,
    ink::Ink,
    pane,
    state::{Pane, ViewState},
};

/// Lines of the screen outside the grid and the tables.
const FRAME: u16 = 6;

/// Draws a screen of any size.
pub fn draw(screen: &Screen<'_>, area: Rect, buffer: &mut Buffer) {
    let ink = Ink { colour: screen.colour };
    let mut paper = Paper { area: area.intersection(buffer.area), buffer, y: 0 };
    let shown = screen.record.map(|r| filtered(r, screen.state));
    let width = usize::from(area.width);
    paper.put(title(screen, shown.as_deref(), width, ink));
    if let Some(help) = screen.state.help {
        help::lines(help, screen.state.pane).into_iter().for_each(|l| paper.put(Line::from(l)));
        return;
    }
    let Some(interval) = shown.as_deref() else {
        paper.put(Line::from("attaching, and waiting for the first interval ..."));
        paper.bottom(keys(screen.state, width, ink));
        return;
    };
    let traffic = traffic(interval).unwrap_or_else(|| "RX, TX: not sampled (table 7)".into());
    paper.put(Line::from(clean(&traffic)));
    paper.put(about(screen.state, interval, ink));
    paper.put(legend(interval, ink));
    let room = usize::from(area.height.saturating_sub(FRAME));
    let most = (room / 2).max(room.min(4));
    for line in grid::lines(interval, screen.host, ink, width, most) {
        paper.put(line);
    }
    paper.put(tabs(screen.state, width, ink));
    let left = usize::from(area.height.saturating_sub(paper.y + 1));
    for line in pane::lines(screen, interval, ink, width, left) {
        paper.put(line);
    }
    paper.bottom(keys(screen.state, width, ink));
}

/// The interval without what the filter excludes.
fn filtered<'a>(record: &'a WatchRecord, state: &ViewState) -> Cow<'a, WatchInterval> {
    if state.only.filter.is_empty() {
        return Cow::Borrowed(&record.interval);
    }
    let mut interval = record.interval.clone();
    state.only.filter.apply(&mut interval);
    Cow::Owned(interval)
}

/// Draws lines below one another; lines beyond the last row are left out.
struct Paper<'a> {
    area: Rect,
    buffer: &'a mut Buffer,
    y: u16,
}

impl Paper<'_> {
    fn put(&mut self, line: Line<'_>) {
        self.at(self.y, line);
        self.y = self.y.saturating_add(1);
    }

    fn bottom(&mut self, line: Line<'_>) {
        self.at(self.area.height.saturating_sub(1), line);
    }

    fn at(&mut self, y: u16, line: Line<'_>) {
        if y >= self.area.height || self.area.width == 0 {
            return;
        }
        let row = Rect { x: self.area.x, y: self.area.y + y, width: self.area.width, height: 1 };
        // The previous line may have been longer.
        for x in row.x..row.right() {
            if let Some(cell) = self.buffer.cell_mut((x, row.y)) {
                cell.reset();
            }
        }
        line.render(row, self.buffer);
    }
}

fn title(
    screen: &Screen<'_>,
    interval: Option<&WatchInterval>,
    width: usize,
    ink: Ink,
) -> Line<'static> {
    let known = |r: &model::Reading<String>| r.known().map(|t| clean(t)).unwrap_or_default();
    let state = screen.state;
    let doing = match (state.place, state.paused) {
        (Some(p), true) => format!("REPLAY {}/{} PAUSED", p.at + 1, p.of),
        (Some(p), false) => format!("REPLAY {}/{}", p.at + 1, p.of),
        (None, true) => "PAUSED".into(),
        (None, false) => "LIVE".into(),
    };
    let when = interval.map_or_else(String::new, |i| {
        format!("  {}  {:.2} s", clock(i.ended_unix_ns.0), i.interval_s)
    });
    let who =
        format!("netwright watch  {} {}", known(&screen.host.name), known(&screen.host.kernel));
    let room = width.saturating_sub(doing.len() + 1);
    let left: String = format!("{}{when}", who.trim_end()).chars().take(room).collect();
    let gap = width.saturating_sub(report::text::width(&left) + doing.len());
    let style = if state.paused { ink.chosen() } else { ink.strong() };
    Line::from(vec![
        Span::styled(left, ink.strong()),
        Span::raw(" ".repeat(gap)),
        Span::styled(doing, style),
    ])
}

/// The probe overhead and the observed share, and what is filtered.
fn about(state: &ViewState, interval: &WatchInterval, ink: Ink) -> Line<'static> {
    if let Some(line) = &state.editing {
        let text = format!("filter: {line}_   (enter: apply, esc: leave; words, nic:, cpu:, pid:)");
        return Line::from(Span::styled(clean(&text), ink.chosen()));
    }
    let note = state.note.as_ref().map(|note| format!("{note}  (esc)"));
    if let Some(text) = state.only.wrong.clone().or(note) {
        return Line::from(Span::styled(clean(&text), ink.warn()));
    }
    let mut text = costs(interval);
    if !state.only.text.is_empty() {
        text = format!("{text}   filter: {}", clean(&state.only.text));
    }
    Line::from(text)
}

/// The legend of the bars' letters, and the scale.
fn legend(interval: &WatchInterval, ink: Ink) -> Line<'static> {
    let measured = contexts::measured(interval);
    let (what, all) = match measured {
        true => ("softirq", Context::MEASURED),
        false => ("/proc/stat", Context::CLAIMED),
    };
    let full = contexts::scale(interval) * 100.0;
    let mut spans = vec![Span::raw(format!("{what}, full bar {full:.0}%: "))];
    for context in all {
        spans.push(Span::styled(format!(" {}", context.letter()), ink.context(context)));
        spans.push(Span::raw(format!(" {}", context.name())));
    }
    if !measured {
        spans.push(Span::styled("  why: see 8", ink.warn()));
    }
    Line::from(spans)
}

fn tabs(state: &ViewState, width: usize, ink: Ink) -> Line<'static> {
    let mut spans = vec![];
    for (i, pane) in Pane::ALL.into_iter().enumerate() {
        let (long, short) = pane.names();
        let name = if width >= 110 { long } else { short };
        let count = match pane {
            Pane::Findings if !state.found.is_empty() => format!(" {}", state.found.len()),
            _ => String::new(),
        };
        let chosen = state.pane == pane;
        let text = match chosen {
            true => format!("[{}{name}{count}]", i + 1),
            false => format!(" {}{name}{count} ", i + 1),
        };
        spans.push(Span::styled(text, if chosen { ink.chosen() } else { ink.faint() }));
    }
    Line::from(spans)
}

fn keys(state: &ViewState, width: usize, ink: Ink) -> Line<'static> {
    let text = match (state.place.is_some(), width >= 110) {
        (true, true) => {
            "q quit  space play/pause  left/right interval  home/end  tab table  s/r sort  f filter  \
             up/down rows  </> columns  ? help"
        }
        (true, false) => {
            "q quit  space play  left/right seek  tab table  s/r sort  f filter  ? help"
        }
        (false, true) => {
            "q quit  space pause  tab table  s/r sort  f filter  t threads  up/down rows  </> columns  \
             ? help"
        }
        (false, false) => "q quit  space pause  tab table  s/r sort  f filter  </> columns  ? help",
    };
    Line::from(Span::styled(text, ink.faint()))
}
