//! How change sets stand, and whether what they wrote is still there.

use model::{
    Facts, Reading, SCHEMA_VERSION,
    rival::Rival,
    tune::{ChangeSet, Drift, HostId, Log, Now, State, Status},
};

use crate::{
    Host, Store, TuneError, guard,
    journal::{self, Set},
    knob::{Knob, owns},
    knobs,
    netns::{self, Found},
};

/// Every set with its state, ascending.
pub fn standing(host: &Host, store: &Store) -> (Vec<(Set, State)>, Vec<String>) {
    let (sets, damaged) = store.sets();
    if sets.is_empty() {
        return (vec![], damaged);
    }
    let boot = host.id().boot_id;
    let locked = store.is_locked();
    let state = |s: Set| {
        let state = s.state(boot.known(), locked);
        (s, state)
    };
    (sets.into_iter().map(state).collect(), damaged)
}

/// `tune log`.
pub fn log(host: &Host, store: &Store) -> Log {
    let (sets, damaged) = standing(host, store);
    Log {
        schema_version: SCHEMA_VERSION,
        journal: store.folder().display().to_string(),
        sets: documents(host, &sets),
        damaged,
    }
}

/// One set for a document, as it is seen from a host.
pub fn document(host: &Host, set: &Set, state: State) -> ChangeSet {
    seen_from(&host.id(), host.is_live(), set, state)
}

fn seen_from(here: &HostId, live: bool, set: &Set, state: State) -> ChangeSet {
    let inode = set.host.net_namespace.get().filter(|_| live && !set.is_of(here));
    ChangeSet {
        namespace: inode.map(netns::called).unwrap_or_default(),
        ..set.document(state, guard::boot_ms())
    }
}

fn documents(host: &Host, sets: &[(Set, State)]) -> Vec<ChangeSet> {
    let here = host.id();
    sets.iter().map(|(s, state)| seen_from(&here, host.is_live(), s, *state)).collect()
}

/// Whether some of a set may be in force.
pub fn is_open(state: State) -> bool {
    matches!(
        state,
        State::Unfinished | State::AwaitingConfirmation | State::InForce | State::InProgress
    )
}

/// `tune status`: what is in force of this boot, and what of it no longer holds. `facts` names
/// suspects where they are known.
pub fn status(host: &Host, store: &Store, facts: Option<&Facts>) -> Status {
    let (mut sets, damaged) = standing(host, store);
    sets.retain(|(_, state)| is_open(*state));
    let here = host.id();
    let mut values: Vec<(&Set, Now)> = Vec::new();
    for (set, _) in &sets {
        for now in of_set(host, set, &here, facts) {
            // Of several sets that wrote one knob, the last counts.
            values.retain(|(s, v)| v.knob != now.knob || s.shares(set).is_none());
            values.push((set, now));
        }
    }
    let values = values.into_iter().map(|(_, now)| now).collect();
    Status {
        schema_version: SCHEMA_VERSION,
        journal: store.folder().display().to_string(),
        sets: documents(host, &sets),
        values,
        damaged,
    }
}

/// The values of a set, read where it was made.
fn of_set(host: &Host, set: &Set, here: &HostId, facts: Option<&Facts>) -> Vec<Now> {
    let all = |place: Seen| -> Vec<Now> {
        let value = |w: &journal::Made| value(host, set, w, place, facts);
        set.writes.iter().map(value).collect()
    };
    let Some(there) = set.host.net_namespace.get() else { return all(Seen::Here) };
    if !host.is_live() || set.is_of(here) {
        return all(Seen::Here);
    }
    match netns::again(there, set.host.net_cookie.get()) {
        Found::There(namespace) => {
            netns::within(&namespace, || all(Seen::Here)).unwrap_or_else(|_| all(Seen::Not))
        }
        Found::Gone => all(Seen::Gone),
        Found::Unknown => all(Seen::Not),
    }
}

/// Whether a set's namespace can be looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    Here,
    Not,
    Gone,
}

fn value(host: &Host, set: &Set, w: &journal::Made, seen: Seen, facts: Option<&Facts>) -> Now {
    let (n, old) = (w.n, w.saved.old.as_str());
    let change = set.changes.get(n);
    let name = change.map_or("", |c| c.knob.as_str());
    let written = set.written(n).to_owned();
    let knob = knobs::find(name);
    let read = match knob {
        _ if !netns::is_of_namespace(name) => read_of(host, knob, name),
        _ if seen == Seen::Not => {
            Err(TuneError::Environment("set in another network namespace".into()))
        }
        _ if seen == Seen::Gone => Err(TuneError::Absent(netns::GONE.into())),
        _ => read_of(host, knob, name),
    };
    let (now, drift) = match (read, knob) {
        (Ok(now), Some(knob)) => {
            let holds = knob.verify(&written, &now);
            let drift = match holds {
                true => Drift::None,
                // Announced in the journal, and cut short before it was made.
                false if !w.held && knob.show(&now) == knob.show(old) => Drift::NotWritten,
                false => Drift::Changed { suspects: suspects(name, facts) },
            };
            (Reading::Known(knob.show(&now)), drift)
        }
        (Err(e), _) if seen == Seen::Not => (Reading::absent(e.to_string()), Drift::None),
        (Err(e), _) => (Reading::absent(e.to_string()), Drift::Gone { why: e.to_string() }),
        (Ok(now), None) => (Reading::Known(now), Drift::None),
    };
    Now {
        id: set.id,
        knob: name.to_owned(),
        before: knob.map_or_else(|| old.trim().to_owned(), |k| k.show(old)),
        written,
        now,
        unit: change.map(|c| c.unit.clone()).unwrap_or_default(),
        drift,
    }
}

