//! Reports the state of change sets, and whether their values are still in place.

use std::collections::BTreeSet;

use model::{
    Facts, Reading, SCHEMA_VERSION,
    tune::{ChangeSet, ChangeState, Drift, HostId, Log, Now, Saved, Status, Trouble},
    tuner::Tuner,
};

use crate::{
    Host, Store, TuneError, drift,
    identity::{self, Finder},
    journal::{self, Armed, JournaledSet},
    knob::{Knob, owns},
    knobs,
    netns::{self, NamespaceSearch},
    undo_forecast::{self, UndoForecast},
    watchdog,
};

/// Sets with their states, and what makes no sense.
pub type Standing = (Vec<(JournaledSet, ChangeState)>, Vec<Trouble>);

/// Every set with its state, ascending.
///
/// # Errors
/// The list of sets or the lock cannot be read: [`Store::sets`], [`Store::is_locked`].
pub fn standing(host: &Host, store: &Store) -> Result<Standing, TuneError> {
    let (sets, damaged) = store.sets()?;
    if sets.is_empty() {
        return Ok((vec![], damaged));
    }
    let boot = host.id().boot_id;
    let locked = store.is_locked()?;
    let state = |s: JournaledSet| {
        let state = s.state(boot.known(), locked);
        (s, state)
    };
    Ok((sets.into_iter().map(state).collect(), damaged))
}

/// The document of `tune log`: every change set of this host.
///
/// # Errors
/// As of [`standing`].
pub fn log(host: &Host, store: &Store) -> Result<Log, TuneError> {
    let (sets, damaged) = standing(host, store)?;
    Ok(Log {
        schema_version: SCHEMA_VERSION,
        journal: store.folder().display().to_string(),
        sets: documents(host, &sets),
        damaged,
    })
}

/// One set for a JSON document, as seen from a host.
pub fn document(host: &Host, set: &JournaledSet, state: ChangeState) -> ChangeSet {
    seen_from(&host.id(), host.is_live(), set, state)
}

fn seen_from(here: &HostId, live: bool, set: &JournaledSet, state: ChangeState) -> ChangeSet {
    let inode = set.host.net_namespace.get().filter(|_| live && !set.is_of(here));
    let watchdog_running = match set.armed.filter(|_| set.is_guarded(state)) {
        Some(armed) => Reading::Known(is_alive(armed)),
        None => Reading::absent("nothing waits"),
    };
    let mut document = set.document(state, watchdog::deadline::boot_ms());
    if watchdog_running == Reading::Known(false) {
        document.undone_within_ms = Reading::absent("its watchdog is gone");
    }
    ChangeSet {
        namespace: inode.map(netns::called).unwrap_or_default(),
        watchdog_running,
        ..document
    }
}

fn documents(host: &Host, sets: &[(JournaledSet, ChangeState)]) -> Vec<ChangeSet> {
    let here = host.id();
    sets.iter().map(|(s, state)| seen_from(&here, host.is_live(), s, *state)).collect()
}

/// Whether a watchdog's process lives; it runs on this host even if it undoes a directory tree.
fn is_alive(watchdog: Armed) -> bool {
    Host::live().lives(watchdog.pid, watchdog.start_ticks)
}

/// Whether values of a set may be in force.
pub fn is_open(state: ChangeState) -> bool {
    matches!(
        state,
        ChangeState::Unfinished
            | ChangeState::AwaitingConfirmation
            | ChangeState::InForce
            | ChangeState::InProgress
    )
}

/// Whether a finished undo left values that still differ. Values gone with their object, or equal
/// to the old value by now, do not count.
pub fn has_residue(host: &Host, set: &JournaledSet, state: ChangeState) -> bool {
    state == ChangeState::PartlyRolledBack && !left_of(host, set, &host.id(), None).is_empty()
}

