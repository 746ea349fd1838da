//! Undoes the settings that killed experiments left on the host.

use std::{io::ErrorKind, path::Path};

use tune::{
    TuneError,
    netns::{self, NamespaceSearch},
};

use super::{NamespaceId, Record, RecordContent, read};
use crate::{
    ProveError,
    child::{self, SET_PATIENCE},
};

/// What was undone, and what was not.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ClearedSettings {
    /// Undo commands that were run.
    pub undone: Vec<String>,
    /// Settings of other experiments that were not undone, each with the reason.
    pub left: Vec<String>,
}

/// Undoes the settings of killed experiments, from every record of the folder that has no writer.
/// `own` is the caller's record; `unsets` are the undo commands of its experiment.
///
/// # Errors
/// An undo command of the caller's own record, or one in `unsets`, failed; it stays
/// pending. Another experiment's failure is returned in [`ClearedSettings::left`] and stays pending too.
pub fn undo_killed(
    folder: &Path,
    own: &Path,
    unsets: &[String],
) -> Result<ClearedSettings, ProveError> {
    let failed = |e| ProveError::file(folder, e);
    let entries = match std::fs::read_dir(folder) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(ClearedSettings::default()),
        entries => entries.map_err(failed)?,
    };
    let mut cleared = ClearedSettings::default();
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_none_or(|e| e != "jsonl") || !path.is_file() {
            continue;
        }
        let is_own = path.file_name() == own.file_name();
        let past = match pending(&path) {
            Ok(Some((record, past))) => (record, past),
            Ok(None) => continue,
            Err(e @ (ProveError::Damaged(_) | ProveError::Tune(_))) if !is_own => {
                cleared.left.push(e.to_string());
                continue;
            }
            Err(e) => return Err(e),
        };
        let (mut record, past) = past;
        let place = past.place.clone().filter(|_| !past.rebooted());
        for undo in past.pending {
            match undo_at(place.as_ref(), &undo) {
                Ok(Some(gone)) => cleared.left.push(format!("`{undo}` was not run: {gone}")),
                Ok(None) => cleared.undone.push(undo.clone()),
                Err(why) => {
                    let why = format!(
                        "{why}; the experiment of {} left that set: once it is put right by hand, \
                         or there is nothing to put right, delete that file",
                        path.display()
                    );
                    if is_own || unsets.contains(&undo) {
                        return Err(ProveError::Setting(why));
                    }
                    cleared.left.push(why);
                    continue;
                }
            }
            record.undone(&undo)?;
        }
    }
    Ok(cleared)
}

/// A record without a writer that has something to undo; else `None`.
///
/// # Errors
/// It cannot be read, is damaged, or belongs to another user.
fn pending(path: &Path) -> Result<Option<(Record, RecordContent)>, ProveError> {
    let gone =
        |e: &std::io::Error| matches!(e.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied);
    match read(path) {
        Ok(past) if past.pending.is_empty() => return Ok(None),
        Ok(_) => {}
        // Not a record, or not readable for this user.
        Err(ProveError::Spec(_)) => return Ok(None),
        Err(ProveError::File { source, .. }) if gone(&source) => return Ok(None),
        Err(e) => return Err(e),
    }
    let mut record = match Record::ours(path) {
        Err(ProveError::Busy(_) | ProveError::Tune(TuneError::Denied(_))) => return Ok(None),
        record => record?,
    };
    let past = record.past()?;
    Ok(Some((record, past)))
}

/// Runs an undo command in the network namespace where the setting was made; elsewhere the same
/// name is another device. Returns why it was not run, where that namespace is gone.
fn undo_at(place: Option<&NamespaceId>, undo: &str) -> Result<Option<&'static str>, String> {
    let run = || child::set(undo, SET_PATIENCE);
    let elsewhere = place.filter(|place| NamespaceId::here().is_some_and(|here| here != **place));
    let Some(NamespaceId { inode, net_cookie }) = elsewhere else { return run().map(|()| None) };
    match netns::again(*inode, *net_cookie) {
        NamespaceSearch::There(namespace) => {
            netns::within(&namespace, run).map_err(|e| e.to_string())?.map(|()| None)
        }
        NamespaceSearch::Gone => Ok(Some(
            "its network namespace is gone, and its settings with it; anything else that it undoes \
             is to be put right by hand",
        )),
        NamespaceSearch::Unknown => Err(format!(
            "`{undo}` belongs to network namespace {inode}, which is not seen from here"
        )),
    }
}
