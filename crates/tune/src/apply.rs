//! Applies a plan. Each change saves the old value to the journal, writes, and reads back. The
//! first failure stops the plan and undoes everything written.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use model::{
    SCHEMA_VERSION,
    tune::{By, Event, Plan, Planned, Saved, Unchanged},
};

use crate::{
    Host, Store, TuneError,
    coupled_values::{CoupledValues, Moving},
    identity::Finder,
    journal::{self, Armed, Journal, JournaledSet},
    knobs,
    lock::Lock,
    mtu_path::{self, PathCheck},
    privilege, settle,
    undo::{self, Report},
    verification,
};

/// Result of applying a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Applied {
    /// Every change is in force; the change set's number.
    Whole(u64),
    /// A change failed; the changes already written were undone.
    Undone {
        id: u64,
        why: TuneError,
        /// Result of the undo, per knob.
        report: Report,
    },
}

pub struct Applier<'a> {
    pub host: &'a Host,
    /// Holds the change set's journal.
    pub store: &'a Store,
    pub lock: &'a Lock,
    /// Set to stop early; what was written is then undone.
    pub stop: &'a AtomicBool,
    /// How long a bond member may take to carry traffic again, normally
    /// [`crate::settle::PATIENCE`].
    pub link_wait: Duration,
    /// Peers and strictness of the path check after an MTU was raised.
    pub path: PathCheck<'a>,
}

/// Starts a watchdog for the change set of this number.
pub type Arm<'a> = &'a mut dyn FnMut(u64) -> Result<Armed, TuneError>;

/// The changes of an interrupted set that are not made yet, checked as far as possible without a
/// write.
///
/// # Errors
/// This process lacks a privilege for one of them, or an interface was replaced.
pub fn to_finish(host: &Host, set: &JournaledSet) -> Result<Vec<Planned>, TuneError> {
    let made = |n: usize| set.writes.iter().any(|w| w.n == n && w.held);
    let rest = set.changes.iter().enumerate().filter(|(n, _)| !made(*n));
    let rest: Vec<Planned> = rest.map(|(_, c)| c.clone()).collect();
    privilege::check(host, &rest)?;
    same_interfaces(host, set)?;
    Ok(rest)
}

/// Checks that every value is as the crash left it. If not, completing the set stops here and
/// undoes all.
///
/// # Errors
/// [`TuneError::Changed`] with the first external change; the error of a value that cannot be read.
pub fn still_so(host: &Host, set: &JournaledSet) -> Result<(), TuneError> {
    let (along, moving) = (CoupledValues::of(set), Moving::default());
    for (n, change) in set.changes.iter().enumerate() {
        let name = &change.knob;
        let Some(knob) = knobs::find(name).filter(|_| !moving.has(host, name)) else { continue };
        let begun = set.writes.iter().find(|w| w.n == n);
        let now = match knob.read(host) {
            Ok(now) => now,
            // The process ended since.
            Err(_) if begun.is_some_and(|w| w.held) && knob.lost(host, "").is_some() => {
                continue;
            }
            Err(e) => return Err(e),
        };
        let is_new = begun.is_some() && knob.verify(&change.new, &now);
        let is_old = !begun.is_some_and(|w| w.held) && knob.show(&now) == change.old;
        if !(is_new || is_old || along.has(name)) {
            return Err(TuneError::Changed(format!(
                "{name} is {} now, and was {} when it was interrupted: another program changes it; \
                 completing would fail and undo all",
                knob.show(&now),
                if begun.is_some_and(|w| w.held) { &change.new } else { &change.old }
            )));
        }
    }
    Ok(())
}

/// Checks that each interface is still the one the set was begun on.
fn same_interfaces(host: &Host, set: &JournaledSet) -> Result<(), TuneError> {
    let finder = Finder::new(host);
    let back = |e: TuneError| match e {
        TuneError::Changed(why) => TuneError::Changed(format!(
            "{why}; `netwright tune rollback {}` puts back what was written",
            set.id
        )),
        other => other,
    };
    for write in &set.writes {
        finder.unmoved(&write.saved).map_err(back)?;
    }
    let begun = |n: usize| set.writes.iter().any(|w| w.n == n);
    for (_, change) in set.changes.iter().enumerate().filter(|(n, _)| !begun(*n)) {
        finder.still_means(change).map_err(back)?;
    }
    Ok(())
}

/// Starts the watchdog and records it in the journal before the first write.
fn watchdog_running(journal: &mut Journal, arm: Option<Arm<'_>>) -> Result<(), TuneError> {
    let Some(arm) = arm else { return Ok(()) };
    let Armed { pid, start_ticks, deadline_boot_ms } = arm(journal.id)?;
    journal.sync(Event::Armed { pid, start_ticks, deadline_boot_ms })
}

