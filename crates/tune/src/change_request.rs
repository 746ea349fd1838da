//! Change requests: knobs and values, read from arguments, lines, findings or an earlier plan.

pub mod irqs;
mod lines;
mod setpci;
mod several_knobs;

use model::{
    Finding, Reading,
    tune::{HostId, Plan, Profile, Refused, RefusedAs},
};
use parse::sysctl_conf;
use serde::Deserialize;

pub use lines::pair;
pub use several_knobs::{left_whole, name_processes, split, who};

use crate::{TuneError, knobs, netns, profile};

/// Prefix of the server's knobs where knobs of client and server stand in one list.
pub const PEER: &str = "peer:";

/// One knob and the value wanted for it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangeRequest {
    /// Full knob name as the user spelled it.
    pub knob: String,
    pub value: String,
    /// `argument 1`, `line 3`, `finding few_channels`, `step 2 of the plan`.
    pub asked_by: String,
    /// Reason, where the source gave one.
    pub why: String,
    /// How the value is to be read.
    pub mode: RequestMode,
}

/// How a requested value is to be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum RequestMode {
    #[default]
    Exactly,
    /// At least this value; see [`crate::profile::raise`].
    AtLeast,
    /// Refused for this reason, unless the knob gives a better one.
    Refuted(String),
}

/// All change requests of a document or of the arguments.
#[derive(Debug, Clone, Default)]
pub struct ChangeRequests {
    /// In the order given.
    pub change_requests: Vec<ChangeRequest>,
    /// Requests refused before planning.
    pub refused: Vec<Refused>,
    /// The earlier plan they came from: its host and old values must match the current ones.
    pub plan: Option<Plan>,
    /// The host of the findings they came from; must be this host. Parts that the document omits
    /// are not compared.
    pub found_on: Option<HostId>,
    /// Whether the user allowed dangerous changes ([`crate::knob::Knob::danger`]).
    pub understood: bool,
    /// Whether they are for a measurement that is undone afterwards: it may lower a value or test
    /// one without effect.
    pub trial: bool,
    /// The profile they came from, and the interfaces chosen for it.
    pub profile: Option<(Profile, Vec<String>)>,
}

impl ChangeRequests {
    /// Refuses host-wide knobs where only those of a network namespace may change. Unknown names
    /// stay and are refused as unknown.
    pub fn only_of_namespace(&mut self, kind: RefusedAs, why: &str) {
        let own =
            |w: &ChangeRequest| netns::is_of_namespace(&w.knob) || knobs::find(&w.knob).is_none();
        let (own, hosts): (_, Vec<ChangeRequest>) =
            std::mem::take(&mut self.change_requests).into_iter().partition(own);
        self.change_requests = own;
        self.refused.extend(hosts.into_iter().map(|w| Refused {
            asked_by: w.asked_by,
            knob: w.knob,
            new: w.value,
            kind,
            why: why.into(),
            verdict: None,
            source: String::new(),
        }));
    }

    /// Renames each kernel setting to its dotted name. Two spellings are one setting, and the
    /// journal finds the last writer of a setting by name.
    pub fn by_one_name(&mut self) {
        for change_request in &mut self.change_requests {
            let Some(key) = change_request.knob.strip_prefix("sysctl.") else { continue };
            if knobs::find(&change_request.knob).is_some() {
                change_request.knob =
                    format!("sysctl.{}", sysctl_conf::dotted(&sysctl_conf::path(key)));
            }
        }
    }

    /// Whether the user named each knob: a refusal then fails the plan. Requests of findings and
    /// profiles that do not fit are left out.
    pub fn by_name(&self) -> bool {
        self.plan.is_some()
            || self.refused.is_empty() && self.profile.is_none() && self.found_on.is_none()
    }
}

/// Change requests from a profile's lines.
///
/// # Errors
/// As [`crate::profile::load`].
pub fn profile(name: &str, nics: &[String]) -> Result<ChangeRequests, TuneError> {
    Ok(ChangeRequests {
        profile: Some((profile::load(name)?, nics.to_vec())),
        ..ChangeRequests::default()
    })
}

/// Longest document that is read, in bytes.
pub const MAX_BYTES: u64 = 64 << 20;

