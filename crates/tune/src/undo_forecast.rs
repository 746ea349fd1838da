//! Forecast of an undo; writes nothing.

use model::tune::Saved;

use crate::{Host, identity::Finder, journal::JournaledSet, knobs, netns};

/// Forecast of undoing one value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UndoForecast {
    /// The old value would be restored, under this name.
    Restorable(String),
    /// Nothing needs restoring, for this reason.
    NotNeeded(String),
    /// It could not be restored, for this reason.
    Impossible(String),
}

/// Forecast of undoing a set, in the order of undoing.
pub fn forecasts<'s>(host: &Host, set: &'s JournaledSet) -> Vec<(&'s Saved, UndoForecast)> {
    let finder = Finder::new(host);
    let here = |saved: &&Saved| !is_gone(set, &saved.knob);
    let all = set.to_undo().into_iter().map(|(saved, _)| saved).filter(here);
    all.map(|saved| (saved, forecast(host, &finder, saved))).collect()
}

/// Forecast for one saved value. `finder` must be of the same host.
pub(crate) fn forecast(host: &Host, finder: &Finder<'_>, saved: &Saved) -> UndoForecast {
    let name = match finder.find(saved).map(|place| place.current_name(&saved.knob)) {
        Ok(Ok(name)) => name,
        Ok(Err(why)) => return UndoForecast::NotNeeded(why),
        Err(e) => return UndoForecast::Impossible(e.to_string()),
    };
    match knobs::find(&name).and_then(|k| k.lost(host, &saved.old)) {
        Some(why) => UndoForecast::NotNeeded(why),
        None => UndoForecast::Restorable(name),
    }
}

/// Whether the value is gone with its network namespace.
pub(crate) fn is_gone(set: &JournaledSet, knob: &str) -> bool {
    set.namespace_gone && netns::is_of_namespace(knob)
}