/// The document of `tune status`: values of this boot in force, and those that changed since.
/// `facts` names possible tuners, if given.
///
/// # Errors
/// As of [`standing`].
pub fn status(host: &Host, store: &Store, facts: Option<&Facts>) -> Result<Status, TuneError> {
    let (mut sets, damaged) = standing(host, store)?;
    let here = host.id();
    let mut values: Vec<(usize, String, Now)> = Vec::new();
    let mut kept: Vec<usize> = Vec::new();
    for (i, (set, state)) in sets.iter().enumerate() {
        let of_set = match state {
            ChangeState::PartlyRolledBack => left_of(host, set, &here, facts),
            state if is_open(*state) => {
                let later = sets.get(i + 1..).unwrap_or_default();
                of_set(host, set, &here, facts, later)
            }
            _ => continue,
        };
        if *state != ChangeState::PartlyRolledBack || !of_set.is_empty() {
            kept.push(i);
        }
        for (key, now) in of_set {
            // If several sets wrote one setting, the last one counts.
            let away = |i: &usize| sets.get(*i).is_some_and(|(s, _)| !s.is_of(&set.host));
            let other = |i: &usize| away(i) && netns::is_of_namespace(&now.knob);
            values.retain(|(i, k, _)| *k != key || other(i));
            values.push((i, key, now));
        }
    }
    let values = values.into_iter().map(|(.., now)| now).collect();
    let mut at = 0..;
    sets.retain(|_| at.next().is_some_and(|i| kept.contains(&i)));
    Ok(Status {
        schema_version: SCHEMA_VERSION,
        journal: store.folder().display().to_string(),
        sets: documents(host, &sets),
        values,
        damaged,
    })
}

/// A value to compare with the host.
struct StatusScan<'s> {
    saved: &'s Saved,
    written: &'s str,
    /// Whether the write was made and verified.
    held: bool,
    /// Why undoing did not restore it.
    left: Option<&'s str>,
}

fn of_write<'s>(set: &'s JournaledSet, write: &'s journal::Made) -> StatusScan<'s> {
    StatusScan { saved: &write.saved, written: set.written(write.n), held: write.held, left: None }
}

/// The written values of a set with their keys, and its side effects that changed externally.
/// Values that a `later` set touched are not reported.
fn of_set(
    host: &Host,
    set: &JournaledSet,
    here: &HostId,
    facts: Option<&Facts>,
    later: &[(JournaledSet, ChangeState)],
) -> Vec<(String, Now)> {
    let looks: Vec<StatusScan<'_>> = set.writes.iter().map(|w| of_write(set, w)).collect();
    let may_be_in_force = |t: ChangeState| is_open(t) || t == ChangeState::PartlyRolledBack;
    let over = later.iter().filter(|(s, t)| may_be_in_force(*t) && set.is_of(&s.host));
    let over: BTreeSet<String> = over.flat_map(|(s, _)| s.keys()).map(|(key, _)| key).collect();
    let beside = || beside(host, set, facts).into_iter().filter(|(key, _)| !over.contains(key));
    read_there(host, set, here, |seen| {
        let mut all = values(host, set, &looks, seen, facts);
        if seen == ValueNow::Here {
            all.extend(beside());
        }
        all
    })
}

/// Side effects of a set that were changed externally since.
fn beside(host: &Host, set: &JournaledSet, facts: Option<&Facts>) -> Vec<(String, Now)> {
    let all = drift::check(host, set).drifted.into_iter().filter(|d| !d.beside.is_empty());
    let now = |d: drift::Drifted| Now {
        id: set.id,
        called: if d.called == d.knob { String::new() } else { d.called },
        before: d.before,
        written: d.written,
        unit: d.unit,
        drift: Drift::Changed { suspects: suspects(&d.knob, facts) },
        now: Reading::Known(d.found),
        beside: d.beside,
        knob: d.knob,
    };
    all.map(|d| (d.key.clone(), now(d))).collect()
}

