//! Putting everything back that a change set wrote, last first, from its journal alone.
//!
//! It may be cut short and begun again any number of times: a value that is there already is
//! not written. What the journal can no longer be told (a full disk) does not stop it.

use std::{collections::BTreeSet, sync::atomic::AtomicBool};

use model::tune::{Event, Member, Saved};

use crate::{
    Host, TuneError,
    identity::{Finder, Whereabouts},
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
    /// Those of them that are not there at this moment.
    pub gone: BTreeSet<String>,
    /// Knobs that need no putting back, for what they were settings of is gone for good; with what
    /// is known of that.
    pub lost: Vec<(String, String)>,
    /// Knobs of interfaces that were renamed since, with the names under which they were put back.
    pub renamed: Vec<(String, String)>,
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
        self.lost.retain(|(k, _)| k != knob);
        self.gone.remove(knob);
    }
}

/// What undoing would come to for one value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outlook {
    /// The old value would be put back, under this name.
    Back(String),
    /// There is nothing to put back, and why.
    Lost(String),
    /// It could not be put back, and why.
    Not(String),
}

/// What undoing a set would come to, in the order of its undoing.
pub fn outlooks<'s>(host: &Host, set: &'s Set) -> Vec<(&'s Saved, Outlook)> {
    let finder = Finder::new(host);
    let here = |saved: &&Saved| !is_gone(set, &saved.knob);
    let all = set.to_undo().into_iter().map(|(saved, _)| saved).filter(here);
    all.map(|saved| (saved, outlook(host, &finder, saved))).collect()
}

/// What undoing a saved value would come to. `finder` is of the same host.
pub(crate) fn outlook(host: &Host, finder: &Finder<'_>, saved: &Saved) -> Outlook {
    let name = match finder.find(saved).map(|place| place.called(&saved.knob)) {
        Ok(Ok(name)) => name,
        Ok(Err(why)) => return Outlook::Lost(why),
        Err(e) => return Outlook::Not(e.to_string()),
    };
    match knobs::find(&name).and_then(|k| k.lost(host, &name, &saved.old)) {
        Some(why) => Outlook::Lost(why),
        None => Outlook::Back(name),
    }
}

/// Which values of a set somebody else set since. What cannot be read is none.
pub fn drifted(host: &Host, set: &Set) -> Vec<Drifted> {
    let finder = Finder::new(host);
    let one = |(saved, written): (&Saved, &str)| {
        let name = &saved.knob;
        let ours = is_told_apart(set, name) && !is_gone(set, name);
        let knob = knobs::find(name).filter(|_| ours)?;
        let Outlook::Back(called) = outlook(host, &finder, saved) else { return None };
        let now = knob.read(host, &called).ok()?;
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
    let mut work = Work { host, finder: Finder::new(host), journal, report: Report::default() };
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
            if left || own && needs_it(host, &work.finder, saved) {
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

/// Whether what else was disturbed is there, and not as it was.
fn needs_it(host: &Host, finder: &Finder<'_>, saved: &Saved) -> bool {
    let name = match finder.find(saved).map(|place| place.called(&saved.knob)) {
        Ok(Ok(name)) => name,
        Ok(Err(_)) => return false,
        Err(_) => return true,
    };
    let now = knobs::find(&name).map(|k| k.read(host, &name));
    !matches!(now, Some(Ok(now)) if now == saved.old)
}

struct Work<'a> {
    host: &'a Host,
    finder: Finder<'a>,
    journal: &'a mut Journal,
    report: Report,
}

impl Work<'_> {
    fn one(&mut self, saved: &Saved, written: &str) {
        let name = &saved.knob;
        self.report.settled(name);
        let event = match self.undo(saved, written) {
            Ok((Undone::Restored(read_back), called)) => {
                self.report.restored.push(name.clone());
                let drifted = self.report.drifted.iter().find(|d| d.knob == *name);
                let overwrote = drifted.map(|d| d.found.clone());
                let renamed = (called != *name).then_some(called);
                let now = renamed.iter().map(|now| (name.clone(), now.clone()));
                self.report.renamed.extend(now);
                Event::Undone { knob: name.clone(), read_back, overwrote, renamed, gone: None }
            }
            Ok((Undone::Lost(why), _)) => {
                self.report.lost.push((name.clone(), why.clone()));
                Event::Undone {
                    knob: name.clone(),
                    read_back: String::new(),
                    overwrote: None,
                    renamed: None,
                    gone: Some(why),
                }
            }
            Ok((Undone::Gone(why), _)) => {
                self.report.gone.insert(name.clone());
                self.not(name, format!("gone ({why})"))
            }
            Err(e) => self.not(name, e.to_string()),
        };
        let told = self.journal.append(event);
        self.note(told);
    }

    /// Puts one back where it is now; with the name under which that was.
    fn undo(&mut self, saved: &Saved, written: &str) -> Result<(Undone, String), TuneError> {
        let name = match self.finder.find(saved)?.called(&saved.knob) {
            Ok(name) => name,
            Err(why) => return Ok((Undone::Lost(why), saved.knob.clone())),
        };
        let knob = knobs::find(&name).ok_or_else(|| {
            TuneError::Environment(format!("{name}: this netwright has no such knob"))
        })?;
        match knob.undo(self.host, &name, &saved.old, written) {
            // It may have gone, or been renamed, between the look and the write.
            Ok(Undone::Gone(why)) => match self.finder.again(saved)? {
                Whereabouts::Gone(lost) => Ok((Undone::Lost(lost), name)),
                Whereabouts::Here | Whereabouts::Renamed(_) => Ok((Undone::Gone(why), name)),
            },
            Err(e) => match self.finder.again(saved) {
                Ok(Whereabouts::Gone(lost)) => Ok((Undone::Lost(lost), name)),
                _ => Err(e),
            },
            done => Ok((done?, name)),
        }
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
