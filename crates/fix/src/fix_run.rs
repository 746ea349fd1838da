//! The trial of each candidate: applied, compared with the state before it, then kept or reverted.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use model::{
    Nanos,
    fix::{Candidate, CandidateStatus, FixNote},
    prove::{Outcome, ProveDocument},
    tune::Plan,
};
use prove::{
    Experiment, Knobs, ProveError,
    conduct::{self, Means},
    record::{Record, RecordHead},
    spec::{Spec, of_changes},
};
use remote::{
    LEASE,
    hosts::{Hosts, TrialSets},
};
use tune::{TuneError, change_request::ChangeRequest, operator::Operator, trial::Trials};

use crate::{
    Result,
    attempt::Attempt,
    candidate_search::Observation,
    request::Request,
    time_budget::{Allotment, FEWEST_RUNS, Pace, TimeBudget},
};

pub struct FixRun<'a> {
    pub request: &'a Request,
    /// This host, and the server's where the operator allows changing it.
    pub hosts: &'a Hosts<'a>,
    pub operator: &'a dyn Operator,
    /// Asks the operator whether to try a plan.
    pub ask: &'a mut dyn FnMut(&Plan) -> bool,
    /// The path of this program, which runs the measurements.
    pub ours: &'a Path,
    /// When `fix` began, by the monotonic clock.
    pub began: Instant,
    /// When `fix` began, seconds since 1970.
    pub started_unix_s: u64,
    /// The experiment without its factor.
    pub spec: Spec,
    /// How long runs take.
    pub pace: Pace,
    /// How long further observations may take.
    pub looks: Duration,
    /// What was kept, in order: its change requests, and its change set, which is still on trial.
    pub kept: Vec<(Vec<ChangeRequest>, u64)>,
    pub made: usize,
}

/// The result of an experiment.
pub enum ExperimentEnd {
    Reported(Box<ProveDocument>),
    /// The workload failed, or a level could not be set; everything is as before the experiment.
    Failed(String),
    /// The operator interrupted; with the result so far.
    Ended(Option<Box<ProveDocument>>),
}

