//! Restores everything that a change set wrote, last write first, from its journal alone.
//!
//! Undoing can be interrupted and restarted any number of times: a value already restored is not
//! written. It continues if the journal cannot be written (a full disk).

use std::{collections::BTreeSet, sync::atomic::AtomicBool};

use model::tune::{Event, LinkMember, Saved};

use crate::{
    Host, TuneError,
    drift::{self, DriftCheck, Drifted},
    identity::{self, Finder, KnobLocation},
    journal::{Journal, JournaledSet},
    knob::Undone,
    knobs, settle,
    undo_forecast::is_gone,
};

pub use crate::{
    journal::ASKED,
    undo_forecast::{UndoForecast, forecasts},
};

/// What undoing does with external changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnDrift {
    /// Leaves them, and also the side effects of our write of the same knob.
    Leave,
    /// Overwrites them with the old value.
    Overwrite,
}

/// Result of an undo.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Knobs restored to their old values.
    pub restored: Vec<String>,
    /// Knobs not restored, with the reason.
    pub not_restored: Vec<(String, String)>,
    /// Those of them that do not exist now.
    pub gone: BTreeSet<String>,
    /// Knobs that need no restoring, because their object is gone for good, with the reason.
    pub lost: Vec<(String, String)>,
    /// Knobs of interfaces renamed since, with the names under which they were restored.
    pub renamed: Vec<(String, String)>,
    /// External changes: left, or overwritten on request.
    pub drifted: Vec<Drifted>,
    /// Why the journal could not be written; the next command then reports the set as unfinished.
    pub journal: Option<String>,
}

impl Report {
    /// Whether every value is restored.
    pub fn is_whole(&self) -> bool {
        self.not_restored.is_empty()
    }

    /// Drops earlier results for this value: the latest counts.
    fn settled(&mut self, knob: &str) {
        self.not_restored.retain(|(k, _)| k != knob);
        self.lost.retain(|(k, _)| k != knob);
        self.gone.remove(knob);
    }
}

/// Undoes a set and leaves external changes; `why` is written to the journal.
pub fn all(host: &Host, journal: &mut Journal, set: &JournaledSet, why: &str) -> Report {
    with(host, journal, set, why, OnDrift::Leave)
}

/// The same with a choice for external changes. For a set whose undo ended before, only its residue
/// is restored.
pub fn with(
    host: &Host,
    journal: &mut Journal,
    set: &JournaledSet,
    why: &str,
    on_drift: OnDrift,
) -> Report {
    let mut found = drift::check(host, set);
    let report = Report { drifted: std::mem::take(&mut found.drifted), ..Report::default() };
    let keeps = on_drift == OnDrift::Leave;
    let reported = BTreeSet::new();
    let mut work =
        UndoRun { host, finder: Finder::new(host), journal, report, found, keeps, reported };
    let reported = work.journal.sync(Event::Undoing { why: why.into() });
    work.note(reported);
    work.note_what_stays();
    let mut todo: BTreeSet<&str> = set.to_undo().iter().map(|(s, _)| s.knob.as_str()).collect();
    let mut turn = CurrentMember::default();
    for write in set.writes.iter().rev() {
        let own = todo.contains(write.saved.knob.as_str());
        if own {
            turn.begin(host, set, write.n);
            if work.stays(&write.saved).is_some() {
                continue;
            }
            if !is_gone(set, &write.saved.knob) {
                work.one(&write.saved, set.written(write.n));
            }
        }
        let beside = || write.coupled_settings.iter().filter(|s| !is_gone(set, &s.knob));
        for saved in beside() {
            let left = set.has_residue() && todo.contains(saved.knob.as_str());
            if work.stays(saved).is_some() {
                continue;
            }
            // A side effect that reads as before is not reported, unless an external change was
            // there.
            if left || own && (work.is_news(saved) || needs_it(host, &work.finder, saved)) {
                let written = set.changes.iter().find(|c| c.knob == saved.knob);
                work.one(saved, written.map_or("", |c| &c.new));
                // The value is as before this write, which cancels the side effects of earlier
                // writes too.
                todo.insert(&saved.knob);
            }
        }
        if own {
            work.look_again(&write.saved, set.written(write.n));
        }
        // Undoing the knob, or another side effect, may have changed an external value that must
        // stay.
        if own || set.has_residue() {
            beside().for_each(|saved| work.again_as_found(saved));
        }
    }
    turn.end(host);
    if work.report.journal.is_none() {
        let reported = work.journal.sync(Event::RolledBack);
        work.note(reported);
    }
    work.report
}

/// The bond member whose link is being reset. The next member follows once this one is back or its
/// time is over: undoing never stops.
#[derive(Default)]
struct CurrentMember<'s>(Option<&'s LinkMember>);

