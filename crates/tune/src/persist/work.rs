//! Selects what `tune persist` keeps, and reports kept values that are not in force.

use std::path::{Path, PathBuf};

use model::{
    Facts,
    tune::{ChangeState, Drift, FileAct, NotKept, Now, PersistNote, Persisted},
};
use probe::facts;

use super::{
    Destination, PersistPaths, PersistedValue, Record, Values,
    render::{self, Rendered},
    values,
};
use crate::{
    TuneError,
    journal::{DEFAULT_STATE, JournaledSet},
    netns,
    operator::Operator,
    status,
    target::JournalTarget,
};

/// A request to keep or remove values.
#[derive(Debug)]
pub struct Request {
    /// One change set; `None` for all in force.
    pub id: Option<u64>,
    /// Remove instead of keep.
    pub remove: bool,
    /// Whether files are only listed, and none is written.
    pub dry_run: bool,
    /// Print the values in another tool's format and write nothing.
    pub prints: bool,
    /// Root directory for the files, instead of `/`.
    pub into: Option<PathBuf>,
}

/// The values to keep from now on, and their files.
pub struct PersistPlan {
    pub place: PersistPaths,
    pub old: Record,
    pub kept: Vec<PersistedValue>,
    pub rendered: Rendered,
    /// Values whose object could not be identified, with the reason.
    pub unnamed: Vec<NotKept>,
}

/// Notes on kept values whose change was rolled back, or that all are in force.
///
/// # Errors
/// The journal cannot be read.
pub fn in_force(
    request: &Request,
    host: &JournalTarget,
    doc: &Persisted,
) -> Result<Vec<PersistNote>, TuneError> {
    let (sets, _) = status::standing(&host.host, &host.store)?;
    let is_undone = |(s, state): &&(JournaledSet, ChangeState)| {
        let undone = matches!(state, ChangeState::RolledBack | ChangeState::PartlyRolledBack);
        undone && doc.kept.iter().any(|k| k.id == s.id)
    };
    if let Some((set, _)) = sets.iter().find(is_undone) {
        let into = request.into.as_ref().map(|d| model::quote::shell(&d.to_string_lossy()));
        let into = into.map_or_else(String::new, |d| format!(" --into {d}"));
        let id = set.id;
        let remedy = format!("netwright tune persist --remove {id}{into}{}", host.options);
        return Ok(vec![PersistNote::RolledBack { id, remedy }]);
    }
    let drifted = drifted(host, doc)?;
    if !drifted.is_empty() {
        return Ok(drifted);
    }
    let written = doc.files.iter().any(|f| f.act == FileAct::Written);
    Ok(written.then_some(PersistNote::InForce).into_iter().collect())
}

/// Kept values that the host does not have now.
///
/// # Errors
/// The journal cannot be read.
pub fn drifted(host: &JournalTarget, doc: &Persisted) -> Result<Vec<PersistNote>, TuneError> {
    let values = status::status(&host.host, &host.store, None)?.values;
    let called = |v: &Now| if v.called.is_empty() { v.knob.clone() } else { v.called.clone() };
    let is_kept = |v: &&Now| doc.kept.iter().any(|k| k.id == v.id && k.knob == called(v));
    let note = |v: &Now| {
        let (knob, kept) = (called(v), v.written.clone());
        match (&v.drift, v.now.get()) {
            (Drift::Changed { .. }, Some(now)) => Some(PersistNote::SetSince { knob, now, kept }),
            (Drift::Gone { why }, _) => Some(PersistNote::Gone { knob, why: why.clone() }),
            (Drift::NotWritten | Drift::NotPutBack { .. }, _) => {
                Some(PersistNote::NotInForce { knob, kept })
            }
            _ => None,
        }
    };
    Ok(values.iter().filter(is_kept).filter_map(note).collect())
}

fn place(request: &Request, host: &JournalTarget) -> Result<PersistPaths, TuneError> {
    let base = match (&request.into, &host.tree) {
        (Some(into), _) => {
            if !into.is_dir() {
                return Err(TuneError::Environment(format!("{}: no folder", into.display())));
            }
            std::path::absolute(into).unwrap_or_else(|_| into.clone())
        }
        (None, Some(tree)) => tree.clone(),
        (None, None) => PathBuf::from("/"),
    };
    let state: &Path = host.store.state();
    let record = match &request.into {
        Some(_) => Record::path(&base.join(DEFAULT_STATE.trim_start_matches('/'))),
        None => Record::path(state),
    };
    Ok(PersistPaths { base, record })
}