impl FixRun<'_> {
    /// The rest of the time budget.
    pub fn time_budget(&self) -> TimeBudget {
        let room = Duration::from_nanos(self.request.budget.0).saturating_sub(self.began.elapsed());
        TimeBudget { room, pace: self.pace, looks: self.looks }
    }

    /// The time for the next of this many experiments, if the budget holds it and the final one.
    pub fn slice(&self, left: usize) -> Option<Allotment> {
        self.time_budget().slice(left)
    }

    /// Whether the budget holds an observation of this length, an experiment after it, and the
    /// final one.
    pub fn holds_look(&self, look: Observation) -> bool {
        self.time_budget().holds_look(Duration::from_nanos(look.long().0))
    }

    /// The `--budget` that would hold this many more experiments.
    pub fn enough(&self, left: usize) -> FixNote {
        // One more compares everything kept with the state before.
        let more =
            self.pace.shortest().as_secs_f64() * left as f64 + self.pace.last().as_secs_f64();
        let all = self.began.elapsed().as_secs_f64() + more;
        FixNote::BudgetTooSmall {
            run_s: self.pace.shortest().as_secs_f64() / f64::from(FEWEST_RUNS),
            runs: FEWEST_RUNS,
            experiment_s: self.pace.shortest().as_secs_f64(),
            experiments: left + 1,
            // Some reserve, as runs vary.
            budget_s: all * 1.1,
        }
    }

    /// The experiment without its factor, with a time limit for its runs once their duration is
    /// known.
    pub fn bounded(&self) -> Spec {
        let timeout = self.pace.hang().map(|hang| format!("{}ms", hang.as_millis()));
        Spec { timeout, ..self.spec.clone() }
    }

    /// Compares the host with and without a plan, with all kept changes in force.
    ///
    /// # Errors
    /// The record cannot be written, or a change could not be put back. A workload or a change that
    /// fails is [`ExperimentEnd::Failed`].
    pub fn experiment(
        &mut self,
        plan: Plan,
        name: &str,
        slice: Allotment,
    ) -> Result<ExperimentEnd> {
        self.made += 1;
        let changes: Vec<String> =
            plan.changes.iter().map(|c| format!("{}={}", c.knob, c.new)).collect();
        let mut spec = Spec { factors: vec![of_changes(&changes)], ..self.bounded() };
        match self.request.runs {
            Some(runs) => spec.runs = Some(runs),
            None => spec.budget = Some(format!("{}ms", slice.share.as_millis().max(1))),
        }
        let experiment = Experiment::check(spec.clone(), name)?;
        let seed = self.started_unix_s.wrapping_add(self.made as u64);
        let begun =
            RecordHead { started_unix_s: self.started_unix_s, name: name.to_owned(), spec, seed };
        let file = format!("{}-{}.jsonl", self.started_unix_s, self.made);
        let path = self.hosts.local().state().join("fix").join(file);
        let mut record = Record::create(&path, &begun)?;
        let plans = [Plan { changes: vec![], ..plan.clone() }, plan];
        let progress =
            |what: &str, share: f64| self.operator.progress(&format!("{name}: {what}"), share);
        let means = Means {
            ours: self.ours,
            stop: self.operator.stop(),
            knobs: Some(Knobs { trials: self.hosts, plans: &plans }),
            progress: &progress,
            disruption: slice.disruption,
            worked: self.pace.is_known(),
        };
        let began = Instant::now();
        let conducted = conduct::conduct(&experiment, &begun, vec![], &mut record, &means);
        self.nothing_is_left()?;
        let document = conducted.document.map(Box::new);
        // A broken-off experiment may have waited for a run that hung.
        if let (Some(document), None) = (&document, &conducted.broken) {
            self.pace.made(document.runs.len(), began.elapsed());
            let worked = document.runs.iter().filter(|r| !r.failed());
            worked.for_each(|r| self.pace.ran(Duration::from_secs_f64(r.took_s)));
        }
        match (conducted.broken, document) {
            (Some(e @ ProveError::File { .. }), _) => Err(e),
            (Some(e), _) => Ok(ExperimentEnd::Failed(e.to_string())),
            (None, document) if self.operator.wants_end() => Ok(ExperimentEnd::Ended(document)),
            (None, Some(document)) => Ok(ExperimentEnd::Reported(document)),
            (None, None) => Ok(ExperimentEnd::Ended(None)),
        }
    }

    /// After an experiment only the kept changes are set.
    fn nothing_is_left(&self) -> Result<()> {
        let kept = |id: u64| self.kept.iter().any(|(_, k)| *k == id);
        let left = |(id, made): (u64, TrialSets)| (!kept(id)).then_some(made);
        match self.hosts.on_trial().into_iter().find_map(left) {
            None => Ok(()),
            Some(TrialSets { local: Some(id), .. }) => Err(not_put_back(format!(
                "change {id} could not be put back; `netwright tune rollback {id}` tries again"
            ))),
            Some(_) => Err(not_put_back(format!(
                "a change of the server could not be restored; the server restores it within {} s \
                 of the end of this process",
                LEASE.as_secs()
            ))),
        }
    }

    /// Tries one candidate: plan, consent, experiment, keep or revert. `false` when interrupted.
    ///
    /// # Errors
    /// As [`FixRun::experiment`]; or the hosts cannot be planned again to keep the change.
    pub fn candidate(&mut self, attempt: &mut Attempt, slice: Allotment) -> Result<bool> {
        let Some(plan) = attempt.plan.take() else { return Ok(true) };
        let name = attempt.name();
        let came = self.experiment(plan, &name, slice)?;
        let c = &mut attempt.candidate;
        let (document, goes_on) = match came {
            ExperimentEnd::Failed(why) => {
                self.operator.note(&format!("undone: {name}: {why}"));
                (c.status, c.why) = (CandidateStatus::Undone, why);
                return Ok(true);
            }
            ExperimentEnd::Reported(document) => (Some(document), true),
            ExperimentEnd::Ended(document) => (document, false),
        };
        c.status = CandidateStatus::Undone;
        let Some(document) = document else {
            (c.status, c.why) = (CandidateStatus::NotTried, "ended before".into());
            return Ok(false);
        };
        c.runs = document.runs.len();
        c.why = report::prove::headline(&document);
        if document.verdict.outcome == Outcome::Undecided && goes_on && self.request.runs.is_none()
        {
            let share = Nanos(u64::try_from(slice.share.as_nanos()).unwrap_or(u64::MAX));
            c.why += &format!("; its share of --budget, {share}, is used up");
        }
        let failed = document.runs.iter().filter(|r| r.failed()).count();
        if failed > 0 {
            c.why += &format!("; the workload failed in {failed} of {} runs", c.runs);
        }
        c.verdict = Some(document.verdict.clone());
        // Interrupted by hand, its result so far still counts: better is kept.
        if document.verdict.outcome == Outcome::Better {
            self.keep(c, &attempt.change_requests)?;
        }
        let status = if c.status == CandidateStatus::Kept { "kept" } else { "undone" };
        self.operator.note(&format!("{status}: {name}: {}", reported(&document)));
        Ok(goes_on)
    }

    fn keep(&mut self, c: &mut Candidate, change_requests: &[ChangeRequest]) -> Result<()> {
        let plan = self.hosts.plan(self.request.allow_disconnect, change_requests.to_vec())?;
        match self.hosts.try_out(&plan) {
            Ok(id) => {
                self.kept.push((change_requests.to_vec(), id));
                c.status = CandidateStatus::Kept;
            }
            Err(e) => c.why = format!("helped, but could not be set again: {e}"),
        }
        Ok(())
    }

    /// Reverts what was kept, the last first.
    ///
    /// # Errors
    /// The first change that could not be put back; the others are reverted all the same.
    pub fn undo_kept(&mut self) -> Result<()> {
        // If one cannot be reverted, the earlier ones stay.
        let mut undone = Ok(());
        while let Some((_, id)) = self.kept.pop() {
            undone = undone.and(self.hosts.take_back(id).map_err(ProveError::from));
        }
        undone
    }
}

fn not_put_back(why: String) -> ProveError {
    TuneError::Environment(why).into()
}

/// `better, +5.1% (+4.8% to +5.4%)`.
fn reported(document: &ProveDocument) -> String {
    let said = report::prove::headline(document);
    match document.verdict.effect {
        Some(_) => format!("{said}, {}", report::prove::effect(&document.verdict)),
        None => said,
    }
}
