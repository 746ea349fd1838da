//! Changes that are made only to see what they do: each a change set of its own that counts as
//! unfinished until it is undone or kept, so that whatever ends an experiment, the next command
//! says what is left of it.

use std::{path::Path, sync::atomic::AtomicBool, time::Duration};

use model::tune::{By, ChangeState, Event, Plan};

use crate::{
    Host, Store, TuneError,
    apply::{Applied, Work},
    drift::Drifted,
    journal::Set,
    knobs,
    lock::Lock,
    mtu_path::PathCheck,
    netns::{self, NamespaceSearch},
    settle, status,
    undo::{self, Report},
    watchdog,
};

/// Where an experiment makes its changes.
pub trait Trials: std::fmt::Debug + Sync {
    /// Makes a plan's changes, on trial; a number to name them by.
    ///
    /// # Errors
    /// The first change that failed; then all is as it was, or the text says what is not.
    fn try_out(&self, plan: &Plan) -> Result<u64, TuneError>;

    /// Whether what was made is still there.
    ///
    /// # Errors
    /// The first value that is another one now.
    fn holds(&self, id: u64) -> Result<(), TuneError>;

    /// Undoes it and reads everything back.
    ///
    /// # Errors
    /// Names what could not be put back, and how to try again; [`TuneError::Changed`] with what somebody
    /// else set since, which is left.
    fn take_back(&self, id: u64) -> Result<(), TuneError>;
}

impl Trials for Bench {
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

/// A host on which an experiment makes changes. It holds the lock as long as it lives: nobody
/// else changes the host meanwhile.
pub struct Bench {
    host: Host,
    store: Store,
    lock: Lock,
    by: By,
    /// Whose experiment, for the journal.
    what: String,
    /// An experiment that is to end ends between two changes, never within one.
    never: AtomicBool,
}

impl std::fmt::Debug for Bench {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bench").field("store", &self.store).field("what", &self.what).finish()
    }
}

impl Bench {
    /// Takes the lock; `waiting` is told once who has it. `what` stands in the journal: `the
    /// experiment channels`.
    ///
    /// # Errors
    /// When the journal's folder cannot be made.
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

    /// Undoes what a process that was killed had on trial; `maker` is its number and start. With or without
    /// the lock: somebody who holds it must not keep a host for ever from what it was.
    ///
    /// # Errors
    /// What could not be undone; the others are.
    pub fn undo_lost(host: Host, store: Store, by: By, maker: (u32, u64)) -> Result<(), TuneError> {
        let (what, never) = (String::new(), AtomicBool::new(false));
        let mut bench = Self { host, store, lock: Lock::without(), by, what, never };
        let is_lost = |(s, state): &&(Set, ChangeState)| {
            let own = (s.by.pid, s.by.start_ticks) == maker;
            own && s.trial.is_some() && *state == ChangeState::Unfinished
        };
        // Whoever has the lock next may put others on trial.
        let lost: Vec<u64> = bench.sets()?.iter().filter(is_lost).map(|(s, _)| s.id).collect();
        let Some(newest) = lost.last() else { return Ok(()) };
        bench.lock = watchdog::deadline::lock_in_time(&bench.store, *newest);
        let (mut done, still) = (Ok(()), bench.sets()?);
        for (set, _) in still.iter().rev().filter(is_lost).filter(|(s, _)| lost.contains(&s.id)) {
            match bench.close(set) {
                // What somebody else set since is left.
                Ok(_) | Err(TuneError::Changed(_)) => {}
                Err(e) => done = Err(e),
            }
        }
        done
    }

    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The folder of the journals and of what belongs to them.
    pub fn state(&self) -> &Path {
        self.store.state()
    }