/// For a set whose undo ended: values it did not restore and that still differ.
fn left_of(
    host: &Host,
    set: &JournaledSet,
    here: &HostId,
    facts: Option<&Facts>,
) -> Vec<(String, Now)> {
    let why = |knob: &str| set.not_undone.iter().find(|(k, _)| k == knob).map(|(_, w)| w.as_str());
    let looks: Vec<StatusScan<'_>> = set
        .to_undo()
        .into_iter()
        .map(|(saved, written)| StatusScan {
            saved,
            written,
            held: true,
            left: Some(why(&saved.knob).unwrap_or_default()),
        })
        .collect();
    let is_left = |(_, now): &(String, Now)| matches!(now.drift, Drift::NotPutBack { .. });
    let all = read_there(host, set, here, |seen| values(host, set, &looks, seen, facts));
    all.into_iter().filter(is_left).collect()
}

fn values(
    host: &Host,
    set: &JournaledSet,
    looks: &[StatusScan<'_>],
    seen: ValueNow,
    facts: Option<&Facts>,
) -> Vec<(String, Now)> {
    let finder = Finder::new(host);
    let one = |l| value(&ValueLocation { host, finder: &finder, seen }, set, l, facts);
    looks.iter().map(|l| (identity::key(l.saved), one(l))).collect()
}

/// Reads values in the network namespace of the set.
pub(crate) fn read_there<T: Send>(
    host: &Host,
    set: &JournaledSet,
    here: &HostId,
    all: impl Fn(ValueNow) -> Vec<T> + Send + Sync,
) -> Vec<T> {
    let Some(there) = set.host.net_namespace.get() else { return all(ValueNow::Here) };
    if !host.is_live() || set.is_of(here) {
        return all(ValueNow::Here);
    }
    match netns::again(there, set.host.net_cookie.get()) {
        NamespaceSearch::There(namespace) => {
            netns::within(&namespace, || all(ValueNow::Here)).unwrap_or_else(|_| all(ValueNow::Not))
        }
        NamespaceSearch::Gone => all(ValueNow::Gone),
        NamespaceSearch::Unknown => all(ValueNow::Not),
    }
}

/// Whether a set's namespace can be entered.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueNow {
    Here,
    Not,
    Gone,
}

/// The place where values are read.
struct ValueLocation<'h> {
    host: &'h Host,
    finder: &'h Finder<'h>,
    seen: ValueNow,
}

impl ValueLocation<'_> {
    /// Reads the value; returns it with the knob's current name.
    fn read(&self, saved: &Saved) -> (Result<String, TuneError>, String) {
        let name = &saved.knob;
        let read = match self.seen {
            _ if !netns::is_of_namespace(name) => self.read_here(saved),
            ValueNow::Here => self.read_here(saved),
            ValueNow::Not => Err(TuneError::Environment("set in another network namespace".into())),
            ValueNow::Gone => Err(TuneError::Absent(netns::GONE.into())),
        };
        match read {
            Ok((now, called)) => (Ok(now), called),
            Err(e) => (Err(e), name.clone()),
        }
    }

    fn read_here(&self, saved: &Saved) -> Result<(String, String), TuneError> {
        match undo_forecast::forecast(self.host, self.finder, saved) {
            UndoForecast::Restorable(called) => {
                read_of(self.host, &called, &saved.old).map(|now| (now, called))
            }
            UndoForecast::NotNeeded(why) => Err(TuneError::Absent(why)),
            UndoForecast::Impossible(why) => Err(TuneError::Environment(why)),
        }
    }
}

