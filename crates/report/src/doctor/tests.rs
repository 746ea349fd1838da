use model::{
    Change, Confidence, Evidence, Finding, Nanos, Reading, Samples, SkippedRule,
    facts::NoAccess,
    finding::{Diagnosis, Passed},
    reading::Known,
};

use super::*;
use crate::{
    doctor::document::Source,
    testing::{self, golden},
};

fn samples() -> Samples {
    Samples {
        window_ns: Nanos(5_000_000_000),
        reading_ns: Nanos(1_200_000),
        readings: 11,
        cpus: vec![],
        cpu_changes: vec![],
        irqs: Reading::absent("x"),
        protocols: Reading::absent("x"),
        sockstat: Reading::absent("x"),
        nics: vec![],
        nic_changes: vec![],
        threads: vec![],
        conntrack: Reading::absent("x"),
        neighbours: Reading::absent("x"),
        vmstat: Reading::absent("x"),
        tcp_states: Reading::absent("x"),
        listeners: Reading::absent("x"),
        grew_in: Default::default(),
        udp_sockets: Reading::absent("x"),
        connections: Reading::absent("x"),
        pressure: Reading::absent("x"),
        cgroups: Reading::absent("x"),
        drops: Reading::absent("x"),
        since_boot: false,
    }
}

fn finding(rank: u32, rule: &str, severity: Severity) -> Finding {
    Finding {
        rule: rule.into(),
        number: 2,
        title: "all 4 interrupts of eth0 go to CPU 0".into(),
        severity,
        confidence: Confidence::High,
        rank,
        subject: "eth0".into(),
        explanation: "One CPU handles every packet of eth0 while 15 others have nothing to do \
                      with it."
            .into(),
        expected_benefit: "packets are handled by 4 CPUs instead of one".into(),
        evidence: vec![
            Evidence {
                what: "share of eth0's interrupts on CPU 0 over 5.0 s".into(),
                value: "100%".into(),
                source: "/proc/interrupts".into(),
            },
            Evidence {
                what: "softirq share of CPU 0".into(),
                value: "97%".into(),
                source: "/proc/stat".into(),
            },
        ],
        changes: vec![Change::of(
            "irq.41.affinity",
            "0",
            "1",
            "echo 1 > /proc/irq/41/smp_affinity_list",
            "low",
        )],
        caused_by: vec![],
    }
}

fn diagnosed(findings: Vec<Finding>) -> DoctorDocument {
    let mut facts = testing::nothing();
    facts.host.name = Known("box".into());
    facts.host.kernel = Known("6.12.0".into());
    facts.host.arch = Known("x86_64".into());
    facts.host.hypervisor = Known("kvm".into());
    facts.host.cpus_online = Known("0-15".parse().unwrap());
    facts.host.reader.euid = Known(1000);
    facts.no_access.push(NoAccess {
        what: "PCI read request size".into(),
        why: "/sys/bus/pci/devices/0000:00:03.0/config: only 64 bytes".into(),
        remedy: "root would show it".into(),
    });
    let diagnosis = Diagnosis {
        findings,
        passed: vec![Passed {
            rule: "time_squeeze".into(),
            number: 5,
            because: "time_squeeze grew by 0 on 16 CPUs over 5.0 s (/proc/net/softnet_stat, \
                      column 3)"
                .into(),
        }],
        skipped: vec![
            SkippedRule {
                rule: "pcie_degraded".into(),
                number: 27,
                subject: "eth0".into(),
                why: "PCIe link of eth0: current_link_speed: no such file".into(),
            },
            SkippedRule {
                rule: "small_read_request".into(),
                number: 28,
                subject: "eth0".into(),
                why: "PCIe link of eth0: current_link_speed: no such file".into(),
            },
        ],
    };
    DoctorDocument::new(
        &facts,
        &Known(samples()),
        false,
        model::Goal::Throughput,
        Source::live(model::tune::HostId {
            name: Known("a".into()),
            machine_id: Reading::absent("a test"),
            boot_id: Reading::absent("a test"),
            net_namespace: Reading::absent("a test"),
            net_cookie: Reading::absent("a test"),
        }),
        diagnosis,
    )
}