impl<'s> CurrentMember<'s> {
    fn begin(&mut self, host: &Host, set: &'s JournaledSet, n: usize) {
        let member = set.changes.get(n).and_then(|c| c.member.as_ref());
        let is_next = |m: &&LinkMember| self.0.is_none_or(|now| now.nic != m.nic);
        let Some(member) = member.filter(is_next) else { return };
        self.end(host);
        // Long after the apply, a link may be down for another reason: do not wait for it.
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

/// Whether a side effect's knob exists and differs from its old value.
fn needs_it(host: &Host, finder: &Finder<'_>, saved: &Saved) -> bool {
    let name = match finder.find(saved).map(|place| place.current_name(&saved.knob)) {
        Ok(Ok(name)) => name,
        Ok(Err(_)) => return false,
        Err(_) => return true,
    };
    let Some(knob) = knobs::find(&name) else { return true };
    match knob.read_again(host, &saved.old) {
        Ok(now) => now != saved.old,
        Err(_) => !knob.is_made_anew(host, &saved.old),
    }
}

struct UndoRun<'a> {
    host: &'a Host,
    finder: Finder<'a>,
    journal: &'a mut Journal,
    report: Report,
    /// Drift as found before anything was restored.
    found: DriftCheck,
    /// Whether external changes stay.
    keeps: bool,
    /// External changes that the journal already lists as overwritten.
    reported: BTreeSet<String>,
}

impl UndoRun<'_> {
    fn one(&mut self, saved: &Saved, written: &str) {
        let name = &saved.knob;
        self.report.settled(name);
        let event = match self.undo(saved, written) {
            Ok((Undone::Restored(read_back), called)) => {
                self.report.restored.push(name.clone());
                let overwrote = self.news(saved).map(|d| d.found.clone());
                self.reported.insert(identity::key(saved));
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
        let reported = self.journal.append(event);
        self.note(reported);
    }

    /// Retries a value that failed alone: restoring a related knob may have restored it too, such
    /// as the finer unit of the same setting.
    fn look_again(&mut self, saved: &Saved, written: &str) {
        let failed = self.report.not_restored.iter().any(|(k, _)| *k == saved.knob);
        if failed && !needs_it(self.host, &self.finder, saved) {
            self.one(saved, written);
        }
    }

    /// Restores a value where it is now; returns the current name too.
    fn undo(&mut self, saved: &Saved, written: &str) -> Result<(Undone, String), TuneError> {
        let name = match self.finder.find(saved)?.current_name(&saved.knob) {
            Ok(name) => name,
            Err(why) => return Ok((Undone::Lost(why), saved.knob.clone())),
        };
        let knob = knobs::find(&name).ok_or_else(|| {
            TuneError::Environment(format!("{name}: this netwright has no such knob"))
        })?;
        // An unread value may be an external change, which must not be overwritten unseen.
        if let (true, Some(why)) = (self.keeps, self.found.unread(saved))
            && knob.read_again(self.host, &saved.old).is_err()
        {
            return Err(why.clone());
        }
        let done = knob.undo(self.host, &saved.old, written);
        drop(knob);
        match done {
            // The interface may have gone or been renamed between the read and the write.
            Ok(Undone::Gone(why)) => match self.finder.again(saved)? {
                KnobLocation::Gone(lost) => Ok((Undone::Lost(lost), name)),
                KnobLocation::Here | KnobLocation::Renamed(_) => Ok((Undone::Gone(why), name)),
            },
            Err(e) => match self.finder.again(saved) {
                Ok(KnobLocation::Gone(lost)) => Ok((Undone::Lost(lost), name)),
                _ => Err(e),
            },
            done => Ok((done?, name)),
        }
    }

    /// The external change of this value, if there is one.
    fn drifted(&self, saved: &Saved) -> Option<&Drifted> {
        let key = identity::key(saved);
        self.report.drifted.iter().find(|d| d.key == key)
    }

    /// An external change to overwrite that the journal does not list yet.
    fn news(&self, saved: &Saved) -> Option<&Drifted> {
        self.drifted(saved).filter(|d| !self.keeps && !self.reported.contains(&d.key))
    }

    fn is_news(&self, saved: &Saved) -> bool {
        self.news(saved).is_some()
    }

    /// The external change of this value, if it must stay.
    fn stays(&self, saved: &Saved) -> Option<&Drifted> {
        self.drifted(saved).filter(|_| self.keeps)
    }

    /// Journals the external values that stay, before an undo may change them: an interrupted undo
    /// finds them there.
    fn note_what_stays(&mut self) {
        for drifted in self.report.drifted.iter().filter(|_| self.keeps) {
            let (knob, found) = (drifted.knob.clone(), drifted.found.clone());
            let exact = Some(drifted.exact.clone());
            let reported = self.journal.append(Event::LeftAsFound { knob, found, exact });
            if let Err(e) = reported {
                self.report.journal.get_or_insert(e.to_string());
            }
        }
    }

    /// Sets external values again where the undo changed them.
    fn again_as_found(&mut self, saved: &Saved) {
        let Some(drifted) = self.stays(saved).cloned() else { return };
        let Some(knob) = knobs::find(&drifted.called) else { return };
        self.report.settled(&drifted.knob);
        let why = match knob.undo(self.host, &drifted.exact, "") {
            Ok(Undone::Restored(_)) => return,
            Ok(Undone::Lost(why) | Undone::Gone(why)) => why,
            Err(e) => e.to_string(),
        };
        let why = format!("{} was to stay and was moved along: {why}", drifted.found);
        let event = self.not(&drifted.knob, why);
        let reported = self.journal.append(event);
        self.note(reported);
    }

    fn not(&mut self, knob: &str, why: String) -> Event {
        self.report.not_restored.push((knob.to_owned(), why.clone()));
        Event::NotUndone { knob: knob.to_owned(), why }
    }

    fn note(&mut self, reported: Result<(), TuneError>) {
        if let Err(e) = reported {
            self.report.journal.get_or_insert(e.to_string());
        }
    }
}

#[cfg(test)]
mod tests;
