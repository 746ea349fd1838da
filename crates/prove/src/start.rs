//! Begins or resumes an experiment: opens its record, and undoes what killed experiments left set.

use std::{
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

use model::prove::Run;
use tune::{TuneError, operator::Operator};

use crate::{
    Experiment, ProveError,
    record::{self, Record, RecordContent, RecordHead},
};

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."))
}

/// Undoes the settings of killed experiments, this record's included.
///
/// # Errors
/// The record cannot be read, or a command fails.
pub fn undo_lost(path: &Path) -> Result<(), ProveError> {
    record::undo_killed(folder_of(path), path, &[]).map(drop)
}

/// The same before an experiment begins, with notes for the operator.
///
/// # Errors
/// A record cannot be read, or a command fails.
pub fn undo_before(
    operator: &dyn Operator,
    path: &Path,
    experiment: &Experiment,
) -> Result<(), ProveError> {
    let unsets = experiment.unsets();
    let cleared = record::undo_killed(folder_of(path), path, &unsets)?;
    for line in &cleared.undone {
        operator.note(&format!("an experiment ended before that was put back; undone: {line}"));
    }
    for line in &cleared.left {
        operator.warn(&format!("left by an experiment: {line}"));
    }
    Ok(())
}

/// The record to resume.
///
/// # Errors
/// The experiment has ended, or the record is of another one.
pub fn past(experiment: &Experiment, path: &Path) -> Result<RecordContent, ProveError> {
    let past = record::read(path)?;
    let path = path.display();
    if let Some(why) = past.ended {
        return Err(ProveError::Spec(format!(
            "{path}: this experiment has ended ({why}); going on after its end would break its \
             promise. Begin a new one without --resume"
        )));
    }
    if past.is_elsewhere() {
        return Err(environment(format!(
            "{path}: its runs were made in another network namespace, which is another host to compare: go \
             on with it there, or begin a new one without --resume"
        )));
    }
    if past.begun.spec != experiment.spec {
        let differs = past.begun.spec.differences(&experiment.spec);
        if differs.iter().all(|d| d.starts_with("budget: ") || d.starts_with("runs: ")) {
            return Err(ProveError::Spec(format!(
                "{path}: {}: the end is part of the promise, and one that is set when runs have been seen \
                 would call more than one in twenty better or worse that do nothing. --resume with the budget \
                 that it began with, or begin a new experiment without --resume",
                differs.join("; ")
            )));
        }
        let differs = differs.join("; ");
        return Err(ProveError::Spec(format!(
            "{path}: is the record of another experiment: {differs}. With what is there it goes on, \
             without --resume it starts again"
        )));
    }
    Ok(past)
}

/// Creates a record, or opens one to resume.
///
/// # Errors
/// As [`past`], or the record cannot be written.
pub fn begin(
    resume: bool,
    experiment: &Experiment,
    path: &Path,
    operator: &dyn Operator,
) -> Result<(RecordHead, Vec<Run>, Record), ProveError> {
    if resume {
        let past = past(experiment, path)?;
        if past.rebooted() {
            operator.note(
                "the host was booted since: levels are compared within blocks, each of one boot",
            );
        }
        return Ok((past.begun, past.runs, Record::resume(path)?));
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let begun = RecordHead {
        started_unix_s: now.as_secs(),
        name: experiment.name.clone(),
        spec: experiment.spec.clone(),
        seed: experiment.spec.seed.unwrap_or(now.as_nanos() as u64),
    };
    let kept = record::may_go_on(path).then(|| record::aside(path));
    let record = Record::create(path, &begun)?;
    if let Some(kept) = kept {
        operator.note(&format!(
            "the experiment whose record was here had not ended; it is kept: --resume --record {}",
            kept.display()
        ));
    }
    Ok((begun, vec![], record))
}

/// Warns the operator of commands that change the host, before they run.
pub fn warn(operator: &dyn Operator, experiment: &Experiment) {
    let changes = experiment.changes();
    if let Some(first) = changes.first() {
        operator.note(&format!(
            "sets {} levels by commands, and puts each back: {}{}",
            changes.len(),
            first.lines().map(str::trim).collect::<Vec<_>>().join("; "),
            if changes.len() > 1 { ", …" } else { "" }
        ));
    }
}

fn environment(why: String) -> ProveError {
    TuneError::Environment(why).into()
}
