//! Trial changes: made only to observe their effect. Each is a change set that counts as unfinished
//! until it is undone or kept, so the next command reports it however the experiment ends.

use std::{path::Path, sync::atomic::AtomicBool, time::Duration};

use model::tune::{By, ChangeState, Event, Plan};

use crate::{
    Host, Store, TuneError,
    apply::{Applied, Applier},
    drift::Drifted,
    journal::JournaledSet,
    knobs,
    lock::Lock,
    mtu_path::PathCheck,
    netns::{self, NamespaceSearch},
    settle, status,
    undo::{self, Report},
    watchdog,
};

/// Makes and undoes an experiment's changes, on this host or on the peer.
pub trait Trials: std::fmt::Debug + Sync {
    /// Applies a plan on trial; returns the change set's number.
    ///
    /// # Errors
    /// The first change that failed. Everything is undone then, or the text says what is not.
    fn try_out(&self, plan: &Plan) -> Result<u64, TuneError>;

    /// Checks that the values are still in place.
    ///
    /// # Errors
    /// The first value that changed.
    fn holds(&self, id: u64) -> Result<(), TuneError>;

    /// Undoes the changes and reads the values back.
    ///
    /// # Errors
    /// Values that could not be restored, and how to retry; [`TuneError::Changed`] with external
    /// changes, which are left.
    fn take_back(&self, id: u64) -> Result<(), TuneError>;
}

impl Trials for TrialHost {
    fn try_out(&self, plan: &Plan) -> Result<u64, TuneError> {
        Self::try_out(self, plan)
    }

    fn holds(&self, id: u64) -> Result<(), TuneError> {
        Self::holds(self, id)
    }

    fn take_back(&self, id: u64) -> Result<(), TuneError> {
        Self::take_back(self, id)
    }
}

/// A host for an experiment. Holds the lock for its lifetime: no other process changes the host
/// meanwhile.
pub struct TrialHost {
    host: Host,
    store: Store,
    lock: Lock,
    by: By,
    /// Name of the experiment, for the journal.
    what: String,
    /// Never set: an experiment stops between two changes, not within one.
    never: AtomicBool,
}

impl std::fmt::Debug for TrialHost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TrialHost").field("store", &self.store).field("what", &self.what).finish()
    }
}

impl TrialHost {
    /// Takes the lock; `waiting` is called once with its holder. `what` is written to the journal:
    /// `the experiment channels`.
    ///
    /// # Errors
    /// The journal's directory cannot be created.
    pub fn open(
        host: Host,
        store: Store,
        by: By,
        what: &str,
        waiting: &mut dyn FnMut(&str),
    ) -> Result<Self, TuneError> {
        let lock = store.lock(None::<Duration>, waiting)?;
        Ok(Self { host, store, lock, by, what: what.to_owned(), never: AtomicBool::new(false) })
    }

    /// Undoes the trials of a killed process; `maker` is its PID and start time. Works without the
    /// lock too: its holder must not delay restoring the host without limit.
    ///
    /// # Errors
    /// Values that could not be undone; the others are.
    pub fn undo_lost(host: Host, store: Store, by: By, maker: (u32, u64)) -> Result<(), TuneError> {
        let (what, never) = (String::new(), AtomicBool::new(false));
        let mut trial_host = Self { host, store, lock: Lock::without(), by, what, never };
        let is_lost = |(s, state): &&(JournaledSet, ChangeState)| {
            let own = (s.by.pid, s.by.start_ticks) == maker;
            own && s.trial.is_some() && *state == ChangeState::Unfinished
        };
        // A later holder of the lock may start trials of its own.
        let lost: Vec<u64> = trial_host.sets()?.iter().filter(is_lost).map(|(s, _)| s.id).collect();
        let Some(newest) = lost.last() else { return Ok(()) };
        trial_host.lock = watchdog::deadline::lock_in_time(&trial_host.store, *newest);
        let (mut done, still) = (Ok(()), trial_host.sets()?);
        for (set, _) in still.iter().rev().filter(is_lost).filter(|(s, _)| lost.contains(&s.id)) {
            match trial_host.close(set) {
                // External changes are left.
                Ok(_) | Err(TuneError::Changed(_)) => {}
                Err(e) => done = Err(e),
            }
        }
        done
    }

    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The state directory, which holds the journals.
    pub fn state(&self) -> &Path {
        self.store.state()
    }

