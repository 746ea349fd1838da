//! Whether a change that waits is still there to be confirmed.

use crate::{
    Host,
    journal::Set,
    knobs,
    outlook::{Outlook, outlooks},
    watchdog,
};

/// Whether the time of a change's watchdog is over.
pub fn is_late(set: &Set) -> bool {
    set.armed.is_some_and(|armed| watchdog::deadline::boot_ms() >= armed.deadline_boot_ms)
}

/// The first value that is as it was before the change, and how it reads, where the watchdog may have undone
/// it: one that has a journal on a read-only file system undoes all the same, and tells it later.
/// `host` is that of the change's network namespace.
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
