//! `tune rollback` and `tune confirm`.

use std::time::Duration;

use model::tune::{ChangeSet, ChangeState, Drifted, Event, HostId, Saved};
use probe::facts::{self, Request};
use tune::{
    Host, TuneError, confirm, drift,
    journal::Set,
    leftover,
    lock::Lock,
    netns::{self, NamespaceSearch},
    privilege,
    status::{self, Standing},
    undo::{self, OnDrift, Outlook},
};

use super::{
    JournalTarget, Reported,
    args::{ConfirmArgs, RollbackArgs},
    failure, standing, tell, tell_all,
};
use crate::{
    commands::peer::local::PeerEnd,
    exit::{CommandEnd, Failure},
    interrupt,
    output::{Sink, note},
};

pub(super) fn lock(place: &JournalTarget, no_wait: bool, quiet: bool) -> Result<Lock, Failure> {
    let mut waiting = |text: &str| {
        if !quiet {
            note(text);
        }
    };
    place.store.lock(no_wait.then_some(Duration::ZERO), &mut waiting).map_err(failure)
}

/// A set belongs to a network namespace, and is undone there.
pub fn same_place(place: &JournalTarget, set: &Set) -> Result<(), Failure> {
    let here = place.host.id();
    if set.host.machine_id.known() != here.machine_id.known() {
        return Err(Failure::Environment(format!("change {} was made on another host", set.id)));
    }
    if set.is_of(&here) {
        return Ok(());
    }
    let number = |id: &HostId| id.net_namespace.known().map(u64::to_string).unwrap_or_default();
    Err(Failure::Environment(format!(
        "change {} was made in network namespace {}, and this is {}: run it there (ip netns exec, \
         nsenter --net)",
        set.id,
        number(&set.host),
        number(&here)
    )))
}

/// Goes to the network namespace that a set was made in; whether that is gone.
pub(super) fn go_there(place: &mut JournalTarget, set: &Set) -> Result<bool, Failure> {
    let here = place.host.id();
    let away = !netns::same(&set.host, &here);
    let machine = set.host.machine_id.known() == here.machine_id.known();
    // Of what is not begun yet, too: it may be to be completed.
    let needs = set.changes.iter().any(|c| netns::is_of_namespace(&c.knob));
    let Some(then) = set.host.net_namespace.get().filter(|_| away && machine && needs) else {
        // What is the whole host's can be put back from anywhere.
        return if machine && !needs { Ok(false) } else { same_place(place, set).map(|()| false) };
    };
    match netns::again(then, set.host.net_cookie.get()) {
        NamespaceSearch::There(namespace) => {
            place.host = Host::from(&namespace).map_err(failure)?;
            Ok(false)
        }
        NamespaceSearch::Gone => Ok(true),
        NamespaceSearch::Unknown => same_place(place, set).map(|()| false),
    }
}

/// Sets as they stand, with the lock in our own hand: nobody else is at work.
/// The journal files that make no sense are in the second list.
fn sets(place: &JournalTarget) -> Result<Standing, Failure> {
    let boot = place.host.id().boot_id;
    let (sets, damaged) = place.store.sets().map_err(failure)?;
    let state = |s: Set| {
        let state = s.state(boot.known(), false);
        (s, state)
    };
    Ok((sets.into_iter().map(state).collect(), damaged))
}

/// The same where the others do: what makes no sense is told by the way.
pub(super) fn readable(place: &JournalTarget) -> Result<Vec<(Set, ChangeState)>, Failure> {
    let (sets, damaged) = sets(place)?;
    damaged.iter().for_each(|d| note(d));
    Ok(sets)
}

/// Of a change that is not among those that can be read.
pub(super) fn no_change(place: &JournalTarget, id: u64) -> Failure {
    match place.store.ids().map(|ids| (ids.contains(&id), place.store.set(id))) {
        Ok((true, Err(why))) | Err(why) => failure(why),
        Ok(_) => Failure::Usage(format!("there is no change {id}")),
    }
}