fn value(
    place: &ValueLocation<'_>,
    set: &JournaledSet,
    look: &StatusScan<'_>,
    facts: Option<&Facts>,
) -> Now {
    let name = &look.saved.knob;
    let knob = knobs::find(name);
    let (read, called) = place.read(look.saved);
    let change = set.changes.iter().find(|c| c.knob == *name);
    let show =
        |exact: &str| knob.as_ref().map_or_else(|| exact.trim().to_owned(), |k| k.show(exact));
    Now {
        id: set.id,
        knob: name.clone(),
        beside: String::new(),
        called: if called == *name { String::new() } else { called },
        before: show(&look.saved.old),
        written: look.written.to_owned(),
        unit: change.map(|c| c.unit.clone()).unwrap_or_default(),
        drift: drift(look, knob.as_deref(), &read, place.seen, facts),
        now: match read {
            Ok(now) => Reading::Known(show(&now)),
            Err(e) => Reading::absent(e.to_string()),
        },
    }
}

fn drift(
    look: &StatusScan<'_>,
    knob: Option<&dyn Knob>,
    read: &Result<String, TuneError>,
    seen: ValueNow,
    facts: Option<&Facts>,
) -> Drift {
    match (read, look.left, knob) {
        (Err(TuneError::Absent(why)), Some(_), _) => Drift::Gone { why: why.clone() },
        (Ok(now), Some(_), _) if *now == look.saved.old => Drift::None,
        (_, Some(why), _) => Drift::NotPutBack { why: why.to_owned() },
        (Err(_), None, _) if seen == ValueNow::Not => Drift::None,
        (Err(e), None, _) => Drift::Gone { why: e.to_string() },
        (Ok(_), None, None) => Drift::None,
        (Ok(now), None, Some(knob)) if knob.verify(look.written, now) => Drift::None,
        // Announced in the journal, but interrupted before the write.
        (Ok(now), None, Some(knob))
            if !look.held && knob.show(now) == knob.show(&look.saved.old) =>
        {
            Drift::NotWritten
        }
        (Ok(_), None, Some(_)) => Drift::Changed { suspects: suspects(&look.saved.knob, facts) },
    }
}

fn read_of(host: &Host, name: &str, old: &str) -> Result<String, TuneError> {
    match knobs::find(name) {
        Some(knob) => knob.read_again(host, old),
        None => Err(TuneError::Usage(format!("{name}: this netwright has no such knob"))),
    }
}

/// Running tuners that set this knob.
pub fn suspects(knob: &str, facts: Option<&Facts>) -> Vec<String> {
    let Some(it) = knobs::find(knob) else { return vec![] };
    let owns = |r: &Tuner| owns(r, it.target(), it.sets());
    let suspect = |r: &&Tuner| r.running.get() == Some(true) && owns(r) && sets_this(r, knob);
    let tuners = facts.map(|f| f.tuners.as_slice()).unwrap_or_default();
    tuners.iter().filter(suspect).map(|r| r.name.clone()).collect()
}

/// Whether a tuned profile's sysctls include this knob; unknown for all other tuners.
fn sets_this(tuner: &Tuner, knob: &str) -> bool {
    let Some(key) = knob.strip_prefix("sysctl.").filter(|_| tuner.kind == "tuned") else {
        return true;
    };
    let line = format!("[sysctl] {}=", key.replace('/', "."));
    tuner.evidence.iter().any(|e| e.replace('/', ".").contains(&line))
}

