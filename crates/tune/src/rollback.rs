//! Puts back what changes wrote: which of them, in which order, and what stands in the way.

use model::tune::{ChangeNote, ChangeSet, ChangeState, Event, Trouble};

use crate::{
    Host, TuneError,
    journal::Set,
    leftover,
    lock::Lock,
    operator::Operator,
    privilege,
    reported::{Reported, came_of, would_be},
    status,
    target::JournalTarget,
    undo::{self, OnDrift},
};

/// What is to be put back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// The change of this number.
    One(u64),
    /// All changes that are in force, were interrupted or are only partly rolled back.
    All,
    /// All that were interrupted.
    Unfinished,
    /// The last that is in force or was interrupted; of an experiment that was interrupted, all of it.
    Newest,
}

/// What is to be put back, and how.
#[derive(Debug)]
pub struct Request {
    pub which: Which,
    /// Whether what somebody else set since is overwritten.
    pub force: bool,
    /// Whether nothing is written.
    pub dry_run: bool,
    /// Whether somebody who changes the host is not waited for.
    pub no_wait: bool,
}

/// Puts it back; `None` where there is nothing to put back. The sets as they stand then, and what came of
/// them.
///
/// # Errors
/// What stands in the way of the only one that was meant.
pub fn roll_back(
    target: &mut JournalTarget,
    request: &Request,
    operator: &dyn Operator,
) -> Result<Option<(Vec<ChangeSet>, Reported)>, TuneError> {
    let lock = match request.dry_run {
        // Nothing is written: whoever may read the journal may ask.
        true => None,
        false => Some(lock_to_undo(target, request, operator)?),
    };
    let (mut open, damaged) = target.sets()?;
    let chosen = chosen(request, &target.host, &open);
    if chosen.is_empty() {
        close_leftovers(target, lock.as_ref(), operator);
        // What cannot be read may be what was meant.
        return match damaged.is_empty() {
            true => Ok(None),
            false => Err(TuneError::Environment(texts(&damaged).join("; "))),
        };
    }
    let (chosen, beneath) = not_beneath_newer(target, chosen)?;
    let mut reported = Reported { done: true, ..Reported::default() };
    match matches!(request.which, Which::All | Which::Unfinished) {
        // They may have been meant too, and are not put back.
        true => reported.fail(texts(&damaged)),
        false => damaged.iter().for_each(|d| operator.warn(&d.to_string())),
    }
    reported.fail(beneath.into_iter().collect());
    let many = chosen.len() > 1;
    // What would be undone before, where nothing is.
    let mut later: Vec<Set> = Vec::new();
    for (set, state) in &chosen {
        let mut one = match one(target, lock.as_ref(), (set, *state), (&open, &later), request) {
            // The others are put back, whatever becomes of one.
            Err(e) if many => Reported {
                notes: vec![ChangeNote::NotUndone { why: e.to_string() }],
                ..Reported::default()
            },
            one => one?,
        };
        // What is undone is in nobody's way any more, nor is what somebody else set since.
        if one.ended {
            open.retain(|(s, _)| s.id != set.id);
            later.push(set.clone());
        }
        reported.done &= one.done;
        reported.notes.append(&mut one.notes);
        reported.drifted.append(&mut one.drifted);
    }
    close_leftovers(target, lock.as_ref(), operator);
    drop(lock);
    let ids = chosen.iter().map(|(s, _)| s.id);
    let stand: Vec<ChangeSet> = ids.filter_map(|id| target.standing(id)).collect();
    Ok(Some((stand, reported)))
}

fn texts(troubles: &[Trouble]) -> Vec<String> {
    troubles.iter().map(ToString::to_string).collect()
}

/// Changes that can be undone, and why the others cannot.
type Parted = (Vec<(Set, ChangeState)>, Option<String>);

/// Parts the changes that can be undone from those that a newer netwright's may lie over; a line for these.
///
/// # Errors
/// Where none can be undone.
fn not_beneath_newer(
    target: &JournalTarget,
    chosen: Vec<(Set, ChangeState)>,
) -> Result<Parted, TuneError> {
    let writes = |t: ChangeState| !matches!(t, ChangeState::RolledBack | ChangeState::GoneWithBoot);
    // The last one is over all of them.
    let mut last = None;
    let (mut beneath, mut free) = (Vec::new(), Vec::new());
    for (set, state) in chosen {
        match target.store.newer_after(set.id)?.filter(|_| writes(state)) {
            Some(newer) => {
                last.get_or_insert(newer);
                beneath.push((set, state));
            }
            None => free.push((set, state)),
        }
    }
    let Some(last) = last else { return Ok((free, None)) };
    let ids: Vec<String> = beneath.iter().map(|(s, _)| s.id.to_string()).collect();
    let why = format!(
        "change {last} was made later by a newer netwright and may have set the same as change {}: roll \
         that back first, with that one (and then these with it too)",
        ids.join(", ")
    );
    if free.is_empty() { Err(TuneError::Environment(why)) } else { Ok((free, Some(why))) }
}

/// Tells the journal of what is left of no change any more; what it could not be told is there the next time.
fn close_leftovers(target: &JournalTarget, lock: Option<&Lock>, operator: &dyn Operator) {
    let Some(lock) = lock else { return };
    let closed = target.sets().map_err(|e| e.to_string()).and_then(|(all, _)| {
        leftover::close(&target.host, &target.store, lock, &all).map_err(|e| e.to_string())
    });
    if let Err(e) = closed {
        operator.warn(&format!("what is no longer left could not be noted: {e}"));
    }
}

