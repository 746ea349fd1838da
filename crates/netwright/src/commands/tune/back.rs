//! `netwright tune rollback` and `tune confirm`.

use model::tune::{ChangeNote, ChangeState};
use remote::peer_end::PeerEnd;
use tune::{
    TuneError, confirm,
    journal::JournaledSet,
    rollback::{Request, Which, roll_back},
    target::JournalTarget,
};

use super::{
    args::{ConfirmArgs, RollbackArgs},
    tell, tell_all,
};
use crate::{
    failure::{CommandEnd, Failure},
    interrupt,
    output::{Sink, note},
    session::Listener,
};

/// Restores the old values of changes.
pub fn rollback(args: RollbackArgs) -> Result<CommandEnd, Failure> {
    Sink::new(args.output.output.clone()).check()?;
    if let Some(name) = &args.peer.responder {
        return afar(name, &args);
    }
    let mut target = JournalTarget::open(args.place.clone().into())?;
    if target.store.ids()?.is_empty() {
        return nothing(&args);
    }
    interrupt::ignore(libc::SIGHUP);
    let listener = Listener { quiet: args.output.talk.quiet };
    let Some((sets, reported)) = roll_back(&mut target, &request(&args), &listener)? else {
        return nothing(&args);
    };
    let done = reported.done;
    tell_all(&args.output, sets, reported)?;
    Ok(if done { CommandEnd::Yes } else { CommandEnd::No })
}

fn request(args: &RollbackArgs) -> Request {
    let which = match args.id {
        Some(id) => Which::One(id),
        None if args.all => Which::All,
        None if args.unfinished => Which::Unfinished,
        None => Which::Newest,
    };
    Request { which, force: args.force, dry_run: args.dry_run, no_wait: args.wait.no_wait }
}

/// Rolls back, on a server, what `fix` kept there.
fn afar(name: &str, args: &RollbackArgs) -> Result<CommandEnd, Failure> {
    let Some(id) = args.id.filter(|_| !args.dry_run && !args.force) else {
        return Err(Failure::Usage(
            "--responder: name the change, as `netwright fix` or `tune status --responder` tells \
             it; --dry-run and --force are only for this host"
                .into(),
        ));
    };
    let peer = PeerEnd::connect(name)?;
    peer.begin()?;
    let was_open = peer.status()?.sets.iter().any(|s| s.id == id);
    match peer.roll_back(id) {
        Err(TuneError::Changed(left)) => {
            note(&left.to_string());
            return Ok(CommandEnd::No);
        }
        done => done?,
    }
    let note = ChangeNote::RolledBackAt { id, host: name.to_owned(), now: was_open };
    tell(&args.output, None, true, vec![note])?;
    Ok(CommandEnd::Yes)
}

fn nothing(args: &RollbackArgs) -> Result<CommandEnd, Failure> {
    if let Some(id) = args.id {
        return Err(Failure::Usage(format!("there is no change {id}")));
    }
    let note = match args.unfinished {
        true => ChangeNote::NoneInterrupted,
        false => ChangeNote::NoneActive,
    };
    tell(&args.output, None, true, vec![note])?;
    Ok(CommandEnd::Yes)
}

/// Confirms a change, so that its watchdog ends without reverting it.
pub fn confirm(args: ConfirmArgs) -> Result<CommandEnd, Failure> {
    Sink::new(args.output.output.clone()).check()?;
    let mut target = JournalTarget::open(args.place.into())?;
    if target.store.ids()?.is_empty() {
        return Err(Failure::Usage("there is no change to confirm".into()));
    }
    let listener = Listener { quiet: args.output.talk.quiet };
    let lock = target.lock(false, &listener)?;
    let sets = target.readable(&listener)?;
    let waits =
        |(_, state): &&(JournaledSet, ChangeState)| *state == ChangeState::AwaitingConfirmation;
    let chosen = match args.id {
        Some(id) => sets.iter().find(|(s, _)| s.id == id),
        None => sets.iter().rev().find(waits).or(sets.last()),
    };
    let Some((set, state)) = chosen else {
        let last = || target.store.ids().ok().and_then(|ids| ids.last().copied());
        let id = args.id.or_else(last);
        return Err(target.no_change(id.unwrap_or_default()).into());
    };
    let id = set.id;
    let (done, note) = match state {
        ChangeState::AwaitingConfirmation => confirm::keep(&mut target, set, &lock)?,
        ChangeState::InForce => (true, ChangeNote::InForceAlready { id }),
        ChangeState::RolledBack | ChangeState::PartlyRolledBack => {
            (false, ChangeNote::TooLate { id, state: *state })
        }
        state => (false, ChangeNote::CannotBeConfirmed { id, state: *state }),
    };
    drop(lock);
    tell(&args.output, target.standing(id), done, vec![note])?;
    Ok(if done { CommandEnd::Yes } else { CommandEnd::No })
}
