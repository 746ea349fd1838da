//! `--freeze-host`: stops automatic moves of interrupts and frequencies during an experiment. The
//! changes go through the journal, so they are undone however the experiment ends.

use model::{
    prove::{FrozenHost, HeldSetting, NotHeld},
    tune::Plan,
};
use probe::facts::{self, Request};

use crate::{
    TuneError,
    change_request::{ChangeRequest, ChangeRequests},
    operator::Operator,
    planner,
    trial::TrialHost,
};

/// Knob, value while frozen, and a test for knobs that the experiment must not vary meanwhile.
const FROZEN_VALUES: [(&str, &str, Varied); 2] = [
    // A stopped irqbalance accepts no list of bans.
    ("irqbalance.paused", "on", |knob| knob.starts_with("irqbalance.")),
    // The governor also sets the energy preference.
    ("cpu.governor", "performance", |knob| {
        knob.starts_with("cpu.") && !knob.ends_with(".idle_limit")
    }),
];

type Varied = fn(&str) -> bool;

/// Whether `--freeze-host` sets this knob.
pub fn sets(knob: &str) -> bool {
    FROZEN_VALUES.iter().any(|(_, _, of)| of(knob))
}

/// A host that stays frozen until [`HostFreeze::end`].
pub struct HostFreeze<'a> {
    trial_host: &'a TrialHost,
    /// Change sets, each with its index in `reported`.
    sets: Vec<(u64, usize)>,
    reported: FrozenHost,
}

impl<'a> HostFreeze<'a> {
    /// Freezes what can be frozen. `varied` are the knobs that the experiment itself sets.
    ///
    /// # Errors
    /// Something needs another user. Nothing is frozen then.
    pub fn begin(
        trial_host: &'a TrialHost,
        varied: &[&str],
        operator: &dyn Operator,
    ) -> Result<Self, TuneError> {
        let mut freeze = Self { trial_host, sets: vec![], reported: FrozenHost::default() };
        let facts = facts::collect(trial_host.host().root(), &Request::default());
        for (knob, value, of) in FROZEN_VALUES {
            if let Some(own) = varied.iter().find(|k| of(k)) {
                freeze.not(knob, format!("the experiment sets {own} itself"));
                continue;
            }
            let change_request = ChangeRequest {
                knob: knob.into(),
                value: value.into(),
                asked_by: "--freeze-host".into(),
                ..ChangeRequest::default()
            };
            let change_requests = ChangeRequests {
                change_requests: vec![change_request],
                ..ChangeRequests::default()
            };
            let plan = planner::of_facts(trial_host.host(), &facts, change_requests)?;
            if let Err(e) = freeze.one(knob, value, &plan) {
                let _ = freeze.end(operator);
                return Err(e);
            }
        }
        Ok(freeze)
    }

    fn one(&mut self, knob: &str, value: &str, plan: &Plan) -> Result<(), TuneError> {
        let mut refusals: Vec<&String> = plan.refused.iter().map(|r| &r.why).collect();
        refusals.dedup();
        if let Some(why) = refusals.first() {
            self.not(knob, (*why).clone());
        }
        if !plan.unchanged.is_empty() {
            self.held(knob, plan.unchanged.len(), value, value);
        }
        if plan.changes.is_empty() {
            return Ok(());
        }
        let mut olds: Vec<&str> = plan.changes.iter().map(|c| c.old.as_str()).collect();
        olds.sort_unstable();
        olds.dedup();
        match self.trial_host.try_out(plan) {
            Ok(id) => {
                self.sets.push((id, self.reported.held.len()));
                self.held(knob, plan.changes.len(), &olds.join(", "), value);
                Ok(())
            }
            Err(e @ TuneError::Denied(_)) => Err(e),
            Err(e) => {
                self.not(knob, e.to_string());
                Ok(())
            }
        }
    }

    fn held(&mut self, knob: &str, settings: usize, old: &str, new: &str) {
        self.reported.held.push(HeldSetting {
            knob: knob.into(),
            settings: settings as u64,
            old: old.into(),
            new: new.into(),
            until: None,
        });
    }

    fn not(&mut self, knob: &str, why: String) {
        self.reported.not_frozen.push(NotHeld { knob: knob.into(), why });
    }

    /// What is frozen so far.
    pub fn reported(&self) -> &FrozenHost {
        &self.reported
    }

    /// Ends the freeze; returns what was frozen until then.
    ///
    /// # Errors
    /// The first value that could not be restored, next to the result.
    pub fn end(mut self, operator: &dyn Operator) -> (FrozenHost, Result<(), TuneError>) {
        let mut put_back = Ok(());
        for (id, at) in std::mem::take(&mut self.sets).into_iter().rev() {
            let until = self.trial_host.holds(id).err().map(|e| e.to_string());
            if let Some(held) = self.reported.held.get_mut(at) {
                held.until = until;
            }
            // A value that is gone needs no restoring.
            match self.trial_host.let_go(id) {
                Ok(()) => {}
                // All of our own values are restored.
                Err(e @ TuneError::Changed(_)) => operator.warn(&e.to_string()),
                Err(e) => put_back = put_back.and(Err(e)),
            }
        }
        (self.reported, put_back)
    }
}