/// CPUs busy for these shares of the window, and tasks that waited for one for 80% of it.
fn with_cpus(busy: &[f64]) -> DoctorDocument {
    let mut s = samples();
    let ns = |share: f64| match share.is_nan() {
        true => Reading::absent("x"),
        false => Reading::Known((share * 5e9) as u64),
    };
    s.cpus = (0..)
        .zip(busy)
        .map(|(n, share)| model::samples::CpuSample {
            id: model::CpuId(n),
            proc_stat: Known(model::samples::ProcStat {
                user_ns: ns(*share),
                nice_ns: Known(0),
                system_ns: Known(0),
                idle_ns: ns(1.0 - share),
                iowait_ns: Known(0),
                irq_ns: Known(0),
                softirq_ns: Known(0),
                steal_ns: Known(0),
            }),
            softirqs: Reading::absent("x"),
            softnet: Reading::absent("x"),
            softirq_ns: Reading::absent("x"),
        })
        .collect();
    s.pressure = Known(vec![model::samples::PressureSample {
        resource: "cpu".into(),
        cgroup: String::new(),
        file: "/proc/pressure/cpu".into(),
        some_ns: Known(4_000_000_000),
        full_ns: Known(0),
    }]);
    let mut d = diagnosed(vec![]);
    if let Known(w) = &mut d.window {
        w.cpu = cpu_time::of(&s);
        w.packets = Known(500_000);
    }
    d
}

#[test]
fn cpus_that_are_all_busy_stand_in_the_first_lines() {
    let said =
        |busy: &[f64]| text(&with_cpus(busy), TextStyle { width: 120, ..TextStyle::default() });
    let all = said(&[1.0, 0.99]);
    assert!(all.contains("packets/s with all CPUs busy, "), "{all}");
    let line =
        "CPU TIME  all 2 CPUs busy (99.5%); tasks waited for a CPU 80.0% of the time: what runs";
    assert!(all.contains(line), "{all}");
    let one = said(&[1.0, 0.2, 0.3, 0.1]);
    assert!(!one.contains("with all CPUs busy"), "{one}");
    assert!(
        one.contains("CPU TIME  1 of 4 CPUs busy: CPU 0; 40.0% of all CPU time; tasks"),
        "{one}"
    );
    assert!(!said(&[0.9, 0.9]).contains("CPU TIME"));
    let unknown = said(&[1.0, f64::NAN]);
    assert!(!unknown.contains("all CPUs busy") && unknown.contains("1 of 2 CPUs"), "{unknown}");
}

/// A host with a finding that has everything, one that another explains, and one with much of
/// everything.
fn busy() -> DoctorDocument {
    let mut second = finding(2, "time_squeeze", Severity::Info);
    second.title = "CPU 0 runs out of budget".into();
    second.explanation = String::new();
    second.expected_benefit = String::new();
    second.number = 5;
    second.evidence = vec![Evidence {
        what: "time squeezes of CPU 0 over 5.0 s".into(),
        value: "4,120".into(),
        source: "/proc/net/softnet_stat, column 3".into(),
    }];
    second.changes.clear();
    second.confidence = Confidence::Medium;
    second.caused_by = vec!["irqs_piled_up".into()];
    let mut third = finding(3, "udp_receive_drops", Severity::Info);
    third.number = 35;
    third.title = "UDP receive buffer overflow: 3,855 datagrams lost (6.52%)".into();
    third.explanation =
        "Datagrams for a full receive buffer are dropped. The counter grew in 8 of \
                         10 intervals of the window."
            .into();
    third.evidence = vec![
        Evidence {
            what: "RcvbufErrors over 5.0 s".into(),
            value: "3,855 (IPv4), 0 (IPv6)".into(),
            source: "/proc/net/snmp Udp, /proc/net/snmp6 Udp6".into(),
        },
        Evidence {
            what: "socket [::ffff:10.97.0.2]:5201, iperf3[812]".into(),
            value: "971 dropped, in 8 of 10 intervals; Recv-Q up to 110,080 of 212,992 bytes, at \
                 least half full in 1 of 11 samples"
                .into(),
            source: "sock_diag (ss -uamp: d drops, rb buffer)".into(),
        },
        Evidence {
            what: "net.core.rmem_max".into(),
            value: "212992 bytes".into(),
            source: "/proc/sys/net/core/rmem_max".into(),
        },
    ];
    third.changes = vec![
        Change::of(
            "sysctl.net.core.rmem_max",
            "106496",
            "212992",
            "sysctl -w net.core.rmem_max=212992",
            "memory: every socket may request this much",
        ),
        Change::advice(
            "212992 bytes",
            "425984 bytes",
            "set SO_RCVBUF to 212992 or more in iperf3[812]",
            "restart of the application; memory",
        ),
    ];
    let mut d = diagnosed(vec![finding(1, "irqs_piled_up", Severity::Critical), second, third]);
    let mut measured = model::watch::ByContext {
        threaded: Reading::absent("no NAPI threads"),
        ..Default::default()
    };
    measured.ksoftirqd.net_rx = 26_400_000_000;
    measured.syscall.net_rx = 480_000_000;
    if let Known(w) = &mut d.window {
        w.softirq = Known(crate::doctor::document::SoftirqTime {
            measured_ns: measured,
            proc_stat_ns: Known(7_600_000_000),
            cpu_time_ns: 80_000_000_000,
        });
    }
    d
}

