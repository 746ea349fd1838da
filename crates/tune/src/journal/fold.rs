//! Replays journal records into the state of a change set. Pure.

use std::collections::{BTreeMap, BTreeSet};

use crate::{identity, netns};
use model::{
    Reading,
    tune::{By, ChangeSet, ChangeState, Event, HostId, Planned, ReadBack, Record, Saved, Trouble},
};

/// A write announced in the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    pub n: usize,
    /// Value before the write.
    pub saved: Saved,
    /// Values that the write may have moved as side effects.
    pub coupled_settings: Vec<Saved>,
    /// Those and earlier side effects, as read back after the write, where known.
    pub left: Vec<ReadBack>,
    /// Whether the write was made and verified.
    pub held: bool,
}

/// A watchdog of this set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Armed {
    pub pid: u32,
    /// Its start time, in ticks since boot.
    pub start_ticks: u64,
    /// Deadline in milliseconds of `CLOCK_BOOTTIME`.
    pub deadline_boot_ms: u64,
}

/// A change set as its journal describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournaledSet {
    pub id: u64,
    pub host: HostId,
    pub by: By,
    /// Time of the first record, in milliseconds since 1970.
    pub begun_unix_ms: u64,
    /// The planned changes, in the order of their writes.
    pub changes: Vec<Planned>,
    /// The writes begun, in order.
    pub writes: Vec<Write>,
    /// The watchdog, if there is one.
    pub armed: Option<Armed>,
    /// Name of the experiment that made it, if any.
    pub trial: Option<String>,
    pub applied: bool,
    /// The operator confirmed the change.
    pub confirmed: bool,
    /// Undoing began and has not ended.
    pub undoing: bool,
    pub rolled_back: bool,
    /// Undoing ended once and was resumed: only values not restored before remain.
    pub again: bool,
    /// Values that the last undo could not restore, with the reason.
    pub not_undone: Vec<(String, String)>,
    /// Exact values of external changes that undoing left.
    pub as_found: BTreeMap<String, String>,
    /// Recorded as gone after a reboot.
    pub gone: bool,
    /// Its network namespace is gone.
    pub namespace_gone: bool,
    /// Failures and values that could not be restored, in the order of the journal.
    pub trouble: Vec<Trouble>,
}

