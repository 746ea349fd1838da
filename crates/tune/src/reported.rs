//! Reports the result of undoing, as lines for the user.

use model::tune::{ChangeSet, Drifted, Saved};
use probe::facts::{self, Request};

use crate::{
    TuneError, drift,
    journal::Set,
    knobs, netns,
    persist::Record,
    privilege, status,
    target::JournalTarget,
    undo::{self, OnDrift, Outlook},
};

/// Result of a command.
#[derive(Debug, Default)]
pub struct Reported {
    pub lines: Vec<String>,
    /// Whether the command succeeded.
    pub done: bool,
    /// Whether none of our values is left; also true where an external change replaced ours.
    pub ended: bool,
    /// External changes that were found.
    pub drifted: Vec<Drifted>,
}

impl Reported {
    /// Adds reasons for a failure, if there are any.
    pub fn fail(&mut self, why: Vec<String>) {
        self.done &= why.is_empty();
        self.lines.extend(why);
    }
}

/// What undoing would do after the `later` sets are undone.
pub fn would_be(target: &JournalTarget, set: &Set, later: &[Set], on_drift: OnDrift) -> Reported {
    let mut found = drift::found(&target.host, set);
    later.iter().for_each(|later| found.but_for(later));
    let drifted = reported_of(target, set.id, &found.drifted, on_drift);
    let is_kept = |knob: &str| drifted.iter().any(|d| d.kept && d.knob == knob);
    let unread = |saved: &Saved| found.unread(saved).filter(|_| on_drift == OnDrift::Leave);
    let mut lines = Vec::new();
    let mut done = true;
    for (saved, outlook) in undo::outlooks(&target.host, set) {
        let knob = &saved.knob;
        lines.push(match outlook {
            Outlook::Back(_) if is_kept(knob) => continue,
            Outlook::Back(_) if unread(saved).is_some() => {
                done = false;
                let why = unread(saved).map(ToString::to_string).unwrap_or_default();
                format!("{knob} could not be put back: {why}.")
            }
            Outlook::Back(called) => {
                let shown = knobs::find(knob).map(|k| k.show(&saved.old));
                let as_now = as_now(knob, &called);
                format!("{knob}{as_now} would be {} again.", shown.unwrap_or_default())
            }
            Outlook::Lost(why) => lost_line(knob, &why),
            Outlook::Not(why) => {
                done = false;
                format!("{knob} could not be put back: {why}.")
            }
        });
    }
    lines.extend(drifted.iter().map(|d| drift_line(d, true)));
    if set.namespace_gone {
        lines.push(format!("Change {}: {}.", set.id, netns::GONE));
    }
    if let Some(why) = privilege::missing_to_undo(&target.host, set) {
        lines.push(format!("This process could not do it: {why}."));
    }
    let ended = done;
    done &= !drifted.iter().any(|d| d.kept);
    Reported { lines, done, ended, drifted }
}

/// A note on a knob's new name after its interface was renamed.
fn as_now(knob: &str, called: &str) -> String {
    if knob == called { String::new() } else { format!(" (now {called})") }
}

/// Line for a value that is gone together with its object.
pub fn lost_line(knob: &str, why: &str) -> String {
    format!("{knob} is gone with its value: {why}.")
}

