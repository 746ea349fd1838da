//! The knobs that an experiment sets: of this host and, where its operator consents, of the server.

use model::tune::Plan;
use prove::Experiment;
use tune::trial::Bench;

use super::args::ProveArgs;
use crate::{
    commands::{
        fix::hosts::Hosts,
        peer::{PEER, local::PeerEnd},
        tune::{failure, hold::Hold, plan, trial},
    },
    exit::Failure,
    output::note,
};

/// The hosts whose knobs are set, where the experiment sets some.
pub struct Tuned {
    bench: Option<Bench>,
    peer: Option<PeerEnd>,
}

impl Tuned {
    /// Takes this host's changes to itself, and connects to the server.
    pub fn open(args: &ProveArgs, experiment: &Experiment) -> Result<Self, Failure> {
        let change_requests = experiment.change_requests();
        let theirs = change_requests.iter().flatten().find(|w| w.knob.starts_with(PEER));
        if let (Some(change_request), None) = (theirs, &args.responder) {
            return Err(Failure::Usage(format!(
                "{}: is a knob of the server: --responder ssh://[USER@]HOST",
                change_request.knob
            )));
        }
        let quiet = args.output.talk.quiet;
        let what = format!("the experiment {}", experiment.name);
        if change_requests.iter().all(Vec::is_empty) && !experiment.spec.freeze_host {
            trial::clear(&what, quiet)?;
            return Ok(Self { bench: None, peer: None });
        }
        let bench = trial::bench(&what, quiet)?;
        let responder = args.responder.as_ref().filter(|_| theirs.is_some());
        let peer = responder.map(|name| PeerEnd::connect(name)).transpose()?;
        Ok(Self { bench: Some(bench), peer })
    }

    /// Both hosts as one.
    pub fn hosts(&self) -> Result<Option<Hosts<'_>>, Failure> {
        let of = |bench| Hosts::open(bench, self.peer.as_ref()).map_err(failure);
        self.bench.as_ref().map(of).transpose()
    }

    /// Plans every combination before anything runs. `None` where one would do harm, which was
    /// told.
    pub fn plans(
        &self,
        args: &ProveArgs,
        experiment: &Experiment,
        hosts: Option<&Hosts<'_>>,
    ) -> Result<Option<Vec<Plan>>, Failure> {
        let change_requests = experiment.change_requests();
        let (Some(hosts), false) = (hosts, change_requests.iter().all(Vec::is_empty)) else {
            return Ok(Some(vec![]));
        };
        let plans = match &self.peer {
            None => match trial::plans(
                hosts.local().host(),
                change_requests,
                args.allow_disconnect,
                args.i_understand,
            )? {
                Ok(plans) => plans,
                Err(_) => return Ok(None),
            },
            Some(_) => {
                let mut plans = Vec::new();
                for change_requests in change_requests {
                    let plan = hosts.plan(args.allow_disconnect, change_requests)?;
                    if !plan.refused.is_empty() {
                        return plan::worst(&plan).map(|_| None);
                    }
                    if let Some(why) = trial::cuts(&plan).filter(|_| !args.allow_disconnect) {
                        return Err(Failure::Usage(why));
                    }
                    plans.push(plan);
                }
                plans
            }
        };
        let changes = || plans.iter().flat_map(|p| &p.changes);
        if changes().next().is_none() {
            return Err(Failure::Usage("all levels are what is there already".into()));
        }
        if !args.output.talk.quiet {
            let mut names: Vec<&str> = changes().map(|c| c.knob.as_str()).collect();
            names.sort_unstable();
            names.dedup();
            let hosts = match &args.responder {
                Some(peer) if self.peer.is_some() => format!("this host and {peer} ({PEER}…)"),
                _ => "this host".to_owned(),
            };
            note(&format!("changes {hosts} and puts everything back: {}", names.join(", ")));
        }
        Ok(Some(plans))
    }

    /// Holds the host still, where this is wanted.
    pub fn hold(
        &self,
        experiment: &Experiment,
        plans: &[Plan],
    ) -> Result<Option<Hold<'_>>, Failure> {
        let Some(bench) = self.bench.as_ref().filter(|_| experiment.spec.freeze_host) else {
            return Ok(None);
        };
        let varied: Vec<&str> =
            plans.iter().flat_map(|p| &p.changes).map(|c| c.knob.as_str()).collect();
        Hold::begin(bench, &varied).map(Some)
    }
}
