//! `doctor --peer`: both hosts judged over one window, and the end that limits.

use model::{BitsPerSec, Finding, SCHEMA_VERSION, Severity};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::document::DoctorDocument;
use crate::text::{Ink, Line, Page, TextStyle};

/// The end that limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LimitingEnd {
    Local,
    Peer,
    Both,
    /// Neither end has a finding of its own that is a warning or worse.
    Neither,
}

/// The load during the window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PeerLoad {
    /// Bits per second from this host to the peer.
    pub forward_bits_per_s: f64,
    /// Bits per second from the peer to this host.
    pub reverse_bits_per_s: f64,
}

/// Result of `doctor --peer` for two hosts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PeerDocument {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// The other end as given by `--peer`.
    pub target: String,
    pub limits: LimitingEnd,
    /// Rules whose findings decide, of this host.
    pub local_rules: Vec<String>,
    /// Rules whose findings decide, of the peer.
    pub peer_rules: Vec<String>,
    /// Whether both ends run under one kernel: what both found is then counted for neither.
    pub one_kernel: bool,
    /// The load that was made; `null` with `--no-load`.
    pub load: Option<PeerLoad>,
    pub local: DoctorDocument,
    pub peer: DoctorDocument,
}

impl PeerDocument {
    /// Judges both ends' documents together.
    pub fn new(
        target: String,
        load: Option<PeerLoad>,
        local: DoctorDocument,
        peer: DoctorDocument,
    ) -> Self {
        let boot = |d: &DoctorDocument| d.source.id.known().and_then(|id| id.boot_id.get());
        let one_kernel = boot(&local).is_some() && boot(&local) == boot(&peer);
        let (ours, theirs) = (own(&local, &peer, one_kernel), own(&peer, &local, one_kernel));
        let worst = |all: &[&Finding]| all.iter().map(|f| f.severity).max();
        let limits = match (worst(&ours), worst(&theirs)) {
            (None, None) => LimitingEnd::Neither,
            (a, b) if a > b => LimitingEnd::Local,
            (a, b) if a < b => LimitingEnd::Peer,
            _ => LimitingEnd::Both,
        };
        let rules = |all: &[&Finding]| all.iter().map(|f| f.rule.clone()).collect();
        let (local_rules, peer_rules) = (rules(&ours), rules(&theirs));
        Self {
            schema_version: SCHEMA_VERSION,
            target,
            limits,
            local_rules,
            peer_rules,
            one_kernel,
            load,
            local,
            peer,
        }
    }
}

/// The findings of one end that are warnings or worse, first the one that ranks first.
fn own<'a>(d: &'a DoctorDocument, other: &DoctorDocument, one_kernel: bool) -> Vec<&'a Finding> {
    let shared = |f: &Finding| one_kernel && other.findings.iter().any(|o| o.rule == f.rule);
    let mut all: Vec<&Finding> =
        d.findings.iter().filter(|f| f.severity >= Severity::Warning && !shared(f)).collect();
    all.sort_by_key(|f| (std::cmp::Reverse(f.severity), f.rank));
    all
}

/// The page: which end limits and why, then the findings of each end.
pub fn text(d: &PeerDocument, look: TextStyle) -> String {
    let mut page = Page::new(look);
    page.line(Line::new().ink(Ink::Strong, headline(d)), 2);
    page.line(Line::plain(load(d)), 2);
    let mut out = page.finish();
    for (end, document) in [("THIS HOST", &d.local), ("PEER", &d.peer)] {
        let mut page = Page::new(look);
        page.heading(end);
        out.push_str(&format!("\n{}", page.finish().trim_start_matches('\n')));
        out.push_str(&super::text(document, look));
    }
    out
}

/// Which end limits, and its first finding.
pub fn headline(d: &PeerDocument) -> String {
    let first = |document: &DoctorDocument, rules: &[String]| {
        let found = rules.first().and_then(|r| document.findings.iter().find(|f| &f.rule == r));
        found.map(|f| f.title.clone()).unwrap_or_default()
    };
    let ours = || first(&d.local, &d.local_rules);
    let theirs = || first(&d.peer, &d.peer_rules);
    match d.limits {
        LimitingEnd::Local => format!("This host limits: {}", ours()),
        LimitingEnd::Peer => format!("The peer {} limits: {}", login(&d.target), theirs()),
        LimitingEnd::Both => {
            format!("Both ends limit: this host: {}; {}: {}", ours(), login(&d.target), theirs())
        }
        LimitingEnd::Neither => {
            "Neither end limits: no finding of its own is a warning or worse".into()
        }
    }
}

/// The login at the other host, without the program's path.
fn login(target: &str) -> &str {
    let rest = target.strip_prefix("ssh://").unwrap_or(target);
    rest.split('/').next().unwrap_or(rest)
}

fn load(d: &PeerDocument) -> String {
    let load = match &d.load {
        None => "Load: the traffic that was there".to_owned(),
        Some(load) => format!(
            "Load: streams both ways, {} to the peer, {} back",
            BitsPerSec(load.forward_bits_per_s as u64),
            BitsPerSec(load.reverse_bits_per_s as u64)
        ),
    };
    match d.one_kernel {
        true => format!("{load}; both ends share one kernel, what both found counts for neither"),
        false => load,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_has_no_path() {
        assert_eq!(login("ssh://root@db1:2222/opt/netwright"), "root@db1:2222");
        assert_eq!(login("ssh://db1"), "db1");
    }
}
