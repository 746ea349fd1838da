//! `tune apply`.

use std::time::Duration;

use model::{
    Nanos,
    tune::{Plan, State},
};
use tune::{
    TuneError,
    apply::{Applied, Work},
    guard::{self, Orders},
    journal::Armed,
    lock::Lock,
    status,
    wish::Wishes,
};

use super::{Place, args::ApplyArgs, by, failure, plan, standing, tell};
use crate::{
    exit::{Done, Failure},
    interrupt::Window,
    output::{Sink, note},
};

/// How long a confirmation is waited for when nobody says.
const CONFIRM: Nanos = Nanos(60_000_000_000);
const SHORTEST: Nanos = Nanos(1_000_000_000);
const LONGEST: Nanos = Nanos(3_600_000_000_000);

/// Makes the changes of a plan.
pub fn run(mut args: ApplyArgs) -> Result<Done, Failure> {
    Sink::new(args.output.output.clone()).check()?;
    if let Some(asked) = args.confirm.filter(|c| !(SHORTEST..=LONGEST).contains(c)) {
        return Err(Failure::Usage(format!("--confirm {asked}: from 1s to 1h")));
    }
    if !(SHORTEST..=LONGEST).contains(&args.link_wait) {
        return Err(Failure::Usage(format!("--link-wait {}: from 1s to 1h", args.link_wait)));
    }
    let place = Place::open(std::mem::take(&mut args.place))?;
    if args.dry_run {
        return dry(&args, &place);
    }
    let wishes =
        args.finish.is_none().then(|| plan::wishes(&args.what, &args.profile)).transpose()?;
    let wishes = wishes.map(|w| Wishes { understood: args.i_understand, ..w });
    let wait = args.no_wait.then_some(Duration::ZERO);
    let quiet = args.output.talk.quiet;
    let mut waiting = |text: &str| {
        if !quiet {
            note(&format!("netwright: {text}"));
        }
    };
    let lock = place.store.lock(wait, &mut waiting).map_err(failure)?;
    // Until here Ctrl-C simply ends it, also while it waits. From here on the terminal may go away
    // in the middle, and what was begun is ended all the same.
    // SAFETY: ignoring a signal touches no memory of ours.
    unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
    let window = Window::open();
    let work = Work {
        host: &place.host,
        store: &place.store,
        lock: &lock,
        stop: window.stop(),
        link_wait: Duration::from_nanos(args.link_wait.0),
    };
    let Some(wishes) = wishes else { return finish(&args, &place, &work, lock_of(&work)) };
    nothing_pending(&place)?;
    let by_name = wishes.by_name();
    let (plan, _) = plan::make(&place.host, wishes)?;
    if by_name && !plan.refused.is_empty() {
        return plan::worst(&plan);
    }
    if !quiet {
        for r in &plan.refused {
            note(&format!("netwright: left out ({}): {}={}: {}", r.asked_by, r.knob, r.new, r.why));
        }
    }
    plan::whole(&plan).map_err(failure)?;
    if plan.changes.is_empty() {
        drop(lock);
        tell(&args.output, None, true, vec!["All is so already; nothing was written.".into()])?;
        return Ok(Done::Yes);
    }
    let applied = apply(&args, &place, &work, &plan)?;
    drop(lock);
    conclude(&args, &place, applied)
}

fn lock_of<'w>(work: &'w Work<'_>) -> &'w Lock {
    work.lock
}

fn dry(args: &ApplyArgs, place: &Place) -> Result<Done, Failure> {
    nothing_pending(place)?;
    let mut wishes = plan::wishes(&args.what, &args.profile)?;
    wishes.understood = args.i_understand;
    let by_name = wishes.by_name();
    let (plan, _) = plan::make(&place.host, wishes)?;
    let sink = Sink::new(args.output.output.clone());
    if args.output.json {
        sink.json(&plan)?;
    } else {
        sink.text(&report::tune::plan(&plan, sink.look(args.output.talk.verbose)))?;
    }
    plan::answer(&plan, by_name)
}

