//! The user's choices, and how keys change them.

use model::{
    Finding,
    watch::{WatchFilter, WatchRecord},
};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::row_filter::RowFilter;

/// A table below the grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pane {
    Cpus,
    Queues,
    InterruptedTasks,
    Waits,
    MigratedThreads,
    /// Sizes of sends and receives.
    Messages,
    /// Drops and the like.
    Counters,
    /// Netwright's own eBPF programs.
    Programs,
    /// Findings of the rules so far.
    Findings,
    /// What limits those who send over TCP.
    Senders,
}

impl Pane {
    /// All tables in the order of their keys: from 1, the tenth has 0.
    pub const ALL: [Self; 10] = [
        Self::Cpus,
        Self::Queues,
        Self::InterruptedTasks,
        Self::Waits,
        Self::MigratedThreads,
        Self::Messages,
        Self::Counters,
        Self::Programs,
        Self::Findings,
        Self::Senders,
    ];

    /// Its index in [`Pane::ALL`].
    pub fn index(self) -> usize {
        Self::ALL.iter().position(|p| *p == self).unwrap_or(0)
    }

    /// Its long and its short name.
    pub fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Cpus => ("CPUs", "cpus"),
            Self::Queues => ("Queues", "queues"),
            Self::InterruptedTasks => ("Tasks", "tasks"),
            Self::Waits => ("Waits", "waits"),
            Self::MigratedThreads => ("Migrations", "migr"),
            Self::Messages => ("Messages", "msgs"),
            Self::Counters => ("Counters", "count"),
            Self::Programs => ("Programs", "progs"),
            Self::Findings => ("Findings", "found"),
            Self::Senders => ("Senders", "send"),
        }
    }

    /// The digit that chooses it.
    pub fn key(self) -> usize {
        (self.index() + 1) % 10
    }

    /// Its key and its name: `2 Queues`.
    pub fn title(self) -> String {
        format!("{} {}", self.key(), self.names().0)
    }

    /// The column that its rows are sorted by at first; `None` where there is none.
    pub fn comes_by(self) -> Option<&'static str> {
        match self {
            Self::Cpus => Some("CPU"),
            Self::Queues => Some("NIC"),
            Self::InterruptedTasks => Some("LOST TO IRQ"),
            Self::MigratedThreads => Some("MIGRATIONS"),
            _ => None,
        }
    }

    fn at(index: usize) -> Self {
        Self::ALL.get(index % Self::ALL.len()).copied().unwrap_or(Self::Cpus)
    }
}

/// A page of the help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Help {
    /// What the columns of the table and the letters of the bars mean.
    Columns,
    /// The keys and what they do.
    Keys,
}

/// What the event loop must do after a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyAction {
    Draw,
    Quit,
    /// Show another interval of a recording.
    Go(Seek),
}

/// A position to seek to in a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seek {
    /// This many intervals forward, or back.
    By(i64),
    First,
    Last,
}

/// The position in a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ViewPosition {
    /// The index of the interval, from 0, and the number of intervals.
    pub at: usize,
    pub of: usize,
}

/// A finding, and when it was seen.
#[derive(Debug, Clone)]
pub struct TableView {
    /// The finding as it was last seen.
    pub finding: Finding,
    /// When it was first seen: the interval's end, nanoseconds since 1970.
    pub since_unix_ns: u64,
    pub last_unix_ns: u64,
    /// The number of shown intervals that had it.
    pub intervals: u32,
}

/// The user's choices, and the findings so far.
#[derive(Debug, Clone)]
pub struct ViewState {
    pub pane: Pane,
    pub scroll: usize,
    /// Columns scrolled out on the left, after the first two.
    pub aside: usize,
    /// The sort column of each table; `None`: its default.
    pub sort: [Option<usize>; Pane::ALL.len()],
    /// Whether each table's order is reversed.
    pub reversed: [bool; Pane::ALL.len()],
    pub threads: bool,
    pub row_filter: RowFilter,
    /// The text of the filter while it is typed; `None` otherwise.
    pub editing: Option<String>,
    /// The help page that is shown; `None`: no help.
    pub help: Option<Help>,
    /// Whether the picture is paused.
    pub paused: bool,
    /// The position in a recording; `None` when live.
    pub place: Option<ViewPosition>,
    /// A message until Esc: damage, a full recording, the end of a followed process.
    pub note: Option<String>,
    /// The findings so far, in the order of their appearance.
    pub found: Vec<TableView>,
    asked: WatchFilter,
}

impl ViewState {
    pub fn new(asked: WatchFilter, place: Option<ViewPosition>) -> Self {
        Self {
            pane: Pane::InterruptedTasks,
            scroll: 0,
            aside: 0,
            sort: [None; Pane::ALL.len()],
            reversed: [false; Pane::ALL.len()],
            threads: false,
            row_filter: RowFilter::parse("", &asked),
            editing: None,
            help: None,
            paused: false,
            place,
            note: None,
            found: vec![],
            asked,
        }
    }

