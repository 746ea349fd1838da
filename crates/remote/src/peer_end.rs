//! The client's end: uses the remote host like a local trial host.

use std::time::Duration;

use model::{
    Finding, Nanos,
    tune::{Plan, Status},
};
use tune::{TuneError, change_request::ChangeRequest};

use crate::{Answer, PeerRequest, Request, ssh::Ssh};

/// Another host, reached over ssh. Dropping it reverts what is on trial there.
#[derive(Debug)]
pub struct PeerEnd {
    ssh: Ssh,
    /// The target as typed.
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

    /// Locks the remote host's changes from now on.
    ///
    /// # Errors
    /// Another process is changing it.
    pub fn begin(&self) -> Result<(), TuneError> {
        self.done(&Request::Begin)
    }

    /// The remote host's findings after observing it for this long.
    ///
    /// # Errors
    /// The connection is gone.
    pub fn look(&self, window_ns: Nanos, goal: model::Goal) -> Result<Vec<Finding>, TuneError> {
        let takes = Duration::from_nanos(window_ns.0);
        match self.ask(&Request::Look { window_ns, goal }, takes)? {
            Answer::Found { findings } => Ok(findings),
            _ => self.odd(),
        }
    }

    /// The remote host's document of `doctor`, after observing it for this long.
    ///
    /// # Errors
    /// The connection is gone, or the remote host cannot be read.
    pub fn judge(
        &self,
        window_ns: Nanos,
        goal: model::Goal,
    ) -> Result<serde_json::Value, TuneError> {
        let takes = Duration::from_nanos(window_ns.0);
        match self.ask(&Request::Judge { window_ns, goal }, takes)? {
            Answer::Judged(document) => Ok(*document),
            _ => self.odd(),
        }
    }

    /// Starts a measurement server there: its address and its secret.
    ///
    /// # Errors
    /// The connection is gone, or no port is free.
    pub fn serve(&self) -> Result<(String, String), TuneError> {
        match self.ask(&Request::Serve, Duration::ZERO)? {
            Answer::Serving { address, secret } => Ok((address, secret)),
            _ => self.odd(),
        }
    }

    /// The plan for the remote host, and its number for [`Request::Try`].
    ///
    /// # Errors
    /// The connection is gone, or the remote host cannot plan.
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

    /// As [`tune::trial::TrialHost::try_out`].
    ///
    /// # Errors
    /// The first change that failed; the remote host is then as it was.
    pub fn try_out(&self, plan: usize) -> Result<u64, TuneError> {
        match self.ask(&Request::Try { plan }, Duration::ZERO)? {
            Answer::Made { id } => Ok(id),
            _ => self.odd(),
        }
    }

    /// As [`tune::trial::TrialHost::holds`].
    ///
    /// # Errors
    /// The first value that has changed since.
    pub fn holds(&self, id: u64) -> Result<(), TuneError> {
        self.done(&Request::Holds { id })
    }

    /// As [`tune::trial::TrialHost::take_back`].
    ///
    /// # Errors
    /// The values that could not be reverted.
    pub fn take_back(&self, id: u64) -> Result<(), TuneError> {
        self.done(&Request::TakeBack { id })
    }

    /// As [`tune::trial::TrialHost::keep`].
    ///
    /// # Errors
    /// The remote journal cannot be written.
    pub fn keep(&self, id: u64) -> Result<(), TuneError> {
        self.done(&Request::Keep { id })
    }

    /// Rolls back a change that a client made and kept.
    ///
    /// # Errors
    /// As [`tune::trial::TrialHost::roll_back`].
    pub fn roll_back(&self, id: u64) -> Result<(), TuneError> {
        match self.ask(&Request::Rollback { id }, Duration::ZERO)? {
            Answer::Done => Ok(()),
            Answer::Left { why } => Err(TuneError::Changed(format!("{}: {why}", self.name))),
            _ => self.odd(),
        }
    }

    /// What is in force on the remote host.
    ///
    /// # Errors
    /// The connection is gone.
    pub fn status(&self) -> Result<Status, TuneError> {
        match self.ask(&Request::Status, Duration::ZERO)? {
            Answer::Standing(status) => Ok(*status),
            _ => self.odd(),
        }
    }
}