fn read_of(host: &Host, knob: Option<&dyn Knob>, name: &str) -> Result<String, TuneError> {
    match knob {
        Some(knob) => knob.read(host, name),
        None => Err(TuneError::Usage(format!("{name}: this netwright has no such knob"))),
    }
}

/// Programs that run now and own such a setting.
fn suspects(knob: &str, facts: Option<&Facts>) -> Vec<String> {
    let sets = knobs::find(knob).map_or("", |k| k.sets(knob));
    let suspect =
        |r: &&Rival| r.running.get() == Some(true) && owns(r, knob, sets) && sets_this(r, knob);
    let rivals = facts.map(|f| f.rivals.as_slice()).unwrap_or_default();
    rivals.iter().filter(suspect).map(|r| r.name.clone()).collect()
}

/// Whether a profile of tuned's that sets some sysctls sets this one. Of all others that is not known.
fn sets_this(rival: &Rival, knob: &str) -> bool {
    let Some(key) = knob.strip_prefix("sysctl.").filter(|_| rival.kind == "tuned") else {
        return true;
    };
    let line = format!("[sysctl] {}=", key.replace('/', "."));
    rival.evidence.iter().any(|e| e.replace('/', ".").contains(&line))
}

/// What every command says before anything else, when a change was cut short or waits.
/// `options` are those by which a command finds the same journal.
pub fn notice(host: &Host, store: &Store, options: &str) -> Option<String> {
    let (sets, damaged) = standing(host, store);
    if let Some(damaged) = damaged.first() {
        return Some(format!("{damaged}; `netwright tune log{options}` lists what can be read"));
    }
    let of_set = sets.iter().rev().find_map(|(set, state)| {
        let id = set.id;
        match state {
            State::Unfinished if set.undoing => Some(format!(
                "the undoing of change {id} was cut short; `netwright tune rollback {id}{options}` ends it"
            )),
            State::Unfinished if set.trial.is_some() => Some(left(set, &sets, options)),
            State::Unfinished => Some(format!(
                "change {id} was cut short after {} of {} writes; `netwright tune rollback {id}{options}` \
                 undoes it, `netwright tune apply --finish {id}{options}` completes it",
                set.writes.iter().filter(|w| w.held).count(),
                set.changes.len()
            )),
            State::AwaitingConfirmation => Some(waits(host, set, options)),
            State::GoneWithBoot if !set.applied && !set.gone => Some(format!(
                "change {id} was cut short, and the host was booted since: nothing of it is in \
                 force; `netwright tune rollback {id}{options}` closes it"
            )),
            _ => None,
        }
    });
    of_set.or_else(|| if store.is_locked() { None } else { crate::persist::notice(store.state()) })
}

/// What an experiment that was cut short left.
fn left(last: &Set, sets: &[(Set, State)], options: &str) -> String {
    let on_trial = |(s, state): &&(Set, State)| *state == State::Unfinished && s.trial.is_some();
    let ids: Vec<String> = sets.iter().filter(on_trial).map(|(s, _)| s.id.to_string()).collect();
    let what = last.trial.as_deref().unwrap_or_default();
    let (changes, them) = match ids.len() {
        1 => (format!("change {} of it is", last.id), "it"),
        _ => (format!("changes {} of it are", ids.join(", ")), "them all"),
    };
    format!(
        "{what} was cut short, and {changes} still in force; `netwright tune rollback \
         --unfinished{options}` undoes {them}"
    )
}

fn waits(host: &Host, set: &Set, options: &str) -> String {
    let id = set.id;
    let Some(armed) = set.armed else { return String::new() };
    let left = armed.deadline_boot_ms.saturating_sub(guard::boot_ms()) / 1000;
    if host.start_ticks(&armed.pid.to_string()).ok() == Some(armed.start_ticks) {
        return format!(
            "change {id} is undone in {left} s unless `netwright tune confirm {id}{options}` comes before"
        );
    }
    format!(
        "change {id} waits for a confirmation, and its guard is gone: nothing will undo it by \
         itself; `netwright tune confirm {id}{options}` keeps it, `netwright tune rollback {id}{options}` undoes it"
    )
}