/// Change requests from `KNOB=VALUE` arguments.
///
/// # Errors
/// The first argument that is not `KNOB=VALUE`.
pub fn arguments(all: &[String]) -> Result<ChangeRequests, TuneError> {
    let change_requests =
        all.iter().enumerate().map(|(i, a)| pair(a, &format!("argument {}", i + 1)));
    Ok(ChangeRequests {
        change_requests: change_requests.collect::<Result<_, _>>()?,
        ..ChangeRequests::default()
    })
}

/// Change requests from a document: `doctor --json`, a plan, or lines of settings (`KNOB=VALUE`,
/// sysctl.conf, a recipe's commands).
///
/// # Errors
/// The text is none of these; the message names the line.
pub fn document(text: &str) -> Result<ChangeRequests, TuneError> {
    if text.trim_start().starts_with('{') {
        return json(text);
    }
    lines::read(text)
}

fn json(text: &str) -> Result<ChangeRequests, TuneError> {
    #[derive(Deserialize)]
    struct DoctorDocument {
        findings: Vec<Finding>,
        source: Source,
        #[serde(default)]
        host: Named,
    }
    #[derive(Default, Deserialize)]
    struct Named {
        #[serde(default)]
        name: Reading<String>,
    }
    #[derive(Deserialize)]
    struct Source {
        kind: String,
        #[serde(default)]
        id: Reading<HostId>,
    }
    let value: serde_json::Value = model::json::value(text.as_bytes()).map_err(|e| not_json(&e))?;
    if value.get("findings").is_some() {
        let d = DoctorDocument::deserialize(&value).map_err(|e| not_json(&e))?;
        if d.source.kind != "live" {
            return Err(TuneError::Environment(
                "these findings are of a snapshot or a folder, not of this host".into(),
            ));
        }
        let named = || HostId {
            name: d.host.name,
            machine_id: Reading::default(),
            boot_id: Reading::default(),
            net_namespace: Reading::default(),
            net_cookie: Reading::default(),
        };
        let found_on = Some(d.source.id.into_known().unwrap_or_else(named));
        return Ok(ChangeRequests { found_on, ..findings(&d.findings) });
    }
    let plan = Plan::deserialize(&value).map_err(|e| not_json(&e))?;
    if plan.schema_version != model::SCHEMA_VERSION {
        return Err(TuneError::Usage(format!(
            "the plan has schema_version {}, this netwright knows {}",
            plan.schema_version,
            model::SCHEMA_VERSION
        )));
    }
    let change_request = |(i, c): (usize, &model::tune::Planned)| ChangeRequest {
        knob: c.knob.clone(),
        value: c.new.clone(),
        asked_by: format!("step {} of the plan", i + 1),
        why: c.why.clone(),
        mode: RequestMode::Exactly,
    };
    let change_requests = plan.changes.iter().enumerate().map(change_request).collect();
    Ok(ChangeRequests { change_requests, plan: Some(plan), ..ChangeRequests::default() })
}

fn not_json(e: &serde_json::Error) -> TuneError {
    TuneError::Usage(format!("neither findings (doctor --json) nor a plan (tune plan --json): {e}"))
}

