//! Rolls changes back: selects them, orders them, and reports what blocks them.

use model::tune::{ChangeNote, ChangeSet, ChangeState, Event, Trouble};

use crate::{
    Host, TuneError,
    journal::JournaledSet,
    lock::Lock,
    operator::Operator,
    privilege, residue, status,
    target::JournalTarget,
    undo::{self, OnDrift},
    undo_result::{UndoResult, forecast, result_of},
};

/// The changes to roll back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// The change of this number.
    One(u64),
    /// All changes that are in force, interrupted, or partly rolled back.
    All,
    /// All changes that were interrupted.
    Unfinished,
    /// The newest change that is in force or was interrupted; if an interrupted experiment made it,
    /// all of that experiment.
    Newest,
}

/// What to roll back, and how.
#[derive(Debug)]
pub struct Request {
    pub which: Which,
    /// Whether external changes are overwritten with the old value.
    pub force: bool,
    /// Write nothing; only report.
    pub dry_run: bool,
    /// Fail at once if another process is changing the host.
    pub no_wait: bool,
}

/// Rolls the selected changes back. Returns their sets afterwards, and the report; `None` if there
/// is nothing to roll back.
///
/// # Errors
/// The reason why the only selected change cannot be rolled back.
pub fn roll_back(
    target: &mut JournalTarget,
    request: &Request,
    operator: &dyn Operator,
) -> Result<Option<(Vec<ChangeSet>, UndoResult)>, TuneError> {
    let lock = match request.dry_run {
        // A dry run writes nothing, so permission to read the journal is enough.
        true => None,
        false => Some(lock_to_undo(target, request, operator)?),
    };
    let (mut open, damaged) = target.sets()?;
    let chosen = chosen(request, &target.host, &open);
    if chosen.is_empty() {
        close_residue(target, lock.as_ref(), operator);
        // The unreadable change may be the one that was meant.
        return match damaged.is_empty() {
            true => Ok(None),
            false => Err(TuneError::Environment(texts(&damaged).join("; "))),
        };
    }
    let (chosen, beneath) = not_beneath_newer(target, chosen)?;
    let mut reported = UndoResult { done: true, ..UndoResult::default() };
    match matches!(request.which, Which::All | Which::Unfinished) {
        // They may have been meant too, and are not put back.
        true => reported.fail(texts(&damaged)),
        false => damaged.iter().for_each(|d| operator.warn(&d.to_string())),
    }
    reported.fail(beneath.into_iter().collect());
    let many = chosen.len() > 1;
    // In a dry run: sets that would be undone before this one.
    let mut later: Vec<JournaledSet> = Vec::new();
    for (set, state) in &chosen {
        let mut one = match one(target, lock.as_ref(), (set, *state), (&open, &later), request) {
            // The others are put back, whatever becomes of one.
            Err(e) if many => UndoResult {
                notes: vec![ChangeNote::NotUndone { why: e.to_string() }],
                ..UndoResult::default()
            },
            one => one?,
        };
        // A set that was undone no longer blocks the others, and neither do external changes.
        if one.ended {
            open.retain(|(s, _)| s.id != set.id);
            later.push(set.clone());
        }
        reported.done &= one.done;
        reported.notes.append(&mut one.notes);
        reported.drifted.append(&mut one.drifted);
    }
    close_residue(target, lock.as_ref(), operator);
    drop(lock);
    let ids = chosen.iter().map(|(s, _)| s.id);
    let in_force: Vec<ChangeSet> = ids.filter_map(|id| target.standing(id)).collect();
    Ok(Some((in_force, reported)))
}

fn texts(troubles: &[Trouble]) -> Vec<String> {
    troubles.iter().map(ToString::to_string).collect()
}

/// Changes that can be undone, and why the others cannot.
type Parted = (Vec<(JournaledSet, ChangeState)>, Option<String>);

