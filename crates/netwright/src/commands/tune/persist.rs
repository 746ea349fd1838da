//! `tune persist`: what is in force outlives a reboot.

use std::path::{Path, PathBuf};

use model::{
    Facts,
    tune::{ChangeState, Drift, FileAct, NotKept, Now, PersistNote, Persisted},
};
use probe::facts::{self, Request};
use tune::{
    TuneError,
    journal::{DEFAULT_STATE, Set},
    netns,
    persist::{self, Destination, PersistedValue, Record, Values, format, render},
    status,
};

use super::{
    JournalTarget,
    args::{Format, PersistArgs},
    back, failure,
};
use crate::{
    exit::{CommandEnd, Failure},
    interrupt,
    output::{Sink, note},
};

/// What is to be kept from now on, and how.
struct Work {
    place: persist::PersistPaths,
    old: Record,
    kept: Vec<PersistedValue>,
    rendered: render::Rendered,
    /// Of which nobody can say what they are settings of, with the reason.
    unnamed: Vec<NotKept>,
}

/// Keeps, shows, prints or removes.
pub fn run(args: &PersistArgs) -> Result<CommandEnd, Failure> {
    Sink::new(args.output.output.clone()).check()?;
    let host = JournalTarget::open(args.place.clone())?;
    if args.format.is_some() || args.dry_run {
        let work = look(args, &host)?;
        if let Some(form) = args.format {
            return print(args, form, &work);
        }
        let mut doc = persist::preview(&work.place, &work.old, &work.rendered).map_err(failure)?;
        if !args.remove {
            doc.notes.extend(drifted(&host, &doc).map_err(failure)?);
        }
        return tell(args, &doc);
    }
    let lock = back::lock(&host, args.no_wait, args.output.talk.quiet)?;
    let work = look(args, &host)?;
    let Work { place, old, kept, rendered, .. } = work;
    if kept.is_empty() && old == Record::default() {
        // What was interrupted before it began.
        persist::files::remove_temporary(&place.record).map_err(failure)?;
        let nothing = persist::preview(&place, &old, &rendered).map_err(failure)?;
        return tell(args, &nothing);
    }
    // The terminal may go away in the middle.
    interrupt::ignore(libc::SIGHUP);
    let mut doc = persist::write(&place, &old, kept, &rendered).map_err(failure)?;
    drop(lock);
    if !args.remove {
        doc.notes.extend(in_force(args, &host, &doc).map_err(failure)?);
    }
    tell(args, &doc)
}