impl Applier<'_> {
    /// Applies a plan made under the lock. `arm`, if given, starts the watchdog.
    ///
    /// # Errors
    /// Nothing was written: a privilege is missing, or the journal or the watchdog could not be
    /// started.
    pub fn apply(&self, plan: &Plan, by: By, arm: Option<Arm<'_>>) -> Result<Applied, TuneError> {
        let mut journal = self.begin(plan, by)?;
        if let Err(e) = watchdog_running(&mut journal, arm) {
            let _ = journal.sync(Event::RolledBack);
            return Err(e);
        }
        self.go_on(&mut journal, &plan.unchanged, true)
    }

    pub(crate) fn begin(&self, plan: &Plan, by: By) -> Result<Journal, TuneError> {
        privilege::check(self.host, &plan.changes)?;
        let mut changes = plan.changes.clone();
        settle::note(self.host.root(), &mut changes);
        let host = plan.host.clone();
        let schema_version = SCHEMA_VERSION;
        self.store.begin(self.lock, |id| Event::Begin { schema_version, id, host, by, changes })
    }

    /// Completes a change set that a crash interrupted. `arm`, if given, starts a new watchdog; an
    /// earlier watchdog of the set then exits.
    ///
    /// # Errors
    /// Nothing more was written: the journal cannot be opened, a privilege is missing, or the
    /// watchdog did not start.
    pub fn finish(&self, id: u64, arm: Option<Arm<'_>>) -> Result<Applied, TuneError> {
        to_finish(self.host, &self.set(id)?)?;
        let mut journal = self.store.resume(id, self.lock)?;
        watchdog_running(&mut journal, arm)?;
        self.go_on(&mut journal, &[], true)
    }

    pub(crate) fn set(&self, id: u64) -> Result<JournaledSet, TuneError> {
        self.store.set(id)?.ok_or_else(|| {
            TuneError::Environment(format!("change set {id}: its journal has no beginning"))
        })
    }

    /// Makes the remaining changes, then verifies all of them and the values that needed no change.
    /// `keep` ends the set; without it the set stays on trial.
    pub(crate) fn go_on(
        &self,
        journal: &mut Journal,
        unchanged: &[Unchanged],
        keep: bool,
    ) -> Result<Applied, TuneError> {
        let set = self.set(journal.id)?;
        let mut along = CoupledValues::of(&set);
        let path = match mtu_path::before(self.host, &set.changes, self.path) {
            Ok(path) => path,
            Err(why) => return self.give_up(journal, 0, why),
        };
        for (n, change) in set.changes.iter().enumerate() {
            let begun = set.writes.iter().find(|w| w.n == n);
            let made = match begun {
                Some(w) if w.held => Ok(()),
                _ => self.change(journal, n, change, begun.map(|w| &w.saved), &mut along),
            };
            // Needed after a resumed write too: the link may still be down from it.
            if let Err(why) = made.and_then(|()| self.back(&set.changes, n)) {
                return self.give_up(journal, n, why);
            }
        }
        if let Err((n, why)) = verification::look(self.host, &set.changes, unchanged) {
            return self.give_up(journal, n, why);
        }
        if let Err((n, why)) = path.after(self.link_wait) {
            return self.give_up(journal, n, why);
        }
        if !keep {
            return Ok(Applied::Whole(journal.id));
        }
        match journal.sync(Event::Applied) {
            Ok(()) => Ok(Applied::Whole(journal.id)),
            Err(why) => self.give_up(journal, set.changes.len(), why),
        }
    }

    /// Waits for a member's link once all changes of that member are made.
    fn back(&self, changes: &[Planned], n: usize) -> Result<(), TuneError> {
        match changes.get(n).and_then(|c| c.member.as_ref()) {
            Some(member) if settle::ends_turn(changes, n) => {
                settle::back(self.host, member, self.link_wait, self.stop)
            }
            _ => Ok(()),
        }
    }

    fn give_up(
        &self,
        journal: &mut Journal,
        n: usize,
        why: TuneError,
    ) -> Result<Applied, TuneError> {
        let _ = journal.append(Event::Failed { n, why: why.to_string() });
        let set = self.set(journal.id)?;
        let failed = match set.changes.len() {
            all if n < all => format!("{} failed", journal::step(n, all)),
            _ => "its end could not be noted".into(),
        };
        let report = undo::all(self.host, journal, &set, &failed);
        Ok(Applied::Undone { id: journal.id, why, report })
    }

    /// Makes one change. `begun` is its old value from the journal if an earlier run began it.
    fn change(
        &self,
        journal: &mut Journal,
        n: usize,
        change: &Planned,
        begun: Option<&Saved>,
        along: &mut CoupledValues,
    ) -> Result<(), TuneError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(TuneError::Environment("interrupted".into()));
        }
        let name = &change.knob;
        let knob = knobs::find(name)
            .ok_or_else(|| TuneError::Usage(format!("{name}: this netwright has no such knob")))?;
        let finder = Finder::new(self.host);
        if begun.is_none() {
            finder.still_means(change)?;
        }
        let now = knob.read(self.host)?;
        let is_new = knob.verify(&change.new, &now);
        let is_old = knob.show(&now) == change.old || along.has(name);
        if !(is_old || is_new && begun.is_some()) {
            return Err(TuneError::Changed(format!(
                "{name} was {} and is {} now: another program changes it",
                change.old,
                knob.show(&now)
            )));
        }
        if let Some(member) = &change.member {
            settle::others(self.host, member, self.link_wait, self.stop)?;
        }
        if begun.is_none() {
            let coupled_settings = along.about_to(self.host, &finder, &*knob, name)?;
            let saved = finder.saved(name, now);
            journal.sync(Event::Writing { n, saved, coupled_settings })?;
        }
        if !is_new || begun.is_none() {
            knob.write(self.host, &change.new)?;
        }
        let back = knob.read(self.host)?;
        if !knob.verify(&change.new, &back) {
            return Err(TuneError::Environment(format!(
                "{name}: {} was written and the kernel made {} of it",
                change.new,
                knob.show(&back)
            )));
        }
        let coupled_settings = along.left_by(self.host, name, &back);
        journal.append(Event::Written { n, read_back: back, coupled_settings })
    }
}
