//! Checks before `apply` begins or resumes: pending changes, peers, the operator's connection.

use std::net::{IpAddr, Ipv4Addr, ToSocketAddrs};

use model::{Nanos, tune::ChangeState};

use crate::{
    Host, TuneError,
    change_request::ChangeRequests,
    journal::Armed,
    netns, planner, privilege,
    session::Session,
    status,
    target::JournalTarget,
    watchdog::deadline::{self, Orders},
};

/// Checks that no interrupted or unconfirmed change set is pending: only one may be.
///
/// # Errors
/// Names the pending set, and the command that ends it.
pub fn nothing_pending(target: &JournalTarget) -> Result<(), TuneError> {
    let (sets, damaged) = status::standing(&target.host, &target.store)?;
    if let Some(damaged) = damaged.first() {
        return Err(TuneError::Journal(Box::new(damaged.clone())));
    }
    let pending = |s: &ChangeState| {
        matches!(
            s,
            ChangeState::Unfinished | ChangeState::AwaitingConfirmation | ChangeState::InProgress
        )
    };
    match sets.iter().find(|(s, state)| pending(state) || (!s.applied && status::is_open(*state))) {
        None => Ok(()),
        Some((s, ChangeState::AwaitingConfirmation)) => Err(TuneError::Environment(format!(
            "change {0} waits for a confirmation; `netwright tune confirm {0}{1}` or `rollback \
             {0}{1}` first",
            s.id, target.options
        ))),
        Some((s, _)) if s.trial.is_some() => Err(TuneError::Environment(format!(
            "{} was interrupted, and change {} of it is left; `netwright tune rollback \
             --unfinished{}` first",
            s.trial.as_deref().unwrap_or_default(),
            s.id,
            target.options
        ))),
        Some((s, _)) => Err(TuneError::Environment(format!(
            "change {0} was interrupted; `netwright tune rollback {0}{1}` or `apply --finish {0}{1}` \
             first",
            s.id, target.options
        ))),
    }
}

/// Enters the network namespace of an interrupted set, if the set can be completed.
///
/// # Errors
/// There is no such set, it cannot be completed, or its network namespace is gone.
pub fn to_finish(target: &mut JournalTarget, id: u64) -> Result<(), TuneError> {
    let (sets, _) = status::standing(&target.host, &target.store)?;
    match sets.iter().find(|(s, _)| s.id == id) {
        None => Err(target.no_change(id)),
        // Our own lock makes an unfinished set look in progress.
        Some((s, ChangeState::Unfinished | ChangeState::InProgress)) if !s.undoing => {
            match target.go_there(s)? {
                false => Ok(()),
                true => Err(TuneError::Environment(format!(
                    "change {id}: {}; `netwright tune rollback {id}{}` closes it",
                    netns::GONE,
                    target.options
                ))),
            }
        }
        Some((_, state)) => {
            Err(TuneError::Usage(format!("change {id} is {state}: there is nothing to complete")))
        }
    }
}

/// Starts a watchdog that undoes the set after this time.
///
/// # Errors
/// Of the returned function: the watchdog cannot be started, or does not report in time. Without it
/// nothing may be changed.
pub fn watchdog_for(
    target: &JournalTarget,
    wait: Nanos,
    maker: (u32, u64),
) -> impl FnMut(u64) -> Result<Armed, TuneError> {
    move |id| {
        let deadline_boot_ms = deadline::boot_ms() + wait.0 / 1_000_000;
        let orders = Orders { id, deadline_boot_ms, maker };
        deadline::arm(&target.store, &orders, target.tree.as_deref())
    }
}

/// Whether the operator is connected over the network.
pub fn is_remote_session(host: &Host) -> bool {
    let facts = planner::facts(host, &ChangeRequests::default());
    let ssh = std::env::var("SSH_CONNECTION").ok();
    Session::find(host.root(), &facts, ssh.as_deref()).remote.is_some()
}

/// The IPv4 addresses of the hosts that a raised MTU must reach.
///
/// # Errors
/// A name without an IPv4 address.
pub fn peers(names: &[String]) -> Result<Vec<Ipv4Addr>, TuneError> {
    let one = |name: &String| {
        let found = (name.as_str(), 0).to_socket_addrs().ok();
        let mut found = found.into_iter().flatten().filter_map(|a| match a.ip() {
            IpAddr::V4(v4) => Some(v4),
            IpAddr::V6(_) => None,
        });
        found.next().ok_or_else(|| {
            TuneError::Environment(format!("--peer {name}: no IPv4 address of that name is known"))
        })
    };
    names.iter().map(one).collect()
}

/// Error for a user who may not write the journal; names all missing privileges at once.
pub fn no_lock(
    target: &JournalTarget,
    change_requests: Option<ChangeRequests>,
    e: TuneError,
) -> TuneError {
    let TuneError::Denied(why) = &e else { return e };
    let plan = change_requests.and_then(|w| planner::make(&target.host, w).ok());
    match plan.and_then(|(p, _)| privilege::missing(&target.host, &p.changes)) {
        Some(more) => TuneError::Denied(format!("{why}; {more}; nothing was written")),
        None => e,
    }
}
