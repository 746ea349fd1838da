//! `tune apply`.

use std::{
    net::{IpAddr, Ipv4Addr, ToSocketAddrs},
    time::Duration,
};

use model::{
    Nanos,
    tune::{ChangeState, Disruption, Plan, Planned},
};
use tune::{
    Host, TuneError,
    apply::{self, Applied, Work},
    change_request::ChangeRequests,
    journal::Armed,
    mtu_path::PathCheck,
    privilege,
    session::Session,
    status,
    undo::OnDrift,
    watchdog::deadline::{self, Orders},
};

use super::{
    JournalTarget, Reported,
    args::ApplyArgs,
    back::{drift_line, force_line, lost_line, no_change, reported_of},
    by, failure, plan, standing, tell, tell_all,
};
use crate::{
    exit::{CommandEnd, Failure},
    interrupt::{self, Window},
    output::{Sink, note},
};

/// How long a confirmation is waited for when nobody says.
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
    let mut place = JournalTarget::open(std::mem::take(&mut args.place))?;
    match args.finish {
        Some(id) if args.dry_run => return dry_finish(&args, place, id),
        None if args.dry_run => return dry(&args, &place),
        _ => {}
    }
    let change_requests = args
        .finish
        .is_none()
        .then(|| plan::change_requests(&args.what, &args.profile))
        .transpose()?;
    let change_requests =
        change_requests.map(|w| ChangeRequests { understood: args.i_understand, ..w });
    let wait = args.no_wait.then_some(Duration::ZERO);
    let quiet = args.output.talk.quiet;
    let mut waiting = |text: &str| {
        if !quiet {
            note(text);
        }
    };
    let lock = match place.store.lock(wait, &mut waiting) {
        Ok(lock) => lock,
        Err(e) => return Err(failure(no_lock(&place, change_requests, e))),
    };
    // Until here Ctrl-C simply ends it, also while it waits. From here on the terminal may go away
    // in the middle, and what was begun is ended all the same.
    interrupt::ignore(libc::SIGHUP);
    let window = Window::open();
    window.changing();
    if let Some(id) = args.finish {
        // The set's own namespace, as for its undoing. Nothing else runs in this process yet.
        to_finish(&mut place, id)?;
    }
    let work = Work {
        host: &place.host,
        store: &place.store,
        lock: &lock,
        stop: window.stop(),
        link_wait: Duration::from_nanos(args.link_wait.0),
        path: PathCheck { peers: &peers, strict: !args.i_understand, tell: &|text| note(text) },
    };
    let Some(change_requests) = change_requests else {
        let applied = finish(&args, &place, &work)?;
        return conclude(&args, &place, applied);
    };
    nothing_pending(&place)?;
    let (by_name, of_findings) = (change_requests.by_name(), change_requests.found_on.is_some());
    let (plan, _) = plan::make(&place.host, change_requests)?;
    if by_name && !plan.refused.is_empty() {
        return plan::all_refused(&plan);
    }
    if !quiet {
        for r in &plan.refused {
            note(&format!("left out ({}): {}={}: {}", r.asked_by, r.knob, r.new, r.why));
        }
    }
    plan::whole(&plan, of_findings).map_err(failure)?;
    if plan.changes.is_empty() {
        drop(lock);
        tell(&args.output, None, true, vec![nothing(&plan).into()])?;
        return Ok(CommandEnd::Yes);
    }
    privilege::check(&place.host, &plan.changes).map_err(failure)?;
    if !quiet {
        plan.notes.iter().for_each(|n| note(&n.to_string()));
    }
    let applied = apply(&args, &place, &work, &plan)?;
    drop(lock);
    conclude(&args, &place, applied)
}

/// The IPv4 addresses of the hosts that a raised MTU must reach.
fn peers(names: &[String]) -> Result<Vec<Ipv4Addr>, Failure> {
    let one = |name: &String| {
        let found = (name.as_str(), 0).to_socket_addrs().ok();
        let mut found = found.into_iter().flatten().filter_map(|a| match a.ip() {
            IpAddr::V4(v4) => Some(v4),
            IpAddr::V6(_) => None,
        });
        found.next().ok_or_else(|| {
            Failure::Environment(format!("--peer {name}: no IPv4 address of that name is known"))
        })
    };
    names.iter().map(one).collect()
}

