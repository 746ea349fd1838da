//! The knobs that an experiment sets: those of this host and, with its operator's consent, of the
//! server.

use model::tune::Plan;
use prove::{Experiment, ProveError};
use tune::{
    change_request::PEER,
    host_freeze::HostFreeze,
    operator::Operator,
    trial::TrialHost,
    trial_setup::{self, TrialPlans},
};

use crate::{hosts::Hosts, peer_end::PeerEnd};

/// What the operator permits an experiment to change.
#[derive(Debug, Clone)]
pub struct Consent {
    /// The server, where it may be changed; `None` otherwise.
    pub responder: Option<String>,
    /// Whether to try changes that may cut the operator's own connection.
    pub allow_disconnect: bool,
    /// Whether the operator accepts dangerous settings.
    pub understood: bool,
}

/// The hosts that an experiment sets knobs on; empty where it sets none.
pub struct Tuned {
    consent: Consent,
    trial_host: Option<TrialHost>,
    peer: Option<PeerEnd>,
}

impl Tuned {
    /// Locks this host's changes, and connects to the server.
    ///
    /// # Errors
    /// A knob of the server without `--responder`, or another process is changing a host.
    pub fn open(
        consent: Consent,
        experiment: &Experiment,
        operator: &dyn Operator,
    ) -> Result<Self, ProveError> {
        let change_requests = experiment.change_requests();
        let theirs = change_requests.iter().flatten().find(|w| w.knob.starts_with(PEER));
        if let (Some(change_request), None) = (theirs, &consent.responder) {
            return Err(ProveError::Spec(format!(
                "{}: is a knob of the server: --responder ssh://[USER@]HOST",
                change_request.knob
            )));
        }
        let what = format!("the experiment {}", experiment.name);
        if change_requests.iter().all(Vec::is_empty) && !experiment.spec.freeze_host {
            trial_setup::clear_residue(&what, operator)?;
            return Ok(Self { consent, trial_host: None, peer: None });
        }
        let trial_host = trial_setup::open_local(&what, operator)?;
        let responder = consent.responder.as_ref().filter(|_| theirs.is_some());
        let peer = responder.map(|name| PeerEnd::connect(name)).transpose()?;
        Ok(Self { consent, trial_host: Some(trial_host), peer })
    }

    /// Both hosts as one.
    ///
    /// # Errors
    /// Another process is changing the server.
    pub fn hosts(&self) -> Result<Option<Hosts<'_>>, ProveError> {
        let of = |own| Hosts::open(own, self.peer.as_ref());
        Ok(self.trial_host.as_ref().map(of).transpose()?)
    }

    /// Plans every combination before anything runs.
    ///
    /// # Errors
    /// A host cannot be read, the operator's connection may be cut, or nothing would be changed.
    pub fn plans(
        &self,
        experiment: &Experiment,
        hosts: Option<&Hosts<'_>>,
        operator: &dyn Operator,
    ) -> Result<TrialPlans, ProveError> {
        let Consent { responder, allow_disconnect, understood } = &self.consent;
        let (allow_disconnect, understood) = (*allow_disconnect, *understood);
        let change_requests = experiment.change_requests();
        let (Some(hosts), false) = (hosts, change_requests.iter().all(Vec::is_empty)) else {
            return Ok(TrialPlans::All(vec![]));
        };
        let plans = match &self.peer {
            None => match trial_setup::plans(
                hosts.local().host(),
                change_requests,
                allow_disconnect,
                understood,
            )? {
                TrialPlans::All(plans) => plans,
                refused => return Ok(refused),
            },
            Some(_) => {
                let mut plans = Vec::new();
                for change_requests in change_requests {
                    let plan = hosts.plan(allow_disconnect, change_requests)?;
                    if !plan.refused.is_empty() {
                        return Ok(TrialPlans::Refused(Box::new(plan)));
                    }
                    if let Some(why) =
                        trial_setup::cuts_connection(&plan).filter(|_| !allow_disconnect)
                    {
                        return Err(ProveError::Spec(why));
                    }
                    plans.push(plan);
                }
                plans
            }
        };
        let changes = || plans.iter().flat_map(|p| &p.changes);
        if changes().next().is_none() {
            return Err(ProveError::Spec("all levels equal the present value".into()));
        }
        let mut names: Vec<&str> = changes().map(|c| c.knob.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let hosts = match responder {
            Some(peer) if self.peer.is_some() => format!("this host and {peer} ({PEER}…)"),
            _ => "this host".to_owned(),
        };
        operator.note(&format!("changes {hosts} and puts everything back: {}", names.join(", ")));
        Ok(TrialPlans::All(plans))
    }

    /// Freezes the host, where requested.
    ///
    /// # Errors
    /// This user may not.
    pub fn freeze(
        &self,
        experiment: &Experiment,
        plans: &[Plan],
        operator: &dyn Operator,
    ) -> Result<Option<HostFreeze<'_>>, ProveError> {
        let Some(trial_host) = self.trial_host.as_ref().filter(|_| experiment.spec.freeze_host)
        else {
            return Ok(None);
        };
        let varied: Vec<&str> =
            plans.iter().flat_map(|p| &p.changes).map(|c| c.knob.as_str()).collect();
        Ok(Some(HostFreeze::begin(trial_host, &varied, operator)?))
    }
}
