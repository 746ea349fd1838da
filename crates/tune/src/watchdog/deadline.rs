//! The watchdog with a deadline: undoes a change set unless the operator confirms it in time.

use std::{
    collections::VecDeque,
    os::fd::OwnedFd,
    path::Path,
    process::Stdio,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use model::tune::Event;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::{program, start};
use crate::{
    Host, Store, TuneError,
    journal::{Armed, JournaledSet},
    lock::{Lock, LockAttempt},
    undo,
};

/// Reason recorded for the watchdog's undo.
pub const NOT_CONFIRMED: &str = "it was not confirmed in time";

/// Poll interval for the confirmation.
const LOOK: Duration = Duration::from_millis(100);
/// Longest wait for the lock after the deadline.
const BOUND: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 10 });
/// The same if the lock holder is undoing this very change, counted from its last journal record: a
/// bond member's link may take that long.
const AT_IT: Duration = Duration::from_secs(120);
/// Number of tries for a value that cannot be restored: a link may be in the middle of a reset.
const TRIES: u32 = 5;
const AGAIN: Duration = Duration::from_secs(1);

/// Milliseconds of `CLOCK_BOOTTIME`, which includes suspend and cannot be set.
pub fn boot_ms() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000
}

/// Orders of one watchdog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Orders {
    pub id: u64,
    /// Deadline: undoes at this `CLOCK_BOOTTIME`, in milliseconds.
    pub deadline_boot_ms: u64,
    /// PID and start time of the process that makes the change; if it is still at work at the
    /// deadline, it hangs and is killed.
    pub maker: (u32, u64),
}

impl Orders {
    /// The orders as arguments of the hidden command.
    fn arguments(&self) -> Vec<String> {
        [
            ("--id", self.id),
            ("--deadline-boot-ms", self.deadline_boot_ms),
            ("--maker-pid", u64::from(self.maker.0)),
            ("--maker-start", self.maker.1),
        ]
        .into_iter()
        .flat_map(|(name, value)| [name.to_owned(), value.to_string()])
        .collect()
    }
}

/// Starts a watchdog and waits until it is ready. `tree` is the directory tree to undo in, if not
/// the live host.
///
/// # Errors
/// It does not start: then nothing may be written.
pub fn arm(store: &Store, orders: &Orders, tree: Option<&Path>) -> Result<Armed, TuneError> {
    let mut command = program();
    command.args(orders.arguments()).arg("--state-dir").arg(store.state());
    if let Some(tree) = tree {
        command.arg("--root").arg(tree);
    }
    command.current_dir("/").stdin(Stdio::null());
    let ((pid, start_ticks), _) = start(&mut command).map_err(|e| {
        TuneError::Environment(format!("the watchdog does not start ({e}); nothing was written"))
    })?;
    Ok(Armed { pid, start_ticks, deadline_boot_ms: orders.deadline_boot_ms })
}

/// Main loop of the watchdog: returns when the set was confirmed or undone. `now` is set when no
/// time is left (the host goes down).
///
/// # Errors
/// The journal cannot be read, or not everything could be restored.
pub fn undo_unless_confirmed(
    host: &Host,
    store: &Store,
    orders: &Orders,
    now: &AtomicBool,
) -> Result<(), TuneError> {
    let maker = pidfd(orders.maker.0);
    let before = loop {
        match store.set(orders.id) {
            Ok(set) => break set.and_then(|s| s.armed),
            Err(_) if boot_ms() < orders.deadline_boot_ms => std::thread::sleep(LOOK),
            Err(_) => break None,
        }
    };
    let is_over = || store.set(orders.id).is_ok_and(|s| s.is_none_or(|s| is_over(&s, before)));
    while boot_ms() < orders.deadline_boot_ms && !now.load(Ordering::Relaxed) {
        // An unreadable journal is no reason to exit.
        if is_over() {
            return Ok(());
        }
        std::thread::sleep(LOOK);
    }
    // A process that still holds the lock hangs: its terminal is gone, or a driver does not answer.
    let same = host.start_ticks(&orders.maker.0.to_string()).ok() == Some(orders.maker.1);
    let made = store.set(orders.id).is_ok_and(|s| s.is_none_or(|s| s.applied));
    if let Some(maker) = maker.filter(|_| same && !made) {
        end(&maker);
    }
    let lock = lock_in_time(store, orders.id);
    if is_over() {
        return Ok(());
    }
    let mut tries = 0;
    loop {
        match once(host, store, orders.id, &lock) {
            Ok(unwritten) => {
                drop(lock);
                return tell(store, orders.id, unwritten, now);
            }
            // A value that cannot be read is retried until the host goes down.
            Err(TuneError::Unread(_)) if !now.load(Ordering::Relaxed) => {}
            Err(failed) if tries + 1 == TRIES => return Err(failed),
            Err(_) => tries += 1,
        }
        std::thread::sleep(AGAIN);
    }
}