/// The lock. Whoever may not write the journal is told at once what else is missing.
fn lock_to_undo(
    target: &mut JournalTarget,
    request: &Request,
    operator: &dyn Operator,
) -> Result<Lock, TuneError> {
    let e = match target.lock(request.no_wait, operator) {
        Err(TuneError::Denied(why)) => why,
        other => return other,
    };
    let open = target.sets().map(|(open, _)| open).unwrap_or_default();
    let missing = chosen(request, &target.host, &open).into_iter().find_map(|(set, _)| {
        let here = target.go_there(&set).is_ok();
        here.then(|| privilege::missing_to_undo(&target.host, &set)).flatten()
    });
    let more = missing.map(|m| format!("; {m}")).unwrap_or_default();
    Err(TuneError::Denied(format!("{e}{more}; nothing was written")))
}

fn one(
    target: &mut JournalTarget,
    lock: Option<&Lock>,
    (set, state): (&Set, ChangeState),
    (sets, later): (&[(Set, ChangeState)], &[Set]),
    request: &Request,
) -> Result<Reported, TuneError> {
    let id = set.id;
    let all_is_well = |note: ChangeNote| {
        Ok(Reported { notes: vec![note], done: true, ended: true, drifted: vec![] })
    };
    let overwrites = request.force && !set.as_found.is_empty();
    match state {
        ChangeState::RolledBack if !overwrites => {
            return all_is_well(ChangeNote::RolledBackBefore {
                id,
                left: set.as_found.keys().cloned().collect(),
                command: format!("netwright tune rollback {id} --force{}", target.options),
            });
        }
        ChangeState::GoneWithBoot => {
            if let Some(lock) = lock.filter(|_| !set.gone) {
                let mut journal = target.store.resume(id, lock)?;
                journal.sync(Event::GoneWithBoot)?;
            }
            return all_is_well(ChangeNote::GoneWithBoot { id });
        }
        _ => {}
    }
    let gone = target.go_there(set)?;
    let on_drift = if request.force { OnDrift::Overwrite } else { OnDrift::Leave };
    let mut set = if request.force { set.clone().with_what_was_left() } else { set.clone() };
    not_overwritten(&set, sets)?;
    set.namespace_gone |= gone;
    let Some(lock) = lock else { return Ok(would_be(target, &set, later, on_drift)) };
    privilege::check_undo(&target.host, &set)?;
    let mut journal = target.store.resume_to_undo(id, lock)?;
    if gone {
        journal.sync(Event::NamespaceGone)?;
    }
    let report = undo::with(&target.host, &mut journal, &set, undo::ASKED, on_drift);
    Ok(came_of(target, &set, &report, on_drift))
}

/// What is rolled back, the last first: what was asked for, or else the newest, with all that a
/// cut-short experiment left where that is of one.
fn chosen(request: &Request, host: &Host, sets: &[(Set, ChangeState)]) -> Vec<(Set, ChangeState)> {
    let interrupted = |s: &Set, t: ChangeState| {
        t == ChangeState::Unfinished || t == ChangeState::GoneWithBoot && s.was_interrupted()
    };
    let on_trial = |s: &Set, t: ChangeState| t == ChangeState::Unfinished && s.trial.is_some();
    let all = |of: &dyn Fn(&Set, ChangeState) -> bool| -> Vec<(Set, ChangeState)> {
        sets.iter().rev().filter(|(s, t)| of(s, *t)).cloned().collect()
    };
    match request.which {
        Which::One(id) => all(&|s, _| s.id == id),
        Which::All => {
            all(&|s, t| status::is_open(t) || interrupted(s, t) || status::is_left(host, s, t))
        }
        Which::Unfinished => all(&interrupted),
        Which::Newest => match newest(sets, host) {
            Some((s, t)) if on_trial(s, *t) => all(&on_trial),
            newest => newest.cloned().into_iter().collect(),
        },
    }
}

/// What is rolled back when none is named: the newest of this namespace, or else of another one,
/// or else one that a boot interrupted, or one of which something is left.
fn newest<'a>(sets: &'a [(Set, ChangeState)], host: &Host) -> Option<&'a (Set, ChangeState)> {
    let here = host.id();
    let open = || sets.iter().rev().filter(|(_, state)| status::is_open(*state));
    let interrupted =
        |(s, t): &&(Set, ChangeState)| *t == ChangeState::GoneWithBoot && s.was_interrupted();
    open()
        .find(|(s, _)| s.is_of(&here))
        .or_else(|| open().next())
        .or_else(|| sets.iter().rev().find(interrupted))
        .or_else(|| sets.iter().rev().find(|(s, t)| status::is_left(host, s, *t)))
}

/// A later change that touches the same value must go first, or its old value would come back later.
fn not_overwritten(set: &Set, sets: &[(Set, ChangeState)]) -> Result<(), TuneError> {
    let stands = |t: ChangeState| status::is_open(t) || t == ChangeState::PartlyRolledBack;
    for (later, _) in sets.iter().filter(|(s, t)| s.id > set.id && stands(*t)) {
        if let Some(why) = later.in_the_way_of(set) {
            return Err(TuneError::Environment(why));
        }
    }
    Ok(())
}