#[test]
fn findings_read_well() {
    let answer = "3 findings (1 critical, 2 info): all 4 interrupts of eth0 go to CPU 0";
    golden!("findings", answer, |style| text(&busy(), style));
    golden!("findings_v", answer, |style| text(&busy(), TextStyle { verbose: true, ..style }));
}

#[test]
fn a_quiet_host_reads_well() {
    let mut d = diagnosed(vec![]);
    if let Known(w) = &mut d.window {
        w.packets = Known(12);
    }
    let answer = "Inconclusive: 12 packets in 5 s, 1 of 3 rules checked";
    golden!("quiet", answer, |style| text(&d, style));
}

#[test]
fn a_finding_takes_at_most_eight_lines_and_keeps_fix_and_risk() {
    let mut f = finding(1, "irqs_piled_up", Severity::Warning);
    f.title = "the title of a finding with words that take more than one line of it ".repeat(2);
    f.caused_by = vec!["few_channels".into()];
    let long = "long words that say what a change may disturb here and there ".repeat(9);
    f.evidence = vec![f.evidence[0].clone(); 20];
    f.changes[0].risk = long.clone();
    f.changes[0].command = format!("echo {}", "1".repeat(130));
    let d = diagnosed(vec![f]);
    for width in [80, 120] {
        let text = text(&d, TextStyle { width, ..TextStyle::default() });
        let from = text.find(" 1  WARNING").unwrap();
        let finding = text[from..].split("\n\n").next().unwrap();
        assert_eq!(finding.lines().count(), 8, "{finding}");
        assert!(finding.contains("evidence") && finding.contains(" …"), "{finding}");
        assert!(finding.contains("PLAN 1: irq.41.affinity 0 → 1"), "never cut: {finding}");
    }
    let verbose = text(&d, TextStyle { verbose: true, ..TextStyle::default() });
    let words = |t: &str| t.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words(&verbose).contains(&words(&long)), "{verbose}");
}

#[test]
fn each_change_has_its_own_command_and_risk() {
    let mut f = finding(1, "udp_receive_drops", Severity::Warning);
    f.changes = vec![
        Change::advice("1", "2", "set it in the application", "restart of the application"),
        Change::of("sysctl.net.core.rmem_max", "1", "2", "sysctl -w net.core.rmem_max=2", "memory"),
    ];
    let verbose = TextStyle { verbose: true, ..TextStyle::default() };
    let text = text(&diagnosed(vec![f]), verbose);
    let expected = "    fix         1 → 2
                set it in the application
    risk        restart of the application
    fix         sysctl.net.core.rmem_max: 1 → 2
                sysctl -w net.core.rmem_max=2
    risk        memory
";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn no_finding_is_no_proof_where_no_rule_could_judge() {
    let mut d = diagnosed(vec![]);
    d.passed.clear();
    let text = text(&d, TextStyle::default());
    assert!(text.contains("\nInconclusive: no rule could be checked\n"), "{text}");
    assert!(!text.contains("PLAN") && !text.contains("passed"), "{text}");
}

#[test]
fn a_verdict_without_traffic_says_so() {
    let mut d = diagnosed(vec![]);
    let mut with = |packets| {
        if let Known(w) = &mut d.window {
            w.packets = packets;
        }
        text(&d, TextStyle::default())
    };
    let quiet = with(Known(4_999));
    assert!(quiet.contains("\nInconclusive: 4,999 packets in 5 s, 1 of "), "{quiet}");
    assert!(quiet.contains("\nWARNING: hardly any traffic: run again under load\n"), "{quiet}");
    assert!(!with(Known(5_000)).contains("hardly"), "1,000 a second");
    assert!(!with(Reading::absent("no counters")).contains("hardly"), "not known");
    let mut d = diagnosed(vec![finding(1, "irqs_piled_up", Severity::Warning)]);
    if let Known(w) = &mut d.window {
        w.packets = Known(1);
    }
    assert!(!text(&d, TextStyle::default()).contains("hardly"));
}

#[test]
fn what_nothing_found_is_worth_stands_beside_it() {
    let mut d = diagnosed(vec![]);
    if let Known(w) = &mut d.window {
        w.packets = Known(60_000);
    }
    let line =
        |d: &DoctorDocument| text(d, TextStyle::default()).lines().nth(1).unwrap().to_owned();
    assert_eq!(line(&d), "Nothing found in 5 s at 12,000 packets/s, but only 1 of 3 rules checked");
    d.skipped.clear();
    assert_eq!(line(&d), "Nothing found in 5 s at 12,000 packets/s; 1 of 1 rule checked");
    d.findings.push(finding(1, "irqs_piled_up", Severity::Info));
    assert!(line(&d).ends_with("; 2 of 2 rules checked; 1 info"), "{}", line(&d));
}