/// Notice that every command prints first if a change was interrupted or is unconfirmed. `options`
/// make a command find the same journal. Only commands that use the journal (`uses`) report that it
/// cannot be read.
pub fn notice(host: &Host, store: &Store, options: &str, uses: bool) -> Option<String> {
    let (sets, damaged) = match standing(host, store) {
        Ok(standing) => standing,
        // A user who may not read it cannot act on it.
        Err(TuneError::Denied(_)) => return None,
        Err(e) => {
            return uses.then(|| format!("which changes are in force is not known: {e}"));
        }
    };
    if let Some(damaged) = damaged.first().filter(|_| uses) {
        return Some(format!("{damaged}; `netwright tune log{options}` lists what can be read"));
    }
    let of_set = sets.iter().rev().find_map(|(set, state)| {
        let id = set.id;
        match state {
            ChangeState::Unfinished if set.trial.is_some() => Some(left(host, set, &sets, options)),
            ChangeState::Unfinished if set.undoing => Some(format!(
                "the undoing of change {id} was interrupted; `netwright tune rollback {id}{options}` ends it"
            )),
            ChangeState::Unfinished => Some(format!(
                "change {id} was interrupted after {} of {} writes; {}`netwright tune rollback \
                 {id}{options}` undoes it, `netwright tune apply --finish {id}{options}` completes it",
                set.writes.iter().filter(|w| w.held).count(),
                set.changes.len(),
                guard_of(set)
            )),
            ChangeState::AwaitingConfirmation => Some(waits(set, options)),
            state if has_residue(host, set, *state) => Some(format!(
                "change {id} is only partly rolled back; `netwright tune status{options}` says what is \
                 left of it, `netwright tune rollback {id}{options}` tries again"
            )),
            ChangeState::GoneWithBoot if set.was_interrupted() => Some(format!(
                "change {id} was interrupted, and the host was booted since: nothing of it is in \
                 force; `netwright tune rollback {id}{options}` closes it"
            )),
            _ => None,
        }
    });
    let is_free = || store.is_locked().is_ok_and(|locked| !locked);
    of_set.or_else(|| is_free().then(|| crate::persist::notice(store.state())).flatten())
}

/// Notice of an interrupted experiment's residue.
fn left(
    host: &Host,
    last: &JournaledSet,
    sets: &[(JournaledSet, ChangeState)],
    options: &str,
) -> String {
    let on_trial = |(s, state): &&(JournaledSet, ChangeState)| {
        *state == ChangeState::Unfinished && s.trial.is_some()
    };
    let ids: Vec<String> = sets.iter().filter(on_trial).map(|(s, _)| s.id.to_string()).collect();
    let what = last.trial.as_deref().unwrap_or_default();
    if sets.iter().filter(on_trial).all(|(s, _)| is_gone(host, s)) {
        return format!(
            "{what} was interrupted; its network namespace is gone, and its settings with it; the \
             next experiment closes it, or `netwright tune rollback --unfinished{options}`"
        );
    }
    let (changes, them) = match ids.len() {
        1 => (format!("change {} of it is", last.id), "it"),
        _ => (format!("changes {} of it are", ids.join(", ")), "them all"),
    };
    format!(
        "{what} was interrupted, and {changes} still in force; `netwright tune rollback \
         --unfinished{options}` undoes {them}"
    )
}

/// Whether all its values went with its network namespace.
fn is_gone(host: &Host, set: &JournaledSet) -> bool {
    let away = host.is_live()
        && !set.is_of(&host.id())
        && set.changes.iter().all(|c| netns::is_of_namespace(&c.knob));
    let then = set.host.net_namespace.get().filter(|_| away);
    then.is_some_and(|then| {
        matches!(netns::again(then, set.host.net_cookie.get()), NamespaceSearch::Gone)
    })
}

/// For an interrupted change: what its watchdog will do.
fn guard_of(set: &JournaledSet) -> String {
    match set.armed {
        None => String::new(),
        Some(armed) if !is_alive(armed) => "its watchdog is gone too; ".into(),
        Some(armed) => {
            let left = armed.deadline_boot_ms.saturating_sub(watchdog::deadline::boot_ms()) / 1000;
            format!("its watchdog undoes it in {left} s; ")
        }
    }
}

fn waits(set: &JournaledSet, options: &str) -> String {
    let id = set.id;
    let Some(armed) = set.armed else { return String::new() };
    let left = armed.deadline_boot_ms.saturating_sub(watchdog::deadline::boot_ms()) / 1000;
    if is_alive(armed) {
        return format!(
            "change {id} is undone in {left} s unless `netwright tune confirm {id}{options}` comes before"
        );
    }
    format!(
        "change {id} waits for a confirmation, and its watchdog is gone: nothing will undo it by \
         itself; `netwright tune confirm {id}{options}` keeps it, `netwright tune rollback {id}{options}` undoes it"
    )
}