/// Puts back what changes wrote.
pub fn rollback(args: RollbackArgs) -> Result<CommandEnd, Failure> {
    Sink::new(args.output.output.clone()).check()?;
    if let Some(name) = &args.peer.responder {
        return afar(name, &args);
    }
    let mut place = JournalTarget::open(args.place.clone())?;
    if place.store.ids().map_err(failure)?.is_empty() {
        return nothing(&args);
    }
    interrupt::ignore(libc::SIGHUP);
    let lock = match args.dry_run {
        // Nothing is written: whoever may read the journal may ask.
        true => None,
        false => Some(lock_to_undo(&mut place, &args)?),
    };
    let (mut open, damaged) = sets(&place)?;
    let chosen = chosen(&args, &place.host, &open);
    if chosen.is_empty() {
        close_leftovers(&place, lock.as_ref());
        // What cannot be read may be what was meant.
        return match damaged.is_empty() {
            true => nothing(&args),
            false => Err(Failure::Environment(damaged.join("; "))),
        };
    }
    let (chosen, beneath) = not_beneath_newer(&place, chosen)?;
    let mut reported = Reported { done: true, ..Reported::default() };
    match args.all || args.unfinished {
        // They may have been meant too, and are not put back.
        true => reported.fail(damaged),
        false => damaged.iter().for_each(|d| note(d)),
    }
    reported.fail(beneath.into_iter().collect());
    let many = chosen.len() > 1;
    // What would be undone before, where nothing is.
    let mut later: Vec<Set> = Vec::new();
    for (set, state) in &chosen {
        let mut one = match one(&mut place, lock.as_ref(), (set, *state), (&open, &later), &args) {
            // The others are put back, whatever becomes of one.
            Err(e) if many => Reported { lines: vec![e.to_string()], ..Reported::default() },
            one => one?,
        };
        // What is undone is in nobody's way any more, nor is what somebody else set since.
        if one.ended {
            open.retain(|(s, _)| s.id != set.id);
            later.push(set.clone());
        }
        reported.done &= one.done;
        reported.lines.append(&mut one.lines);
        reported.drifted.append(&mut one.drifted);
    }
    close_leftovers(&place, lock.as_ref());
    drop(lock);
    let ids = chosen.iter().map(|(s, _)| s.id);
    let stand: Vec<ChangeSet> = ids.filter_map(|id| standing(&place, id)).collect();
    let done = reported.done;
    tell_all(&args.output, stand, reported)?;
    Ok(if done { CommandEnd::Yes } else { CommandEnd::No })
}

/// Changes that can be undone, and why the others cannot.
type Parted = (Vec<(Set, ChangeState)>, Option<String>);

/// Parts the changes that can be undone from those that a newer netwright's may lie over; a line for these.
///
/// # Errors
/// Where none can be undone.
fn not_beneath_newer(
    place: &JournalTarget,
    chosen: Vec<(Set, ChangeState)>,
) -> Result<Parted, Failure> {
    let writes = |t: ChangeState| !matches!(t, ChangeState::RolledBack | ChangeState::GoneWithBoot);
    // The last one is over all of them.
    let mut last = None;
    let (mut beneath, mut free) = (Vec::new(), Vec::new());
    for (set, state) in chosen {
        match place.store.newer_after(set.id).map_err(failure)?.filter(|_| writes(state)) {
            Some(newer) => {
                last.get_or_insert(newer);
                beneath.push((set, state));
            }
            None => free.push((set, state)),
        }
    }
    let Some(last) = last else { return Ok((free, None)) };
    let ids: Vec<String> = beneath.iter().map(|(s, _)| s.id.to_string()).collect();
    let why = format!(
        "change {last} was made later by a newer netwright and may have set the same as change {}: roll \
         that back first, with that one (and then these with it too)",
        ids.join(", ")
    );
    if free.is_empty() { Err(Failure::Environment(why)) } else { Ok((free, Some(why))) }
}

/// Tells the journal of what is left of no change any more; what it could not be told is there the next time.
fn close_leftovers(place: &JournalTarget, lock: Option<&Lock>) {
    let Some(lock) = lock else { return };
    let closed = sets(place).map_err(|e| e.to_string()).and_then(|(all, _)| {
        leftover::close(&place.host, &place.store, lock, &all).map_err(|e| e.to_string())
    });
    if let Err(e) = closed {
        note(&format!("what is no longer left could not be noted: {e}"));
    }
}