/// One change set at a time: what was cut short or waits comes first.
fn nothing_pending(place: &Place) -> Result<(), Failure> {
    let (sets, damaged) = status::standing(&place.host, &place.store);
    if let Some(damaged) = damaged.first() {
        return Err(Failure::Environment(damaged.clone()));
    }
    let pending = |s: &State| {
        matches!(s, State::Unfinished | State::AwaitingConfirmation | State::InProgress)
    };
    match sets.iter().find(|(s, state)| pending(state) || (!s.applied && status::is_open(*state))) {
        None => Ok(()),
        Some((s, State::AwaitingConfirmation)) => Err(Failure::Environment(format!(
            "change {0} waits for a confirmation; `netwright tune confirm {0}` or `rollback {0}` first",
            s.id
        ))),
        Some((s, _)) if s.trial.is_some() => Err(Failure::Environment(format!(
            "{} was cut short, and change {} of it is left; `netwright tune rollback \
             --unfinished` first",
            s.trial.as_deref().unwrap_or_default(),
            s.id
        ))),
        Some((s, _)) => Err(Failure::Environment(format!(
            "change {0} was cut short; `netwright tune rollback {0}` or `apply --finish {0}` first",
            s.id
        ))),
    }
}

fn apply(
    args: &ApplyArgs,
    place: &Place,
    work: &Work<'_>,
    plan: &Plan,
) -> Result<Applied, Failure> {
    let by = by(&place.host)?;
    let maker = (by.pid, by.start_ticks);
    let wanted = match args.confirm {
        Some(asked) => Some(asked),
        None if args.no_confirm => None,
        None => plan.reaches_operator().then_some(CONFIRM),
    };
    let Some(wait) = wanted else { return work.apply(plan, by, None).map_err(failure) };
    let mut arm = |id| -> Result<Armed, TuneError> {
        let deadline_boot_ms = guard::boot_ms() + wait.0 / 1_000_000;
        let orders = Orders { id, deadline_boot_ms, maker };
        guard::arm(&place.store, &orders, place.tree.as_deref())
    };
    work.apply(plan, by, Some(&mut arm)).map_err(failure)
}

fn finish(args: &ApplyArgs, place: &Place, work: &Work<'_>, _: &Lock) -> Result<Done, Failure> {
    let id = args.finish.unwrap_or_default();
    let (sets, _) = status::standing(&place.host, &place.store);
    match sets.iter().find(|(s, _)| s.id == id) {
        None => Err(Failure::Usage(format!("there is no change {id}"))),
        // Our own lock makes it look as if somebody were at work.
        Some((s, State::Unfinished | State::InProgress)) if !s.undoing => {
            super::back::same_place(place, s)?;
            let applied = work.finish(id).map_err(failure)?;
            conclude(args, place, applied)
        }
        Some((_, state)) => {
            Err(Failure::Usage(format!("change {id} is {state}: there is nothing to complete")))
        }
    }
}

/// Tells how it ended.
fn conclude(args: &ApplyArgs, place: &Place, applied: Applied) -> Result<Done, Failure> {
    match applied {
        Applied::Whole(id) => {
            let set = standing(place, id);
            let mut lines = vec![format!(
                "Change {id} is in force; `netwright tune rollback {id}` puts everything back."
            )];
            if let Some(left) = set.as_ref().and_then(|s| s.confirm_within_ms.get()) {
                lines.push(format!(
                    "It is undone in {} s unless `netwright tune confirm {id}` comes before.",
                    left / 1000
                ));
            }
            tell(&args.output, set, true, lines)?;
            Ok(Done::Yes)
        }
        Applied::Undone { id, why, report } => {
            let mut lines = vec![format!("Change {id} failed: {why}.")];
            match report.not_restored.as_slice() {
                [] => lines.push("Everything was put back and read again.".into()),
                some => lines
                    .extend(some.iter().map(|(k, why)| format!("{k} was NOT put back: {why}."))),
            }
            if let Some(journal) = &report.journal {
                lines.push(format!(
                    "The journal could not be told ({journal}); `netwright tune rollback {id}` \
                     closes it once that is remedied."
                ));
            }
            let text = lines.join(" ");
            if args.output.json {
                tell(&args.output, standing(place, id), false, lines)?;
            }
            Err(match why {
                TuneError::Denied(_) => Failure::Denied(text),
                _ => Failure::Environment(text),
            })
        }
    }
}
