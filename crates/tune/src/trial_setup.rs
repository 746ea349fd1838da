//! Opens a host for experiments and plans the changes that they try.

use std::{path::Path, time::Duration};

use model::{
    Reading,
    tune::{Basis, By, ChangeState, Disruption, Plan, Planned},
};

use crate::{
    Host, Store, TuneError, author,
    change_request::{ChangeRequest, ChangeRequests, PEER},
    operator::Operator,
    planner, status,
    trial::TrialHost,
    watchdog::maker::{self, Residue},
};

/// Opens this host for experiments, exclusively. First undoes what killed experiments left.
///
/// # Errors
/// The residue cannot be undone, or another change of this host is pending.
pub fn open_local(what: &str, operator: &dyn Operator) -> Result<TrialHost, TuneError> {
    let host = Host::live();
    let by = author::this_process(&host)?;
    let mut waiting = |text: &str| operator.note(text);
    let trial_host = TrialHost::open(host, Store::of(None), by, what, &mut waiting)?;
    for line in trial_host.clear()? {
        operator.warn(&line);
    }
    register_with_watchdog(Residue::Trials(trial_host.state().to_owned()))?;
    Ok(trial_host)
}

/// Prefix, before the client's address, of the journal entry for changes made over the network.
pub const REMOTE_CLIENT: &str = "netwright fix at ";

/// Undoes the trial changes of a process that was killed.
///
/// # Errors
/// As of [`TrialHost::undo_lost`].
pub fn undo_lost(state_dir: &Path, maker: (u32, u64)) -> Result<(), TuneError> {
    let host = Host::live();
    let by = author::this_process(&host)?;
    let store = Store::of(Some(state_dir.to_owned()));
    TrialHost::undo_lost(host, store, by, maker)
}

/// Registers what the watchdog restores if this process is killed.
///
/// # Errors
/// No watchdog could be started.
pub fn register_with_watchdog(residue: Residue) -> Result<(), TuneError> {
    let failed =
        |e| TuneError::Environment(format!("no watchdog to put back if we are killed: {e}"));
    maker::restore_after_exit(residue).map_err(failed)
}

/// Opens this host for a remote client. Waits at most one second for the lock, because the client
/// does not wait longer.
///
/// # Errors
/// Another process is changing the host, or the residue of killed experiments cannot be undone.
pub fn open_for_client(to: &str) -> Result<TrialHost, TuneError> {
    let host = Host::live();
    let by =
        By { login: Reading::Known(format!("{to}, over ssh")), ..author::this_process(&host)? };
    let store = Store::of(None);
    let busy = |e: TuneError| {
        TuneError::Environment(format!(
            "{e}; two ends on one machine need a journal each: NETWRIGHT_STATE"
        ))
    };
    drop(store.lock(Some(Duration::from_secs(1)), &mut |_| {}).map_err(busy)?);
    let what = format!("{REMOTE_CLIENT}{to}");
    let trial_host = TrialHost::open(host, store, by, &what, &mut |_| {})?;
    trial_host.clear()?;
    register_with_watchdog(Residue::Trials(trial_host.state().to_owned()))?;
    Ok(trial_host)
}

/// Undoes what killed experiments left, for a command that only measures. Without the privilege the
/// residue stays; every command reports it.
///
/// # Errors
/// As of [`open_local`], and a journal that cannot be read.
pub fn clear_residue(what: &str, operator: &dyn Operator) -> Result<(), TuneError> {
    let sets = match status::standing(&Host::live(), &Store::of(None)) {
        Ok((sets, _)) => sets,
        Err(TuneError::Denied(_)) => return Ok(()),
        Err(e) => return Err(e),
    };
    if !sets.iter().any(|(s, state)| *state == ChangeState::Unfinished && s.trial.is_some()) {
        return Ok(());
    }
    match open_local(what, operator) {
        Ok(_) | Err(TuneError::Denied(_)) => Ok(()),
        Err(e) => Err(e),
    }
}

/// The plans for the levels of one experiment.
pub enum TrialPlans {
    All(Vec<Plan>),
    /// The first plan that `tune plan` would refuse.
    Refused(Box<Plan>),
}

