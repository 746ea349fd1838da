//! The contents of each table.

use model::{
    Severity,
    watch::{WatchHost, WatchInterval},
};
use ratatui::text::{Line, Span};
use report::{
    clean,
    watch::{
        accounting, clock,
        counters::counters,
        interrupted_tasks,
        listing::{self, Listing},
        missing, panes,
    },
};

use crate::{
    Screen,
    palette::Palette,
    state::{Pane, TableView, ViewState},
    table::{self, SortOrder, TableLayout, wrapped},
};

/// Tables that fill the rows left by the chosen one, in this order.
const BELOW: [Pane; 6] = [
    Pane::InterruptedTasks,
    Pane::Senders,
    Pane::Queues,
    Pane::Waits,
    Pane::MigratedThreads,
    Pane::Counters,
];

/// The least room for a further table: a blank line, its name, its head and two rows.
const ROOM_BELOW: usize = 5;

/// The chosen table in this room, then others with rows in the rest.
pub fn lines(
    screen: &Screen<'_>,
    interval: &WatchInterval,
    palette: Palette,
    width: usize,
    height: usize,
) -> Vec<Line<'static>> {
    let mut all = chosen(screen, interval, palette, width, height);
    for pane in BELOW.into_iter().filter(|pane| *pane != screen.state.pane) {
        let room = height.saturating_sub(all.len());
        if room < ROOM_BELOW {
            break;
        }
        let mut list = listing(pane, interval, screen.host, screen.state.threads);
        list.keep(&screen.state.row_filter.words);
        let list = list.without_empty_columns();
        if !list.rows.is_empty() {
            let sorted = comes_by(pane, false);
            let layout =
                TableLayout { palette, scroll: 0, aside: 0, sorted, height: room - 2, width };
            all.push(Line::default());
            all.push(Line::from(Span::styled(pane.title(), palette.strong())));
            all.extend(table::lines(&list, &layout));
        }
    }
    all
}

fn chosen(
    screen: &Screen<'_>,
    interval: &WatchInterval,
    palette: Palette,
    width: usize,
    height: usize,
) -> Vec<Line<'static>> {
    let state = screen.state;
    if state.pane == Pane::Findings {
        return window(found(screen, interval, palette, width), state.scroll, height);
    }
    let mut list = listing(state.pane, interval, screen.host, state.threads);
    let sorted = arrange(&mut list, state);
    list.keep(&state.row_filter.words);
    let list = list.without_empty_columns();
    let behind = behind(state.pane, &list, interval, palette, width);
    if state.pane == Pane::Programs {
        let layout = TableLayout {
            palette,
            scroll: 0,
            aside: state.aside,
            sorted,
            height: usize::MAX,
            width,
        };
        let mut all = table::lines(&list, &layout);
        all.extend(behind);
        return window(all, state.scroll, height);
    }
    let room = height.saturating_sub(behind.len());
    let layout = TableLayout {
        palette,
        scroll: state.scroll,
        aside: state.aside,
        sorted,
        height: room,
        width,
    };
    let mut all = table::lines(&list, &layout);
    all.extend(behind);
    all
}

/// Sorts the rows; returns the column and direction.
fn arrange(list: &mut Listing, state: &ViewState) -> Option<SortOrder> {
    let reversed = state.is_reversed();
    let by = state.sorted_by(list.columns.len());
    if let Some(at) = by {
        list.sort(at);
    }
    if reversed {
        list.rows.reverse();
    }
    // Numbers sort from the largest, text from the smallest.
    let chosen = by.and_then(|at| list.columns.get(at));
    let chosen = chosen.map(|c| SortOrder { head: c.head, falls: c.right != reversed });
    chosen.or_else(|| comes_by(state.pane, reversed))
}

/// The column that a table is sorted by at first.
fn comes_by(pane: Pane, reversed: bool) -> Option<SortOrder> {
    let largest_first = matches!(pane, Pane::InterruptedTasks | Pane::MigratedThreads);
    Some(SortOrder { head: pane.comes_by()?, falls: largest_first != reversed })
}