/// External changes, each with the tuners that may have made it.
pub fn reported_of(
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

pub fn drift_line(d: &Drifted, dry_run: bool) -> String {
    let who = match d.suspects.as_slice() {
        [] => "somebody else set it since".to_owned(),
        some => format!("somebody else set it since ({} may have)", some.join(", ")),
    };
    let what = match (d.kept, dry_run) {
        (true, true) => "it would be left as it is (--force overwrites it)",
        (true, false) => "it is left as it is",
        (false, true) => "it would be overwritten",
        (false, false) => "it was overwritten",
    };
    let is = if dry_run || d.kept { "is" } else { "was" };
    let not = match d.beside.as_str() {
        "" => format!("neither ours ({}) nor the old value ({})", d.written, d.before),
        beside if d.written == d.before => {
            format!("not the old value ({}), which {beside} had left", d.before)
        }
        beside => {
            format!(
                "neither what {beside} had left ({}) nor the old value ({})",
                d.written, d.before
            )
        }
    };
    format!("{} {is} {}, {not}: {who}; {what}.", d.knob, d.found)
}

/// The command that overwrites the external changes that were left.
pub fn force_line(target: &JournalTarget, id: u64, drifted: &[Drifted]) -> Option<String> {
    let left = drifted.iter().filter(|d| d.kept).count();
    let what = if left == 1 { "it" } else { "them" };
    let options = &target.options;
    (left > 0)
        .then(|| format!("`netwright tune rollback {id} --force{options}` overwrites {what}."))
}

/// Reports the result of an undo.
pub fn came_of(
    target: &JournalTarget,
    set: &Set,
    report: &undo::Report,
    on_drift: OnDrift,
) -> Reported {
    let id = set.id;
    let whole = report.is_whole();
    let drifted = reported_of(target, id, &report.drifted, on_drift);
    let mut lines = match (whole, set.namespace_gone) {
        (true, true) => vec![format!("Change {id} is closed: {}.", netns::GONE)],
        (true, false) if drifted.iter().any(|d| d.kept) => vec![format!(
            "Change {id} is rolled back, but for what somebody else set since: every other value \
             was put back and read again."
        )],
        (true, false) if !report.lost.is_empty() => vec![format!(
            "Change {id} is rolled back: every value that is still there was put back and read again."
        )],
        (true, false) => {
            vec![format!("Change {id} is rolled back: every value was put back and read again.")]
        }
        (false, _) => vec![format!("Change {id} is not wholly rolled back.")],
    };
    lines.extend(drifted.iter().map(|d| drift_line(d, false)));
    lines.extend(force_line(target, id, &drifted));
    if Record::load(&Record::path(target.store.state()))
        .is_ok_and(|r| r.kept.iter().any(|k| k.id == id))
    {
        lines.push(format!(
            "It is still kept for the next boot; `netwright tune persist --remove {id}{}` ends that.",
            target.options
        ));
    }
    let renamed = report.renamed.iter();
    lines.extend(renamed.map(|(k, now)| format!("{k} was put back as {now}, its name now.")));
    lines.extend(report.lost.iter().map(|(knob, why)| lost_line(knob, why)));
    for (knob, why) in &report.not_restored {
        lines.push(format!("{knob} was not put back: {why}."));
    }
    if report.gone.len() < report.not_restored.len() {
        lines.push(format!(
            "`netwright tune rollback {id}{}` tries again once that is remedied.",
            target.options
        ));
    }
    if let Some(journal) = &report.journal {
        lines.push(format!(
            "The journal could not be told ({journal}); `netwright tune rollback {id}{}` closes it \
             once that is remedied.",
            target.options
        ));
    }
    let ended = whole && report.journal.is_none();
    let done = ended && !drifted.iter().any(|d| d.kept);
    Reported { lines, done, ended, drifted }
}

/// Reports a change that is in force.
pub fn in_force(target: &JournalTarget, id: u64, set: Option<&ChangeSet>) -> Vec<String> {
    let mut lines = vec![format!(
        "Change {id} is in force; `netwright tune rollback {id}{}` puts everything back.",
        target.options
    )];
    if let Some(left) = set.and_then(|s| s.confirm_within_ms.get()) {
        lines.push(format!(
            "It is undone in {} s unless `netwright tune confirm {id}{}` comes before.",
            left / 1000,
            target.options
        ));
    }
    lines
}

/// Reports a change that failed and was undone, and external changes since.
pub fn failed(
    target: &JournalTarget,
    id: u64,
    why: &TuneError,
    report: &undo::Report,
) -> (Vec<String>, Vec<Drifted>) {
    let mut lines = vec![format!("Change {id} failed: {why}.")];
    match report.not_restored.as_slice() {
        [] if !report.drifted.is_empty() => lines.push(
            "Every other value than what somebody else set since was put back and read \
             again."
                .into(),
        ),
        [] if report.lost.is_empty() => {
            lines.push("Everything was put back and read again.".into());
        }
        [] => lines.push("All that is still there was put back and read again.".into()),
        some => lines.extend(some.iter().map(|(k, why)| format!("{k} was NOT put back: {why}."))),
    }
    lines.extend(report.lost.iter().map(|(knob, why)| lost_line(knob, why)));
    let drifted = reported_of(target, id, &report.drifted, OnDrift::Leave);
    lines.extend(drifted.iter().map(|d| drift_line(d, false)));
    lines.extend(force_line(target, id, &drifted));
    if let Some(journal) = &report.journal {
        lines.push(format!(
            "The journal could not be told ({journal}); `netwright tune rollback {id}{}` \
             closes it once that is remedied.",
            target.options
        ));
    }
    (lines, drifted)
}