/// Changes of findings, highest rank first. A finding that another one explains is skipped. If two
/// findings set one knob, the first wins.
pub fn findings(findings: &[Finding]) -> ChangeRequests {
    let mut all = ChangeRequests::default();
    let mut ordered: Vec<&Finding> = findings.iter().collect();
    ordered.sort_by_key(|f| f.rank);
    for f in ordered {
        for c in &f.changes {
            let asked_by = format!("finding {}", f.rule);
            let taken = all.change_requests.iter().find(|w| w.knob == c.knob && !c.knob.is_empty());
            let refuse = |kind, why| Refused {
                asked_by: asked_by.clone(),
                knob: c.knob.clone(),
                new: c.new.clone(),
                kind,
                why,
                verdict: None,
                source: String::new(),
            };
            if let Some(cause) = f.caused_by.first() {
                let why = format!("{cause} explains this finding: remedy that, then look again");
                all.refused.push(refuse(RefusedAs::Postponed, why));
            } else if c.knob.is_empty() {
                let by_hand = if c.command.is_empty() { &c.new } else { &c.command };
                let why = format!("advice that no knob covers: {by_hand}");
                all.refused.push(refuse(RefusedAs::Environment, why));
            } else if let Some(taken) = taken {
                if taken.value != c.new {
                    let why = format!("{} comes first and wants {}", taken.asked_by, taken.value);
                    all.refused.push(refuse(RefusedAs::Postponed, why));
                }
            } else {
                let (knob, value) = (c.knob.clone(), c.new.clone());
                all.change_requests.push(ChangeRequest {
                    knob,
                    value,
                    asked_by,
                    ..ChangeRequest::default()
                });
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_numbers_and_comments() {
        let w = document("# first\n\nsysctl.net.core.somaxconn = 4096 # why\nnic.a.mtu=9000\n")
            .unwrap();
        assert_eq!(w.change_requests.len(), 2);
        assert_eq!(w.change_requests[0].value, "4096");
        assert_eq!(w.change_requests[1].asked_by, "line 4");
        let bad = document("nic.a.mtu=1\nnonsense\n").unwrap_err();
        assert!(bad.to_string().starts_with("line 2"), "{bad}");
        assert!(matches!(document("{}"), Err(TuneError::Usage(_))));
        assert!(matches!(document("{\"findings\": 3"), Err(TuneError::Usage(_))));
    }

    #[test]
    fn two_spellings_are_one_setting() {
        let name = |spelled: &str| {
            let mut all = arguments(&[format!("{spelled}=1")]).unwrap();
            all.by_one_name();
            all.change_requests[0].knob.clone()
        };
        let one = "sysctl.net.ipv4.tcp_fin_timeout";
        assert_eq!(name("sysctl.net/ipv4/tcp_fin_timeout"), one);
        assert_eq!(name(one), one);
        // A dot inside a name is kept, written between slashes.
        let dot = "sysctl.net.ipv4.conf.eth0/100.rp_filter";
        assert_eq!(name("sysctl.net/ipv4/conf/eth0.100/rp_filter"), dot);
        assert_eq!(name(dot), dot);
        assert_eq!(name("nic.a.mtu"), "nic.a.mtu");
    }

    #[test]
    fn a_findings_change_waits_for_its_cause_and_yields_to_the_first() {
        let finding = |rule: &str, rank, caused_by: &[&str], knob: &str, new: &str| {
            serde_json::json!({
                "rule": rule, "number": 1, "title": "", "severity": "warning", "confidence": "low",
                "rank": rank, "subject": "", "explanation": "", "expected_benefit": "",
                "evidence": [], "caused_by": caused_by,
                "changes": [{"knob": knob, "old": "", "new": new, "command": "c", "risk": ""}],
            })
        };
        let text = serde_json::json!({
            "source": {"kind": "live"},
            "findings": [
                finding("b", 2, &[], "nic.a.mtu", "9000"),
                finding("a", 1, &[], "nic.a.mtu", "1500"),
                finding("c", 3, &["a"], "nic.b.mtu", "1500"),
                finding("d", 4, &[], "", "by hand"),
            ]
        });
        let w = document(&text.to_string()).unwrap();
        assert_eq!(w.change_requests.len(), 1);
        assert_eq!(
            (w.change_requests[0].asked_by.as_str(), w.change_requests[0].value.as_str()),
            ("finding a", "1500")
        );
        assert_eq!(w.refused.len(), 3);
        assert!(w.found_on.is_some_and(|h| !h.name.is_known()));
    }

    #[test]
    fn a_healthy_hosts_findings_are_no_mistake() {
        let text = r#"{"findings": [], "host": {"name": "a"}, "source": {"kind": "live", "id": {
            "name": "a", "machine_id": "m", "boot_id": "b", "net_namespace": 1, "net_cookie": 2}}}"#;
        let w = document(text).unwrap();
        assert!(w.change_requests.is_empty() && w.refused.is_empty() && !w.by_name());
        assert_eq!(w.found_on.unwrap().net_cookie.get(), Some(2));
        // From an old netwright that recorded the host's name only.
        let w = document(r#"{"findings": [], "host": {"name": "a"}, "source": {"kind": "live"}}"#);
        assert_eq!(w.unwrap().found_on.unwrap().name.get().as_deref(), Some("a"));
    }
}