fn listing(pane: Pane, interval: &WatchInterval, host: &WatchHost, threads: bool) -> Listing {
    match pane {
        Pane::Cpus => panes::cpus(interval, host),
        Pane::Queues => panes::queues(interval),
        Pane::InterruptedTasks => interrupted_tasks::interrupted_tasks(interval, threads),
        Pane::Waits => panes::waits(interval),
        Pane::MigratedThreads => panes::migrated_threads(interval),
        Pane::Messages => panes::messages(interval),
        Pane::Counters => counters(interval),
        Pane::Senders => panes::senders(interval),
        Pane::Programs | Pane::Findings => panes::programs(interval),
    }
}

/// Notes below a table. The table of programs also has everything that is not visible, and why.
fn behind(
    pane: Pane,
    list: &Listing,
    interval: &WatchInterval,
    palette: Palette,
    width: usize,
) -> Vec<Line<'static>> {
    let plain = |lines: Vec<String>| lines.into_iter().map(Line::from);
    let mut all = vec![];
    if let Some(note) = &list.note {
        all.extend(plain(wrapped(&clean(note), 0, width)));
    }
    if let Some(why) = accounting(interval).filter(|_| pane == Pane::Cpus) {
        all.extend(plain(wrapped(&format!("/proc si: {why}"), 0, width)));
    }
    if pane == Pane::Programs {
        if let Some(ns) = interval.observer.attach_ns.known() {
            all.push(Line::from(format!("attached after {}", listing::time(ns.0))));
        }
        all.push(Line::from(Span::styled("not seen, and why", palette.strong())));
        for m in missing(interval) {
            all.extend(plain(wrapped(&clean(&format!("{}: {}", m.what, m.why)), 0, width)));
        }
    }
    all
}

/// The findings so far: by severity, then by when they were first seen.
fn found(
    screen: &Screen<'_>,
    interval: &WatchInterval,
    palette: Palette,
    width: usize,
) -> Vec<Line<'static>> {
    let now = interval.ended_unix_ns.0;
    let mut seen: Vec<&TableView> =
        screen.state.found.iter().filter(|s| s.since_unix_ns <= now).collect();
    seen.sort_by_key(|s| (std::cmp::Reverse(s.finding.severity), s.since_unix_ns));
    let words = &screen.state.row_filter.words;
    let fits = |s: &&&TableView| {
        let text = format!("{} {} {}", s.finding.rule, s.finding.title, s.finding.subject);
        words.iter().all(|w| text.to_lowercase().contains(w))
    };
    let mut lines = vec![];
    for s in seen.iter().filter(fits) {
        let style = match s.finding.severity {
            Severity::Critical => palette.bad(),
            Severity::Warning => palette.warn(),
            Severity::Info => palette.faint(),
        };
        let now = if s.last_unix_ns >= now { "now" } else { "no longer" };
        let head = format!(
            "{:<8}  {}  [{} {}] since {}, {now}",
            s.finding.severity,
            s.finding.title,
            s.finding.rule,
            s.finding.number,
            clock(s.since_unix_ns),
        );
        let text = |line: String| Line::from(Span::styled(line, style));
        lines.extend(wrapped(&clean(&head), 0, width).into_iter().map(text));
        for e in &s.finding.evidence {
            let text = clean(&format!("{}: {}", e.what, e.value));
            lines.extend(wrapped(&text, 10, width).into_iter().map(Line::from));
        }
    }
    if lines.is_empty() {
        lines.push(Line::from("the rules found nothing so far"));
    }
    lines
}

/// The part of a text that is shown.
fn window(lines: Vec<Line<'static>>, scroll: usize, height: usize) -> Vec<Line<'static>> {
    let first = scroll.min(lines.len().saturating_sub(height.max(1)));
    lines.into_iter().skip(first).take(height).collect()
}
