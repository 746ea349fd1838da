//! Changes on another host: what is said ([`Request`], [`Answer`]), who answers there ([`host`],
//! `netwright remote`), who asks here ([`local`]) and over what ([`ssh`]), both hosts as one
//! ([`hosts`], for an experiment [`tuned`]), and who puts back when the one who answers is killed ([`tune::watchdog::maker`]).

pub mod host;
pub mod hosts;
pub mod local;
pub mod ssh;
pub mod tuned;

use std::time::Duration;

use model::{
    Finding, Nanos,
    tune::{Plan, Status},
};
use serde::{Deserialize, Serialize};
use tune::{TuneError, change_request::ChangeRequest};

/// So long the end that asks may say nothing; then it counts as gone.
pub const LEASE: Duration = Duration::from_secs(20);
/// Bytes of a line.
pub const LONGEST_LINE: u64 = 16 << 20;

/// The first line of the end that answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Greeting {
    /// Its version: both ends must have the same.
    pub netwright: String,
}

/// Asked of the server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Nothing: we are still here.
    Alive,
    /// Have the host's changes to yourself, and undo what killed experiments left.
    Begin,
    /// Watch for so long and judge.
    Look { window_ns: Nanos, goal: model::Goal },
    /// What would be done?
    Plan {
        change_requests: Vec<PeerRequest>,
        /// Whether that may include what may cut this connection.
        own_connection: bool,
    },
    /// Do what the plan of this number says, on trial.
    Try { plan: usize },
    /// Is a change still as it was made?
    Holds {
        /// Its number in the server's journal.
        id: u64,
    },
    /// Undo a change that is on trial.
    TakeBack {
        /// Its number in the server's journal.
        id: u64,
    },
    /// End a trial: its changes stay.
    Keep {
        /// Its number in the server's journal.
        id: u64,
    },
    /// Undo a change that was made from afar and kept.
    Rollback {
        /// Its number in the server's journal.
        id: u64,
    },
    /// What is in force?
    Status,
}

/// What the server says to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    Done,
    Found {
        /// As `doctor` has them.
        findings: Vec<Finding>,
    },
    /// What would be done.
    Planned {
        /// To try it by.
        number: usize,
        plan: Box<Plan>,
    },
    /// It is done, as this change.
    Made {
        /// Its number in the server's journal.
        id: u64,
    },
    /// It is rolled back, but for what somebody else set since.
    Left {
        why: String,
    },
    /// What is in force.
    Standing(Box<Status>),
    /// It is not done.
    Failed {
        /// Who can do something about it, as an exit code: 2, 3, 4.
        code: u8,
        why: String,
    },
}

/// A change request on the wire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerRequest {
    /// The knob's name as the server has it.
    pub knob: String,
    pub value: String,
    pub asked_by: String,
}

impl PeerRequest {
    fn change_request(self) -> ChangeRequest {
        let Self { knob, value, asked_by } = self;
        ChangeRequest { knob, value, asked_by, ..ChangeRequest::default() }
    }
}

impl Answer {
    fn failed(e: &TuneError) -> Self {
        let code = match e {
            TuneError::Usage(_) => 2,
            TuneError::Denied(_) => 3,
            _ => 4,
        };
        Self::Failed { code, why: e.to_string() }
    }
}
