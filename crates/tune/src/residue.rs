//! Closes what undoing could not restore, once it no longer differs. The journal then counts the
//! change as rolled back, and later external values are not undone.

use model::tune::{ChangeState, Event, Saved};

use crate::{
    Host, Store, TuneError,
    identity::Finder,
    journal::JournaledSet,
    knobs,
    lock::Lock,
    netns,
    status::{ValueNow, is_open, read_there},
    undo_forecast::{self, UndoForecast},
};

/// Closes each partly rolled back set with nothing left to restore; returns their numbers. Skips
/// values that a later change wrote, or may have written if its journal cannot be read: undoing
/// that change may bring them back. `sets` are all sets, ascending. Needs the lock.
///
/// # Errors
/// A journal cannot be written.
pub fn close(
    host: &Host,
    store: &Store,
    lock: &Lock,
    sets: &[(JournaledSet, ChangeState)],
) -> Result<Vec<u64>, TuneError> {
    let last = store.ids()?.into_iter().filter(|id| !sets.iter().any(|(s, _)| s.id == *id)).max();
    let mut closed = Vec::new();
    for (set, _) in sets.iter().filter(|(_, t)| *t == ChangeState::PartlyRolledBack) {
        let later = || sets.iter().filter(|(s, t)| s.id > set.id && may_be_in_force(*t));
        if last.is_some_and(|id| id > set.id)
            || later().any(|(s, _)| s.in_the_way_of(set).is_some())
        {
            continue;
        }
        let Some(events) = settled(host, set) else { continue };
        let mut journal = store.resume(set.id, lock)?;
        events.into_iter().try_for_each(|event| journal.sync(event))?;
        closed.push(set.id);
    }
    Ok(closed)
}

fn may_be_in_force(state: ChangeState) -> bool {
    is_open(state) || state == ChangeState::PartlyRolledBack
}

/// Journal records for each residual value; `None` if a value still differs or is unknown.
fn settled(host: &Host, set: &JournaledSet) -> Option<Vec<Event>> {
    let left: Vec<&Saved> = set.to_undo().into_iter().map(|(saved, _)| saved).collect();
    let all = read_there(host, set, &host.id(), |seen| {
        let finder = Finder::new(host);
        left.iter().map(|saved| one(host, &finder, seen, saved)).collect()
    });
    all.into_iter().collect()
}

fn one(host: &Host, finder: &Finder<'_>, seen: ValueNow, saved: &Saved) -> Option<Event> {
    let undone = |read_back: String, gone: Option<String>| Event::Undone {
        knob: saved.knob.clone(),
        read_back,
        overwrote: None,
        renamed: None,
        gone,
    };
    match seen {
        ValueNow::Gone if netns::is_of_namespace(&saved.knob) => {
            return Some(undone(String::new(), Some(netns::GONE.into())));
        }
        ValueNow::Not if netns::is_of_namespace(&saved.knob) => return None,
        _ => {}
    }
    match undo_forecast::forecast(host, finder, saved) {
        UndoForecast::NotNeeded(why) => Some(undone(String::new(), Some(why))),
        // A value that cannot be read now may come back as we set it.
        UndoForecast::Restorable(called) => {
            let now = knobs::find(&called)?.read_again(host, &saved.old).ok()?;
            (now == saved.old).then(|| undone(now, None))
        }
        UndoForecast::Impossible(_) => None,
    }
}