/// Which of what is kept is not in force, for its change was rolled back; or else that all is.
fn in_force(
    args: &PersistArgs,
    host: &JournalTarget,
    doc: &Persisted,
) -> Result<Vec<PersistNote>, TuneError> {
    let (sets, _) = status::standing(&host.host, &host.store)?;
    let is_undone = |(s, state): &&(Set, ChangeState)| {
        let undone = matches!(state, ChangeState::RolledBack | ChangeState::PartlyRolledBack);
        undone && doc.kept.iter().any(|k| k.id == s.id)
    };
    if let Some((set, _)) = sets.iter().find(is_undone) {
        let into = args.into.as_ref().map(|d| model::quote::shell(&d.to_string_lossy()));
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

/// Of what is kept, what is not so on the host at this moment.
fn drifted(host: &JournalTarget, doc: &Persisted) -> Result<Vec<PersistNote>, TuneError> {
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

fn place(args: &PersistArgs, host: &JournalTarget) -> Result<persist::PersistPaths, Failure> {
    let base = match (&args.into, &host.tree) {
        (Some(into), _) => {
            if !into.is_dir() {
                return Err(Failure::Environment(format!("{}: no folder", into.display())));
            }
            std::path::absolute(into).unwrap_or_else(|_| into.clone())
        }
        (None, Some(tree)) => tree.clone(),
        (None, None) => PathBuf::from("/"),
    };
    let state: &Path = host.store.state();
    let record = match &args.into {
        Some(_) => Record::path(&base.join(DEFAULT_STATE.trim_start_matches('/'))),
        None => Record::path(state),
    };
    Ok(persist::PersistPaths { base, record })
}

fn look(args: &PersistArgs, host: &JournalTarget) -> Result<Work, Failure> {
    let place = place(args, host)?;
    let old = Record::load(&place.record).map_err(failure)?;
    let target = match &args.into {
        Some(_) => Destination::folder(&place.base).map_err(failure)?,
        None => Destination::this(),
    };
    let (values, facts) = if args.remove {
        let facts = facts(host);
        let stays = |k: &&PersistedValue| args.id.is_some_and(|id| k.id != id);
        let kept: Vec<PersistedValue> = old.kept.iter().filter(stays).cloned().collect();
        if let Some(id) = args.id.filter(|id| !old.kept.iter().any(|k| k.id == *id)) {
            return Err(Failure::Usage(format!("nothing of change {id} is kept")));
        }
        (Values { kept, ..Values::default() }, facts)
    } else {
        not_another_namespace(host, &old)?;
        let sets = chosen(args, host)?;
        let facts = facts(host);
        if !host.host.is_live() || args.into.is_some() || args.dry_run || args.format.is_some() {
            // Nothing is written, or elsewhere.
            if args.dry_run && args.into.is_none() && host.host.is_live() && elsewhere(host) {
                note(
                    "this is not the host's own network namespace, for which /etc is: \
                     without --dry-run it is refused",
                );
            }
        } else if let Some(why) = facts::elsewhere(host.host.root()) {
            return Err(Failure::Environment(why));
        } else if elsewhere(host) {
            return Err(Failure::Environment(
                "this is not the host's own network namespace, for which /etc is; --into DIR \
                 writes elsewhere"
                    .into(),
            ));
        }
        (persist::values(&host.host, &target, &facts, &sets, &old), facts)
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
    let kept = if args.format.is_some() { kept } else { kept.into_iter().filter(said).collect() };
    Ok(Work { place, old, kept, rendered, unnamed })
}

/// What is kept for another network namespace cannot be said again from here, and only `--remove`
/// removes. Numbers of namespaces count for as long as the host runs.
fn not_another_namespace(host: &JournalTarget, old: &Record) -> Result<(), Failure> {
    let here = host.host.id();
    let there = |s: &&Set| {
        let this_boot = s.host.boot_id.known() == here.boot_id.known() && !s.is_of(&here);
        this_boot && old.kept.iter().any(|k| k.id == s.id && netns::is_of_namespace(&k.knob))
    };
    let (sets, _) = host.store.sets().map_err(failure)?;
    let Some(set) = sets.iter().find(there) else { return Ok(()) };
    let namespace = set.host.net_namespace.get().map(netns::called).unwrap_or_default();
    Err(Failure::Environment(format!(
        "change {} is kept there for network namespace {namespace}, and this is another one: run it \
         there (--netns, --container), name another folder (--into), or remove what is kept first \
         (--remove); nothing was written",
        set.id
    )))
}

fn facts(host: &JournalTarget) -> Facts {
    facts::collect(host.host.root(), &Request::default())
}

/// Whether process 1 lives in another network namespace than this one. Where that may not be
/// known, whether settings are missing that only the first namespace has.
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
fn chosen(args: &PersistArgs, host: &JournalTarget) -> Result<Vec<(Set, ChangeState)>, Failure> {
    let mut sets = back::readable(host)?;
    if let Some(id) = args.id {
        return match sets.into_iter().find(|(s, _)| s.id == id) {
            None => Err(back::no_change(host, id)),
            Some((_, state)) if state != ChangeState::InForce => Err(Failure::Environment(
                format!("change {id} is {state}: only what is in force is kept"),
            )),
            Some(set) => Ok(vec![set]),
        };
    }
    let waits = |(_, state): &&(Set, ChangeState)| {
        matches!(
            state,
            ChangeState::AwaitingConfirmation | ChangeState::Unfinished | ChangeState::InProgress
        )
    };
    if let Some((set, state)) = sets.iter().find(waits) {
        return Err(Failure::Environment(format!(
            "change {} is {state}: end that first, or name the change to keep",
            set.id
        )));
    }
    sets.retain(|(_, state)| *state == ChangeState::InForce);
    Ok(sets)
}

fn print(args: &PersistArgs, form: Format, work: &Work) -> Result<CommandEnd, Failure> {
    let printed = match form {
        Format::Ansible => format::ansible(&work.rendered),
        Format::Shell => format::shell(&work.kept, &work.unnamed),
        Format::Tuned => format::tuned(&work.kept, &work.unnamed),
    };
    Sink::new(args.output.output.clone()).text(&printed.text)?;
    for n in &printed.left_out {
        let (id, why) = (n.id, &n.why);
        note(&format!("not in it: {}={}: {why} (change {id})", n.knob, n.value));
    }
    Ok(if printed.left_out.is_empty() { CommandEnd::Yes } else { CommandEnd::No })
}

fn tell(args: &PersistArgs, doc: &Persisted) -> Result<CommandEnd, Failure> {
    let sink = Sink::new(args.output.output.clone());
    if args.output.json {
        sink.json(doc)?;
    } else {
        sink.text(&report::tune::persisted(doc, sink.look(args.output.talk.verbose)))?;
    }
    let left = doc.files.iter().any(|f| f.act == FileAct::Left);
    Ok(if left || !doc.not_kept.is_empty() { CommandEnd::No } else { CommandEnd::Yes })
}
