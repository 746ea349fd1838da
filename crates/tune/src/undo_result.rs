//! The result of undoing, or of a dry run of it.

use model::tune::{ChangeNote, ChangeSet, Drifted, Saved};
use probe::facts::{self, Request};

use crate::{
    TuneError, drift,
    journal::JournaledSet,
    knobs,
    persist::Record,
    privilege, status,
    target::JournalTarget,
    undo::{self, OnDrift, UndoForecast},
};

/// Result of a command.
#[derive(Debug, Default)]
pub struct UndoResult {
    pub notes: Vec<ChangeNote>,
    /// Whether it was done.
    pub done: bool,
    /// Whether none of our values is left; also true where an external change replaced ours.
    pub ended: bool,
    /// External changes that were found.
    pub drifted: Vec<Drifted>,
}

impl UndoResult {
    /// Adds reasons for a failure, if there are any.
    pub fn fail(&mut self, why: Vec<String>) {
        self.done &= why.is_empty();
        self.notes.extend(why.into_iter().map(|why| ChangeNote::NotUndone { why }));
    }
}

/// What undoing would do after the `later` sets are undone.
pub fn forecast(
    target: &JournalTarget,
    set: &JournaledSet,
    later: &[JournaledSet],
    on_drift: OnDrift,
) -> UndoResult {
    let mut found = drift::check(&target.host, set);
    later.iter().for_each(|later| found.remove_written_by(later));
    let drifted = with_suspects(target, set.id, &found.drifted, on_drift);
    let is_kept = |knob: &str| drifted.iter().any(|d| d.kept && d.knob == knob);
    let unread = |saved: &Saved| found.unread(saved).filter(|_| on_drift == OnDrift::Leave);
    let mut notes = Vec::new();
    let mut done = true;
    for (saved, forecast) in undo::forecasts(&target.host, set) {
        let knob = saved.knob.clone();
        notes.push(match forecast {
            UndoForecast::Restorable(_) if is_kept(&knob) => continue,
            UndoForecast::Restorable(_) if unread(saved).is_some() => {
                done = false;
                let why = unread(saved).map(ToString::to_string).unwrap_or_default();
                ChangeNote::CannotBePutBack { knob, why }
            }
            UndoForecast::Restorable(called) => {
                let old = knobs::find(&knob).map(|k| k.show(&saved.old)).unwrap_or_default();
                let now = Some(called).filter(|called| *called != knob);
                ChangeNote::WouldBePutBack { knob, now, old }
            }
            UndoForecast::NotNeeded(why) => ChangeNote::Lost { knob, why: why.to_string() },
            UndoForecast::Impossible(why) => {
                done = false;
                ChangeNote::CannotBePutBack { knob, why: why.to_string() }
            }
        });
    }
    notes.extend(drifted.iter().map(|d| set_since(d, true)));
    if set.namespace_gone {
        notes.push(ChangeNote::NamespaceGone { id: set.id });
    }
    if let Some(why) = privilege::missing_to_undo(&target.host, set) {
        notes.push(ChangeNote::NotPermitted { why });
    }
    let ended = done;
    done &= !drifted.iter().any(|d| d.kept);
    UndoResult { notes, done, ended, drifted }
}

/// External changes, each with the tuners that may have made it.
pub fn with_suspects(
    target: &JournalTarget,
    id: u64,
    drifted: &[drift::Drifted],
    on_drift: OnDrift,
) -> Vec<Drifted> {
    if drifted.is_empty() {
        return vec![];
    }
    // Looks for other tuners only if there is an external change.
    let facts = facts::collect(target.host.root(), &Request::default());
    let one = |d: &drift::Drifted| Drifted {
        id,
        knob: d.knob.clone(),
        beside: d.beside.clone(),
        before: d.before.clone(),
        written: d.written.clone(),
        found: d.found.clone(),
        unit: d.unit.clone(),
        kept: on_drift == OnDrift::Leave,
        suspects: status::suspects(&d.knob, Some(&facts)),
    };
    drifted.iter().map(one).collect()
}

fn set_since(d: &Drifted, dry_run: bool) -> ChangeNote {
    ChangeNote::SetSince { drifted: Box::new(d.clone()), dry_run }
}

/// The command that goes on with a change.
fn rollback(target: &JournalTarget, id: u64, option: &str) -> String {
    format!("netwright tune rollback {id}{option}{}", target.options)
}

