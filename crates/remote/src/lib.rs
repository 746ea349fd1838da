//! Changes on another host, over ssh:
//! - the protocol is [`Request`] and [`Answer`];
//! - [`host`] (`netwright remote`) answers on the remote host;
//! - [`peer_end`] asks from this host, over [`ssh`];
//! - [`hosts`] combines both hosts, [`tuned`] does so for an experiment.
//!
//! If the answering process is killed, [`tune::watchdog::maker`] reverts what is on trial.

pub mod host;
pub mod hosts;
pub mod peer_end;
pub mod ssh;
pub mod tuned;

use std::time::Duration;

use model::{
    Finding, Nanos,
    tune::{Plan, Status},
};
use serde::{Deserialize, Serialize};
use tune::{TuneError, change_request::ChangeRequest};

/// A client that is silent for longer counts as gone.
pub const LEASE: Duration = Duration::from_secs(20);
/// The longest line of the protocol, bytes.
pub const LONGEST_LINE: u64 = 16 << 20;

/// The first line that the remote end sends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Greeting {
    /// Its version, which must equal the client's.
    pub netwright: String,
}

/// A request to the server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Keeps the connection alive.
    Alive,
    /// Lock the host's changes, and undo what killed experiments left set.
    Begin,
    /// Observe for this long, and judge.
    Look { window_ns: Nanos, goal: model::Goal },
    /// Observe for this long, and answer with the document of `doctor`.
    Judge { window_ns: Nanos, goal: model::Goal },
    /// Serve measurements for this client, until the connection ends.
    Serve,
    /// Plan these changes; nothing is written.
    Plan {
        change_requests: Vec<PeerRequest>,
        /// Whether the plan may have changes that can cut this connection.
        own_connection: bool,
    },
    /// Apply the plan of this number, on trial.
    Try { plan: usize },
    /// Check that a change still has the values that it wrote.
    Holds {
        /// Its number in the server's journal.
        id: u64,
    },
    /// Revert a change that is on trial.
    TakeBack {
        /// Its number in the server's journal.
        id: u64,
    },
    /// End a trial and keep its changes.
    Keep {
        /// Its number in the server's journal.
        id: u64,
    },
    /// Roll back a change that a client made and kept.
    Rollback {
        /// Its number in the server's journal.
        id: u64,
    },
    /// Report what is in force.
    Status,
}

/// The server's answer to a [`Request`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    Done,
    Found {
        /// Findings in the format of `doctor`.
        findings: Vec<Finding>,
    },
    /// The document of `doctor --json`.
    Judged(Box<serde_json::Value>),
    /// A measurement server for this client alone.
    Serving {
        /// Its address and port.
        address: String,
        secret: String,
    },
    /// The server's plan for a [`Request::Plan`].
    Planned {
        /// Its number for [`Request::Try`].
        number: usize,
        plan: Box<Plan>,
    },
    /// The change is applied, as this change set.
    Made {
        /// Its number in the server's journal.
        id: u64,
    },
    /// Rolled back, except for values that another process set since.
    Left {
        why: String,
    },
    /// What is in force.
    Standing(Box<Status>),
    /// The request failed, for the reason `why`.
    Failed {
        /// The exit code that says who can help: 2, 3 or 4.
        code: u8,
        why: String,
    },
}

/// A change request in the protocol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerRequest {
    /// The knob's name on the server, without the prefix.
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