/// One plan for each set of change requests, from the host's current state. Values that lower
/// something or have no effect are allowed: a measurement may show that. `own_connection` allows
/// changes that may cut the operator's connection; `understood` allows dangerous ones.
///
/// # Errors
/// The host cannot be read, or a change may cut the operator's connection.
pub fn plans(
    host: &Host,
    sets: Vec<Vec<ChangeRequest>>,
    own_connection: bool,
    understood: bool,
) -> Result<TrialPlans, TuneError> {
    let all = ChangeRequests {
        change_requests: sets.iter().flatten().cloned().collect(),
        ..ChangeRequests::default()
    };
    let facts = planner::facts(host, &all);
    let mut plans = Vec::new();
    for change_requests in sets {
        let change_requests = ChangeRequests {
            change_requests,
            understood,
            trial: true,
            ..ChangeRequests::default()
        };
        let plan = planner::of_facts(host, &facts, change_requests)?;
        if !plan.refused.is_empty() {
            return Ok(TrialPlans::Refused(Box::new(plan)));
        }
        if let Some(why) = cuts_connection(&plan).filter(|_| !own_connection) {
            return Err(TuneError::Usage(why));
        }
        plans.push(plan);
    }
    Ok(TrialPlans::All(plans))
}

/// The first change that may cut the operator's own connection.
pub fn cuts_connection(plan: &Plan) -> Option<String> {
    let change = plan.changes.iter().find(|c| c.impact.own_connection && !only_stalls(c))?;
    Some(format!(
        "{}={}: your own connection may be cut ({}), which an experiment would do again and \
         again; --allow-disconnect allows it",
        change.knob, change.new, change.impact.why
    ))
}

/// Whether the change is known to cause a brief stall at worst, and no value of it can block
/// traffic, as an MTU or a queueing discipline could.
fn only_stalls(change: &Planned) -> bool {
    let known =
        change.impact.disruption <= Disruption::BriefStall && change.impact.basis != Basis::Assumed;
    // The knob's name on its own host.
    let knob = change.knob.strip_prefix(PEER).unwrap_or(&change.knob);
    let parts: Vec<&str> = knob.split('.').collect();
    let spreads = matches!(
        parts[..],
        ["irq", _, "affinity"]
            | ["nic", .., "channels"]
            | ["nic", .., "rings", _]
            | ["nic", .., "rss", _]
    );
    known && spreads
}

#[cfg(test)]
mod tests {
    use model::tune::Impact;

    use super::*;

    fn planned(knob: &str, disruption: Disruption, basis: Basis) -> Plan {
        let mut impact = Impact { basis, ..Impact::of(disruption, "why") };
        impact.own_connection = true;
        let change = serde_json::json!({
            "knob": knob, "old": "1", "new": "2", "unit": "", "impact": impact, "owner": "",
            "undo": "", "command": "", "asked_by": ""
        });
        serde_json::from_value(serde_json::json!({
            "schema_version": 1, "changes": [change], "refused": [], "unchanged": [], "notes": [],
            "host": {"name": {"absent": ""}, "machine_id": {"absent": ""}, "boot_id": {"absent": ""},
                "net_namespace": {"absent": ""}},
        }))
        .unwrap()
    }

    #[test]
    fn what_only_stalls_the_own_connection_is_tried_and_what_may_cut_it_is_not() {
        use {Basis::*, Disruption::*};
        let cut = |knob: &str, disruption, basis| {
            cuts_connection(&planned(knob, disruption, basis)).is_some()
        };
        assert!(!cut("nic.eth0.channels", BriefStall, Driver));
        assert!(!cut("nic.eth0.100.rings.rx", BriefStall, Driver));
        assert!(!cut("irq.28.affinity", BriefStall, General));
        assert!(!cut("peer:irq.28.affinity", BriefStall, General));
        assert!(!cut("peer:nic.eth0.channels", BriefStall, Driver));
        assert!(cut("nic.eth0.channels", LinkReset, Driver));
        assert!(cut("nic.eth0.channels", LinkReset, Assumed));
        assert!(cut("nic.eth0.channels", BriefStall, Assumed), "nobody knows");
        assert!(cut("nic.eth0.mtu", BriefStall, Driver), "the path may not carry it");
        assert!(cut("nic.eth0.qdisc", BriefStall, General), "it may drop");
        assert!(cut("sysctl.net.ipv4.ip_forward", ConnectionLoss, General));
    }
}
