//! Forecast of an undo; writes nothing.

use model::tune::Saved;

use crate::{Host, identity::Finder, journal::Set, knobs, netns};

/// Forecast of undoing one value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outlook {
    /// The old value would be restored, under this name.
    Back(String),
    /// Nothing needs restoring, for this reason.
    Lost(String),
    /// It could not be restored, for this reason.
    Not(String),
}

/// Forecast of undoing a set, in the order of undoing.
pub fn outlooks<'s>(host: &Host, set: &'s Set) -> Vec<(&'s Saved, Outlook)> {
    let finder = Finder::new(host);
    let here = |saved: &&Saved| !is_gone(set, &saved.knob);
    let all = set.to_undo().into_iter().map(|(saved, _)| saved).filter(here);
    all.map(|saved| (saved, outlook(host, &finder, saved))).collect()
}

/// Forecast for one saved value. `finder` must be of the same host.
pub(crate) fn outlook(host: &Host, finder: &Finder<'_>, saved: &Saved) -> Outlook {
    let name = match finder.find(saved).map(|place| place.called(&saved.knob)) {
        Ok(Ok(name)) => name,
        Ok(Err(why)) => return Outlook::Lost(why),
        Err(e) => return Outlook::Not(e.to_string()),
    };
    match knobs::find(&name).and_then(|k| k.lost(host, &saved.old)) {
        Some(why) => Outlook::Lost(why),
        None => Outlook::Back(name),
    }
}

/// Whether the value is gone with its network namespace.
pub(crate) fn is_gone(set: &Set, knob: &str) -> bool {
    set.namespace_gone && netns::is_of_namespace(knob)
}
