//! The watchdog that has a deadline: it undoes a change set unless somebody confirms it in time.

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
    journal::{Armed, Set},
    lock::{Lock, Tried},
    undo,
};

/// Why the watchdog undoes.
pub const NOT_CONFIRMED: &str = "it was not confirmed in time";

/// How often it looks whether somebody confirmed.
const LOOK: Duration = Duration::from_millis(100);
/// How long the watchdog waits for the lock when its time is over.
const BOUND: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 10 });
/// The same where the holder undoes this very change, from the last that its journal was told: the link
/// of a bond's member may take its time to come back.
const AT_IT: Duration = Duration::from_secs(120);
/// How often what could not be put back is tried again: a link may be in the middle of a reset.
const TRIES: u32 = 5;
const AGAIN: Duration = Duration::from_secs(1);

/// Milliseconds of `CLOCK_BOOTTIME`, which runs on while the host sleeps and which nobody sets.
pub fn boot_ms() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000
}

/// What a watchdog is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Orders {
    pub id: u64,
    /// When it undoes.
    pub deadline_boot_ms: u64,
    /// The process that makes the change, and its start: if it still does at the deadline, it
    /// hangs, and is ended.
    pub maker: (u32, u64),
}

impl Orders {
    /// As arguments of the hidden command.
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

/// Starts a watchdog and waits until it is ready. `tree` is the folder it undoes in, if it is no live host.
///
/// # Errors
/// When it does not start: then nothing may be written.
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

/// Its own life: returns when the set was confirmed, was undone by somebody, or by us. `now` is
/// set when there is no more time (the host goes down).
///
/// # Errors
/// When the journal cannot be read, or not everything could be put back.
pub fn stand(
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
        // A journal that cannot be read at this moment is no reason to leave.
        if is_over() {
            return Ok(());
        }
        std::thread::sleep(LOOK);
    }
    // Whoever still makes the change holds the lock; it hangs, on a terminal that is gone or a
    // driver that does not answer.
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
            Ok(untold) => {
                drop(lock);
                return tell(store, orders.id, untold, now);
            }
            // What gives no answer now is no reason to leave the host as it is, while there is time.
            Err(TuneError::Unread(_)) if !now.load(Ordering::Relaxed) => {}
            Err(failed) if tries + 1 == TRIES => return Err(failed),
            Err(_) => tries += 1,
        }
        std::thread::sleep(AGAIN);
    }
}

/// The lock, or none after a bound: whoever holds it must not keep a host from what it was, which the
/// operator may be locked out of.
pub(crate) fn lock_in_time(store: &Store, id: u64) -> Lock {
    let (mut since, mut seen) = (Instant::now(), None);
    loop {
        if let Ok(Tried::Ours(lock)) = store.try_lock() {
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

/// Undoes; with what the journal could not be told of it.
fn once(host: &Host, store: &Store, id: u64, lock: &Lock) -> Result<Vec<Event>, TuneError> {
    let Some(set) = store.set(id)? else { return Ok(vec![]) };
    let mut journal = store.resume_to_undo(id, lock)?;
    let report = undo::all(host, &mut journal, &set, NOT_CONFIRMED);
    match report.not_restored.first() {
        Some((knob, why)) => Err(TuneError::Environment(format!("{knob} not put back: {why}"))),
        None => {
            let mut untold = journal.untold();
            if report.journal.is_some() {
                untold.push(Event::RolledBack);
            }
            Ok(untold)
        }
    }
}

/// Tells the journal what it could not be told, once it can be, unless somebody else has ended the
/// set or the host goes down. Nothing is written to the host again: whoever has it since may have
/// set it otherwise.
fn tell(store: &Store, id: u64, untold: Vec<Event>, now: &AtomicBool) -> Result<(), TuneError> {
    let mut left = VecDeque::from(untold);
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

/// Nothing is left for this watchdog: all is settled, or another one stands since, for whoever completes what
/// was interrupted. `before` is which one stood when this one began.
fn is_over(set: &Set, before: Option<Armed>) -> bool {
    let other = set.armed.filter(|a| a.pid != std::process::id());
    is_settled(set) || other.is_some() && other != before
}

/// Nothing is left to watchdog.
fn is_settled(set: &Set) -> bool {
    set.confirmed || set.rolled_back || set.gone
}

/// A process that no number can be mistaken for; `None` where the kernel has no such thing
/// (before 5.3).
fn pidfd(pid: u32) -> Option<OwnedFd> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw)?;
    pidfd_open(pid, PidfdFlags::empty()).ok()
}

fn end(process: &OwnedFd) {
    let _ = pidfd_send_signal(process, Signal::KILL);
}
