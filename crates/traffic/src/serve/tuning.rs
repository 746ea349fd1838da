//! Who answers about this host's settings. What may be asked and what is done is not ours to
//! know: we carry texts for those who proved the secret, and say when they are gone.

use std::{fmt::Debug, time::Duration};

use super::endpoint::DataAddress;

/// So long a client that tunes may say nothing; then it counts as gone.
pub const LEASE: Duration = Duration::from_secs(20);

/// Finds somebody for each client that asks.
pub trait TuningService: Debug + Send + Sync {
    /// Somebody who answers one client, on the client's own thread.
    fn attend(&self, caller: &Caller) -> Box<dyn Attendant>;
}

/// Answers one client. Dropped when the client is done, gone, or silent for [`LEASE`], and when
/// the server is stopped: what is not to outlive the connection ends there.
pub trait Attendant {
    fn answer(&mut self, request: &str) -> String;
}

/// Who asks, over which address of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Theirs; a Unix socket's path.
    pub theirs: String,
    /// Ours; `None` over a Unix socket.
    pub ours: Option<String>,
}

impl Caller {
    pub(super) fn of(local: &DataAddress) -> Self {
        match local {
            DataAddress::Ip(ours, theirs) => {
                Self { theirs: theirs.to_string(), ours: Some(ours.to_string()) }
            }
            DataAddress::Unix(path) => Self { theirs: path.display().to_string(), ours: None },
        }
    }
}
