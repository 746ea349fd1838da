use model::{
    Severity,
    fleet::{FleetDocument, HostState},
};
use parse::prometheus_json::{InstantSeries, InstantVector};

use super::{Answers, Part, changes::without_port, fleet, queries};

/// A series of this host, `NAME:7473`, with these labels.
fn series(host: &str, labels: &[(&str, &str)], value: f64) -> InstantSeries {
    let mut all = [("instance", format!("{host}:7473"))].map(|(k, v)| (k.to_owned(), v)).to_vec();
    all.extend(labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())));
    InstantSeries { labels: all.into_iter().collect(), at_unix_s: 1.0, value }
}

fn vector(series: Vec<InstantSeries>) -> InstantVector {
    InstantVector { series, warnings: vec!["slow".into()] }
}

fn finding(host: &str, rule: &str, severity: &str) -> InstantSeries {
    series(host, &[("rule", rule), ("subject", "eth0"), ("severity", severity)], 1.0)
}

fn change(host: &str, rule: &str, knob: &str, value: &str) -> InstantSeries {
    let labels = [("rule", rule), ("subject", "eth0"), ("knob", knob), ("value", value)];
    series(host, &labels, 1.0)
}

/// `a` and `b` have findings, `c` none, `d` is down, `e` is gone, `f` stalled, `g` new.
fn answers() -> Answers {
    let mut answers = Answers::default();
    let all = ["a", "b", "c", "d", "e", "f", "g"];
    let up = |h: &&str| series(h, &[], if *h == "d" { 0.0 } else { 1.0 });
    let is_target = |h: &&&str| **h != "e";
    let builds = ["a", "b", "c", "f", "g"].map(|h| series(h, &[("version", "1.0")], 1.0));
    let counts = ["a", "b", "c", "f"].map(|h| {
        let criticals = if h == "b" { 2.0 } else { 0.0 };
        series(h, &[("severity", "critical")], criticals)
    });
    // A number that is none says nothing.
    let broken = series("c", &[("severity", "warning")], f64::NAN);
    let parts = [
        (Part::Up, all.iter().filter(is_target).map(up).collect()),
        (Part::Known, all.iter().map(|h| series(h, &[], 1.0)).collect()),
        (Part::Builds, builds.to_vec()),
        (Part::Counts, counts.into_iter().chain([broken]).collect()),
        (
            Part::Findings,
            vec![
                finding("a", "few_channels", "warning"),
                finding("a", "numa", "info"),
                finding("b", "few_channels", "warning"),
                finding("b", "drops", "critical"),
                finding("b", "qdisc", "critical"),
                finding("b", "odd", "severe"),
                // A host that nobody else knows, and a series of none.
                finding("z", "few_channels", "warning"),
                InstantSeries { labels: [].into(), at_unix_s: 1.0, value: 1.0 },
            ],
        ),
        (
            Part::Changes,
            vec![
                change("a", "few_channels", "sysctl.net.core.somaxconn", "8192"),
                change("b", "few_channels", "sysctl.net.core.somaxconn", "8192"),
                change("b", "drops", "sysctl.net.core.rmem_max", "4096"),
                // Of a finding that is not listed.
                change("a", "numa", "sysctl.kernel.numa_balancing", "0"),
                change("c", "few_channels", "sysctl.net.core.somaxconn", "8192"),
            ],
        ),
        (Part::Drift, vec![series("c", &[("knob", "sysctl.x"), ("change", "1")], 1.0)]),
        (Part::Stalled, vec![series("f", &[], 400.0)]),
    ];
    for (part, series) in parts {
        answers.add(part, vector(series));
    }
    answers
}

fn judged() -> FleetDocument {
    fleet("http://p", 1.0, Severity::Warning, &answers())
}

#[test]
fn hosts_come_worst_first_and_none_is_lost() {
    let document = judged();
    let hosts: Vec<(&str, HostState, u64, u64)> =
        document.hosts.iter().map(|h| (h.name.as_str(), h.state, h.critical, h.warning)).collect();
    assert_eq!(
        hosts,
        [
            ("b:7473", HostState::Judged, 2, 1),
            ("a:7473", HostState::Judged, 0, 1),
            ("d:7473", HostState::Down, 0, 0),
            ("e:7473", HostState::Gone, 0, 0),
            ("f:7473", HostState::Stalled, 0, 0),
            ("g:7473", HostState::Starting, 0, 0),
            ("c:7473", HostState::Unclear, 0, 0),
        ]
    );
    let rules: Vec<&str> = document.hosts[0].findings.iter().map(|f| f.rule.as_str()).collect();
    assert_eq!(rules, ["drops", "qdisc", "few_channels"], "the most severe first");
    assert_eq!(document.hosts[6].drifted, ["sysctl.x"]);
    assert_eq!(document.warnings, ["slow"], "each warning once");
}