/// The lock. Whoever may not write the journal is told at once what else is missing.
fn lock_to_undo(place: &mut JournalTarget, args: &RollbackArgs) -> Result<Lock, Failure> {
    let e = match lock(place, args.no_wait, args.output.talk.quiet) {
        Err(Failure::Denied(why)) => why,
        other => return other,
    };
    let open = sets(place).map(|(open, _)| open).unwrap_or_default();
    let missing = chosen(args, &place.host, &open).into_iter().find_map(|(set, _)| {
        let here = go_there(place, &set).is_ok();
        here.then(|| privilege::missing_to_undo(&place.host, &set)).flatten()
    });
    let more = missing.map(|m| format!("; {m}")).unwrap_or_default();
    Err(Failure::Denied(format!("{e}{more}; nothing was written")))
}

fn one(
    place: &mut JournalTarget,
    lock: Option<&Lock>,
    (set, state): (&Set, ChangeState),
    (sets, later): (&[(Set, ChangeState)], &[Set]),
    args: &RollbackArgs,
) -> Result<Reported, Failure> {
    let id = set.id;
    let all_is_well =
        |line: String| Ok(Reported { lines: vec![line], done: true, ended: true, drifted: vec![] });
    let overwrites = args.force && !set.as_found.is_empty();
    match state {
        ChangeState::RolledBack if !overwrites => {
            let left: Vec<&str> = set.as_found.keys().map(String::as_str).collect();
            let left = match left.as_slice() {
                [] => String::new(),
                some => format!(
                    " What somebody else had set was left then: {}; `netwright tune rollback {id} \
                     --force{}` overwrites it.",
                    some.join(", "),
                    place.options
                ),
            };
            return all_is_well(format!(
                "Change {id} was rolled back before; nothing was written.{left}"
            ));
        }
        ChangeState::GoneWithBoot => {
            if let Some(lock) = lock.filter(|_| !set.gone) {
                let mut journal = place.store.resume(id, lock).map_err(failure)?;
                journal.sync(Event::GoneWithBoot).map_err(failure)?;
            }
            let text = "the host was booted since, and nothing of it is in force";
            return all_is_well(format!("Change {id}: {text}."));
        }
        _ => {}
    }
    let gone = go_there(place, set)?;
    let on_drift = if args.force { OnDrift::Overwrite } else { OnDrift::Leave };
    let mut set = if args.force { set.clone().with_what_was_left() } else { set.clone() };
    not_overwritten(&set, sets)?;
    set.namespace_gone |= gone;
    let Some(lock) = lock else { return Ok(would_be(place, &set, later, on_drift)) };
    privilege::check_undo(&place.host, &set).map_err(failure)?;
    let mut journal = place.store.resume_to_undo(id, lock).map_err(failure)?;
    if gone {
        journal.sync(Event::NamespaceGone).map_err(failure)?;
    }
    let report = undo::with(&place.host, &mut journal, &set, undo::ASKED, on_drift);
    Ok(came_of(place, &set, &report, on_drift))
}

