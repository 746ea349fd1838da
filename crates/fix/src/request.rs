//! The request, checked as far as possible without the host.

use model::Nanos;
use prove::{
    Experiment, ProveError,
    spec::{Spec, of_changes},
};
use tune::change_request::ChangeRequest;

use crate::{Result, time_budget::FEWEST_RUNS};

/// The shortest useful window.
const SHORTEST: Nanos = Nanos(100_000_000);

/// What to improve, and how.
#[derive(Debug)]
pub struct Request {
    /// The experiment without its factor.
    pub spec: Spec,
    /// Changes to try besides those of findings.
    pub also: Vec<ChangeRequest>,
    /// The goal that findings are judged by.
    pub goal: model::Goal,
    /// The server, where the operator allows changing it:
    /// `ssh://[USER@]HOST[:PORT][/PATH/OF/netwright]`.
    pub responder: Option<String>,
    /// The time budget of the whole command.
    pub budget: Nanos,
    /// The most runs of each experiment; `None`: a share of the budget.
    pub runs: Option<usize>,
    /// How long the counters are observed before each judgement.
    pub window: Nanos,
    /// Whether to attach eBPF programs.
    pub bpf: bool,
    /// Whether to stop irqbalance and fix CPU frequencies during the command.
    pub freeze_host: bool,
    /// Whether to try changes that may cut the operator's connection.
    pub allow_disconnect: bool,
    /// Dry run: list candidates and change nothing.
    pub dry_run: bool,
}

impl Request {
    /// Checks the request.
    ///
    /// # Errors
    /// The first invalid option.
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

/// Checks the experiment, with a placeholder factor.
///
/// # Errors
/// The first mistake.
pub fn probe(spec: &Spec) -> Result<Experiment> {
    let factors = vec![of_changes(&["knob=value".to_owned()])];
    Experiment::check(Spec { factors, ..spec.clone() }, "fix")
}