    fn work(&self) -> Applier<'_> {
        Applier {
            host: &self.host,
            store: &self.store,
            lock: &self.lock,
            stop: &self.never,
            link_wait: settle::PATIENCE,
            path: PathCheck::default(),
        }
    }

    /// Every set with its state. We hold the lock, so no set is in progress.
    fn sets(&self) -> Result<Vec<(JournaledSet, ChangeState)>, TuneError> {
        let boot = self.host.id().boot_id;
        let (sets, damaged) = self.store.sets()?;
        if let Some(damaged) = damaged.into_iter().next() {
            return Err(TuneError::Journal(Box::new(damaged)));
        }
        let state = |s: JournaledSet| {
            let state = s.state(boot.known(), false);
            (s, state)
        };
        Ok(sets.into_iter().map(state).collect())
    }

    /// Change sets on trial now, ascending.
    ///
    /// # Errors
    /// A journal is damaged.
    pub fn on_trial(&self) -> Result<Vec<u64>, TuneError> {
        let trial = |(s, state): &(JournaledSet, ChangeState)| {
            *state == ChangeState::Unfinished && s.trial.is_some()
        };
        Ok(self.sets()?.iter().filter(|s| trial(s)).map(|(s, _)| s.id).collect())
    }

    /// Undoes the residue of killed experiments, last first; one line for each. Changes in another
    /// network namespace are undone there; if the namespace is gone, so are they.
    ///
    /// # Errors
    /// Undoing failed, or another change of this host was interrupted or is unconfirmed: the
    /// operator must decide on that.
    pub fn clear(&self) -> Result<Vec<String>, TuneError> {
        let mut reported = Vec::new();
        for (set, state) in self.sets()?.iter().rev() {
            let id = set.id;
            match (state, &set.trial) {
                (ChangeState::Unfinished, Some(trial)) => {
                    let how = match self.close(set) {
                        Ok(how) => how.to_owned(),
                        // The set is undone anyway.
                        Err(TuneError::Changed(left)) => format!("is undone; {left}"),
                        Err(e) => return Err(e),
                    };
                    reported.push(format!("{trial} was interrupted; its change {id} {how}"));
                }
                (ChangeState::Unfinished, None) if self.reaches(set) => {
                    return Err(TuneError::Environment(format!(
                        "change {id} was interrupted; `netwright tune rollback {id}` or `apply \
                         --finish {id}` first"
                    )));
                }
                (ChangeState::AwaitingConfirmation, _) if self.reaches(set) => {
                    return Err(TuneError::Environment(format!(
                        "change {id} waits for a confirmation; `netwright tune confirm {id}` or \
                         `rollback {id}` first"
                    )));
                }
                _ => {}
            }
        }
        Ok(reported)
    }

    /// Whether a set changed values that are visible from here.
    fn reaches(&self, set: &JournaledSet) -> bool {
        set.is_of(&self.host.id()) || set.changes.iter().any(|c| !netns::is_of_namespace(&c.knob))
    }

    /// Undoes a killed experiment's set in its namespace; returns a text on the result.
    fn close(&self, set: &JournaledSet) -> Result<&'static str, TuneError> {
        let own = set.changes.iter().any(|c| netns::is_of_namespace(&c.knob));
        let Some(then) = set.host.net_namespace.get().filter(|_| own) else {
            return self.let_go(set.id).map(|()| "is undone");
        };
        if set.is_of(&self.host.id()) {
            return self.let_go(set.id).map(|()| "is undone");
        }
        let mut journal = self.store.resume(set.id, &self.lock)?;
        match netns::again(then, set.host.net_cookie.get()) {
            NamespaceSearch::There(namespace) => {
                let undone = || undo::all(&Host::live(), &mut journal, set, undo::ASKED);
                let report = netns::within(&namespace, undone)?;
                whole(set.id, &report).map(|()| "is undone in its network namespace")
            }
            NamespaceSearch::Gone => {
                journal.sync(Event::NamespaceGone)?;
                let set = JournaledSet { namespace_gone: true, ..set.clone() };
                let report = undo::all(&self.host, &mut journal, &set, undo::ASKED);
                whole(set.id, &report)
                    .map(|()| "is closed: its network namespace is gone, and its settings with it")
            }
            NamespaceSearch::Unknown if self.reaches(set) => {
                self.here(set).map(|()| "is left as it is")
            }
            NamespaceSearch::Unknown => {
                Ok("is left as it is, for its network namespace is not seen from here")
            }
        }
    }

    fn here(&self, set: &JournaledSet) -> Result<(), TuneError> {
        let now = self.host.id();
        match (set.host.net_namespace.known(), now.net_namespace.known()) {
            (Some(then), Some(now)) if then != now => Err(TuneError::Environment(format!(
                "change {} was interrupted in network namespace {then}, and this is {now}: roll it \
                 back there",
                set.id
            ))),
            _ => Ok(()),
        }
    }

    /// Applies a plan on trial; returns the change set's number.
    ///
    /// # Errors
    /// The first change that failed. Everything is undone then, or the text says what is not.
    pub fn try_out(&self, plan: &Plan) -> Result<u64, TuneError> {
        let work = self.work();
        let mut journal = work.begin(plan, self.by.clone())?;
        journal.sync(Event::OnTrial { by: self.what.clone() })?;
        match work.go_on(&mut journal, &plan.unchanged, false)? {
            Applied::Whole(id) => Ok(id),
            Applied::Undone { why, report, id } => match whole(id, &report) {
                Ok(()) => Err(why),
                Err(not) => Err(TuneError::Environment(format!("{why}; {not}"))),
            },
        }
    }

    /// Checks that the values a set wrote are still in place.
    ///
    /// # Errors
    /// The first value that changed.
    pub fn holds(&self, id: u64) -> Result<(), TuneError> {
        let set = self.work().set(id)?;
        for change in &set.changes {
            let name = &change.knob;
            let Some(knob) = knobs::find(name) else { continue };
            let now = knob.read(&self.host)?;
            if !knob.verify(&change.new, &now) {
                return Err(TuneError::Changed(format!(
                    "{name} was set to {} and is {} now: something else changes it",
                    change.new,
                    knob.show(&now)
                )));
            }
        }
        Ok(())
    }

    /// Undoes a set and reads everything back.
    ///
    /// # Errors
    /// Values that could not be restored, and how to retry; [`TuneError::Changed`] with external
    /// changes, which are left.
    pub fn take_back(&self, id: u64) -> Result<(), TuneError> {
        whole(id, &self.undone(id)?)
    }

    /// The same for values whose object may end meanwhile, such as a process: nothing is restored
    /// then.
    ///
    /// # Errors
    /// As of [`Self::take_back`].
    pub fn let_go(&self, id: u64) -> Result<(), TuneError> {
        let mut report = self.undone(id)?;
        if report.gone.len() == report.not_restored.len() {
            report.not_restored.clear();
        }
        whole(id, &report)
    }

    fn undone(&self, id: u64) -> Result<Report, TuneError> {
        let set = self.work().set(id)?;
        let mut journal = self.store.resume(id, &self.lock)?;
        Ok(undo::all(&self.host, &mut journal, &set, undo::ASKED))
    }

    /// Undoes a set that an experiment of this name made and kept; `whose` is a prefix of the name.
    ///
    /// # Errors
    /// There is no such set, it is another experiment's, a later set wrote the same knob, or as
    /// [`TrialHost::take_back`].
    pub fn roll_back(&self, id: u64, whose: &str) -> Result<(), TuneError> {
        let sets = self.sets()?;
        let own = |(s, _): &&(JournaledSet, ChangeState)| {
            s.id == id && s.trial.as_deref().is_some_and(|t| t.starts_with(whose))
        };
        let Some((set, state)) = sets.iter().find(own) else {
            if !sets.iter().any(|(s, _)| s.id == id) {
                return Err(TuneError::Usage(format!("there is no change {id}")));
            }
            return Err(TuneError::Denied(format!("change {id} was not made by {whose}…")));
        };
        if matches!(state, ChangeState::RolledBack | ChangeState::GoneWithBoot) {
            return Ok(());
        }
        self.here(set)?;
        let after =
            |(s, state): &&(JournaledSet, ChangeState)| s.id > id && status::is_open(*state);
        for (later, _) in sets.iter().filter(after) {
            if let Some(why) = later.in_the_way_of(set) {
                return Err(TuneError::Environment(why));
            }
        }
        self.take_back(id)
    }

    /// Ends a trial and keeps its changes, as `tune apply` does.
    ///
    /// # Errors
    /// The journal cannot be written; the set stays on trial.
    pub fn keep(&self, id: u64) -> Result<(), TuneError> {
        self.store.resume(id, &self.lock)?.sync(Event::Applied)
    }
}

fn whole(id: u64, report: &Report) -> Result<(), TuneError> {
    if let Some((knob, why)) = report.not_restored.first() {
        return Err(TuneError::Environment(format!(
            "NOT PUT BACK: {knob}: {why}; `netwright tune rollback {id}` tries again"
        )));
    }
    if let Some(journal) = &report.journal {
        return Err(TuneError::Environment(format!(
            "all is put back, but the journal could not be written ({journal}); `netwright tune \
             rollback {id}` closes it"
        )));
    }
    let left = |d: &Drifted| {
        let Drifted { knob, written, before, found, .. } = d;
        format!("{knob} is {found}, set by another program over {written} (before: {before})")
    };
    match report.drifted.iter().map(left).collect::<Vec<_>>() {
        none if none.is_empty() => Ok(()),
        some => Err(TuneError::Changed(format!(
            "left as it is: {}; `netwright tune rollback {id} --force` on this host puts the value from \
             before back",
            some.join("; ")
        ))),
    }
}
