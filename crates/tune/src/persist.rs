//! Values that survive a reboot. `subject` identifies a value's object by names that a reboot does
//! not change. [`render`] turns the values into the distribution's own files, [`files`] writes
//! them. A file that is not ours, or was edited since, is never touched.

mod destination;
pub mod files;
pub mod format;
mod irq;
mod link;
mod owner;
pub mod record;
pub mod render;
mod section;
mod starter;
mod subject;
pub mod work;

use std::path::{Path, PathBuf};

use model::{
    Facts, SCHEMA_VERSION,
    tune::{ChangeState, FileAct, KeptValue, NotKept, PersistNote, Persisted, PersistedFile},
};

pub use destination::Destination;
pub use record::{PersistedValue, Record, Subject};

use crate::{Host, TuneError, identity::Finder, journal::JournaledSet, knobs};
use files::FileOnDisk;
use render::Rendered;

#[derive(Debug, Clone)]
pub struct PersistPaths {
    /// Root directory for the files; normally `/`.
    pub base: PathBuf,
    /// Path of the record of files that we wrote.
    pub record: PathBuf,
}

/// The values that change sets would keep over a reboot.
#[derive(Debug, Default)]
pub struct Values {
    pub kept: Vec<PersistedValue>,
    /// Values that cannot be kept, with the reason.
    pub not: Vec<NotKept>,
    /// Values kept earlier whose object does not exist now.
    pub notes: Vec<PersistNote>,
}

/// The values that change sets have in force, by names that survive a reboot, and the values
/// without such a name. The last set that wrote a knob counts. Renamed interfaces are followed. A
/// value already kept for a missing object stays kept.
pub fn values(
    host: &Host,
    destination: &Destination,
    facts: &Facts,
    sets: &[(JournaledSet, ChangeState)],
    known: &Record,
) -> Values {
    let finder = Finder::new(host);
    let mut all = Values { kept: known.kept.clone(), ..Values::default() };
    for (set, _) in sets {
        for (n, change) in set.changes.iter().enumerate() {
            let before = known.kept.iter().find(|k| k.is_of(set.id, &change.knob));
            let named = called(host, &finder, set, n).and_then(|knob| {
                let subject = match before {
                    Some(PersistedValue { subject: Subject::Nic(i), knob: was, .. })
                        if knob != *was =>
                    {
                        subject::renamed(i, was, &knob)
                    }
                    _ => subject::of(host, destination, facts, set, &knob, &change.new, known),
                };
                subject.map(|subject| (knob, subject))
            });
            let knob = named.as_ref().map_or(&change.knob, |(knob, _)| knob).clone();
            all.not.retain(|n| n.knob != knob);
            match (named, before) {
                (Ok((_, subject)), _) => {
                    all.kept.retain(|k| k.knob != knob && !k.is_of(set.id, &change.knob));
                    let set_as = (knob != change.knob).then(|| change.knob.clone());
                    let value = change.new.clone();
                    all.kept.push(PersistedValue { id: set.id, knob, set_as, value, subject });
                }
                (Err(why), Some(kept)) => all.notes.push(PersistNote::StaysKept {
                    knob: kept.knob.clone(),
                    why,
                    remedy: format!("netwright tune persist --remove {}", set.id),
                }),
                (Err(why), None) => {
                    all.not.push(NotKept { id: set.id, knob, value: change.new.clone(), why });
                }
            }
        }
    }
    // In plan order: a change that resets a setting comes before that setting. A knob that no
    // longer exists comes last.
    all.kept.sort_by_key(|k| {
        let phase = knobs::find(&k.knob).map(|p| p.phase());
        (phase.is_none(), phase)
    });
    all
}

/// The current name of a change's knob.
fn called(
    host: &Host,
    finder: &Finder<'_>,
    set: &JournaledSet,
    n: usize,
) -> Result<String, String> {
    let knob = set.changes.get(n).map(|c| c.knob.clone()).unwrap_or_default();
    let saved = set.writes.iter().find(|w| w.n == n).map(|w| &w.saved);
    let Some(saved) = saved.filter(|_| !subject::is_elsewhere(host, set, &knob)) else {
        return Ok(knob);
    };
    finder.find(saved).map_err(|e| e.to_string())?.current_name(&knob)
}

/// The files that [`write()`] would write; writes nothing.
///
/// # Errors
/// A file in the way is not ours, or was edited.
pub fn preview(
    place: &PersistPaths,
    old: &Record,
    rendered: &Rendered,
) -> Result<Persisted, TuneError> {
    let files = check(place, old, rendered)?;
    Ok(document(rendered, files, true))
}

