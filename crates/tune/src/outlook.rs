//! What undoing would come to: nothing is written.

use model::tune::Saved;

use crate::{Host, identity::Finder, journal::Set, knobs, netns};

/// What undoing would come to for one value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outlook {
    /// The old value would be put back, under this name.
    Back(String),
    /// There is nothing to put back, and why.
    Lost(String),
    /// It could not be put back, and why.
    Not(String),
}

/// What undoing a set would come to, in the order of its undoing.
pub fn outlooks<'s>(host: &Host, set: &'s Set) -> Vec<(&'s Saved, Outlook)> {
    let finder = Finder::new(host);
    let here = |saved: &&Saved| !is_gone(set, &saved.knob);
    let all = set.to_undo().into_iter().map(|(saved, _)| saved).filter(here);
    all.map(|saved| (saved, outlook(host, &finder, saved))).collect()
}

/// What undoing a saved value would come to. `finder` is of the same host.
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

/// Whether it went with its network namespace.
pub(crate) fn is_gone(set: &Set, knob: &str) -> bool {
    set.namespace_gone && netns::is_of_namespace(knob)
}