/// The values to keep, from the host's current state.
///
/// # Errors
/// The journal or the record cannot be read, or this namespace is not the one of the files.
pub fn look(
    request: &Request,
    host: &JournalTarget,
    operator: &dyn Operator,
) -> Result<PersistPlan, TuneError> {
    let place = place(request, host)?;
    let old = Record::load(&place.record)?;
    let target = match &request.into {
        Some(_) => Destination::folder(&place.base)?,
        None => Destination::this(),
    };
    let (values, facts) = if request.remove {
        let facts = facts(host);
        let stays = |k: &&PersistedValue| request.id.is_some_and(|id| k.id != id);
        let kept: Vec<PersistedValue> = old.kept.iter().filter(stays).cloned().collect();
        if let Some(id) = request.id.filter(|id| !old.kept.iter().any(|k| k.id == *id)) {
            return Err(TuneError::Usage(format!("nothing of change {id} is kept")));
        }
        (Values { kept, ..Values::default() }, facts)
    } else {
        not_another_namespace(host, &old)?;
        let sets = chosen(request, host, operator)?;
        let facts = facts(host);
        if !host.host.is_live() || request.into.is_some() || request.dry_run || request.prints {
            // Nothing is written to this host.
            if request.dry_run && request.into.is_none() && host.host.is_live() && elsewhere(host) {
                operator.warn(
                    "this is not the host's own network namespace, for which /etc is: \
                     without --dry-run it is refused",
                );
            }
        } else if let Some(why) = facts::elsewhere(host.host.root()) {
            return Err(TuneError::Environment(why));
        } else if elsewhere(host) {
            return Err(TuneError::Environment(
                "this is not the host's own network namespace, for which /etc is; --into DIR \
                 writes elsewhere"
                    .into(),
            ));
        }
        (values(&host.host, &target, &facts, &sets, &old), facts)
    };
    let Values { kept, not, notes } = values;
    let mut rendered = render::render(&host.host, &target, &facts, &kept);
    rendered.notes.extend(notes);
    let unnamed = not.clone();
    let mut all: Vec<NotKept> = not;
    all.append(&mut rendered.not_kept);
    rendered.not_kept = all;
    let said =
        |k: &PersistedValue| !rendered.not_kept.iter().any(|n| n.knob == k.knob && n.id == k.id);
    let kept = if request.prints { kept } else { kept.into_iter().filter(said).collect() };
    Ok(PersistPlan { place, old, kept, rendered, unnamed })
}

/// Values kept for another network namespace cannot be identified from here, so only `--remove` may
/// drop them. Namespace numbers are valid until the host reboots.
fn not_another_namespace(host: &JournalTarget, old: &Record) -> Result<(), TuneError> {
    let here = host.host.id();
    let there = |s: &&JournaledSet| {
        let this_boot = s.host.boot_id.known() == here.boot_id.known() && !s.is_of(&here);
        this_boot && old.kept.iter().any(|k| k.id == s.id && netns::is_of_namespace(&k.knob))
    };
    let (sets, _) = host.store.sets()?;
    let Some(set) = sets.iter().find(there) else { return Ok(()) };
    let namespace = set.host.net_namespace.get().map(netns::called).unwrap_or_default();
    Err(TuneError::Environment(format!(
        "change {} is kept there for network namespace {namespace}, and this is another one: run it \
         there (--netns, --container), name another folder (--into), or remove what is kept first \
         (--remove); nothing was written",
        set.id
    )))
}

fn facts(host: &JournalTarget) -> Facts {
    facts::collect(host.host.root(), &facts::Request::default())
}

/// Whether process 1 is in another network namespace. If that may not be read, whether settings of
/// the first namespace are missing.
fn elsewhere(host: &JournalTarget) -> bool {
    let root = host.host.root();
    match (root.link("/proc/1/ns/net"), root.link("/proc/self/ns/net")) {
        (Ok(first), Ok(own)) => first != own,
        _ => {
            root.exists("/proc/sys/net/core")
                && !root.exists("/proc/sys/net/core/netdev_max_backlog")
        }
    }
}

/// The sets to keep.
fn chosen(
    request: &Request,
    host: &JournalTarget,
    operator: &dyn Operator,
) -> Result<Vec<(JournaledSet, ChangeState)>, TuneError> {
    let mut sets = host.readable(operator)?;
    if let Some(id) = request.id {
        return match sets.into_iter().find(|(s, _)| s.id == id) {
            None => Err(host.no_change(id)),
            Some((_, state)) if state != ChangeState::InForce => Err(TuneError::Environment(
                format!("change {id} is {state}: only what is in force is kept"),
            )),
            Some(set) => Ok(vec![set]),
        };
    }
    let waits = |(_, state): &&(JournaledSet, ChangeState)| {
        matches!(
            state,
            ChangeState::AwaitingConfirmation | ChangeState::Unfinished | ChangeState::InProgress
        )
    };
    if let Some((set, state)) = sets.iter().find(waits) {
        return Err(TuneError::Environment(format!(
            "change {} is {state}: end that first, or name the change to keep",
            set.id
        )));
    }
    sets.retain(|(_, state)| *state == ChangeState::InForce);
    Ok(sets)
}
