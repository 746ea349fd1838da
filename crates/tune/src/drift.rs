//! What somebody else set since: values that are neither what a change set left nor what was there
//! before it.

use std::collections::BTreeSet;

use model::tune::Saved;

use crate::{
    Host, TuneError,
    coupled_values::Moving,
    identity::{self, Finder},
    journal::{Made, Set},
    knob::Knob,
    knobs,
    outlook::{self, Outlook},
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drifted {
    pub knob: String,
    /// Whose value it is: [`identity::key`].
    pub(crate) key: String,
    /// What it is called by now.
    pub(crate) called: String,
    /// The knob whose write had moved it along; empty where it was written itself.
    pub beside: String,
    /// What was there before, for people.
    pub before: String,
    /// What was written, or what the write beside it left there, for people.
    pub written: String,
    /// What is there, for people.
    pub found: String,
    /// What is there, exactly.
    pub exact: String,
    /// Unit.
    pub unit: String,
}

/// A value that a set touched.
struct Touched<'s> {
    key: String,
    /// What was there before each of the writes that did, the first one's first.
    saved: Vec<&'s Saved>,
    /// The last of them.
    last: &'s Made,
    left: LastWritten<'s>,
}

/// What the last write left there.
#[derive(Clone, Copy)]
enum LastWritten<'s> {
    Written,
    /// What was read after it had moved the value along.
    Moved(&'s str),
    Unknown,
}

/// What looking at the values of a set gave.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DriftCheck {
    /// What somebody else set since; the last written first, what was moved along behind what was
    /// written.
    pub drifted: Vec<Drifted>,
    /// What is there and cannot be read at this moment, by whose value it is: whether somebody else set
    /// it nobody knows.
    pub(crate) unread: Vec<(String, TuneError)>,
}

impl DriftCheck {
    /// Leaves out what a later set wrote over, or moved.
    pub fn but_for(&mut self, later: &Set) {
        let keys: BTreeSet<String> = later.keys().into_iter().map(|(key, _)| key).collect();
        self.drifted.retain(|d| !keys.contains(&d.key));
    }

    /// Why a value cannot be read.
    pub fn unread(&self, saved: &Saved) -> Option<&TuneError> {
        let key = identity::key(saved);
        self.unread.iter().find(|(k, _)| *k == key).map(|(_, why)| why)
    }
}

/// Looks whether values of a set are still what it left.
pub fn found(host: &Host, set: &Set) -> DriftCheck {
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

fn touched(set: &Set) -> Vec<Touched<'_>> {
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
    /// Whether another knob's write touched it last.
    fn is_beside(&self) -> bool {
        identity::key(&self.last.saved) != self.key
    }
}

struct DriftScan<'a> {
    host: &'a Host,
    finder: &'a Finder<'a>,
    set: &'a Set,
    moving: Moving,
}

impl DriftScan<'_> {
    fn at(&self, touched: &Touched<'_>) -> Result<Option<Drifted>, TuneError> {
        let Some(first) = touched.saved.first() else { return Ok(None) };
        let name = &first.knob;
        if !self.is_told_apart(touched) || outlook::is_gone(self.set, name) {
            return Ok(None);
        }
        let Outlook::Back(called) = outlook::outlook(self.host, self.finder, first) else {
            return Ok(None);
        };
        let Some(knob) = knobs::find(&called) else { return Ok(None) };
        let beside = touched.is_beside();
        let now = match self.set.as_found.get(name).filter(|_| self.set.undoing) {
            Some(noted) => noted.clone(),
            None => match knob.read(self.host) {
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

    /// Whether another value than ours can only be somebody else's. Of a write that was interrupted or
    /// did not hold the kernel may have made something else.
    fn is_told_apart(&self, touched: &Touched<'_>) -> bool {
        let known = match touched.left {
            LastWritten::Written => true,
            LastWritten::Moved(_) => {
                self.set.writes.iter().all(|w| w.held || w.n <= touched.last.n)
            }
            LastWritten::Unknown => false,
        };
        let left_over = self.set.is_left_over();
        let to_do = |s: &&Saved| !left_over || self.set.is_left(&s.knob);
        known && touched.last.held && touched.saved.iter().any(to_do)
    }

    /// A value that is there, where it is somebody else's.
    fn differs(&self, touched: &Touched<'_>, knob: &dyn Knob, now: String) -> Option<String> {
        if knob.is_nothing(&now) {
            return None;
        }
        let found = knob.show(&now);
        // Undoing that was interrupted may have come as far as any of them.
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
        self.set.undoing || self.set.is_left_over()
    }

    /// Whether the knob beside it is another one by now and took the value along: undone already, or
    /// set by somebody, which is told of that knob.
    fn is_moved_again(&self, write: &Made, left: &str, found: &str) -> bool {
        let Some((shown, ours)) = self.own(write) else { return self.is_begun() };
        let written = self.set.written(write.n);
        !ours && (self.is_begun() || shown == found && written == left)
    }

    /// What a write's own value is by now, for people, and whether it is still ours.
    fn own(&self, write: &Made) -> Option<(String, bool)> {
        let Outlook::Back(called) = outlook::outlook(self.host, self.finder, &write.saved) else {
            return None;
        };
        let knob = knobs::find(&called)?;
        let now = knob.read(self.host).ok()?;
        Some((knob.show(&now), knob.verify(self.set.written(write.n), &now)))
    }
}

#[cfg(test)]
mod tests;