/// Whoever may not keep a journal is told at once what else is missing.
fn no_lock(
    place: &JournalTarget,
    change_requests: Option<ChangeRequests>,
    e: TuneError,
) -> TuneError {
    let TuneError::Denied(why) = &e else { return e };
    let plan = change_requests.and_then(|w| plan::make(&place.host, w).ok());
    match plan.and_then(|(p, _)| privilege::missing(&place.host, &p.changes)) {
        Some(more) => TuneError::Denied(format!("{why}; {more}; nothing was written")),
        None => e,
    }
}

fn nothing(plan: &Plan) -> &'static str {
    match plan.unchanged.is_empty() {
        true => "Nothing to change; nothing was written.",
        false => "All is so already; nothing was written.",
    }
}

fn dry(args: &ApplyArgs, place: &JournalTarget) -> Result<CommandEnd, Failure> {
    nothing_pending(place)?;
    let mut change_requests = plan::change_requests(&args.what, &args.profile)?;
    change_requests.understood = args.i_understand;
    let by_name = change_requests.by_name();
    let (plan, _) = plan::make(&place.host, change_requests)?;
    let sink = Sink::new(args.output.output.clone());
    if args.output.json {
        sink.json(&plan)?;
    } else {
        sink.text(&report::tune::plan(&plan, sink.look(args.output.talk.verbose)))?;
    }
    privilege::check(&place.host, &plan.changes).map_err(failure)?;
    plan::answer(&plan, by_name)
}

/// What completing would write.
fn dry_finish(args: &ApplyArgs, mut place: JournalTarget, id: u64) -> Result<CommandEnd, Failure> {
    if place.store.is_locked().map_err(failure)? {
        return Err(Failure::Environment("somebody is changing this host right now".into()));
    }
    to_finish(&mut place, id)?;
    let set = place.store.set(id).map_err(failure)?;
    let Some(set) = set else { return Err(no_change(&place, id)) };
    let left = apply::to_finish(&place.host, &set).map_err(failure)?;
    apply::still_so(&place.host, &set).map_err(failure)?;
    let line = |c: &Planned| format!("{}: {} would be written (it was {}).", c.knob, c.new, c.old);
    let lines = match left.as_slice() {
        [] => vec![format!("Change {id} is written as a whole: only its end would be noted.")],
        left => left.iter().map(line).collect(),
    };
    tell(&args.output, standing(&place, id), true, lines)?;
    Ok(CommandEnd::Yes)
}

/// One change set at a time: what was interrupted or waits comes first.
fn nothing_pending(place: &JournalTarget) -> Result<(), Failure> {
    let (sets, damaged) = status::standing(&place.host, &place.store).map_err(failure)?;
    if let Some(damaged) = damaged.first() {
        return Err(Failure::Environment(damaged.clone()));
    }
    let pending = |s: &ChangeState| {
        matches!(
            s,
            ChangeState::Unfinished | ChangeState::AwaitingConfirmation | ChangeState::InProgress
        )
    };
    match sets.iter().find(|(s, state)| pending(state) || (!s.applied && status::is_open(*state))) {
        None => Ok(()),
        Some((s, ChangeState::AwaitingConfirmation)) => Err(Failure::Environment(format!(
            "change {0} waits for a confirmation; `netwright tune confirm {0}{1}` or `rollback \
             {0}{1}` first",
            s.id, place.options
        ))),
        Some((s, _)) if s.trial.is_some() => Err(Failure::Environment(format!(
            "{} was interrupted, and change {} of it is left; `netwright tune rollback \
             --unfinished{}` first",
            s.trial.as_deref().unwrap_or_default(),
            s.id,
            place.options
        ))),
        Some((s, _)) => Err(Failure::Environment(format!(
            "change {0} was interrupted; `netwright tune rollback {0}{1}` or `apply --finish {0}{1}` \
             first",
            s.id, place.options
        ))),
    }
}

fn apply(
    args: &ApplyArgs,
    place: &JournalTarget,
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
    work.apply(plan, by, Some(&mut guard_for(place, wait, maker))).map_err(failure)
}