#[test]
fn missing_counters_and_an_interrupted_window_are_reported() {
    let mut d = diagnosed(vec![]);
    if let Known(w) = &mut d.window {
        w.interrupted = true;
    }
    assert!(text(&d, TextStyle::default()).contains("· 5 s, interrupted · user 1000 · goal"));
    d.window = Reading::absent("the tree holds no samples");
    d.window_ns = Reading::absent("the tree holds no samples");
    d.source = Source::path("/tmp/tree", None);
    let text = text(&d, TextStyle::default());
    assert!(text.lines().next().unwrap().contains("· tree /tmp/tree ·"), "{text}");
    let verdict = "\nInconclusive: 1 of 3 rules checked, by settings alone\n";
    assert!(text.contains(verdict), "{text}");
    assert!(text.contains("\nWARNING: settings only, no counters: the tree"), "{text}");
}

#[test]
fn a_header_without_room_leaves_out_the_architecture_before_the_guest() {
    let mut d = diagnosed(vec![]);
    let first = |d: &DoctorDocument, width| {
        let look = TextStyle { width, ..TextStyle::default() };
        text(d, look).lines().next().unwrap().to_owned()
    };
    assert!(first(&d, 120).contains("Linux 6.12.0 · x86_64 · kvm guest"));
    assert!(first(&d, 80).contains("Linux 6.12.0 · kvm guest"));
    d.kernel = Known("6.1.0-56-amd64".into());
    assert!(first(&d, 80).contains("amd64 · 16 CPUs"), "{}", first(&d, 80));
    assert!(first(&d, 80).ends_with("goal: throughput"));
}

#[test]
fn that_ebpf_is_switched_off_is_said_of_a_host_that_runs() {
    let mut d = diagnosed(vec![]);
    if let Known(w) = &mut d.window {
        w.softirq = Reading::absent("eBPF is switched off (--no-bpf)");
    }
    let says = "  softirq time by eBPF: eBPF is switched off (--no-bpf); softirq shares come from \
                /proc/stat, tick-sampled\n";
    let wide = TextStyle { width: 120, ..TextStyle::default() };
    assert!(text(&d, wide).contains(says), "{}", text(&d, wide));
    d.source = Source::path("/tmp/tree", None);
    assert!(!text(&d, wide).contains("eBPF"));
}

#[test]
fn colour_is_ink_only() {
    let d = diagnosed(vec![finding(1, "irqs_piled_up", Severity::Warning)]);
    let plain = text(&d, TextStyle::default());
    let inked = text(&d, TextStyle { colour: true, ..TextStyle::default() });
    assert!(inked.contains("\x1b[33m"));
    let mut bare = String::new();
    let mut rest = inked.as_str();
    while let Some((before, after)) = rest.split_once('\x1b') {
        bare.push_str(before);
        rest = after.split_once('m').map_or("", |(_, r)| r);
    }
    bare.push_str(rest);
    assert_eq!(bare, plain);
}

#[test]
fn a_plan_of_many_alike_commands_is_cut_unless_asked() {
    let mut f = finding(1, "irqs_piled_up", Severity::Warning);
    f.changes = (0..64)
        .map(|i| {
            let command = format!("echo {i} > /proc/irq/{i}/smp_affinity_list");
            Change::of(format!("irq.{i}.affinity"), "0", i.to_string(), command, "low")
        })
        .collect();
    let d = diagnosed(vec![f]);
    let short = text(&d, TextStyle::default());
    assert!(short.contains("and 52 more; -v shows them all"), "{short}");
    assert!(
        short.contains("fix         echo 0 > /proc/irq/0/smp_affinity_list   # and 63 more: PLAN")
    );
    assert!(short.lines().count() < 40, "{short}");
    assert!(
        text(&d, TextStyle { verbose: true, ..TextStyle::default() }).contains("  64. echo 63")
    );
}

#[test]
fn the_first_look_is_one_line_of_80_columns() {
    assert_eq!(
        first_look(&diagnosed(vec![])),
        "First look: nothing wrong in the settings; now the counters"
    );
    let f = finding(1, "irqs_piled_up", Severity::Warning);
    let one = first_look(&diagnosed(vec![f.clone()]));
    assert_eq!(one, "First look: 1 finding by settings: all 4 interrupts of eth0 go to CPU 0");
    let long = Finding { title: "é".repeat(200), ..f.clone() };
    let cut = first_look(&diagnosed(vec![long, f]));
    assert!(cut.starts_with("First look: 2 findings by settings: ééé") && cut.ends_with("é…"));
    assert_eq!(cut.chars().count(), 80);
}
