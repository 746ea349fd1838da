//! Confirming a change that is on its auto-rollback timer.

use model::tune::Event;

use crate::{
    Host, TuneError,
    journal::Set,
    knobs,
    lock::Lock,
    outlook::{Outlook, outlooks},
    target::JournalTarget,
    watchdog,
};

/// Whether the watchdog's deadline has passed.
pub fn is_late(set: &Set) -> bool {
    set.armed.is_some_and(|armed| watchdog::deadline::boot_ms() >= armed.deadline_boot_ms)
}

/// The first value that the watchdog has already restored, and its current value. With its journal
/// on a read-only file system, the watchdog undoes first and records it later. `host` is of the
/// change's network namespace.
pub fn undone(host: &Host, set: &Set) -> Option<(String, String)> {
    let armed = set.armed?;
    if !is_late(set) && Host::live().lives(armed.pid, armed.start_ticks) {
        return None;
    }
    outlooks(host, set).into_iter().find_map(|(saved, outlook)| {
        let Outlook::Back(name) = outlook else { return None };
        let knob = knobs::find(&name)?;
        let written = set.changes.iter().find(|c| c.knob == saved.knob)?;
        let now = knob.read(host).ok()?;
        let back = knob.show(&now) == knob.show(&saved.old) && !knob.verify(&written.new, &now);
        back.then(|| (saved.knob.clone(), knob.show(&now)))
    })
}

/// Confirms a change. The process that takes the lock first decides; the watchdog checks again
/// under the lock. Returns whether the change stays, and a line for the user.
///
/// # Errors
/// The journal cannot be written.
pub fn keep(
    target: &mut JournalTarget,
    set: &Set,
    lock: &Lock,
) -> Result<(bool, String), TuneError> {
    let id = set.id;
    let may_look = matches!(target.go_there(set), Ok(false));
    let back = if may_look { undone(&target.host, set) } else { None };
    if let Some((knob, now)) = back {
        let text = format!(
            "Too late: change {id} was undone, and its journal was not reported: {knob} is {now} again; \
             `netwright tune rollback {id}{}` closes it.",
            target.options
        );
        return Ok((false, text));
    }
    let late = if is_late(set) {
        "; its time was over, and its watchdog had not begun to undo it"
    } else {
        ""
    };
    let mut journal = target.store.resume(id, lock)?;
    journal.sync(Event::Confirmed)?;
    Ok((true, format!("Change {id} is confirmed and stays{late}.")))
}
