//! What the user chose, and how keys change it.

use model::{
    Finding,
    watch::{WatchFilter, WatchRecord},
};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::only::Only;

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
    /// The observer's own programs.
    Programs,
    /// What the rules found.
    Findings,
}

impl Pane {
    /// In the order of their keys, from 1.
    pub const ALL: [Self; 9] = [
        Self::Cpus,
        Self::Queues,
        Self::InterruptedTasks,
        Self::Waits,
        Self::MigratedThreads,
        Self::Messages,
        Self::Counters,
        Self::Programs,
        Self::Findings,
    ];

    /// Its place among [`Pane::ALL`].
    pub fn index(self) -> usize {
        Self::ALL.iter().position(|p| *p == self).unwrap_or(0)
    }

    /// Its name where there is room, and where there is not.
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
        }
    }

    /// Its key and its name: `2 Queues`.
    pub fn title(self) -> String {
        format!("{} {}", self.index() + 1, self.names().0)
    }

    /// The column that its rows come sorted by, where it is one.
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
    /// What the keys do.
    Keys,
}

/// What the loop must do about a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    Draw,
    Quit,
    /// Go to another interval of a recording.
    Go(Seek),
}

/// Where to in a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seek {
    /// So many intervals on, or back.
    By(i64),
    First,
    Last,
}

/// Where in a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ViewPosition {
    /// The interval, from 0.
    pub at: usize,
    pub of: usize,
}

/// A finding and when it was there.
#[derive(Debug, Clone)]
pub struct TableView {
    /// As it was last.
    pub finding: Finding,
    /// First seen: the interval's end.
    pub since_unix_ns: u64,
    pub last_unix_ns: u64,
    /// In how many of the intervals shown.
    pub intervals: u32,
}

/// What the user chose, and what was found so far.
#[derive(Debug, Clone)]
pub struct ViewState {
    pub pane: Pane,
    pub scroll: usize,
    /// Columns left out on the left, behind the first two.
    pub aside: usize,
    /// By pane, the column it is sorted by.
    pub sort: [Option<usize>; Pane::ALL.len()],
    /// By pane, whether its rows stand the other way round.
    pub reversed: [bool; Pane::ALL.len()],
    pub threads: bool,
    pub only: Only,
    /// The filter's line while it is being typed.
    pub editing: Option<String>,
    /// The help shown: keys, then the columns of the table.
    pub help: Option<Help>,
    /// The picture stands still.
    pub paused: bool,
    /// Where in a recording; none when live.
    pub place: Option<ViewPosition>,
    /// Something to say until Esc: damage, a full recording, the end of a followed process.
    pub note: Option<String>,
    /// What was found so far, as it appeared.
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
            only: Only::parse("", &asked),
            editing: None,
            help: None,
            paused: false,
            place,
            note: None,
            found: vec![],
            asked,
        }
    }

    /// Remembers what the rules found in an interval that is going to be shown, and says which
    /// followed processes ended in it.
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

    pub fn key(&mut self, key: KeyEvent) -> Act {
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return Act::Quit;
        }
        if self.editing.is_some() {
            self.edit(key.code);
            return Act::Draw;
        }
        if let Some(help) = self.help {
            let next = matches!(key.code, KeyCode::Char('?' | 'h')) && help == Help::Columns;
            self.help = next.then_some(Help::Keys);
            return if key.code == KeyCode::Char('q') { Act::Quit } else { Act::Draw };
        }
        match key.code {
            KeyCode::Char('q') => return Act::Quit,
            KeyCode::Char('?' | 'h') => self.help = Some(Help::Columns),
            KeyCode::Char(' ' | 'p') => self.paused = !self.paused,
            KeyCode::Char('f' | '/') => self.editing = Some(self.only.text.clone()),
            KeyCode::Esc if self.note.is_some() => self.note = None,
            KeyCode::Esc => self.set_filter(""),
            KeyCode::Char('t') => self.threads = !self.threads,
            KeyCode::Char('s') => self.next_sort(),
            KeyCode::Char('r') => self.reverse(),
            KeyCode::Char('>' | '.') => self.aside = self.aside.saturating_add(1).min(64),
            KeyCode::Char('<' | ',') => self.aside = self.aside.saturating_sub(1),
            code => return self.moves(code),
        }
        Act::Draw
    }

    /// Keys that go somewhere.
    fn moves(&mut self, code: KeyCode) -> Act {
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
            KeyCode::Char(c @ '1'..='9') => {
                self.show(Pane::at(c.to_digit(10).map_or(0, |d| d as usize - 1)));
            }
            KeyCode::Up => self.scroll = self.scroll.saturating_sub(1),
            KeyCode::Down => self.scroll = self.scroll.saturating_add(1),
            KeyCode::PageUp => self.scroll = self.scroll.saturating_sub(10),
            KeyCode::PageDown => self.scroll = self.scroll.saturating_add(10),
            KeyCode::Home => self.scroll = 0,
            KeyCode::End => self.scroll = usize::MAX,
            _ => {}
        }
        Act::Draw
    }

    /// Who seeks wants to look: the recording stops playing.
    fn go(&mut self, seek: Seek) -> Act {
        self.paused = true;
        Act::Go(seek)
    }

    fn show(&mut self, pane: Pane) {
        self.pane = pane;
        self.scroll = 0;
        self.aside = 0;
    }

    /// Through the columns, then back to the order they came in.
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

    /// Whether the pane's rows stand the other way round.
    pub fn is_reversed(&self) -> bool {
        self.reversed.get(self.pane.index()).copied().unwrap_or(false)
    }

    /// The pane's column to sort by, of so many columns; beyond the last there is none.
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
        self.only = Only::parse(text, &self.asked);
        self.scroll = 0;
    }
}
