//! `netwright tune apply`: makes the changes of a plan, or completes an interrupted change.

use std::time::Duration;

use model::{
    Nanos,
    tune::{ChangeNote, Disruption, Plan, Planned},
};
use tune::{
    TuneError,
    apply::{self, Applied, Applier},
    author,
    change_request::ChangeRequests,
    mtu_path::PathCheck,
    operator::Operator,
    pending::{self, is_remote_session, nothing_pending, peers, to_finish, watchdog_for},
    planner, privilege,
    target::JournalTarget,
    undo_result::{self, UndoResult},
};

use super::{args::ApplyArgs, outcome, plan, sentences, tell, tell_all};
use crate::{
    answered,
    failure::{CommandEnd, Failure},
    interrupt,
    output::{Answer, Sink, note},
    session::{Listener, Session},
};

/// The default time to wait for a confirmation.
const CONFIRM: Nanos = Nanos(60_000_000_000);
const SHORTEST: Nanos = Nanos(1_000_000_000);
const LONGEST: Nanos = Nanos(3_600_000_000_000);

/// Makes the changes of a plan.
pub fn run(mut args: ApplyArgs) -> Result<CommandEnd, Failure> {
    Sink::new(args.output.output.clone()).check()?;
    if let Some(asked) = args.confirm.filter(|c| !(SHORTEST..=LONGEST).contains(c)) {
        return Err(Failure::Usage(format!("--confirm {asked}: from 1s to 1h")));
    }
    if !(SHORTEST..=LONGEST).contains(&args.link_wait) {
        return Err(Failure::Usage(format!("--link-wait {}: from 1s to 1h", args.link_wait)));
    }
    let peers = peers(&args.peer)?;
    let mut target = JournalTarget::open(std::mem::take(&mut args.place).into())?;
    match args.finish {
        Some(id) if args.dry_run => return dry_finish(&args, target, id),
        None if args.dry_run => return dry(&args, &target),
        _ => {}
    }
    let change_requests = args
        .finish
        .is_none()
        .then(|| plan::change_requests(&args.what, &args.profile))
        .transpose()?;
    let change_requests =
        change_requests.map(|w| ChangeRequests { understood: args.i_understand, ..w });
    let listener = Listener { quiet: args.output.talk.quiet };
    let lock = match target.lock(args.wait.no_wait, &listener) {
        Ok(lock) => lock,
        Err(e) => return Err(pending::no_lock(&target, change_requests, e).into()),
    };
    // Until here Ctrl-C ends the command, also while it waits for the lock. From here on a hangup
    // is ignored, and the change is completed.
    interrupt::ignore(libc::SIGHUP);
    let session = Session::open(&args.output.talk);
    session.changing();
    if let Some(id) = args.finish {
        // Enters the namespace of the change set, as its rollback does. No other thread runs yet.
        to_finish(&mut target, id)?;
    }
    let work = Applier {
        host: &target.host,
        store: &target.store,
        lock: &lock,
        stop: session.stop(),
        link_wait: Duration::from_nanos(args.link_wait.0),
        path: PathCheck { peers: &peers, strict: !args.i_understand, tell: &|text| note(text) },
    };
    let Some(change_requests) = change_requests else {
        let applied = finish(&args, &target, &work)?;
        return conclude(&args, &target, applied);
    };
    nothing_pending(&target)?;
    let (by_name, of_findings) = (change_requests.by_name(), change_requests.found_on.is_some());
    let (plan, _) = planner::make(&target.host, change_requests)?;
    if by_name && !plan.refused.is_empty() {
        return plan::all_refused(&plan);
    }
    for r in &plan.refused {
        session.note(&format!("left out ({}): {}={}: {}", r.asked_by, r.knob, r.new, r.why));
    }
    planner::whole(&plan, of_findings)?;
    if plan.changes.is_empty() {
        drop(lock);
        tell(&args.output, None, true, vec![nothing(&plan)])?;
        return Ok(CommandEnd::Yes);
    }
    privilege::check(&target.host, &plan.changes)?;
    plan.notes.iter().for_each(|n| session.note(&n.to_string()));
    let applied = apply(&args, &target, &work, &plan)?;
    drop(lock);
    conclude(&args, &target, applied)
}

fn nothing(plan: &Plan) -> ChangeNote {
    match plan.unchanged.is_empty() {
        true => ChangeNote::NothingToChange,
        false => ChangeNote::AlreadySo,
    }
}