#[test]
fn the_commonest_cause_and_the_change_that_helps_most_hosts_come_first() {
    let document = judged();
    let causes: Vec<(&str, usize)> =
        document.causes.iter().map(|c| (c.rule.as_str(), c.hosts.len())).collect();
    assert_eq!(causes, [("few_channels", 2), ("drops", 1), ("qdisc", 1)]);
    let [first, other] = document.changes.as_slice() else { panic!("{:?}", document.changes) };
    assert_eq!((first.knob.as_str(), first.value.as_str()), ("sysctl.net.core.somaxconn", "8192"));
    assert_eq!(first.hosts, ["b:7473", "a:7473"], "worst first");
    assert_eq!(
        first.command,
        "ansible-playbook -i inventory netwright.tuning.rollout --limit b,a -e '{\"settings\": \
         {\"sysctl.net.core.somaxconn\": 8192}}'"
    );
    assert_eq!(other.hosts, ["b:7473"]);
    let all = fleet("http://p", 1.0, Severity::Info, &answers());
    assert_eq!(all.changes.len(), 3, "information, too");
    let few = fleet("http://p", 1.0, Severity::Critical, &answers());
    assert_eq!((few.causes.len(), few.changes.len(), few.hosts.len()), (2, 1, 7));
}

#[test]
fn a_label_that_would_act_stands_in_no_command() {
    let command = |host: &str, knob: &str, value: &str| {
        let mut answers = Answers::default();
        answers.add(Part::Builds, vector(vec![series(host, &[], 1.0)]));
        answers.add(Part::Findings, vector(vec![finding(host, "r", "critical")]));
        answers.add(Part::Changes, vector(vec![change(host, "r", knob, value)]));
        let document = fleet("http://p", 1.0, Severity::Info, &answers);
        document.changes[0].command.clone()
    };
    let knob = "sysctl.net.ipv4.tcp_rmem";
    assert!(command("a", knob, "4096 131072 6291456").contains(": \"4096 131072 6291456\"}}'"));
    assert!(command("a", "nic.eth0.rings.rx", "4096").contains("\"nic.eth0.rings.rx\": 4096"));
    for (host, knob, value) in [
        ("a'; reboot; '", knob, "1"),
        ("-e @x", knob, "1"),
        ("all:!a", knob, "1"),
        ("a", "sysctl.x'; reboot; '", "1"),
        ("a", "sysctl.{{ lookup('pipe', 'reboot') }}", "1"),
        ("a", "nothing", "1"),
        ("a", knob, "{{ 1 }}"),
        ("a", knob, "1\n2"),
        ("a", knob, ""),
        // Another process on each host.
        ("a", "process.12.cpus", "0"),
        ("a", "irq.38.affinity", "0"),
    ] {
        assert_eq!(command(host, knob, value), "", "{host} {knob} {value}");
    }
    for (instance, host) in
        [("db1:7473", "db1"), ("10.0.0.1:7473", "10.0.0.1"), ("db1", "db1"), ("a:b", "a:b")]
    {
        assert_eq!(without_port(instance), host);
    }
}

#[test]
fn matchers_and_the_least_severity_are_in_every_query_that_they_concern() {
    let all = queries("dc=\"ams\"", Severity::Warning);
    assert!(all.iter().all(|(_, q)| q.contains("{dc=\"ams\"")), "{all:?}");
    let findings = all.iter().find(|(part, _)| *part == Part::Findings).unwrap();
    let expected = "netwright_finding{dc=\"ams\",severity=~\"warning|critical\"} == 1";
    assert_eq!(findings.1, expected);
    let all = queries("", Severity::Info);
    assert_eq!(
        all.iter().find(|(p, _)| *p == Part::Findings).unwrap().1,
        "netwright_finding{} == 1"
    );
}