/// What undoing would do, once the `later` sets are undone.
fn would_be(place: &JournalTarget, set: &Set, later: &[Set], on_drift: OnDrift) -> Reported {
    let mut found = drift::found(&place.host, set);
    later.iter().for_each(|later| found.but_for(later));
    let drifted = reported_of(place, set.id, &found.drifted, on_drift);
    let is_kept = |knob: &str| drifted.iter().any(|d| d.kept && d.knob == knob);
    let unread = |saved: &Saved| found.unread(saved).filter(|_| on_drift == OnDrift::Leave);
    let mut lines = Vec::new();
    let mut done = true;
    for (saved, outlook) in undo::outlooks(&place.host, set) {
        let knob = &saved.knob;
        lines.push(match outlook {
            Outlook::Back(_) if is_kept(knob) => continue,
            Outlook::Back(_) if unread(saved).is_some() => {
                done = false;
                let why = unread(saved).map(ToString::to_string).unwrap_or_default();
                format!("{knob} could not be put back: {why}.")
            }
            Outlook::Back(called) => {
                let shown = tune::knobs::find(knob).map(|k| k.show(&saved.old));
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
    if let Some(why) = privilege::missing_to_undo(&place.host, set) {
        lines.push(format!("This process could not do it: {why}."));
    }
    let ended = done;
    done &= !drifted.iter().any(|d| d.kept);
    Reported { lines, done, ended, drifted }
}

/// What a knob of a renamed interface is called by now.
fn as_now(knob: &str, called: &str) -> String {
    if knob == called { String::new() } else { format!(" (now {called})") }
}

/// Of a value that went with what it was a setting of.
pub(super) fn lost_line(knob: &str, why: &str) -> String {
    format!("{knob} is gone with its value: {why}.")
}

/// Values that somebody else set since, with who may have.
pub(super) fn reported_of(
    place: &JournalTarget,
    id: u64,
    drifted: &[drift::Drifted],
    on_drift: OnDrift,
) -> Vec<Drifted> {
    if drifted.is_empty() {
        return vec![];
    }
    // Only now is it worth asking who else is about.
    let facts = facts::collect(place.host.root(), &Request::default());
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

pub(super) fn drift_line(d: &Drifted, dry_run: bool) -> String {
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

/// How to overwrite what was left.
pub(super) fn force_line(place: &JournalTarget, id: u64, drifted: &[Drifted]) -> Option<String> {
    let left = drifted.iter().filter(|d| d.kept).count();
    let what = if left == 1 { "it" } else { "them" };
    let options = &place.options;
    (left > 0)
        .then(|| format!("`netwright tune rollback {id} --force{options}` overwrites {what}."))
}

/// What is rolled back, the last first: what was asked for, or else the newest, with all that a
/// cut-short experiment left where that is of one.
fn chosen(
    args: &RollbackArgs,
    host: &Host,
    sets: &[(Set, ChangeState)],
) -> Vec<(Set, ChangeState)> {
    let interrupted = |s: &Set, t: ChangeState| {
        t == ChangeState::Unfinished || t == ChangeState::GoneWithBoot && s.was_interrupted()
    };
    let on_trial = |s: &Set, t: ChangeState| t == ChangeState::Unfinished && s.trial.is_some();
    let all = |of: &dyn Fn(&Set, ChangeState) -> bool| -> Vec<(Set, ChangeState)> {
        sets.iter().rev().filter(|(s, t)| of(s, *t)).cloned().collect()
    };
    match args.id {
        Some(id) => all(&|s, _| s.id == id),
        None if args.all => {
            all(&|s, t| status::is_open(t) || interrupted(s, t) || status::is_left(host, s, t))
        }
        None if args.unfinished => all(&interrupted),
        None => match newest(sets, host) {
            Some((s, t)) if on_trial(s, *t) => all(&on_trial),
            newest => newest.cloned().into_iter().collect(),
        },
    }
}

/// At a server, what `fix` kept there.
fn afar(name: &str, args: &RollbackArgs) -> Result<CommandEnd, Failure> {
    let Some(id) = args.id.filter(|_| !args.dry_run && !args.force) else {
        return Err(Failure::Usage(
            "--responder: name the change, as `netwright fix` or `tune status --responder` tells \
             it; --dry-run and --force are only for this host"
                .into(),
        ));
    };
    let peer = PeerEnd::connect(name)?;
    peer.begin().map_err(failure)?;
    let was_open = peer.status()?.sets.iter().any(|s| s.id == id);
    match peer.roll_back(id) {
        Err(TuneError::Changed(left)) => {
            note(&left.to_string());
            return Ok(CommandEnd::No);
        }
        done => done.map_err(failure)?,
    }
    let text = match was_open {
        true => "is rolled back: every value was put back and read again",
        false => "was rolled back before, or is gone with a reboot; nothing was written",
    };
    tell(&args.output, None, true, vec![format!("Change {id} at {name} {text}.")])?;
    Ok(CommandEnd::Yes)
}

/// What is rolled back when none is named: the newest of this namespace, or else of another one,
/// or else one that a boot interrupted, or one of which something is left.
fn newest<'a>(sets: &'a [(Set, ChangeState)], host: &Host) -> Option<&'a (Set, ChangeState)> {
    let here = host.id();
    let open = || sets.iter().rev().filter(|(_, state)| status::is_open(*state));
    let interrupted =
        |(s, t): &&(Set, ChangeState)| *t == ChangeState::GoneWithBoot && s.was_interrupted();
    open()
        .find(|(s, _)| s.is_of(&here))
        .or_else(|| open().next())
        .or_else(|| sets.iter().rev().find(interrupted))
        .or_else(|| sets.iter().rev().find(|(s, t)| status::is_left(host, s, *t)))
}

/// A later change that touches the same value must go first, or its old value would come back later.
fn not_overwritten(set: &Set, sets: &[(Set, ChangeState)]) -> Result<(), Failure> {
    let stands = |t: ChangeState| status::is_open(t) || t == ChangeState::PartlyRolledBack;
    for (later, _) in sets.iter().filter(|(s, t)| s.id > set.id && stands(*t)) {
        if let Some(why) = later.in_the_way_of(set) {
            return Err(Failure::Environment(why));
        }
    }
    Ok(())
}

fn nothing(args: &RollbackArgs) -> Result<CommandEnd, Failure> {
    if let Some(id) = args.id {
        return Err(Failure::Usage(format!("there is no change {id}")));
    }
    let line = match args.unfinished {
        true => "Nothing was interrupted; nothing was written.",
        false => "No active changes; nothing was written.",
    };
    tell(&args.output, None, true, vec![line.into()])?;
    Ok(CommandEnd::Yes)
}

fn came_of(place: &JournalTarget, set: &Set, report: &undo::Report, on_drift: OnDrift) -> Reported {
    let id = set.id;
    let whole = report.is_whole();
    let drifted = reported_of(place, id, &report.drifted, on_drift);
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
    lines.extend(force_line(place, id, &drifted));
    if tune::persist::Record::load(&tune::persist::Record::path(place.store.state()))
        .is_ok_and(|r| r.kept.iter().any(|k| k.id == id))
    {
        lines.push(format!(
            "It is still kept for the next boot; `netwright tune persist --remove {id}{}` ends that.",
            place.options
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
            place.options
        ));
    }
    if let Some(journal) = &report.journal {
        lines.push(format!(
            "The journal could not be told ({journal}); `netwright tune rollback {id}{}` closes it \
             once that is remedied.",
            place.options
        ));
    }
    let ended = whole && report.journal.is_none();
    let done = ended && !drifted.iter().any(|d| d.kept);
    Reported { lines, done, ended, drifted }
}

/// Keeps a change that waits; whoever has the lock first decides, and a watchdog looks again once it has it.
fn keep(place: &mut JournalTarget, set: &Set, lock: &Lock) -> Result<(bool, String), Failure> {
    let id = set.id;
    let may_look = matches!(go_there(place, set), Ok(false));
    let undone = if may_look { confirm::undone(&place.host, set) } else { None };
    if let Some((knob, now)) = undone {
        let text = format!(
            "Too late: change {id} was undone, and its journal was not reported: {knob} is {now} again; \
             `netwright tune rollback {id}{}` closes it.",
            place.options
        );
        return Ok((false, text));
    }
    let late = if confirm::is_late(set) {
        "; its time was over, and its watchdog had not begun to undo it"
    } else {
        ""
    };
    let mut journal = place.store.resume(id, lock).map_err(failure)?;
    journal.sync(Event::Confirmed).map_err(failure)?;
    Ok((true, format!("Change {id} is confirmed and stays{late}.")))
}

/// Says that all is well.
pub fn confirm(args: ConfirmArgs) -> Result<CommandEnd, Failure> {
    Sink::new(args.output.output.clone()).check()?;
    let mut place = JournalTarget::open(args.place)?;
    if place.store.ids().map_err(failure)?.is_empty() {
        return Err(Failure::Usage("there is no change to confirm".into()));
    }
    let lock = lock(&place, false, args.output.talk.quiet)?;
    let sets = readable(&place)?;
    let waits = |(_, state): &&(Set, ChangeState)| *state == ChangeState::AwaitingConfirmation;
    let chosen = match args.id {
        Some(id) => sets.iter().find(|(s, _)| s.id == id),
        None => sets.iter().rev().find(waits).or(sets.last()),
    };
    let Some((set, state)) = chosen else {
        let last = || place.store.ids().ok().and_then(|ids| ids.last().copied());
        let id = args.id.or_else(last);
        return Err(no_change(&place, id.unwrap_or_default()));
    };
    let id = set.id;
    let (done, line) = match state {
        ChangeState::AwaitingConfirmation => keep(&mut place, set, &lock)?,
        ChangeState::InForce => (true, format!("Change {id} is in force already.")),
        ChangeState::RolledBack | ChangeState::PartlyRolledBack => {
            (false, format!("Too late: change {id} is {state}."))
        }
        state => (false, format!("Change {id} is {state}: it cannot be confirmed.")),
    };
    drop(lock);
    tell(&args.output, standing(&place, id), done, vec![line])?;
    Ok(if done { CommandEnd::Yes } else { CommandEnd::No })
}