impl JournaledSet {
    /// Replays the records; `None` without a first record: nothing was done.
    pub fn fold(records: Vec<Record>) -> Option<Self> {
        let mut records = records.into_iter();
        let first = records.next()?;
        let Event::Begin { id, host, by, changes, .. } = first.event else { return None };
        let mut set = Self {
            id,
            host,
            by,
            begun_unix_ms: first.at_unix_ms,
            changes,
            writes: vec![],
            armed: None,
            trial: None,
            applied: false,
            confirmed: false,
            undoing: false,
            rolled_back: false,
            again: false,
            not_undone: vec![],
            as_found: BTreeMap::new(),
            gone: false,
            namespace_gone: false,
            trouble: vec![],
        };
        for record in records {
            set.take(record.event);
        }
        Some(set)
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Begin { .. } => {}
            Event::Armed { pid, start_ticks, deadline_boot_ms } => {
                self.armed = Some(Armed { pid, start_ticks, deadline_boot_ms });
            }
            Event::OnTrial { by } => self.trial = Some(by),
            Event::Writing { n, saved, coupled_settings } => {
                // A change resumed after a crash: its first old value counts.
                if !self.writes.iter().any(|w| w.n == n) {
                    self.writes.push(Write {
                        n,
                        saved,
                        coupled_settings,
                        left: vec![],
                        held: false,
                    });
                }
            }
            Event::Written { n, coupled_settings, .. } => {
                for w in self.writes.iter_mut().filter(|w| w.n == n) {
                    w.held = true;
                    w.left.clone_from(&coupled_settings);
                }
            }
            Event::Failed { n, why } => {
                let steps = self.changes.len();
                self.trouble.push(Trouble::StepFailed { step: n + 1, steps, why });
            }
            Event::Applied => self.applied = true,
            Event::Confirmed => self.confirmed = true,
            Event::Undoing { why } => {
                self.undoing = true;
                self.again |= self.rolled_back;
                self.rolled_back = false;
                // A resumed undo: values stay listed until they are restored.
                if !self.again {
                    self.not_undone.clear();
                }
                if why != super::ASKED {
                    self.trouble.push(Trouble::Undone { why });
                }
            }
            Event::Undone { knob, overwrote, renamed, gone, .. } => {
                self.settled(&knob);
                self.as_found.remove(&knob);
                if let Some(name) = renamed {
                    self.trouble.push(Trouble::PutBackAs { knob: knob.clone(), name });
                }
                if let Some(why) = gone {
                    self.trouble.push(Trouble::Gone { knob: knob.clone(), why });
                }
                if let Some(found) = overwrote {
                    self.trouble.push(Trouble::Overwritten { knob, found });
                }
            }
            Event::LeftAsFound { knob, found, exact } => {
                self.settled(&knob);
                let left = Trouble::LeftAsFound { knob: knob.clone(), found: found.clone() };
                // An interrupted undo reports it again.
                if !self.trouble.contains(&left) {
                    self.trouble.push(left);
                }
                self.as_found.insert(knob, exact.unwrap_or(found));
            }
            Event::NotUndone { knob, why } => {
                self.settled(&knob);
                self.not_undone.push((knob, why));
            }
            Event::RolledBack => {
                self.undoing = false;
                self.rolled_back = true;
            }
            Event::GoneWithBoot => self.gone = true,
            Event::NamespaceGone => {
                self.namespace_gone = true;
                self.trouble.push(Trouble::NamespaceGone);
            }
        }
    }

    /// Drops earlier records of this value: the latest counts.
    fn settled(&mut self, knob: &str) {
        self.not_undone.retain(|(k, _)| k != knob);
    }

    /// The set, extended by external changes that an earlier undo left, to be undone too.
    #[must_use]
    pub fn with_residue(mut self) -> Self {
        let has_residue = self.has_residue();
        for (knob, _) in std::mem::take(&mut self.as_found) {
            if has_residue && !self.is_residue(&knob) {
                self.not_undone.push((knob, "somebody else had set it".into()));
            }
        }
        self
    }

    /// Whether the set was interrupted and no undo of it has ended. After a reboot nothing of it is
    /// in force.
    pub fn was_interrupted(&self) -> bool {
        !self.applied && !self.gone && !self.has_residue()
    }

    /// Whether an undo has ended and only its residue remains.
    pub fn has_residue(&self) -> bool {
        self.rolled_back || self.again
    }

    /// Whether undoing has not restored this value.
    pub fn is_residue(&self, knob: &str) -> bool {
        self.not_undone.iter().any(|(k, _)| k == knob)
    }

    /// Values to restore, last written first, each with the value written over it. Of the side
    /// effects, only those that an earlier undo did not restore.
    pub fn to_undo(&self) -> Vec<(&Saved, &str)> {
        let mut all: Vec<(&Saved, &str)> = Vec::new();
        for write in self.writes.iter().rev() {
            if !self.has_residue() || self.is_residue(&write.saved.knob) {
                all.push((&write.saved, self.written(write.n)));
            }
        }
        for saved in self.writes.iter().rev().flat_map(|w| &w.coupled_settings) {
            let known = all.iter().any(|(s, _)| s.knob == saved.knob);
            if self.has_residue() && !known && self.is_residue(&saved.knob) {
                all.push((saved, ""));
            }
        }
        all
    }

    /// State of the set. `boot_id` is the current boot, `locked` whether a process is at work.
    pub fn state(&self, boot_id: Option<&String>, locked: bool) -> ChangeState {
        let same_boot = match (self.host.boot_id.known(), boot_id) {
            (Some(then), Some(now)) => then == now,
            _ => true,
        };
        let ended = self.rolled_back || self.gone;
        match () {
            () if self.rolled_back && self.not_undone.is_empty() => ChangeState::RolledBack,
            () if self.rolled_back && same_boot => ChangeState::PartlyRolledBack,
            () if self.gone || !same_boot => ChangeState::GoneWithBoot,
            () if !ended && locked && (self.undoing || !self.applied) => ChangeState::InProgress,
            () if self.undoing || !self.applied => ChangeState::Unfinished,
            () if self.armed.is_some() && !self.confirmed => ChangeState::AwaitingConfirmation,
            () => ChangeState::InForce,
        }
    }

    /// Whether a watchdog will undo it.
    pub fn is_guarded(&self, state: ChangeState) -> bool {
        let interrupted = state == ChangeState::Unfinished && !self.undoing;
        self.armed.is_some() && (interrupted || state == ChangeState::AwaitingConfirmation)
    }

    /// The set for JSON documents. `now_boot_ms` is `CLOCK_BOOTTIME` in milliseconds.
    pub fn document(&self, state: ChangeState, now_boot_ms: u64) -> ChangeSet {
        let mut trouble = self.trouble.clone();
        trouble.extend(
            self.not_undone
                .iter()
                .map(|(knob, why)| Trouble::NotPutBack { knob: knob.clone(), why: why.clone() }),
        );
        let left = self
            .armed
            .filter(|_| self.is_guarded(state))
            .map(|a| a.deadline_boot_ms.saturating_sub(now_boot_ms));
        let known = |left: Option<u64>| {
            left.map_or_else(|| Reading::absent("nothing waits"), Reading::Known)
        };
        let id = self.id;
        let rollback = || format!("netwright tune rollback {id}");
        let remedies = match state {
            ChangeState::Unfinished if self.undoing => vec![rollback()],
            ChangeState::Unfinished if self.trial.is_some() => {
                vec!["netwright tune rollback --unfinished".into()]
            }
            ChangeState::Unfinished => {
                vec![rollback(), format!("netwright tune apply --finish {id}")]
            }
            ChangeState::AwaitingConfirmation => {
                vec![format!("netwright tune confirm {id}"), rollback()]
            }
            ChangeState::PartlyRolledBack | ChangeState::InForce => vec![rollback()],
            _ => vec![],
        };
        let login = self.by.login.known().map(|l| format!("{l}, ")).unwrap_or_default();
        ChangeSet {
            id: self.id,
            state,
            begun_unix_ms: self.begun_unix_ms,
            by: format!("{login}uid {}, process {}", self.by.uid, self.by.pid),
            watchdog_running: Reading::absent("nothing waits"),
            begun: self.writes.len(),
            made: self.writes.iter().filter(|w| w.held).count(),
            changes: self.changes.clone(),
            confirm_within_ms: known(left.filter(|_| state == ChangeState::AwaitingConfirmation)),
            undone_within_ms: known(left),
            trouble,
            net_namespace: self.host.net_namespace.clone(),
            namespace: String::new(),
            remedies,
        }
    }

    /// Knobs that the set wrote or may have written; once it is rolled back, those not restored.
    pub fn knobs(&self) -> BTreeSet<&str> {
        if self.has_residue() {
            return self.not_undone.iter().map(|(k, _)| k.as_str()).collect();
        }
        self.writes.iter().map(|w| w.saved.knob.as_str()).collect()
    }

    /// Written values, then side effects, each with its [`identity::key`]; once the set is rolled
    /// back, those not restored.
    pub(crate) fn keys(&self) -> Vec<(String, &str)> {
        let own = self.writes.iter().map(|w| &w.saved);
        let all = own.chain(self.writes.iter().flat_map(|w| &w.coupled_settings));
        let in_force = all.filter(|s| !self.has_residue() || self.is_residue(&s.knob));
        in_force.map(|s| (identity::key(s), s.knob.as_str())).collect()
    }

    /// Whether the set was made in this network namespace; an unknown one counts as the same.
    pub fn is_of(&self, host: &HostId) -> bool {
        netns::same(&self.host, host)
    }

    /// A value that both sets wrote or moved, by this set's name.
    fn shares(&self, other: &Self) -> Option<&str> {
        let one_namespace = self.is_of(&other.host);
        let theirs: BTreeSet<String> = other.keys().into_iter().map(|(key, _)| key).collect();
        let both = |(key, _): &(String, &str)| theirs.contains(key);
        let mut shared = self.keys().into_iter().filter(both).map(|(_, knob)| knob);
        shared.find(|k| one_namespace || !netns::is_of_namespace(k))
    }

    /// Why an earlier set cannot be rolled back before this one if both touch a value: rolling this
    /// one back later would restore the earlier set's value.
    pub fn in_the_way_of(&self, earlier: &Self) -> Option<String> {
        let knob = self.shares(earlier)?;
        let did = if self.knobs().contains(knob) { "wrote" } else { "moved" };
        let (later, id) = (self.id, earlier.id);
        Some(format!("change {later} {did} {knob} after change {id}; roll that back first"))
    }

    /// The value that change `n` wrote.
    pub fn written(&self, n: usize) -> &str {
        self.changes.get(n).map_or("", |c| c.new.as_str())
    }
}

/// Position in a plan, for messages. "Change" is the word for a whole change set.
pub fn step(n: usize, of: usize) -> String {
    format!("step {} of {of}", n + 1)
}

#[cfg(test)]
mod tests;