/// Separates out changes that a newer netwright's change may have overwritten; a line explains why.
///
/// # Errors
/// No change can be undone.
fn not_beneath_newer(
    target: &JournalTarget,
    chosen: Vec<(JournaledSet, ChangeState)>,
) -> Result<Parted, TuneError> {
    let writes = |t: ChangeState| !matches!(t, ChangeState::RolledBack | ChangeState::GoneWithBoot);
    // The newest unreadable change may have overwritten all earlier ones.
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

/// Closes changes without any residue in the journal; a record that cannot be written is retried
/// next time.
fn close_residue(target: &JournalTarget, lock: Option<&Lock>, operator: &dyn Operator) {
    let Some(lock) = lock else { return };
    let closed = target.sets().map_err(|e| e.to_string()).and_then(|(all, _)| {
        residue::close(&target.host, &target.store, lock, &all).map_err(|e| e.to_string())
    });
    if let Err(e) = closed {
        operator.warn(&format!("what is no longer left could not be noted: {e}"));
    }
}

/// Takes the lock. A user who may not write the journal also learns at once of other missing
/// privileges.
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
    (set, state): (&JournaledSet, ChangeState),
    (sets, later): (&[(JournaledSet, ChangeState)], &[JournaledSet]),
    request: &Request,
) -> Result<UndoResult, TuneError> {
    let id = set.id;
    let all_is_well = |note: ChangeNote| {
        Ok(UndoResult { notes: vec![note], done: true, ended: true, drifted: vec![] })
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
    let mut set = if request.force { set.clone().with_residue() } else { set.clone() };
    not_overwritten(&set, sets)?;
    set.namespace_gone |= gone;
    let Some(lock) = lock else { return Ok(forecast(target, &set, later, on_drift)) };
    privilege::check_undo(&target.host, &set)?;
    let mut journal = target.store.resume_to_undo(id, lock)?;
    if gone {
        journal.sync(Event::NamespaceGone)?;
    }
    let report = undo::with(&target.host, &mut journal, &set, undo::ASKED, on_drift);
    Ok(result_of(target, &set, &report, on_drift))
}

/// The sets to roll back, last first: those requested, or else the newest, with all other sets of
/// its experiment if that was interrupted.
fn chosen(
    request: &Request,
    host: &Host,
    sets: &[(JournaledSet, ChangeState)],
) -> Vec<(JournaledSet, ChangeState)> {
    let interrupted = |s: &JournaledSet, t: ChangeState| {
        t == ChangeState::Unfinished || t == ChangeState::GoneWithBoot && s.was_interrupted()
    };
    let on_trial =
        |s: &JournaledSet, t: ChangeState| t == ChangeState::Unfinished && s.trial.is_some();
    let all =
        |of: &dyn Fn(&JournaledSet, ChangeState) -> bool| -> Vec<(JournaledSet, ChangeState)> {
            sets.iter().rev().filter(|(s, t)| of(s, *t)).cloned().collect()
        };
    match request.which {
        Which::One(id) => all(&|s, _| s.id == id),
        Which::All => {
            all(&|s, t| status::is_open(t) || interrupted(s, t) || status::has_residue(host, s, t))
        }
        Which::Unfinished => all(&interrupted),
        Which::Newest => match newest(sets, host) {
            Some((s, t)) if on_trial(s, *t) => all(&on_trial),
            newest => newest.cloned().into_iter().collect(),
        },
    }
}

/// The default selection: the newest set of this namespace, else of another, else one that a reboot
/// interrupted, else one with residue.
fn newest<'a>(
    sets: &'a [(JournaledSet, ChangeState)],
    host: &Host,
) -> Option<&'a (JournaledSet, ChangeState)> {
    let here = host.id();
    let open = || sets.iter().rev().filter(|(_, state)| status::is_open(*state));
    let interrupted = |(s, t): &&(JournaledSet, ChangeState)| {
        *t == ChangeState::GoneWithBoot && s.was_interrupted()
    };
    open()
        .find(|(s, _)| s.is_of(&here))
        .or_else(|| open().next())
        .or_else(|| sets.iter().rev().find(interrupted))
        .or_else(|| sets.iter().rev().find(|(s, t)| status::has_residue(host, s, *t)))
}

/// A later change of the same value must be undone first, or its undo would overwrite the restored
/// value.
fn not_overwritten(
    set: &JournaledSet,
    sets: &[(JournaledSet, ChangeState)],
) -> Result<(), TuneError> {
    let may_be_in_force = |t: ChangeState| status::is_open(t) || t == ChangeState::PartlyRolledBack;
    for (later, _) in sets.iter().filter(|(s, t)| s.id > set.id && may_be_in_force(*t)) {
        if let Some(why) = later.in_the_way_of(set) {
            return Err(TuneError::Environment(why));
        }
    }
    Ok(())
}
