//! External changes: values that are neither what a change set left nor what it found.

use std::collections::BTreeSet;

use model::tune::Saved;

use crate::{
    Host, TuneError,
    coupled_values::Moving,
    identity::{self, Finder},
    journal::{JournaledSet, Made},
    knob::Knob,
    knobs,
    undo_forecast::{self, UndoForecast},
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drifted {
    pub knob: String,
    /// Identifies the value across renames: [`identity::key`].
    pub(crate) key: String,
    /// The knob's current name, if its interface was renamed.
    pub(crate) called: String,
    /// The knob that moved this value as a side effect; empty if it was written directly.
    pub beside: String,
    /// Value before the change, as shown to the user.
    pub before: String,
    /// Value that the change wrote, or that the side effect left, as shown to the user.
    pub written: String,
    /// Value now, as shown to the user.
    pub found: String,
    /// Value now, exactly as read.
    pub exact: String,
    /// Unit of the three values; empty for names, masks and switches.
    pub unit: String,
}

/// A value that a set touched.
struct Touched<'s> {
    key: String,
    /// Old value before each write that touched it, oldest first.
    saved: Vec<&'s Saved>,
    /// The last write that touched it.
    last: &'s Made,
    left: LastWritten<'s>,
}

/// The value after the last write.
#[derive(Clone, Copy)]
enum LastWritten<'s> {
    Written,
    /// Read back after a side effect moved the value.
    Moved(&'s str),
    Unknown,
}

/// Result of comparing a set's values with the host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DriftCheck {
    /// External changes, last written first; side effects come after written values.
    pub drifted: Vec<Drifted>,
    /// Values that exist but cannot be read now, by [`identity::key`]; whether they changed is
    /// unknown.
    pub(crate) unread: Vec<(String, TuneError)>,
}

impl DriftCheck {
    /// Removes values that a later set wrote or moved.
    pub fn remove_written_by(&mut self, later: &JournaledSet) {
        let keys: BTreeSet<String> = later.keys().into_iter().map(|(key, _)| key).collect();
        self.drifted.retain(|d| !keys.contains(&d.key));
    }

    /// The read error of a value, if it could not be read.
    pub fn unread(&self, saved: &Saved) -> Option<&TuneError> {
        let key = identity::key(saved);
        self.unread.iter().find(|(k, _)| *k == key).map(|(_, why)| why)
    }
}

/// Compares a set's values with what the set left.
pub fn check(host: &Host, set: &JournaledSet) -> DriftCheck {
    let finder = Finder::new(host);
    let look = DriftScan { host, finder: &finder, set, moving: Moving::default() };
    let mut all = touched(set);
    all.sort_by_key(|t| (std::cmp::Reverse(t.last.n), t.is_beside()));
    let mut found = DriftCheck::default();
    for touched in &all {
        match look.at(touched) {
            Ok(drifted) => found.drifted.extend(drifted),
            Err(why) => found.unread.push((touched.key.clone(), why)),
        }
    }
    found
}

fn touched(set: &JournaledSet) -> Vec<Touched<'_>> {
    let mut all: Vec<Touched<'_>> = Vec::new();
    for write in &set.writes {
        touch(&mut all, &write.saved, write, LastWritten::Written);
        for saved in &write.coupled_settings {
            touch(&mut all, saved, write, LastWritten::Unknown);
        }
        for left in &write.left {
            let is_it = |t: &&mut Touched<'_>| t.saved.iter().any(|s| s.knob == left.knob);
            if let Some(touched) = all.iter_mut().find(is_it) {
                touched.last = write;
                touched.left = LastWritten::Moved(&left.read_back);
            }
        }
    }
    all
}

fn touch<'s>(all: &mut Vec<Touched<'s>>, saved: &'s Saved, last: &'s Made, left: LastWritten<'s>) {
    let key = identity::key(saved);
    match all.iter_mut().find(|t| t.key == key) {
        Some(known) => {
            known.saved.push(saved);
            (known.last, known.left) = (last, left);
        }
        None => all.push(Touched { key, saved: vec![saved], last, left }),
    }
}

impl Touched<'_> {
    /// Whether the last write that touched it was another knob's.
    fn is_beside(&self) -> bool {
        identity::key(&self.last.saved) != self.key
    }
}

struct DriftScan<'a> {
    host: &'a Host,
    finder: &'a Finder<'a>,
    set: &'a JournaledSet,
    moving: Moving,
}

