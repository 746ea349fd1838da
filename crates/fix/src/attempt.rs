//! What is tried.

use model::{fix::Candidate, tune::Plan};
use tune::change_request::ChangeRequest;

/// A candidate with what it takes to try it; `plan` is there where it can be tried.
pub struct Attempt {
    pub candidate: Candidate,
    pub change_requests: Vec<ChangeRequest>,
    pub plan: Option<Plan>,
}

impl Attempt {
    /// What it changes, for people.
    pub fn name(&self) -> String {
        name(&self.candidate)
    }

    /// What tells it from others: the same change request is not tried twice.
    pub fn key(&self) -> String {
        key(&self.candidate)
    }
}

fn name(c: &Candidate) -> String {
    let each = c.changes.iter().map(|c| format!("{}={}", c.knob, c.new));
    each.collect::<Vec<_>>().join(", ")
}

/// What tells a candidate from others.
pub fn key(c: &Candidate) -> String {
    format!("{} {}", c.asked_by, name(c))
}
