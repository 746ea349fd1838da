//! The levels that are set on the host now, and restoring the host.

use model::tune::Plan;
use tune::trial::Trials;

use crate::{
    ProveError,
    child::{self, SET_PATIENCE},
    levels::{Cell, Factor, Setting},
    record::Record,
};

/// The host's knobs, where an experiment sets some.
#[derive(Debug, Clone, Copy)]
pub struct Knobs<'a> {
    pub trials: &'a dyn Trials,
    /// Each combination's plan, in the order of [`crate::Experiment::change_requests`]. Each is
    /// made for the host without any level set; empty where a combination changes nothing.
    pub plans: &'a [Plan],
}

/// The command setting of each factor, and the combination whose knobs are set.
pub(crate) struct Settings<'a> {
    now: Vec<Option<Setting>>,
    knobs: Option<Knobs<'a>>,
    /// The combination whose plan is in force, and its change set.
    trial: Option<(usize, u64)>,
}

impl<'a> Settings<'a> {
    pub(crate) fn none(factors: usize, knobs: Option<Knobs<'a>>) -> Self {
        Self { now: vec![None; factors], knobs, trial: None }
    }

    /// Sets the host to combination `number`: undoes the settings of other levels, then sets its
    /// own.
    pub(crate) fn apply(
        &mut self,
        number: usize,
        cell: &Cell,
        factors: &[Factor],
        record: &mut Record,
    ) -> Result<(), ProveError> {
        if self.trial.is_some_and(|(of, _)| of != number) {
            self.take_back()?;
        }
        self.commands(cell, factors, record)?;
        if let (None, Some(knobs)) = (self.trial, self.knobs)
            && let Some(plan) = knobs.plans.get(number).filter(|p| !p.changes.is_empty())
        {
            self.trial = Some((number, knobs.trials.try_out(plan)?));
        }
        Ok(())
    }

    /// Checks that the knobs still have the values that were set.
    pub(crate) fn check_in_force(&self) -> Result<(), ProveError> {
        match (self.knobs, self.trial) {
            (Some(knobs), Some((_, id))) => Ok(knobs.trials.holds(id)?),
            _ => Ok(()),
        }
    }

    fn take_back(&mut self) -> Result<(), ProveError> {
        match (self.knobs, self.trial.take()) {
            (Some(knobs), Some((_, id))) => Ok(knobs.trials.take_back(id)?),
            _ => Ok(()),
        }
    }

    fn commands(
        &mut self,
        cell: &Cell,
        factors: &[Factor],
        record: &mut Record,
    ) -> Result<(), ProveError> {
        let wanted: Vec<Option<Setting>> = cell.of(factors).map(|(_, l)| l.set.clone()).collect();
        for (now, wanted) in self.now.iter_mut().zip(&wanted) {
            if now != wanted {
                undo(now, record)?;
            }
        }
        for (now, wanted) in self.now.iter_mut().zip(wanted) {
            if let (None, Some(setting)) = (&now, wanted) {
                record.setting(&setting.unset)?;
                // A command that failed half-way is undone at the end too.
                let line = setting.set.clone();
                *now = Some(setting);
                child::set(&line, SET_PATIENCE).map_err(ProveError::Setting)?;
            }
        }
        Ok(())
    }

    /// Undoes everything. Tries every undo even if one fails; returns the first error.
    pub(crate) fn put_back(&mut self, record: &mut Record) -> Result<(), ProveError> {
        let mut tried = vec![self.take_back()];
        tried.extend(self.now.iter_mut().map(|now| undo(now, record)));
        tried.into_iter().collect()
    }
}

fn undo(now: &mut Option<Setting>, record: &mut Record) -> Result<(), ProveError> {
    let Some(setting) = now.take() else { return Ok(()) };
    child::set(&setting.unset, SET_PATIENCE).map_err(|why| {
        ProveError::Setting(format!(
            "NOT PUT BACK: {why}; it stays in the record, and the next prove that keeps its record \
             in that folder tries again first"
        ))
    })?;
    record.undone(&setting.unset)
}
