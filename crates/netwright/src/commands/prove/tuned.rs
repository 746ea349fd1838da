//! The knobs that an experiment sets: of this host and, where its operator consents, of the far end.

use model::tune::Plan;
use prove::Experiment;
use tune::trial::Bench;

use super::args::ProveArgs;
use crate::{
    commands::{
        far::{FAR, near::Far},
        fix::hosts::Hosts,
        tune::{failure, hold::Hold, plan, trial},
    },
    exit::Failure,
    output::note,
};

/// The hosts whose knobs are set, where the experiment sets some.
pub struct Tuned {
    bench: Option<Bench>,
    far: Option<Far>,
}

impl Tuned {
    /// Takes this host's changes to itself, and connects to the far end.
    pub fn open(args: &ProveArgs, experiment: &Experiment) -> Result<Self, Failure> {
        let wishes = experiment.wishes();
        let theirs = wishes.iter().flatten().find(|w| w.knob.starts_with(FAR));
        if let (Some(wish), None) = (theirs, &args.responder) {
            return Err(Failure::Usage(format!(
                "{}: is a knob of the far end: --responder HOST, where `netwright serve \
                 --allow-tune` runs",
                wish.knob
            )));
        }
        let quiet = args.output.talk.quiet;
        let what = format!("the experiment {}", experiment.name);
        if wishes.iter().all(Vec::is_empty) && !experiment.spec.hold_still {
            trial::clear(&what, quiet)?;
            return Ok(Self { bench: None, far: None });
        }
        let bench = trial::bench(&what, quiet)?;
        let responder = args.responder.as_ref().filter(|_| theirs.is_some());
        let far = responder.map(|name| Far::connect(name, args.secret_file.clone())).transpose()?;
        Ok(Self { bench: Some(bench), far })
    }

    /// Both hosts as one.
    pub fn hosts(&self) -> Result<Option<Hosts<'_>>, Failure> {
        let of = |bench| Hosts::open(bench, self.far.as_ref()).map_err(failure);
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
        let wishes = experiment.wishes();
        let (Some(hosts), false) = (hosts, wishes.iter().all(Vec::is_empty)) else {
            return Ok(Some(vec![]));
        };
        let plans = match &self.far {
            None => match trial::plans(
                hosts.near().host(),
                wishes,
                args.own_connection,
                args.i_understand,
            )? {
                Ok(plans) => plans,
                Err(_) => return Ok(None),
            },
            Some(_) => {
                let mut plans = Vec::new();
                for wishes in wishes {
                    let plan = hosts.plan(args.own_connection, wishes)?;
                    if !plan.refused.is_empty() {
                        return plan::worst(&plan).map(|_| None);
                    }
                    if let Some(why) = trial::cuts(&plan).filter(|_| !args.own_connection) {
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
                Some(far) if self.far.is_some() => format!("this host and {far} ({FAR}…)"),
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
        let Some(bench) = self.bench.as_ref().filter(|_| experiment.spec.hold_still) else {
            return Ok(None);
        };
        let varied: Vec<&str> =
            plans.iter().flat_map(|p| &p.changes).map(|c| c.knob.as_str()).collect();
        Hold::begin(bench, &varied).map(Some)
    }
}
