//! Putting everything back that a change set wrote, last first, from its journal alone.
//!
//! It may be cut short and begun again any number of times: a value that is there already is
//! not written. What the journal can no longer be told (a full disk) does not stop it.

use std::sync::atomic::AtomicBool;

use model::tune::{Event, Member, Saved};

use crate::{
    Host, TuneError,
    journal::{Journal, Set},
    knob::Undone,
    knobs, netns, settle,
};

/// The reason when somebody asked for it.
pub const ASKED: &str = "it was asked for";

/// What came of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Knobs that are as they were before.
    pub restored: Vec<String>,
    /// Knobs that are not, with the reason.
    pub not_restored: Vec<(String, String)>,
    /// How many of these are not for want of what they were settings of.
    pub gone: usize,
    /// What the journal could not be told; the next command will say that the set is
    /// unfinished.
    pub journal: Option<String>,
}

impl Report {
    /// Whether all is as it was.
    pub fn is_whole(&self) -> bool {
        self.not_restored.is_empty()
    }
}

/// Undoes a set; `why` stands in the journal.
pub fn all(host: &Host, journal: &mut Journal, set: &Set, why: &str) -> Report {
    let mut report = Report::default();
    note(&mut report, journal.sync(Event::Undoing { why: why.into() }));
    let gone = |s: &Saved| set.namespace_gone && netns::is_of_namespace(&s.knob);
    let mut turn = Turn::default();
    for write in set.writes.iter().rev() {
        turn.begin(host, set, write.n);
        if !gone(&write.saved) {
            one(host, journal, &mut report, &write.saved, set.written(write.n));
        }
        for saved in write.companions.iter().filter(|s| !gone(s)) {
            let written = set.changes.iter().find(|c| c.knob == saved.knob);
            // A companion that reads as it was is no event.
            if !is_there(host, saved) {
                one(host, journal, &mut report, saved, written.map_or("", |c| &c.new));
            }
        }
    }
    turn.end(host);
    if report.journal.is_none() {
        note(&mut report, journal.sync(Event::RolledBack));
    }
    report
}

/// The member of a bond whose link undoing resets: the next one's turn is when it is back, or when
/// its time is over, for undoing stops at nothing.
#[derive(Default)]
struct Turn<'s>(Option<&'s Member>);

impl<'s> Turn<'s> {
    fn begin(&mut self, host: &Host, set: &'s Set, n: usize) {
        let member = set.changes.get(n).and_then(|c| c.member.as_ref());
        let is_next = |m: &&Member| self.0.is_none_or(|now| now.nic != m.nic);
        let Some(member) = member.filter(is_next) else { return };
        self.end(host);
        // Long after it was applied a link may be down for a reason of its own: no waiting for that.
        let waits =
            !set.applied || settle::carries(host.root(), &member.nic, &member.master).is_ok();
        self.0 = waits.then_some(member);
    }

    fn end(&mut self, host: &Host) {
        if let Some(member) = self.0.take() {
            let _ = settle::back(host, member, settle::PATIENCE, &AtomicBool::new(false));
        }
    }
}

fn is_there(host: &Host, saved: &Saved) -> bool {
    let now = knobs::find(&saved.knob).map(|k| k.read(host, &saved.knob));
    matches!(now, Some(Ok(now)) if now == saved.old)
}

fn one(host: &Host, journal: &mut Journal, report: &mut Report, saved: &Saved, written: &str) {
    let name = &saved.knob;
    let result = match knobs::find(name) {
        Some(knob) => knob.undo(host, name, &saved.old, written),
        None => Err(TuneError::Environment(format!("{name}: this netwright has no such knob"))),
    };
    let event = match result {
        Ok(Undone::Restored(read_back)) => {
            report.restored.push(name.clone());
            Event::Undone { knob: name.clone(), read_back }
        }
        Ok(Undone::Gone(why)) => {
            report.gone += 1;
            not(report, name, format!("gone ({why})"))
        }
        Err(e) => not(report, name, e.to_string()),
    };
    let told = journal.append(event);
    note(report, told);
}

fn not(report: &mut Report, knob: &str, why: String) -> Event {
    report.not_restored.push((knob.to_owned(), why.clone()));
    Event::NotUndone { knob: knob.to_owned(), why }
}

fn note(report: &mut Report, told: Result<(), TuneError>) {
    if let Err(e) = told {
        report.journal.get_or_insert(e.to_string());
    }
}
