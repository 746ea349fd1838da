//! Records → how a change set stands. Pure.

use std::collections::{BTreeMap, BTreeSet};

use crate::{identity, netns};
use model::{
    Reading,
    tune::{By, ChangeSet, ChangeState, Event, HostId, Planned, ReadBack, Record, Saved, Trouble},
};

/// A write that was announced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    pub n: usize,
    /// What was there before.
    pub saved: Saved,
    /// What else it may have disturbed.
    pub coupled_settings: Vec<Saved>,
    /// What it left of that, and of what earlier writes disturbed, as far as that is known.
    pub left: Vec<ReadBack>,
    /// Whether it was made and held.
    pub held: bool,
}

/// A watchdog that stands by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Armed {
    pub pid: u32,
    /// Its start in ticks since boot.
    pub start_ticks: u64,
    /// When it undoes, milliseconds of `CLOCK_BOOTTIME`.
    pub deadline_boot_ms: u64,
}

/// A change set as its journal tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Set {
    pub id: u64,
    pub host: HostId,
    pub by: By,
    /// When.
    pub begun_unix_ms: u64,
    /// What was to be done.
    pub changes: Vec<Planned>,
    /// What was begun, in order.
    pub writes: Vec<Write>,
    /// The watchdog, if there is one.
    pub armed: Option<Armed>,
    /// Whose experiment it is, if it is one's.
    pub trial: Option<String>,
    pub applied: bool,
    /// The operator said that all is well.
    pub confirmed: bool,
    /// Undoing began and has not ended.
    pub undoing: bool,
    pub rolled_back: bool,
    /// Undoing was taken up again after it had ended: only what it did not put back is to be done.
    pub again: bool,
    /// Values that could not be put back at the last try, with the reason.
    pub not_undone: Vec<(String, String)>,
    /// Values that undoing left as somebody else had set them, exactly.
    pub as_found: BTreeMap<String, String>,
    /// Noted as gone with a reboot.
    pub gone: bool,
    /// Its network namespace is gone.
    pub namespace_gone: bool,
    /// What went wrong, in order.
    pub trouble: Vec<Trouble>,
}

impl Set {
    /// The set that records tell of; `None` where the first is not there: nothing was done.
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
                // A change that is taken up again after a crash: the first old value counts.
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
                // Taken up again, what is left is left until it is put back.
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
                // An undoing that was interrupted says it again.
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

    /// A later word on a value is the one that counts.
    fn settled(&mut self, knob: &str) {
        self.not_undone.retain(|(k, _)| k != knob);
    }

    /// The set with what an earlier undoing left, as somebody else had set it, to be undone too.
    #[must_use]
    pub fn with_what_was_left(mut self) -> Self {
        let is_left_over = self.is_left_over();
        for (knob, _) in std::mem::take(&mut self.as_found) {
            if is_left_over && !self.is_left(&knob) {
                self.not_undone.push((knob, "somebody else had set it".into()));
            }
        }
        self
    }

    /// Whether it was interrupted, and no undoing of it has ended; of one from before a boot nothing is in
    /// force all the same.
    pub fn was_interrupted(&self) -> bool {
        !self.applied && !self.gone && !self.is_left_over()
    }

    /// Whether undoing has ended once and only what it left is to be done.
    pub fn is_left_over(&self) -> bool {
        self.rolled_back || self.again
    }

    /// Whether a value is left that undoing did not put back.
    pub fn is_left(&self, knob: &str) -> bool {
        self.not_undone.iter().any(|(k, _)| k == knob)
    }

    /// What is to be put back, the last first, each with what was written over it; of what else was
    /// disturbed only what an earlier try left.
    pub fn to_undo(&self) -> Vec<(&Saved, &str)> {
        let mut all: Vec<(&Saved, &str)> = Vec::new();
        for write in self.writes.iter().rev() {
            if !self.is_left_over() || self.is_left(&write.saved.knob) {
                all.push((&write.saved, self.written(write.n)));
            }
        }
        for saved in self.writes.iter().rev().flat_map(|w| &w.coupled_settings) {
            let known = all.iter().any(|(s, _)| s.knob == saved.knob);
            if self.is_left_over() && !known && self.is_left(&saved.knob) {
                all.push((saved, ""));
            }
        }
        all
    }

    /// How it stands: `boot_id` is that of now, `locked` whether somebody is at work.
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

    /// Whether a watchdog is to undo it.
    pub fn is_guarded(&self, state: ChangeState) -> bool {
        let interrupted = state == ChangeState::Unfinished && !self.undoing;
        self.armed.is_some() && (interrupted || state == ChangeState::AwaitingConfirmation)
    }

    /// For documents. `now_boot_ms` is `CLOCK_BOOTTIME`.
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

    /// The knobs that it wrote, or may have; once it is rolled back, those that were not put back.
    pub fn knobs(&self) -> BTreeSet<&str> {
        if self.is_left_over() {
            return self.not_undone.iter().map(|(k, _)| k.as_str()).collect();
        }
        self.writes.iter().map(|w| w.saved.knob.as_str()).collect()
    }

    /// What it wrote, then what that may have moved, each with whose it is; once it is rolled back,
    /// those that were not put back.
    pub(crate) fn keys(&self) -> Vec<(String, &str)> {
        let own = self.writes.iter().map(|w| &w.saved);
        let all = own.chain(self.writes.iter().flat_map(|w| &w.coupled_settings));
        let stands = all.filter(|s| !self.is_left_over() || self.is_left(&s.knob));
        stands.map(|s| (identity::key(s), s.knob.as_str())).collect()
    }

    /// Whether it was made in that network namespace; one that is not known counts as the same.
    pub fn is_of(&self, host: &HostId) -> bool {
        netns::same(&self.host, host)
    }

    /// A knob that both wrote or may have moved, as this set calls it.
    fn shares(&self, other: &Self) -> Option<&str> {
        let one_namespace = self.is_of(&other.host);
        let theirs: BTreeSet<String> = other.keys().into_iter().map(|(key, _)| key).collect();
        let both = |(key, _): &(String, &str)| theirs.contains(key);
        let mut shared = self.keys().into_iter().filter(both).map(|(_, knob)| knob);
        shared.find(|k| one_namespace || !netns::is_of_namespace(k))
    }

    /// Why an earlier set cannot be rolled back before this one, where both touch the same value: the
    /// old value of this one would come back later.
    pub fn in_the_way_of(&self, earlier: &Self) -> Option<String> {
        let knob = self.shares(earlier)?;
        let did = if self.knobs().contains(knob) { "wrote" } else { "moved" };
        let (later, id) = (self.id, earlier.id);
        Some(format!("change {later} {did} {knob} after change {id}; roll that back first"))
    }

    /// What a change wrote over its knob.
    pub fn written(&self, n: usize) -> &str {
        self.changes.get(n).map_or("", |c| c.new.as_str())
    }
}

/// A place in a plan: a change set as a whole is a change, with a number of its own.
pub fn step(n: usize, of: usize) -> String {
    format!("step {} of {of}", n + 1)
}

#[cfg(test)]
mod tests;