/// The lock, or none after a bound: its holder must not keep the host from being restored, since
/// the operator may be locked out.
pub(crate) fn lock_in_time(store: &Store, id: u64) -> Lock {
    let (mut since, mut seen) = (Instant::now(), None);
    loop {
        if let Ok(LockAttempt::Acquired(lock)) = store.try_lock() {
            return lock;
        }
        let set = store.set(id).ok().flatten();
        let undoing = set.as_ref().is_some_and(|s| s.undoing);
        let now = store.length(id).ok();
        if now.is_some() && now != seen {
            (since, seen) = (Instant::now(), now);
        }
        if since.elapsed() >= if undoing { AT_IT } else { BOUND } {
            return Lock::without();
        }
        std::thread::sleep(LOOK);
    }
}

/// Undoes once; returns the records that the journal did not take.
fn once(host: &Host, store: &Store, id: u64, lock: &Lock) -> Result<Vec<Event>, TuneError> {
    let Some(set) = store.set(id)? else { return Ok(vec![]) };
    let mut journal = store.resume_to_undo(id, lock)?;
    let report = undo::all(host, &mut journal, &set, NOT_CONFIRMED);
    match report.not_restored.first() {
        Some((knob, why)) => Err(TuneError::Environment(format!("{knob} not put back: {why}"))),
        None => {
            let mut unwritten = journal.unwritten();
            if report.journal.is_some() {
                unwritten.push(Event::RolledBack);
            }
            Ok(unwritten)
        }
    }
}

/// Writes pending journal records once possible, unless another process ended the set or the host
/// goes down. The host is not written again: others may have changed it since.
fn tell(store: &Store, id: u64, unwritten: Vec<Event>, now: &AtomicBool) -> Result<(), TuneError> {
    let mut left = VecDeque::from(unwritten);
    while !left.is_empty() {
        if now.load(Ordering::Relaxed) {
            return Err(TuneError::Environment(format!(
                "change {id}: its journal could not be written"
            )));
        }
        std::thread::sleep(AGAIN);
        let Ok(lock) = store.lock(Some(Duration::ZERO), &mut |_| {}) else { continue };
        if store.set(id).is_ok_and(|s| s.is_none_or(|s| is_settled(&s))) {
            return Ok(());
        }
        let Ok(mut journal) = store.resume(id, &lock) else { continue };
        while left.front().is_some_and(|event| journal.sync(event.clone()).is_ok()) {
            left.pop_front();
        }
    }
    Ok(())
}

/// Whether this watchdog can exit: the set is settled, or a newer watchdog replaced it, for a
/// process that completes the interrupted set. `before` is the watchdog recorded at its start.
fn is_over(set: &JournaledSet, before: Option<Armed>) -> bool {
    let other = set.armed.filter(|a| a.pid != std::process::id());
    is_settled(set) || other.is_some() && other != before
}

/// Whether the set needs no watchdog any more.
fn is_settled(set: &JournaledSet) -> bool {
    set.confirmed || set.rolled_back || set.gone
}

/// A pidfd, which a reused PID cannot match; `None` before kernel 5.3.
fn pidfd(pid: u32) -> Option<OwnedFd> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw)?;
    pidfd_open(pid, PidfdFlags::empty()).ok()
}

fn end(process: &OwnedFd) {
    let _ = pidfd_send_signal(process, Signal::KILL);
}