    /// Remembers the findings of an interval before it is shown, and notes which followed processes
    /// ended in it.
    pub fn observe(&mut self, record: &WatchRecord) {
        let ended = record.interval.ended_processes.iter().map(report::watch::ended);
        let ended: Vec<String> = ended.collect();
        if !ended.is_empty() {
            self.note = Some(ended.join("; "));
        }
        let now = record.interval.ended_unix_ns.0;
        for f in &record.findings {
            let same =
                |s: &&mut TableView| s.finding.rule == f.rule && s.finding.subject == f.subject;
            match self.found.iter_mut().find(same) {
                Some(seen) => {
                    seen.finding.clone_from(f);
                    seen.intervals = seen.intervals.saturating_add(1);
                    seen.since_unix_ns = seen.since_unix_ns.min(now);
                    seen.last_unix_ns = seen.last_unix_ns.max(now);
                }
                None => self.found.push(TableView {
                    finding: f.clone(),
                    since_unix_ns: now,
                    last_unix_ns: now,
                    intervals: 1,
                }),
            }
        }
    }

    pub fn key(&mut self, key: KeyEvent) -> KeyAction {
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return KeyAction::Quit;
        }
        if self.editing.is_some() {
            self.edit(key.code);
            return KeyAction::Draw;
        }
        if let Some(help) = self.help {
            let next = matches!(key.code, KeyCode::Char('?' | 'h')) && help == Help::Columns;
            self.help = next.then_some(Help::Keys);
            return if key.code == KeyCode::Char('q') { KeyAction::Quit } else { KeyAction::Draw };
        }
        match key.code {
            KeyCode::Char('q') => return KeyAction::Quit,
            KeyCode::Char('?' | 'h') => self.help = Some(Help::Columns),
            KeyCode::Char(' ' | 'p') => self.paused = !self.paused,
            KeyCode::Char('f' | '/') => self.editing = Some(self.row_filter.text.clone()),
            KeyCode::Esc if self.note.is_some() => self.note = None,
            KeyCode::Esc => self.set_filter(""),
            KeyCode::Char('t') => self.threads = !self.threads,
            KeyCode::Char('s') => self.next_sort(),
            KeyCode::Char('r') => self.reverse(),
            KeyCode::Char('>' | '.') => self.aside = self.aside.saturating_add(1).min(64),
            KeyCode::Char('<' | ',') => self.aside = self.aside.saturating_sub(1),
            code => return self.moves(code),
        }
        KeyAction::Draw
    }

    /// Keys that move: to a table, a row, or an interval of a recording.
    fn moves(&mut self, code: KeyCode) -> KeyAction {
        let replay = self.place.is_some();
        match code {
            KeyCode::Left if replay => return self.go(Seek::By(-1)),
            KeyCode::Right if replay => return self.go(Seek::By(1)),
            KeyCode::Home if replay => return self.go(Seek::First),
            KeyCode::End if replay => return self.go(Seek::Last),
            KeyCode::Tab | KeyCode::Right => self.show(Pane::at(self.pane.index() + 1)),
            KeyCode::BackTab | KeyCode::Left => {
                self.show(Pane::at(self.pane.index() + Pane::ALL.len() - 1));
            }
            KeyCode::Char(c @ '0'..='9') => {
                let digit = c.to_digit(10).map_or(1, |d| d as usize);
                self.show(Pane::at((digit + 9) % 10));
            }
            KeyCode::Up => self.scroll = self.scroll.saturating_sub(1),
            KeyCode::Down => self.scroll = self.scroll.saturating_add(1),
            KeyCode::PageUp => self.scroll = self.scroll.saturating_sub(10),
            KeyCode::PageDown => self.scroll = self.scroll.saturating_add(10),
            KeyCode::Home => self.scroll = 0,
            KeyCode::End => self.scroll = usize::MAX,
            _ => {}
        }
        KeyAction::Draw
    }

    /// Seeks; the recording stops playing.
    fn go(&mut self, seek: Seek) -> KeyAction {
        self.paused = true;
        KeyAction::Go(seek)
    }

    fn show(&mut self, pane: Pane) {
        self.pane = pane;
        self.scroll = 0;
        self.aside = 0;
    }

    /// The next sort column, then the default order again.
    fn next_sort(&mut self) {
        if let Some(sort) = self.sort.get_mut(self.pane.index()) {
            *sort = match *sort {
                None => Some(0),
                Some(n) if n < 20 => Some(n + 1),
                Some(_) => None,
            };
        }
        self.scroll = 0;
    }

    fn reverse(&mut self) {
        if let Some(reversed) = self.reversed.get_mut(self.pane.index()) {
            *reversed = !*reversed;
        }
        self.scroll = 0;
    }

    /// Whether the table's order is reversed.
    pub fn is_reversed(&self) -> bool {
        self.reversed.get(self.pane.index()).copied().unwrap_or(false)
    }

    /// The table's sort column, of this many; `None` beyond the last.
    pub fn sorted_by(&self, columns: usize) -> Option<usize> {
        let sort = self.sort.get(self.pane.index()).copied().flatten()?;
        let at = sort % (columns + 1);
        (at < columns).then_some(at)
    }

    fn edit(&mut self, code: KeyCode) {
        let Some(line) = &mut self.editing else { return };
        match code {
            KeyCode::Esc => self.editing = None,
            KeyCode::Backspace => {
                line.pop();
            }
            KeyCode::Char(c) if line.len() < 200 => line.push(c),
            KeyCode::Enter => {
                let line = self.editing.take().unwrap_or_default();
                self.set_filter(&line);
            }
            _ => {}
        }
    }

    fn set_filter(&mut self, text: &str) {
        self.row_filter = RowFilter::parse(text, &self.asked);
        self.scroll = 0;
    }
}
