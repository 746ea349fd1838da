//! What is set on the host just now, and putting it back.

use std::time::Duration;

use crate::{
    ProveError, child,
    levels::{Cell, Factor, Setting},
    record::Record,
};

/// How long a command that sets or undoes may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// By factor, what is set.
pub(crate) struct Settings {
    now: Vec<Option<Setting>>,
}

impl Settings {
    pub(crate) fn none(factors: usize) -> Self {
        Self { now: vec![None; factors] }
    }

    /// Brings the host to a combination: undoes what is another level's, then sets.
    pub(crate) fn apply(
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
                // Also what failed half-way is undone at the end.
                let line = setting.set.clone();
                *now = Some(setting);
                child::set(&line, PATIENCE).map_err(ProveError::Setting)?;
            }
        }
        Ok(())
    }

    /// Undoes all. Every undo is tried, whatever becomes of the others; the first error is told.
    pub(crate) fn put_back(&mut self, record: &mut Record) -> Result<(), ProveError> {
        let tried: Vec<_> = self.now.iter_mut().map(|now| undo(now, record)).collect();
        tried.into_iter().collect()
    }
}

fn undo(now: &mut Option<Setting>, record: &mut Record) -> Result<(), ProveError> {
    let Some(setting) = now.take() else { return Ok(()) };
    child::set(&setting.unset, PATIENCE).map_err(|why| {
        ProveError::Setting(format!(
            "NOT PUT BACK: {why}; it stays in the record, and the next prove tries again"
        ))
    })?;
    record.undone(&setting.unset)
}