/// How to overwrite what was left.
fn overwrites(target: &JournalTarget, id: u64, drifted: &[Drifted]) -> Option<ChangeNote> {
    let values = drifted.iter().filter(|d| d.kept).count();
    let command = rollback(target, id, " --force");
    (values > 0).then_some(ChangeNote::ForceOverwrites { command, values })
}

fn lost(report: &undo::Report) -> impl Iterator<Item = ChangeNote> {
    let one =
        |(knob, why): &(String, String)| ChangeNote::Lost { knob: knob.clone(), why: why.clone() };
    report.lost.iter().map(one)
}

fn not_put_back(report: &undo::Report) -> impl Iterator<Item = ChangeNote> {
    let one = |(knob, why): &(String, String)| ChangeNote::NotPutBack {
        knob: knob.clone(),
        why: why.clone(),
    };
    report.not_restored.iter().map(one)
}

fn journal_not_written(
    target: &JournalTarget,
    id: u64,
    report: &undo::Report,
) -> Option<ChangeNote> {
    let why = report.journal.clone()?;
    Some(ChangeNote::JournalNotWritten { why, command: rollback(target, id, "") })
}

/// Reports the result of an undo.
pub fn result_of(
    target: &JournalTarget,
    set: &JournaledSet,
    report: &undo::Report,
    on_drift: OnDrift,
) -> UndoResult {
    let id = set.id;
    let whole = report.is_whole();
    let drifted = with_suspects(target, id, &report.drifted, on_drift);
    let mut notes = vec![match (whole, set.namespace_gone) {
        (true, true) => ChangeNote::Closed { id },
        (true, false) if drifted.iter().any(|d| d.kept) => ChangeNote::RolledBackButSetSince { id },
        (true, false) if !report.lost.is_empty() => ChangeNote::RolledBackButLost { id },
        (true, false) => ChangeNote::RolledBack { id },
        (false, _) => ChangeNote::NotWhollyRolledBack { id },
    }];
    notes.extend(drifted.iter().map(|d| set_since(d, false)));
    notes.extend(overwrites(target, id, &drifted));
    if Record::load(&Record::path(target.store.state()))
        .is_ok_and(|r| r.kept.iter().any(|k| k.id == id))
    {
        let command = format!("netwright tune persist --remove {id}{}", target.options);
        notes.push(ChangeNote::StillKept { command });
    }
    let renamed = report.renamed.iter();
    notes.extend(
        renamed.map(|(k, now)| ChangeNote::PutBackAs { knob: k.clone(), now: now.clone() }),
    );
    notes.extend(lost(report));
    notes.extend(not_put_back(report));
    if report.gone.len() < report.not_restored.len() {
        notes.push(ChangeNote::TryAgain { command: rollback(target, id, "") });
    }
    notes.extend(journal_not_written(target, id, report));
    let ended = whole && report.journal.is_none();
    let done = ended && !drifted.iter().any(|d| d.kept);
    UndoResult { notes, done, ended, drifted }
}

/// What is said of a change that is in force.
pub fn in_force(target: &JournalTarget, id: u64, set: Option<&ChangeSet>) -> Vec<ChangeNote> {
    let mut notes = vec![ChangeNote::InForce { id, command: rollback(target, id, "") }];
    if let Some(left) = set.and_then(|s| s.confirm_within_ms.get()) {
        notes.push(ChangeNote::UndoneUnlessConfirmed {
            within_s: left / 1000,
            command: format!("netwright tune confirm {id}{}", target.options),
        });
    }
    notes
}

/// Reports a change that failed and was undone, and external changes since.
pub fn failed(
    target: &JournalTarget,
    id: u64,
    why: &TuneError,
    report: &undo::Report,
) -> (Vec<ChangeNote>, Vec<Drifted>) {
    let mut notes = vec![ChangeNote::Failed { id, why: why.to_string() }];
    match report.not_restored.as_slice() {
        [] if !report.drifted.is_empty() => notes.push(ChangeNote::OthersPutBack),
        [] if report.lost.is_empty() => notes.push(ChangeNote::AllPutBack),
        [] => notes.push(ChangeNote::AllThatIsLeftPutBack),
        _ => notes.extend(not_put_back(report)),
    }
    notes.extend(lost(report));
    let drifted = with_suspects(target, id, &report.drifted, OnDrift::Leave);
    notes.extend(drifted.iter().map(|d| set_since(d, false)));
    notes.extend(overwrites(target, id, &drifted));
    notes.extend(journal_not_written(target, id, report));
    (notes, drifted)
}
