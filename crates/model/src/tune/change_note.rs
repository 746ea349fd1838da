//! What became of a change that was applied, confirmed or rolled back, as values.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ChangeState, Drifted, NAMESPACE_GONE};
use crate::coded::coded;

/// A remark on the outcome of a change; `id` is its number and `command` the next command. In JSON
/// `{code, data, message}`, as a [`crate::Warning`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[serde(rename_all = "snake_case", remote = "Self")]
#[schemars(tag = "code", content = "data", transform = crate::coded::short)]
pub enum ChangeNote {
    // Applied.
    #[error("Nothing to change; nothing was written.")]
    NothingToChange,
    #[error("No change needed; nothing was written.")]
    AlreadySo,
    #[error("Change {id} is in force; `{command}` puts everything back.")]
    InForce { id: u64, command: String },
    /// `within_s` is the time that the watchdog still waits.
    #[error("It is undone in {within_s} s unless `{command}` comes before.")]
    UndoneUnlessConfirmed { within_s: u64, command: String },
    #[error("Change {id} failed: {why}.")]
    Failed { id: u64, why: String },
    #[error("{knob}: {new} would be written (it was {old}).")]
    WouldBeWritten { knob: String, old: String, new: String },
    #[error("Change {id} is written as a whole: only its end would be noted.")]
    OnlyEndMissing { id: u64 },

    // Confirmed.
    #[error(
        "Change {id} is confirmed and stays{}.",
        if *.late { "; its time was over, and its watchdog had not begun to undo it" } else { "" }
    )]
    Confirmed { id: u64, late: bool },
    #[error("Change {id} is in force already.")]
    InForceAlready { id: u64 },
    #[error("Too late: change {id} is {state}.")]
    TooLate { id: u64, state: ChangeState },
    #[error("Change {id} is {state}: it cannot be confirmed.")]
    CannotBeConfirmed { id: u64, state: ChangeState },
    /// `now` is the present value of the knob.
    #[error(
        "Too late: change {id} was undone, and its journal could not be written: {knob} is {now} again; \
         `{command}` closes it."
    )]
    UndoneUnnoted { id: u64, knob: String, now: String, command: String },

    // Rolled back, as a whole.
    #[error("No active changes; nothing was written.")]
    NoneActive,
    #[error("Nothing was interrupted; nothing was written.")]
    NoneInterrupted,
    #[error("Change {id} is rolled back: every value was put back and read again.")]
    RolledBack { id: u64 },
    #[error(
        "Change {id} is rolled back: every value that is still there was put back and read again."
    )]
    RolledBackButLost { id: u64 },
    #[error(
        "Change {id} is rolled back, except what another program set since: every other value was \
         put back and read again."
    )]
    RolledBackButSetSince { id: u64 },
    #[error("Change {id} is only partly rolled back.")]
    NotWhollyRolledBack { id: u64 },
    #[error("Change {id} is closed: {NAMESPACE_GONE}.")]
    Closed { id: u64 },
    #[error("Change {id}: {NAMESPACE_GONE}.")]
    NamespaceGone { id: u64 },
    #[error("Change {id}: the host was booted since, and nothing of it is in force.")]
    GoneWithBoot { id: u64 },
    /// `left` are the knobs that another program had set; `command` overwrites them.
    #[error(
        "Change {id} was rolled back before; nothing was written.{}",
        if .left.is_empty() { String::new() } else { format!(
            " What another program had set was left then: {}; `{command}` overwrites it.",
            .left.join(", ")
        ) }
    )]
    RolledBackBefore { id: u64, left: Vec<String>, command: String },
    #[error(
        "Change {id} at {host} {}.",
        if *.now { "is rolled back: every value was put back and read again" }
        else { "was rolled back before, or is gone with a reboot; nothing was written" }
    )]
    RolledBackAt { id: u64, host: String, now: bool },
    /// One of several changes, or all changes of an unreadable journal.
    #[error("{why}")]
    NotUndone { why: String },

    // What is put back after a failure.
    #[error("Everything was put back and read again.")]
    AllPutBack,
    #[error("All that is still there was put back and read again.")]
    AllThatIsLeftPutBack,
    #[error("Every value was put back and read again, except external changes.")]
    OthersPutBack,

    // One value.
    /// `now` is the present name of the knob, where its interface was renamed.
    #[error(
        "{knob}{} would be {old} again.",
        .now.as_ref().map_or_else(String::new, |now| format!(" (now {now})"))
    )]
    WouldBePutBack { knob: String, now: Option<String>, old: String },
    #[error("{knob} could not be put back: {why}.")]
    CannotBePutBack { knob: String, why: String },
    #[error("{knob} was not put back: {why}.")]
    NotPutBack { knob: String, why: String },
    #[error("{knob} is gone with its value: {why}.")]
    Lost { knob: String, why: String },
    #[error("{knob} was put back as {now}, its name now.")]
    PutBackAs { knob: String, now: String },
    #[error("{}", set_since(.drifted, *.dry_run))]
    SetSince { drifted: Box<Drifted>, dry_run: bool },

    // How to go on.
    #[error("`{command}` overwrites {}.", if *.values == 1 { "it" } else { "them" })]
    ForceOverwrites { command: String, values: usize },
    #[error("This process could not do it: {why}.")]
    NotPermitted { why: String },
    #[error("It is still kept for the next boot; `{command}` ends that.")]
    StillKept { command: String },
    #[error("`{command}` tries again once that is remedied.")]
    TryAgain { command: String },
    #[error(
        "The journal could not be written ({why}); `{command}` closes it once that is remedied."
    )]
    JournalNotWritten { why: String, command: String },

    /// Written by another version of this program.
    #[error("{message}")]
    Other { code: String, message: String },
}

fn set_since(d: &Drifted, dry_run: bool) -> String {
    let who = match d.suspects.as_slice() {
        [] => "another program set it since".to_owned(),
        some => format!("another program set it since (possibly {})", some.join(", ")),
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
        beside => format!(
            "neither what {beside} had left ({}) nor the old value ({})",
            d.written, d.before
        ),
    };
    format!("{} {is} {}, {not}: {who}; {what}.", d.knob, d.found)
}

coded!(ChangeNote);