/// Writes all files and removes those no longer wanted: first the record, then each file
/// atomically. If interrupted, the same call completes it.
///
/// # Errors
/// A file in the way is not ours or was edited (nothing is written then), or a write failed.
pub fn write(
    place: &PersistPaths,
    old: &Record,
    kept: Vec<PersistedValue>,
    rendered: &Rendered,
) -> Result<Persisted, TuneError> {
    let files = check(place, old, rendered)?;
    let mut record = Record {
        schema_version: SCHEMA_VERSION,
        pending: true,
        kept,
        files: files.iter().map(|f| f.path.clone()).collect(),
        folders: old.folders.clone(),
    };
    for file in &rendered.files {
        for folder in files::missing_folders(&place.base, &file.path) {
            if !record.folders.contains(&folder) {
                record.folders.push(folder);
            }
        }
    }
    // Subdirectories first.
    record.folders.sort_by_key(|f| std::cmp::Reverse(f.len()));
    record.save(&place.record)?;
    for file in &files {
        let path = files::inside(&place.base, &file.path)?;
        match file.act {
            FileAct::Written => files::put(&path, &file.content, file.mode)?,
            FileAct::Removed => files::remove(&path)?,
            FileAct::Unchanged | FileAct::Left | FileAct::Missing => {
                files::remove_temporary(&path)?
            }
        }
    }
    let gone = |f: &PersistedFile| matches!(f.act, FileAct::Removed | FileAct::Missing);
    record.files.retain(|p| files.iter().any(|f| f.path == *p && !gone(f)));
    record.folders.retain(|f| !files::remove_folder(&place.base.join(f.trim_start_matches('/'))));
    record.pending = false;
    if record.kept.is_empty() && record.files.is_empty() {
        files::remove(&place.record)?;
    } else {
        record.save(&place.record)?;
    }
    Ok(document(rendered, files, false))
}

/// The action for each file; changes nothing.
fn check(
    place: &PersistPaths,
    old: &Record,
    new: &Rendered,
) -> Result<Vec<PersistedFile>, TuneError> {
    let mut all: Vec<PersistedFile> = Vec::new();
    for file in &new.files {
        let content = files::dressed(&file.body);
        let act = match files::look(&place.base, &file.path)? {
            FileOnDisk::Absent => FileAct::Written,
            FileOnDisk::Ours(now) if now == content => FileAct::Unchanged,
            FileOnDisk::Ours(_) => FileAct::Written,
            FileOnDisk::Changed => {
                return Err(in_the_way(&file.path, "was changed since it was written"));
            }
            FileOnDisk::Foreign => return Err(in_the_way(&file.path, "is there and not ours")),
        };
        all.push(PersistedFile { path: file.path.clone(), act, mode: file.mode, content });
    }
    for path in old.files.iter().filter(|p| !new.files.iter().any(|f| f.path == **p)) {
        let act = match files::look(&place.base, path)? {
            FileOnDisk::Absent => FileAct::Missing,
            FileOnDisk::Ours(_) => FileAct::Removed,
            FileOnDisk::Changed | FileOnDisk::Foreign if new.files.is_empty() => FileAct::Left,
            _ => return Err(in_the_way(path, "was changed since it was written")),
        };
        all.push(PersistedFile { path: path.clone(), act, mode: 0, content: String::new() });
    }
    all.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(all)
}

fn in_the_way(path: &str, why: &str) -> TuneError {
    TuneError::Environment(format!("{path} {why}: move it away first; nothing was written"))
}

fn document(rendered: &Rendered, files: Vec<PersistedFile>, dry_run: bool) -> Persisted {
    Persisted {
        schema_version: SCHEMA_VERSION,
        dry_run,
        files,
        kept: rendered.kept.clone(),
        not_kept: rendered.not_kept.clone(),
        notes: rendered.notes.clone(),
    }
}

/// Reports this value as one that cannot be kept.
fn not_kept(k: &PersistedValue, why: impl Into<String>) -> NotKept {
    NotKept { id: k.id, knob: k.knob.clone(), value: k.value.clone(), why: why.into() }
}

/// Reports that this file keeps the value.
fn kept_by(k: &PersistedValue, by: &str) -> KeptValue {
    KeptValue { id: k.id, knob: k.knob.clone(), value: k.value.clone(), by: by.to_owned() }
}

/// Notice that every command prints if writing the files was interrupted.
pub fn notice(state: &Path) -> Option<String> {
    let record = match Record::load(&Record::path(state)) {
        Ok(record) => record,
        // A user who may not read it cannot act on it.
        Err(TuneError::Denied(_)) => return None,
        Err(e) => return Some(format!("which changes are kept over a reboot is not known: {e}")),
    };
    record.pending.then(|| {
        "writing the files that keep changes over a reboot was interrupted; `netwright tune persist` \
         completes it, `netwright tune persist --remove` removes all of them"
            .to_owned()
    })
}