/// Completes what was interrupted: with a watchdog where it had one, and where the operator's connection, which
/// may be another one by now, may not come through.
fn finish(args: &ApplyArgs, place: &JournalTarget, work: &Work<'_>) -> Result<Applied, Failure> {
    let id = args.finish.unwrap_or_default();
    let by = by(&place.host)?;
    let set = place.store.set(id).map_err(failure)?;
    let had_one = set.as_ref().is_some_and(|s| s.armed.is_some());
    if had_one && args.no_confirm {
        return Err(Failure::Usage(format!(
            "--no-confirm: change {id} was begun with a watchdog and is completed with one; `netwright tune \
             confirm {id}{}` then ends that",
            place.options
        )));
    }
    let disturbs =
        || set.iter().flat_map(|s| &s.changes).any(|c| c.impact.disruption > Disruption::None);
    let wanted = had_one || !args.no_confirm && disturbs() && is_afar(&place.host);
    let Some(wait) = args.confirm.or(wanted.then_some(CONFIRM)) else {
        return work.finish(id, None).map_err(failure);
    };
    let maker = (by.pid, by.start_ticks);
    work.finish(id, Some(&mut guard_for(place, wait, maker))).map_err(failure)
}

/// Whether the operator works over a connection that ends here.
fn is_afar(host: &Host) -> bool {
    let facts = plan::facts(host, &ChangeRequests::default());
    let ssh = std::env::var("SSH_CONNECTION").ok();
    Session::find(host.root(), &facts, ssh.as_deref()).remote.is_some()
}

/// Starts a watchdog that undoes after so long.
fn guard_for(
    place: &JournalTarget,
    wait: Nanos,
    maker: (u32, u64),
) -> impl FnMut(u64) -> Result<Armed, TuneError> {
    move |id| {
        let deadline_boot_ms = deadline::boot_ms() + wait.0 / 1_000_000;
        let orders = Orders { id, deadline_boot_ms, maker };
        deadline::arm(&place.store, &orders, place.tree.as_deref())
    }
}

/// Goes where a set that was interrupted was made, if it can be completed.
fn to_finish(place: &mut JournalTarget, id: u64) -> Result<(), Failure> {
    let (sets, _) = status::standing(&place.host, &place.store).map_err(failure)?;
    match sets.iter().find(|(s, _)| s.id == id) {
        None => Err(no_change(place, id)),
        // Our own lock makes it look as if somebody were at work.
        Some((s, ChangeState::Unfinished | ChangeState::InProgress)) if !s.undoing => {
            match super::back::go_there(place, s)? {
                false => Ok(()),
                true => Err(Failure::Environment(format!(
                    "change {id}: {}; `netwright tune rollback {id}{}` closes it",
                    tune::netns::GONE,
                    place.options
                ))),
            }
        }
        Some((_, state)) => {
            Err(Failure::Usage(format!("change {id} is {state}: there is nothing to complete")))
        }
    }
}

/// Tells how it ended.
fn conclude(
    args: &ApplyArgs,
    place: &JournalTarget,
    applied: Applied,
) -> Result<CommandEnd, Failure> {
    match applied {
        Applied::Whole(id) => {
            let set = standing(place, id);
            let mut lines = vec![format!(
                "Change {id} is in force; `netwright tune rollback {id}{}` puts everything back.",
                place.options
            )];
            if let Some(left) = set.as_ref().and_then(|s| s.confirm_within_ms.get()) {
                lines.push(format!(
                    "It is undone in {} s unless `netwright tune confirm {id}{}` comes before.",
                    left / 1000,
                    place.options
                ));
            }
            tell(&args.output, set, true, lines)?;
            Ok(CommandEnd::Yes)
        }
        Applied::Undone { id, why, report } => {
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
                some => lines
                    .extend(some.iter().map(|(k, why)| format!("{k} was NOT put back: {why}."))),
            }
            lines.extend(report.lost.iter().map(|(knob, why)| lost_line(knob, why)));
            let drifted = reported_of(place, id, &report.drifted, OnDrift::Leave);
            lines.extend(drifted.iter().map(|d| drift_line(d, false)));
            lines.extend(force_line(place, id, &drifted));
            if let Some(journal) = &report.journal {
                lines.push(format!(
                    "The journal could not be told ({journal}); `netwright tune rollback {id}{}` \
                     closes it once that is remedied.",
                    place.options
                ));
            }
            let text = lines.join(" ");
            if args.output.json {
                let set = standing(place, id).into_iter().collect();
                tell_all(&args.output, set, Reported { lines, drifted, ..Reported::default() })?;
            }
            Err(match why {
                TuneError::Denied(_) => Failure::Denied(text),
                _ => Failure::Environment(text),
            })
        }
    }
}
