//! A candidate together with its plan.

use model::{fix::Candidate, tune::Plan};
use tune::change_request::ChangeRequest;

/// A candidate and its change requests. `plan` is `None` where it cannot be tried.
pub struct Attempt {
    pub candidate: Candidate,
    pub change_requests: Vec<ChangeRequest>,
    pub plan: Option<Plan>,
}

impl Attempt {
    /// Its changes for people: `KNOB=VALUE, …`.
    pub fn name(&self) -> String {
        name(&self.candidate)
    }

    /// Identifies the candidate: the same change request is not tried twice.
    pub fn key(&self) -> String {
        key(&self.candidate)
    }
}

fn name(c: &Candidate) -> String {
    let each = c.changes.iter().map(|c| format!("{}={}", c.knob, c.new));
    each.collect::<Vec<_>>().join(", ")
}

/// Identifies a candidate: who asks for it, and its changes.
pub fn key(c: &Candidate) -> String {
    format!("{} {}", c.asked_by, name(c))
}
