//! What the writes of a change set move along with what they write.

use std::collections::BTreeMap;

use model::tune::{ReadBack, Saved};

use crate::{
    Host, TuneError,
    identity::Finder,
    journal::Set,
    knob::{Knob, irq_of},
    knobs,
};

/// The values that the writes of one set may have moved along so far, each as it was last read after
/// one of them, where it was.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CoupledValues(BTreeMap<String, Option<String>>);

impl CoupledValues {
    /// As a set's journal tells.
    pub fn of(set: &Set) -> Self {
        let mut all = Self::default();
        for write in &set.writes {
            all.0.extend(write.coupled_settings.iter().map(|c| (c.knob.clone(), None)));
            let read = write.left.iter().map(|l| (l.knob.clone(), Some(l.read_back.clone())));
            all.0.extend(read);
        }
        all
    }

    /// Whether a value may have been moved, under this or another name of it.
    pub fn has(&self, knob: &str) -> bool {
        let value = knobs::value(knob);
        self.0.contains_key(knob) || self.0.keys().any(|k| knobs::value(k) == value)
    }

    /// What a write is about to move along, as it is now. What is not there or cannot be read here at all is
    /// left out.
    ///
    /// # Errors
    /// What can be read and gave no answer at this moment: it could not be put back.
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

    /// What a write, which reads `back` itself, made of them: those that were not read before, and
    /// those that read otherwise now.
    pub fn left_by(&mut self, host: &Host, name: &str, back: &str) -> Vec<ReadBack> {
        if let Some(own) = self.0.get_mut(name) {
            *own = Some(back.to_owned());
        }
        let moving = Moving::default();
        let mut left = Vec::new();
        for (knob, last) in self.0.iter_mut().filter(|(k, _)| *k != name) {
            let now = read(host, knob).filter(|now| last.as_ref() != Some(now));
            let stands = |now: &String| last.is_some() || read(host, knob).as_ref() == Some(now);
            if let Some(now) = now.filter(|now| stands(now) && !moving.has(host, knob)) {
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

/// What moves by itself: interrupts, while irqbalance runs. It is looked for once.
#[derive(Debug, Default)]
pub struct Moving(std::cell::OnceCell<bool>);

impl Moving {
    /// Whether a value does.
    pub fn has(&self, host: &Host, knob: &str) -> bool {
        irq_of(knob).is_some() && *self.0.get_or_init(|| host.irqbalance().is_ok())
    }
}
