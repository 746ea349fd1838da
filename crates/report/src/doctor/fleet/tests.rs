use model::{
    SCHEMA_VERSION, Severity,
    fleet::{FleetCause, FleetChange, FleetDocument, FleetFinding, FleetHost, HostState},
};

use super::text;
use crate::TextStyle;

const LOOK: TextStyle = TextStyle { width: 80, colour: false, verbose: false };

fn finding(severity: Severity, rule: &str) -> FleetFinding {
    FleetFinding { severity, rule: rule.into(), subject: "eth0".into() }
}

fn host(name: &str, state: HostState, critical: u64, findings: &[FleetFinding]) -> FleetHost {
    FleetHost {
        name: name.into(),
        state,
        version: (state != HostState::Down).then(|| "0.1.0".into()),
        critical,
        warning: 0,
        info: 3,
        findings: findings.to_vec(),
        drifted: vec![],
    }
}

fn document(hosts: Vec<FleetHost>) -> FleetDocument {
    let names: Vec<String> =
        hosts.iter().filter(|h| h.critical > 0).map(|h| h.name.clone()).collect();
    FleetDocument {
        schema_version: SCHEMA_VERSION,
        target: "http://prometheus:9090".into(),
        at_unix_s: 1.0,
        min_severity: Severity::Warning,
        causes: vec![FleetCause {
            rule: "qdisc_drops".into(),
            severity: Severity::Critical,
            hosts: names.clone(),
            findings: names.len(),
        }],
        changes: vec![FleetChange {
            knob: "sysctl.net.core.somaxconn".into(),
            value: "8192".into(),
            hosts: names,
            rules: vec!["qdisc_drops".into()],
            command: "ansible-playbook … --limit @hosts".into(),
        }],
        hosts,
        warnings: vec![],
    }
}

#[test]
fn the_answer_comes_first_and_lists_have_an_end() {
    let bad = (0..12).map(|n| {
        host(
            &format!("db{n}:7473"),
            HostState::Judged,
            1,
            &[finding(Severity::Critical, "qdisc_drops")],
        )
    });
    let silent = ["web1:7473", "web2:7473"].map(|n| host(n, HostState::Down, 0, &[]));
    let page = text(&document(bad.chain(silent).collect()), 2, LOOK);
    let expected = "\
12 of 14 hosts have findings; the commonest cause is qdisc_drops, on 12 hosts; 2
  hosts do not answer
http://prometheus:9090 · netwright 0.1.0 · warnings and worse (42 info:
  --min-severity info)

NO ANSWER
  2 hosts down: Prometheus cannot scrape the exporter: web1:7473, web2:7473

HOST      CRIT  WARN  INFO  FINDINGS
db0:7473     1     –     3  qdisc_drops
db1:7473     1     –     3  qdisc_drops
… and 10 more hosts (-v, --top)

CAUSE        HOSTS  WORST     ON
qdisc_drops     12  critical  db0:7473, db1:7473, db2:7473 and 9 more

THE CHANGE THAT HELPS MOST HOSTS
  sysctl.net.core.somaxconn = 8192 on 12 hosts (qdisc_drops)
";
    assert_eq!(page.split_once("    netwright doctor").unwrap().0, expected);
    assert!(page.ends_with(">hosts\n    ansible-playbook … --limit @hosts\n"), "{page}");
}

#[test]
fn each_change_has_the_line_that_makes_its_own_list_of_hosts() {
    let mut document = document(vec![host(
        "db1:7473",
        HostState::Judged,
        1,
        &[finding(Severity::Critical, "qdisc_drops")],
    )]);
    let other = FleetChange { knob: "sysctl.x".into(), ..document.changes[0].clone() };
    document.changes.push(other);
    let page = text(&document, 10, TextStyle { verbose: true, ..LOOK });
    for n in 0..2 {
        assert_eq!(page.matches(&format!("'.changes[{n}].hosts[]'")).count(), 1, "{page}");
    }
    assert_eq!(page.matches("--limit @hosts").count(), 2, "{page}");
}

#[test]
fn hosts_that_have_just_started_are_not_said_to_be_well() {
    let all = [("db1:7473", HostState::Starting), ("db2:7473", HostState::Starting)];
    let mut document = document(all.map(|(name, state)| host(name, state, 0, &[])).to_vec());
    (document.causes, document.changes) = (vec![], vec![]);
    let page = text(&document, 10, LOOK);
    let first = "The findings of no host are known; 2 hosts have just started\n";
    assert!(page.starts_with(first), "{page}");
    document.hosts.push(host("db3:7473", HostState::Judged, 0, &[]));
    let page = text(&document, 10, LOOK);
    assert!(page.starts_with("No finding on 1 host; 2 hosts have just started\n"), "{page}");
    document.hosts.push(host("db4:7473", HostState::Unclear, 0, &[]));
    let page = text(&document, 10, LOOK);
    assert!(page.contains("; 1 host reports invalid counts\n"), "{page}");
    assert!(page.contains("1 host unclear: its exporter reports invalid counts"), "{page}");
}

#[test]
fn labels_of_strangers_are_shown_without_effect() {
    let escape = "\x1b[31mred\u{202e}".repeat(40);
    let bad = host(&escape, HostState::Judged, 1, &[finding(Severity::Critical, &escape)]);
    let mut document = document(vec![bad]);
    document.warnings.push("\x1b]0;title\x07".into());
    let page = text(&document, 10, LOOK);
    assert!(!page.chars().any(|c| c.is_control() && c != '\n'), "{page:?}");
    assert!(!page.contains('\u{202e}'), "{page:?}");
}

#[test]
fn a_fleet_without_findings_says_so() {
    let mut document = document(vec![host("db1:7473", HostState::Judged, 0, &[])]);
    (document.causes, document.changes) = (vec![], vec![]);
    let page = text(&document, 10, LOOK);
    assert!(page.starts_with("No finding on 1 host\n"), "{page}");
    assert_eq!(page.lines().count(), 3, "{page}");
}