fn dry(args: &ApplyArgs, target: &JournalTarget) -> Result<CommandEnd, Failure> {
    nothing_pending(target)?;
    let mut change_requests = plan::change_requests(&args.what, &args.profile)?;
    change_requests.understood = args.i_understand;
    let by_name = change_requests.by_name();
    let (plan, _) = planner::make(&target.host, change_requests)?;
    Answer::to(&args.output)?.tell(&plan, report::tune::plan)?;
    privilege::check(&target.host, &plan.changes)?;
    plan::answer(&plan, by_name)
}

/// What completing the change would write.
fn dry_finish(args: &ApplyArgs, mut target: JournalTarget, id: u64) -> Result<CommandEnd, Failure> {
    if target.store.is_locked()? {
        return Err(Failure::Environment(
            "another netwright is changing this host right now".into(),
        ));
    }
    to_finish(&mut target, id)?;
    let set = target.store.set(id)?;
    let Some(set) = set else { return Err(target.no_change(id).into()) };
    let left = apply::to_finish(&target.host, &set)?;
    apply::still_so(&target.host, &set)?;
    let one = |c: &Planned| ChangeNote::WouldBeWritten {
        knob: c.knob.clone(),
        old: c.old.to_string(),
        new: c.new.to_string(),
    };
    let notes = match left.as_slice() {
        [] => vec![ChangeNote::OnlyEndMissing { id }],
        left => left.iter().map(one).collect(),
    };
    tell(&args.output, target.standing(id), true, notes)?;
    Ok(CommandEnd::Yes)
}

fn apply(
    args: &ApplyArgs,
    target: &JournalTarget,
    work: &Applier<'_>,
    plan: &Plan,
) -> Result<Applied, Failure> {
    let by = author::this_process(&target.host)?;
    let maker = (by.pid, by.start_ticks);
    let wanted = match args.confirm {
        Some(asked) => Some(asked),
        None if args.no_confirm => None,
        None => plan.reaches_operator().then_some(CONFIRM),
    };
    let Some(wait) = wanted else { return work.apply(plan, by, None).map_err(Failure::from) };
    work.apply(plan, by, Some(&mut watchdog_for(target, wait, maker))).map_err(Failure::from)
}

/// Completes an interrupted change. It gets a watchdog where it had one, and where it may cut the
/// operator's connection, which may be a new one.
fn finish(
    args: &ApplyArgs,
    target: &JournalTarget,
    work: &Applier<'_>,
) -> Result<Applied, Failure> {
    let id = args.finish.unwrap_or_default();
    let by = author::this_process(&target.host)?;
    let set = target.store.set(id)?;
    let had_one = set.as_ref().is_some_and(|s| s.armed.is_some());
    if had_one && args.no_confirm {
        return Err(Failure::Usage(format!(
            "--no-confirm: change {id} was begun with a watchdog and is completed with one; `netwright tune \
             confirm {id}{}` then ends that",
            target.options
        )));
    }
    let disturbs =
        || set.iter().flat_map(|s| &s.changes).any(|c| c.impact.disruption > Disruption::None);
    let wanted = had_one || !args.no_confirm && disturbs() && is_remote_session(&target.host);
    let Some(wait) = args.confirm.or(wanted.then_some(CONFIRM)) else {
        return work.finish(id, None).map_err(Failure::from);
    };
    let maker = (by.pid, by.start_ticks);
    work.finish(id, Some(&mut watchdog_for(target, wait, maker))).map_err(Failure::from)
}

/// Prints how the change ended, and returns the exit code.
fn conclude(
    args: &ApplyArgs,
    target: &JournalTarget,
    applied: Applied,
) -> Result<CommandEnd, Failure> {
    match applied {
        Applied::Whole(id) => {
            let set = target.standing(id);
            let notes = undo_result::in_force(target, id, set.as_ref());
            tell(&args.output, set, true, notes)?;
            Ok(CommandEnd::Yes)
        }
        Applied::Undone { id, why, report } => {
            let (notes, drifted) = undo_result::failed(target, id, &why, &report);
            let text = sentences(&notes);
            let set = target.standing(id).into_iter().collect();
            let reported = UndoResult { notes, drifted, ..UndoResult::default() };
            match args.output.json {
                true => tell_all(&args.output, set, reported)?,
                false => answered::document(&outcome(set, reported)),
            }
            Err(match why {
                TuneError::Denied(_) => Failure::Denied(text),
                _ => Failure::Environment(text),
            })
        }
    }
}
