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
    palette::Palette,
    pane,
    state::{Pane, ViewState},
};

/// Lines of the screen outside the grid and the tables.
const FRAME: u16 = 6;

/// Draws a screen of any size.
pub fn draw(screen: &Screen<'_>, area: Rect, buffer: &mut Buffer) {
    let palette = Palette { colour: screen.colour };
    let mut canvas = Canvas { area: area.intersection(buffer.area), buffer, y: 0 };
    let shown = screen.record.map(|r| filtered(r, screen.state));
    let width = usize::from(area.width);
    canvas.put(title(screen, shown.as_deref(), width, palette));
    if let Some(help) = screen.state.help {
        help::lines(help, screen.state.pane).into_iter().for_each(|l| canvas.put(Line::from(l)));
        return;
    }
    let Some(interval) = shown.as_deref() else {
        canvas.put(Line::from("attaching, and waiting for the first interval ..."));
        canvas.bottom(keys(screen.state, width, palette));
        return;
    };
    let traffic = traffic(interval).map(|t| t.to_string());
    let traffic = traffic.unwrap_or_else(|| "RX, TX: not sampled (table 7)".into());
    canvas.put(Line::from(clean(&traffic)));
    canvas.put(about(screen.state, interval, palette));
    canvas.put(legend(interval, palette));
    let room = usize::from(area.height.saturating_sub(FRAME));
    let most = (room / 2).max(room.min(4));
    for line in grid::lines(interval, screen.host, palette, width, most) {
        canvas.put(line);
    }
    canvas.put(tabs(screen.state, width, palette));
    let left = usize::from(area.height.saturating_sub(canvas.y + 1));
    for line in pane::lines(screen, interval, palette, width, left) {
        canvas.put(line);
    }
    canvas.bottom(keys(screen.state, width, palette));
}

/// The interval without what the filter excludes.
fn filtered<'a>(record: &'a WatchRecord, state: &ViewState) -> Cow<'a, WatchInterval> {
    if state.row_filter.filter.is_empty() {
        return Cow::Borrowed(&record.interval);
    }
    let mut interval = record.interval.clone();
    state.row_filter.filter.apply(&mut interval);
    Cow::Owned(interval)
}

/// Draws lines below one another; lines beyond the last row are left out.
struct Canvas<'a> {
    area: Rect,
    buffer: &'a mut Buffer,
    y: u16,
}

impl Canvas<'_> {
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
    palette: Palette,
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
    let style = if state.paused { palette.chosen() } else { palette.strong() };
    Line::from(vec![
        Span::styled(left, palette.strong()),
        Span::raw(" ".repeat(gap)),
        Span::styled(doing, style),
    ])
}

/// The probe overhead and the observed share, and what is filtered.
fn about(state: &ViewState, interval: &WatchInterval, palette: Palette) -> Line<'static> {
    if let Some(line) = &state.editing {
        let text = format!("filter: {line}_   (enter: apply, esc: leave; words, nic:, cpu:, pid:)");
        return Line::from(Span::styled(clean(&text), palette.chosen()));
    }
    let note = state.note.as_ref().map(|note| format!("{note}  (esc)"));
    if let Some(text) = state.row_filter.wrong.clone().or(note) {
        return Line::from(Span::styled(clean(&text), palette.warn()));
    }
    let mut text = costs(interval);
    if !state.row_filter.text.is_empty() {
        text = format!("{text}   filter: {}", clean(&state.row_filter.text));
    }
    Line::from(text)
}

/// The legend of the bars' letters, and the scale.
fn legend(interval: &WatchInterval, palette: Palette) -> Line<'static> {
    let measured = contexts::measured(interval);
    let (what, all) = match measured {
        true => ("softirq", Context::MEASURED),
        false => ("/proc/stat", Context::CLAIMED),
    };
    let full = contexts::scale(interval) * 100.0;
    let mut spans = vec![Span::raw(format!("{what}, full bar {full:.0}%: "))];
    for context in all {
        spans.push(Span::styled(format!(" {}", context.letter()), palette.context(context)));
        spans.push(Span::raw(format!(" {}", context.name())));
    }
    if !measured {
        spans.push(Span::styled("  why: see 8", palette.warn()));
    }
    Line::from(spans)
}

fn tabs(state: &ViewState, width: usize, palette: Palette) -> Line<'static> {
    let mut spans = vec![];
    for pane in Pane::ALL {
        let (long, short) = pane.names();
        let name = if width >= 110 { long } else { short };
        let count = match pane {
            Pane::Findings if !state.found.is_empty() => format!(" {}", state.found.len()),
            _ => String::new(),
        };
        let chosen = state.pane == pane;
        let text = match chosen {
            true => format!("[{}{name}{count}]", pane.key()),
            false => format!(" {}{name}{count} ", pane.key()),
        };
        spans.push(Span::styled(text, if chosen { palette.chosen() } else { palette.faint() }));
    }
    Line::from(spans)
}

fn keys(state: &ViewState, width: usize, palette: Palette) -> Line<'static> {
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
    Line::from(Span::styled(text, palette.faint()))
}