impl DriftScan<'_> {
    fn at(&self, touched: &Touched<'_>) -> Result<Option<Drifted>, TuneError> {
        let Some(first) = touched.saved.first() else { return Ok(None) };
        let name = &first.knob;
        if !self.is_told_apart(touched) || undo_forecast::is_gone(self.set, name) {
            return Ok(None);
        }
        let UndoForecast::Restorable(called) =
            undo_forecast::forecast(self.host, self.finder, first)
        else {
            return Ok(None);
        };
        let Some(knob) = knobs::find(&called) else { return Ok(None) };
        let beside = touched.is_beside();
        let now = match self.set.as_found.get(name).filter(|_| self.set.undoing) {
            Some(noted) => noted.clone(),
            None => match knob.read_again(self.host, &first.old) {
                Ok(now) => match self.differs(touched, &*knob, now) {
                    Some(now) => now,
                    None => return Ok(None),
                },
                Err(TuneError::Absent(_)) => return Ok(None),
                Err(why) => return Err(why),
            },
        };
        let written = match touched.left {
            LastWritten::Moved(left) => knob.show(left),
            LastWritten::Written | LastWritten::Unknown => {
                self.set.written(touched.last.n).to_owned()
            }
        };
        let unit = self.set.changes.iter().find(|c| c.knob == *name).map_or("", |c| &c.unit);
        Ok(Some(Drifted {
            knob: name.clone(),
            key: touched.key.clone(),
            called: called.clone(),
            beside: if beside { touched.last.saved.knob.clone() } else { String::new() },
            before: knob.show(&first.old),
            written,
            found: knob.show(&now),
            exact: now,
            unit: unit.to_owned(),
        }))
    }

    /// Whether a value other than ours proves an external change. An interrupted or failed write
    /// may itself have left another value.
    fn is_told_apart(&self, touched: &Touched<'_>) -> bool {
        let known = match touched.left {
            LastWritten::Written => true,
            LastWritten::Moved(_) => {
                self.set.writes.iter().all(|w| w.held || w.n <= touched.last.n)
            }
            LastWritten::Unknown => false,
        };
        let has_residue = self.set.has_residue();
        let to_do = |s: &&Saved| !has_residue || self.set.is_residue(&s.knob);
        known && touched.last.held && touched.saved.iter().any(to_do)
    }

    /// The value as drift, if it differs from every value we left.
    fn differs(&self, touched: &Touched<'_>, knob: &dyn Knob, now: String) -> Option<String> {
        if knob.is_nothing(&now) {
            return None;
        }
        let found = knob.show(&now);
        // Interrupted undoing may have stopped at any of them.
        let counts = if self.is_begun() { touched.saved.len() } else { 1 };
        if touched.saved.iter().take(counts).any(|s| knob.show(&s.old) == found) {
            return None;
        }
        let ours = match touched.left {
            LastWritten::Written => knob.verify(self.set.written(touched.last.n), &now),
            LastWritten::Moved(left) => {
                let left = knob.show(left);
                let moves = |s: &&Saved| self.moving.has(self.host, &s.knob);
                left == found
                    || touched.saved.first().is_some_and(moves)
                    || self.is_moved_again(touched.last, &left, &found)
            }
            LastWritten::Unknown => true,
        };
        (!ours).then_some(now)
    }

    /// Whether undoing has begun before.
    fn is_begun(&self) -> bool {
        self.set.undoing || self.set.has_residue()
    }

    /// Whether the knob that moved this value has changed since and moved it again: it was undone,
    /// or changed externally, which is reported for that knob.
    fn is_moved_again(&self, write: &Made, left: &str, found: &str) -> bool {
        let Some((shown, ours)) = self.own(write) else { return self.is_begun() };
        let written = self.set.written(write.n);
        !ours && (self.is_begun() || shown == found && written == left)
    }

    /// Current value of a write's own knob, as shown, and whether it is still ours.
    fn own(&self, write: &Made) -> Option<(String, bool)> {
        let UndoForecast::Restorable(called) =
            undo_forecast::forecast(self.host, self.finder, &write.saved)
        else {
            return None;
        };
        let knob = knobs::find(&called)?;
        let now = knob.read_again(self.host, &write.saved.old).ok()?;
        Some((knob.show(&now), knob.verify(self.set.written(write.n), &now)))
    }
}

#[cfg(test)]
mod tests;
