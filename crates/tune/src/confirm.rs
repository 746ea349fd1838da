//! Confirming a change that is on its auto-rollback timer.

use model::tune::{ChangeNote, Event};

use crate::{
    Host, TuneError,
    journal::JournaledSet,
    knobs,
    lock::Lock,
    target::JournalTarget,
    undo_forecast::{UndoForecast, forecasts},
    watchdog,
};

/// Whether the watchdog's deadline has passed.
pub fn is_late(set: &JournaledSet) -> bool {
    set.armed.is_some_and(|armed| watchdog::deadline::boot_ms() >= armed.deadline_boot_ms)
}

/// The first value that the watchdog has already restored, and its current value. With its journal
/// on a read-only file system, the watchdog undoes first and records it later. `host` is of the
/// change's network namespace.
pub fn undone(host: &Host, set: &JournaledSet) -> Option<(String, String)> {
    let armed = set.armed?;
    if !is_late(set) && Host::live().lives(armed.pid, armed.start_ticks) {
        return None;
    }
    forecasts(host, set).into_iter().find_map(|(saved, forecast)| {
        let UndoForecast::Restorable(name) = forecast else { return None };
        let knob = knobs::find(&name)?;
        let written = set.changes.iter().find(|c| c.knob == saved.knob)?;
        let now = knob.read_again(host, &saved.old).ok()?;
        let back = knob.show(&now) == knob.show(&saved.old) && !knob.verify(&written.new, &now);
        back.then(|| (saved.knob.clone(), knob.show(&now)))
    })
}

/// Keeps a change that waits; whoever has the lock first decides, and a watchdog looks again once it has it.
/// Whether it stays, and a note on it.
///
/// # Errors
/// The journal cannot be written.
pub fn keep(
    target: &mut JournalTarget,
    set: &JournaledSet,
    lock: &Lock,
) -> Result<(bool, ChangeNote), TuneError> {
    let id = set.id;
    let may_look = matches!(target.go_there(set), Ok(false));
    let back = if may_look { undone(&target.host, set) } else { None };
    if let Some((knob, now)) = back {
        let command = format!("netwright tune rollback {id}{}", target.options);
        return Ok((false, ChangeNote::UndoneUnnoted { id, knob, now, command }));
    }
    let late = is_late(set);
    let mut journal = target.store.resume(id, lock)?;
    journal.sync(Event::Confirmed)?;
    Ok((true, ChangeNote::Confirmed { id, late }))
}
