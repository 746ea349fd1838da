//! Side effects: values that the writes of a change set move besides their own.

use std::collections::BTreeMap;

use model::tune::{ReadBack, Saved};

use crate::{
    Host, TuneError,
    identity::Finder,
    journal::JournaledSet,
    knob::{Knob, irq_of},
    knobs,
};

/// Values that the set's writes may have moved so far. Each holds the last value read after such a
/// write, `None` before that.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CoupledValues(BTreeMap<String, Option<String>>);

impl CoupledValues {
    /// Restores the table from a set's journal.
    pub fn of(set: &JournaledSet) -> Self {
        let mut all = Self::default();
        for write in &set.writes {
            all.0.extend(write.coupled_settings.iter().map(|c| (c.knob.clone(), None)));
            let read = write.left.iter().map(|l| (l.knob.clone(), Some(l.read_back.clone())));
            all.0.extend(read);
        }
        all
    }

    /// Whether a value may have been moved, under any of its names.
    pub fn has(&self, knob: &str) -> bool {
        let value = knobs::value(knob);
        self.0.contains_key(knob) || self.0.keys().any(|k| knobs::value(k) == value)
    }

    /// Current values that a write is about to move. Values that do not exist or cannot be read
    /// here are left out.
    ///
    /// # Errors
    /// A value exists but could not be read now, so it could not be restored later.
    pub fn about_to(
        &mut self,
        host: &Host,
        finder: &Finder<'_>,
        knob: &dyn Knob,
        name: &str,
    ) -> Result<Vec<Saved>, TuneError> {
        let mut saved: Vec<Saved> = Vec::new();
        for other in knob.coupled_settings(host) {
            if other == name || saved.iter().any(|s| s.knob == other) {
                continue;
            }
            match knobs::find(&other).map(|k| k.read(host)) {
                Some(Ok(old)) => saved.push(finder.saved(&other, old)),
                Some(Err(no_answer @ TuneError::Unread(_))) => return Err(no_answer),
                _ => {}
            }
        }
        self.0.extend(saved.iter().map(|s| (s.knob.clone(), None)));
        Ok(saved)
    }

    /// Values that the write of `name` moved: those not read before, and those that changed. `back`
    /// is what `name` itself reads now.
    pub fn left_by(&mut self, host: &Host, name: &str, back: &str) -> Vec<ReadBack> {
        if let Some(own) = self.0.get_mut(name) {
            *own = Some(back.to_owned());
        }
        let moving = Moving::default();
        let mut left = Vec::new();
        for (knob, last) in self.0.iter_mut().filter(|(k, _)| *k != name) {
            let now = read(host, knob).filter(|now| last.as_ref() != Some(now));
            let is_current =
                |now: &String| last.is_some() || read(host, knob).as_ref() == Some(now);
            if let Some(now) = now.filter(|now| is_current(now) && !moving.has(host, knob)) {
                left.push(ReadBack { knob: knob.clone(), read_back: now.clone() });
                *last = Some(now);
            }
        }
        left
    }
}

fn read(host: &Host, name: &str) -> Option<String> {
    knobs::find(name).and_then(|k| k.read(host).ok())
}

/// Values that change by themselves: interrupt affinities while irqbalance runs. Checked once.
#[derive(Debug, Default)]
pub struct Moving(std::cell::OnceCell<bool>);

impl Moving {
    /// Whether this value changes by itself.
    pub fn has(&self, host: &Host, knob: &str) -> bool {
        irq_of(knob).is_some() && *self.0.get_or_init(|| host.irqbalance().is_ok())
    }
}
