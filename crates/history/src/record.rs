//! What a run leaves.

use model::history::HistoryRun;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// A run: what was asked, where and by which versions, and the answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// End of the run, milliseconds since 1970.
    pub ended_unix_ms: u64,
    /// Name of the host that the document is about.
    pub host: String,
    /// [`fingerprint`] of its machine id; empty where it is unknown.
    pub host_fingerprint: String,
    /// Kernel release of that host; empty where it is unknown.
    pub kernel: String,
    /// The version of netwright that wrote the run.
    pub netwright: String,
    /// The command line, without secrets.
    pub command: Vec<String>,
    /// The name of the document's schema: `doctor`, `measure-rtt`; `tune-rollback` for a rollback.
    pub kind: String,
    /// The operator's word for it; empty without one.
    pub tag: String,
    /// Exit code of the run.
    pub exit_code: u8,
    /// The result in a few words.
    pub headline: String,
    /// The change set in the journal, where the run changed the host.
    pub change: Option<u64>,
    /// The document of `--json`, without secrets.
    pub document: String,
    /// The host's facts as in `inspect --json`; empty where they could not be read.
    pub facts: String,
}

impl Record {
    /// Its line in a list, under this number.
    pub fn listed(&self, id: u64) -> HistoryRun {
        HistoryRun {
            id,
            ended_unix_ms: self.ended_unix_ms,
            host: self.host.clone(),
            host_fingerprint: self.host_fingerprint.clone(),
            kernel: self.kernel.clone(),
            netwright: self.netwright.clone(),
            command: self.command.clone(),
            kind: self.kind.clone(),
            tag: self.tag.clone(),
            exit_code: self.exit_code,
            headline: self.headline.clone(),
            change: self.change,
        }
    }

    /// The SHA-256 of all that it has, in hex: equal records are one run.
    pub fn content_id(&self) -> String {
        hex(&Sha256::digest(serde_json::to_vec(self).unwrap_or_default()))
    }
}

/// Sixteen hex digits that tell hosts apart and do not reveal the machine id.
pub fn fingerprint(machine_id: &str) -> String {
    let salted = Sha256::new().chain_update("netwright history ").chain_update(machine_id);
    hex(&salted.finalize()).chars().take(16).collect()
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