    fn work(&self) -> Work<'_> {
        Work {
            host: &self.host,
            store: &self.store,
            lock: &self.lock,
            stop: &self.never,
            link_wait: settle::PATIENCE,
            path: PathCheck::default(),
        }
    }

    /// Every set with its state. The lock is ours, so nobody else is at work.
    fn sets(&self) -> Result<Vec<(Set, ChangeState)>, TuneError> {
        let boot = self.host.id().boot_id;
        let (sets, damaged) = self.store.sets()?;
        if let Some(damaged) = damaged.into_iter().next() {
            return Err(TuneError::Journal(Box::new(damaged)));
        }
        let state = |s: Set| {
            let state = s.state(boot.known(), false);
            (s, state)
        };
        Ok(sets.into_iter().map(state).collect())
    }

    /// Sets that are on trial now, ascending.
    ///
    /// # Errors
    /// When a journal makes no sense.
    pub fn on_trial(&self) -> Result<Vec<u64>, TuneError> {
        let trial = |(s, state): &(Set, ChangeState)| {
            *state == ChangeState::Unfinished && s.trial.is_some()
        };
        Ok(self.sets()?.iter().filter(|s| trial(s)).map(|(s, _)| s.id).collect())
    }

    /// Undoes what experiments that were killed left, the last first; one line for each. What another
    /// network namespace has is undone there, and gone with it.
    ///
    /// # Errors
    /// When it cannot be undone, or when another change of this host was interrupted or waits for its
    /// confirmation: that is for the operator to decide.
    pub fn clear(&self) -> Result<Vec<String>, TuneError> {
        let mut reported = Vec::new();
        for (set, state) in self.sets()?.iter().rev() {
            let id = set.id;
            match (state, &set.trial) {
                (ChangeState::Unfinished, Some(trial)) => {
                    let how = match self.close(set) {
                        Ok(how) => how.to_owned(),
                        // It is undone all the same.
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

    /// Whether a set changed what is seen from here.
    fn reaches(&self, set: &Set) -> bool {
        set.is_of(&self.host.id()) || set.changes.iter().any(|c| !netns::is_of_namespace(&c.knob))
    }

    /// Undoes what a killed experiment left, where that is; what became of it.
    fn close(&self, set: &Set) -> Result<&'static str, TuneError> {
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
                let set = Set { namespace_gone: true, ..set.clone() };
                let report = undo::all(&self.host, &mut journal, &set, undo::ASKED);
                whole(set.id, &report).map(
                    |()| "is closed: its network namespace is gone, and what was set there with it",
                )
            }
            NamespaceSearch::Unknown if self.reaches(set) => {
                self.here(set).map(|()| "is left as it is")
            }
            NamespaceSearch::Unknown => {
                Ok("is left as it is, for its network namespace is not seen from here")
            }
        }
    }

    fn here(&self, set: &Set) -> Result<(), TuneError> {
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

    /// Makes a plan's changes, on trial; the number of their set.
    ///
    /// # Errors
    /// The first change that failed; then all is as it was, or the text says what is not.
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

    /// Whether what a set wrote is still there.
    ///
    /// # Errors
    /// The first value that is another one now.
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
    /// Names what could not be put back, and how to try again; [`TuneError::Changed`] with what somebody
    /// else set since, which is left.
    pub fn take_back(&self, id: u64) -> Result<(), TuneError> {
        whole(id, &self.undone(id)?)
    }

    /// The same of what may go meanwhile, as a process does: then nothing is to be put back.
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

    /// Undoes a set that an experiment of this name made and kept; `whose` begins the name.
    ///
    /// # Errors
    /// There is none, it is somebody else's, a later set wrote the same knob, or as
    /// [`Bench::take_back`].
    pub fn roll_back(&self, id: u64, whose: &str) -> Result<(), TuneError> {
        let sets = self.sets()?;
        let own = |(s, _): &&(Set, ChangeState)| {
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
        let after = |(s, state): &&(Set, ChangeState)| s.id > id && status::is_open(*state);
        for (later, _) in sets.iter().filter(after) {
            if let Some(why) = later.in_the_way_of(set) {
                return Err(TuneError::Environment(why));
            }
        }
        self.take_back(id)
    }

    /// Ends a trial: its changes stay, as those of `tune apply` do.
    ///
    /// # Errors
    /// When the journal cannot be told: then it stays on trial.
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
        format!("{knob} is {found}, which somebody else set over {written} (before: {before})")
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
