//! Putting everything back that a change set wrote, last first, from its journal alone.
//!
//! It may be cut short and begun again any number of times: a value that is there already is
//! not written. What the journal can no longer be told (a full disk) does not stop it.

use std::{collections::BTreeSet, sync::atomic::AtomicBool};

use model::tune::{Event, Member, Saved};

use crate::{
    Host, TuneError,
    journal::{Journal, Set},
    knob::Undone,
    knobs, netns, settle,
};

/// The reason when somebody asked for it.
pub const ASKED: &str = "it was asked for";

/// A value that is neither what was written nor what was there before: somebody set it since.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drifted {
    /// The knob.
    pub knob: String,
    /// What was there before, for people.
    pub before: String,
    /// What was written.
    pub written: String,
    /// What is there, for people.
    pub found: String,
    /// Unit.
    pub unit: String,
}

/// What becomes of values that somebody else set since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnDrift {
    /// The old value is put back over them.
    Overwrite,
    /// They stay, and so does what our write disturbed beside them.
    Keep,
}

/// What came of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Knobs that are as they were before.
    pub restored: Vec<String>,
    /// Knobs that are not, with the reason.
    pub not_restored: Vec<(String, String)>,
    /// Those of them that are not for want of what they were settings of.
    pub gone: BTreeSet<String>,
    /// What somebody else had set since; overwritten, or left where that was asked for.
    pub drifted: Vec<Drifted>,
    /// What the journal could not be told; the next command will say that the set is
    /// unfinished.
    pub journal: Option<String>,
}

impl Report {
    /// Whether all is as it was.
    pub fn is_whole(&self) -> bool {
        self.not_restored.is_empty()
    }

    /// A later word on a value is the one that counts.
    fn settled(&mut self, knob: &str) {
        self.not_restored.retain(|(k, _)| k != knob);
        self.gone.remove(knob);
    }
}

/// Which values of a set somebody else set since. What cannot be read is none.
pub fn drifted(host: &Host, set: &Set) -> Vec<Drifted> {
    let one = |(saved, written): (&Saved, &str)| {
        let name = &saved.knob;
        let ours = is_told_apart(set, name) && !is_gone(set, name);
        let knob = knobs::find(name).filter(|_| ours)?;
        let now = knob.read(host, name).ok()?;
        let (before, found) = (knob.show(&saved.old), knob.show(&now));
        let ours = knob.verify(written, &now) || found == before;
        let unit = set.changes.iter().find(|c| c.knob == *name).map_or("", |c| &c.unit);
        (!ours).then(|| Drifted {
            knob: name.clone(),
            before,
            written: written.to_owned(),
            found,
            unit: unit.to_owned(),
        })
    };
    set.to_undo().into_iter().filter_map(one).collect()
}

/// Whether another value than ours can only be somebody else's. Of a write that was cut short or did
/// not hold the kernel may have made something else, and so may a later write of the same set.
fn is_told_apart(set: &Set, knob: &str) -> bool {
    let own = set.writes.iter().find(|w| w.saved.knob == knob && w.held);
    own.is_some_and(|own| {
        let later = set.writes.iter().filter(|w| w.n > own.n);
        !later.flat_map(|w| &w.companions).any(|c| c.knob == knob)
    })
}

/// Whether it went with its network namespace.
fn is_gone(set: &Set, knob: &str) -> bool {
    set.namespace_gone && netns::is_of_namespace(knob)
}

/// Undoes a set, whatever is there now; `why` stands in the journal.
pub fn all(host: &Host, journal: &mut Journal, set: &Set, why: &str) -> Report {
    with(host, journal, set, why, OnDrift::Overwrite)
}

/// The same, with a say in what becomes of values that somebody else set since. Of a set whose
/// undoing ended before, only what that left is put back.
pub fn with(host: &Host, journal: &mut Journal, set: &Set, why: &str, on_drift: OnDrift) -> Report {
    let mut work = Work { host, journal, report: Report::default() };
    work.report.drifted = drifted(host, set);
    let told = work.journal.sync(Event::Undoing { why: why.into() });
    work.note(told);
    let mut todo: BTreeSet<&str> = set.to_undo().iter().map(|(s, _)| s.knob.as_str()).collect();
    let mut turn = Turn::default();
    for write in set.writes.iter().rev() {
        let own = todo.contains(write.saved.knob.as_str());
        if own {
            turn.begin(host, set, write.n);
            if on_drift == OnDrift::Keep && work.left_as_found(&write.saved.knob) {
                continue;
            }
            if !is_gone(set, &write.saved.knob) {
                work.one(&write.saved, set.written(write.n));
            }
        }
        for saved in write.companions.iter().filter(|s| !is_gone(set, &s.knob)) {
            let left = set.is_left_over() && todo.contains(saved.knob.as_str());
            // A companion that reads as it was is no event.
            if left || own && !is_there(host, saved) {
                let written = set.changes.iter().find(|c| c.knob == saved.knob);
                work.one(saved, written.map_or("", |c| &c.new));
                // It is now as it was before this write; what an earlier one made of it goes too.
                todo.insert(&saved.knob);
            }
        }
    }
    turn.end(host);
    if work.report.journal.is_none() {
        let told = work.journal.sync(Event::RolledBack);
        work.note(told);
    }
    work.report
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

struct Work<'a> {
    host: &'a Host,
    journal: &'a mut Journal,
    report: Report,
}

impl Work<'_> {
    fn one(&mut self, saved: &Saved, written: &str) {
        let name = &saved.knob;
        let result = match knobs::find(name) {
            Some(knob) => knob.undo(self.host, name, &saved.old, written),
            None => Err(TuneError::Environment(format!("{name}: this netwright has no such knob"))),
        };
        self.report.settled(name);
        let event = match result {
            Ok(Undone::Restored(read_back)) => {
                self.report.restored.push(name.clone());
                let drifted = self.report.drifted.iter().find(|d| d.knob == *name);
                let overwrote = drifted.map(|d| d.found.clone());
                Event::Undone { knob: name.clone(), read_back, overwrote }
            }
            Ok(Undone::Gone(why)) => {
                self.report.gone.insert(name.clone());
                self.not(name, format!("gone ({why})"))
            }
            Err(e) => self.not(name, e.to_string()),
        };
        let told = self.journal.append(event);
        self.note(told);
    }

    /// Whether somebody else set it; then that stands in the journal.
    fn left_as_found(&mut self, knob: &str) -> bool {
        let found = self.report.drifted.iter().find(|d| d.knob == knob).map(|d| d.found.clone());
        let Some(found) = found else { return false };
        let told = self.journal.append(Event::LeftAsFound { knob: knob.to_owned(), found });
        self.note(told);
        true
    }

    fn not(&mut self, knob: &str, why: String) -> Event {
        self.report.not_restored.push((knob.to_owned(), why.clone()));
        Event::NotUndone { knob: knob.to_owned(), why }
    }

    fn note(&mut self, told: Result<(), TuneError>) {
        if let Err(e) = told {
            self.report.journal.get_or_insert(e.to_string());
        }
    }
}

#[cfg(test)]
mod tests;
