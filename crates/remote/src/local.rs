//! The end that asks: the far host as if it were a bench of our own.

use std::time::Duration;

use model::{
    Finding, Nanos,
    tune::{Plan, Status},
};
use tune::{TuneError, change_request::ChangeRequest};

use crate::{Answer, PeerRequest, Request, ssh::Ssh};

/// Another host, reached over ssh. When it is dropped, what is on trial there is put back.
#[derive(Debug)]
pub struct PeerEnd {
    ssh: Ssh,
    /// As it was asked for.
    pub name: String,
}

impl PeerEnd {
    /// Connects and starts netwright there; changes nothing yet.
    ///
    /// # Errors
    /// As [`Ssh::connect`].
    pub fn connect(name: &str) -> Result<Self, TuneError> {
        Ok(Self { ssh: Ssh::connect(name)?, name: name.to_owned() })
    }

    fn ask(&self, request: &Request, takes: Duration) -> Result<Answer, TuneError> {
        let answer = self.ssh.ask(request, takes)?;
        let Answer::Failed { code, why } = answer else { return Ok(answer) };
        let why = format!("{}: {why}", self.name);
        Err(match code {
            2 => TuneError::Usage(why),
            3 => TuneError::Denied(why),
            _ => TuneError::Environment(why),
        })
    }

    fn odd<T>(&self) -> Result<T, TuneError> {
        Err(TuneError::Environment(format!("{} answers something else", self.name)))
    }

    fn done(&self, request: &Request) -> Result<(), TuneError> {
        match self.ask(request, Duration::ZERO)? {
            Answer::Done => Ok(()),
            _ => self.odd(),
        }
    }

    /// Has the host's changes to itself from now on.
    ///
    /// # Errors
    /// Somebody else is changing it.
    pub fn begin(&self) -> Result<(), TuneError> {
        self.done(&Request::Begin)
    }

    /// Its findings after watching for so long.
    ///
    /// # Errors
    /// It is gone.
    pub fn look(&self, window_ns: Nanos, goal: model::Goal) -> Result<Vec<Finding>, TuneError> {
        let takes = Duration::from_nanos(window_ns.0);
        match self.ask(&Request::Look { window_ns, goal }, takes)? {
            Answer::Found { findings } => Ok(findings),
            _ => self.odd(),
        }
    }

    /// What would be done there, and the number to try it by.
    ///
    /// # Errors
    /// It is gone, or cannot plan.
    pub fn plan(
        &self,
        change_requests: &[ChangeRequest],
        own_connection: bool,
    ) -> Result<(usize, Plan), TuneError> {
        let asked = |w: &ChangeRequest| PeerRequest {
            knob: w.knob.clone(),
            value: w.value.clone(),
            asked_by: w.asked_by.clone(),
        };
        let change_requests = change_requests.iter().map(asked).collect();
        match self.ask(&Request::Plan { change_requests, own_connection }, Duration::ZERO)? {
            Answer::Planned { number, plan } => Ok((number, *plan)),
            _ => self.odd(),
        }
    }

    /// As [`tune::trial::Bench::try_out`].
    ///
    /// # Errors
    /// The first change that failed; then all is as it was there.
    pub fn try_out(&self, plan: usize) -> Result<u64, TuneError> {
        match self.ask(&Request::Try { plan }, Duration::ZERO)? {
            Answer::Made { id } => Ok(id),
            _ => self.odd(),
        }
    }

    /// As [`tune::trial::Bench::holds`].
    ///
    /// # Errors
    /// The first value that is another one now.
    pub fn holds(&self, id: u64) -> Result<(), TuneError> {
        self.done(&Request::Holds { id })
    }

    /// As [`tune::trial::Bench::take_back`].
    ///
    /// # Errors
    /// What could not be put back.
    pub fn take_back(&self, id: u64) -> Result<(), TuneError> {
        self.done(&Request::TakeBack { id })
    }

    /// As [`tune::trial::Bench::keep`].
    ///
    /// # Errors
    /// The journal there cannot be told.
    pub fn keep(&self, id: u64) -> Result<(), TuneError> {
        self.done(&Request::Keep { id })
    }

    /// Undoes what was kept from afar.
    ///
    /// # Errors
    /// As [`tune::trial::Bench::roll_back`].
    pub fn roll_back(&self, id: u64) -> Result<(), TuneError> {
        match self.ask(&Request::Rollback { id }, Duration::ZERO)? {
            Answer::Done => Ok(()),
            Answer::Left { why } => Err(TuneError::Changed(format!("{}: {why}", self.name))),
            _ => self.odd(),
        }
    }

    /// What is in force there.
    ///
    /// # Errors
    /// It is gone.
    pub fn status(&self) -> Result<Status, TuneError> {
        match self.ask(&Request::Status, Duration::ZERO)? {
            Answer::Standing(status) => Ok(*status),
            _ => self.odd(),
        }
    }
}
