//! What is asked for, checked as far as no host is needed.

use model::Nanos;
use prove::{
    Experiment, ProveError,
    spec::{Spec, of_changes},
};
use tune::change_request::ChangeRequest;

use crate::{Result, time_budget::FEWEST_RUNS};

/// The shortest window that is any good.
const SHORTEST: Nanos = Nanos(100_000_000);

/// What is to get better, and what may be done for it.
#[derive(Debug)]
pub struct Request {
    /// The experiment without its factor.
    pub spec: Spec,
    /// To be tried beside what findings ask for.
    pub also: Vec<ChangeRequest>,
    /// What the findings are judged by.
    pub goal: model::Goal,
    /// The server, where it may be changed: `ssh://[USER@]HOST[:PORT][/PATH/OF/netwright]`.
    pub responder: Option<String>,
    /// How long all may take.
    pub budget: Nanos,
    /// How many runs each experiment takes at most, instead of a share of the budget.
    pub runs: Option<usize>,
    /// How long the counters are watched before each judgement.
    pub window: Nanos,
    /// Whether eBPF programs are wanted.
    pub bpf: bool,
    /// Whether the host is held still meanwhile.
    pub freeze_host: bool,
    /// Whether what may cut the operator's connection is tried too.
    pub allow_disconnect: bool,
    /// Whether nothing is changed.
    pub dry_run: bool,
}

impl Request {
    /// Whether it can be.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&self) -> Result<()> {
        let usage = |why: String| Err(ProveError::Spec(why));
        if self.window < SHORTEST {
            return usage(format!("--window {}: from 100ms", self.window));
        }
        if self.window >= self.budget {
            return usage(format!(
                "--window {}: the host is watched that long before anything is tried, and --budget is {}",
                self.window, self.budget
            ));
        }
        if let Some(runs) = self.runs.filter(|runs| *runs < FEWEST_RUNS as usize) {
            return usage(format!(
                "--runs {runs}: {FEWEST_RUNS} at least, six blocks of four runs"
            ));
        }
        probe(&self.spec).map(drop)
    }
}

/// The experiment with a factor that stands for what will be tried.
///
/// # Errors
/// What is wrong with it.
pub fn probe(spec: &Spec) -> Result<Experiment> {
    let factors = vec![of_changes(&["knob=value".to_owned()])];
    Experiment::check(Spec { factors, ..spec.clone() }, "fix")
}
