use model::{
    Change, Confidence, Evidence, Finding, Nanos, Reading, Samples, SkippedRule,
    facts::NoAccess,
    finding::{Diagnosis, Passed},
    reading::Known,
};

use super::*;
use crate::{document::Source, testing};

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
        vmstat: Reading::absent("x"),
        tcp_states: Reading::absent("x"),
        listeners: Reading::absent("x"),
        grew_in: Default::default(),
        udp_sockets: Reading::absent("x"),
        connections: Reading::absent("x"),
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
                value: "100 %".into(),
                source: "/proc/interrupts".into(),
            },
            Evidence {
                what: "softirq share of CPU 0".into(),
                value: "97 %".into(),
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

fn diagnosed(findings: Vec<Finding>) -> Diagnosed {
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
                why: "PCIe link of eth0: not there".into(),
            },
            SkippedRule {
                rule: "small_read_request".into(),
                number: 28,
                subject: "eth0".into(),
                why: "PCIe link of eth0: not there".into(),
            },
        ],
    };
    Diagnosed::new(
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

#[test]
fn a_finding_with_everything_reads_well_at_80_columns() {
    let mut second = finding(2, "time_squeeze", Severity::Info);
    second.title = "CPU 0 runs out of budget".into();
    second.explanation = String::new();
    second.expected_benefit = String::new();
    second.evidence.truncate(1);
    second.changes.clear();
    second.confidence = Confidence::Medium;
    second.caused_by = vec!["irqs_piled_up".into()];
    let d = diagnosed(vec![finding(1, "irqs_piled_up", Severity::Critical), second]);
    let expected = "\
box · Linux 6.12.0 x86_64 · kvm guest · 16 CPUs
Watched for 5 s in 11 readings, as user 1000, without root, for throughput.

2 findings (1 critical, 1 to know). First: all 4 interrupts of eth0 go to CPU 0.

 1  CRITICAL  all 4 interrupts of eth0 go to CPU 0  [irqs_piled_up 2]
    One CPU handles every packet of eth0 while 15 others have nothing to do with
    it.
    evidence    share of eth0's interrupts on CPU 0 over 5.0 s: 100 %
                [/proc/interrupts]
                softirq share of CPU 0: 97 %  [/proc/stat]
    change      irq.41.affinity: 0 → 1
                echo 1 > /proc/irq/41/smp_affinity_list
    risk        low
    benefit     packets are handled by 4 CPUs instead of one
    confidence  high  (counters over the window show it)

 2  INFO  CPU 0 runs out of budget  [time_squeeze 2]
    evidence    share of eth0's interrupts on CPU 0 over 5.0 s: 100 %
                [/proc/interrupts]
    because of  1 irqs_piled_up
    confidence  medium  (counters fit, other causes are possible)

PLAN  (in this order; measure after each step. Nothing was changed.)
   1. echo 1 > /proc/irq/41/smp_affinity_list   # finding 1

PASSED
  time_squeeze  time_squeeze grew by 0 on 16 CPUs over 5.0 s …

SKIPPED
  pcie_degraded (eth0), small_read_request (eth0): PCIe link of eth0: not there

NO ACCESS
  PCI read request size: /sys/bus/pci/devices/0000:00:03.0/config: only 64
    bytes; root would show it
  softirq time by eBPF: no CPU was seen over the whole window; shares of
    softirqs are /proc/stat's claim
";
    assert_eq!(text(&d, TextStyle::default()), expected);
}

#[test]
fn each_change_has_its_own_command_and_risk() {
    let mut f = finding(1, "udp_receive_drops", Severity::Warning);
    f.changes = vec![
        Change::advice("1", "2", "set it in the application", "restart of the application"),
        Change::of("sysctl.net.core.rmem_max", "1", "2", "sysctl -w net.core.rmem_max=2", "memory"),
    ];
    let text = text(&diagnosed(vec![f]), TextStyle::default());
    let expected = "    change      1 → 2
                set it in the application
    risk        restart of the application
    change      sysctl.net.core.rmem_max: 1 → 2
                sysctl -w net.core.rmem_max=2
    risk        memory
";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn a_quiet_host_is_told_so_and_what_was_not_judged_is_not_hidden() {
    let text = text(&diagnosed(vec![]), TextStyle::default());
    assert!(text.contains("Nothing found that holds this host's network back."), "{text}");
    assert!(text.contains("2 questions could not be judged"), "{text}");
    assert!(!text.contains("PLAN"), "{text}");
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
    assert!(with(Known(4_999)).contains("Hardly any traffic: 4,999 packets received"));
    assert!(!with(Known(5_000)).contains("Hardly"), "1,000 a second");
    assert!(!with(Reading::absent("no counters")).contains("Hardly"), "not known");
    let d = diagnosed(vec![finding(1, "irqs_piled_up", Severity::Warning)]);
    assert!(!text(&d, TextStyle::default()).contains("Hardly"));
}

#[test]
fn without_counters_and_cut_short_are_said() {
    let mut d = diagnosed(vec![]);
    if let Known(w) = &mut d.window {
        w.interrupted = true;
    }
    assert!(
        text(&d, TextStyle::default())
            .contains("Watched for 5 s in 11 readings, interrupted, as user")
    );
    d.window = Reading::absent("the tree holds no samples");
    d.window_ns = Reading::absent("the tree holds no samples");
    d.source = Source::path("/tmp/tree", None);
    let text = text(&d, TextStyle::default());
    assert!(
        text.contains("From the tree /tmp/tree: judged by settings alone, no counters (the tree"),
        "{text}"
    );
}

#[test]
fn that_ebpf_is_switched_off_is_said_of_a_host_that_runs() {
    let mut d = diagnosed(vec![]);
    if let Known(w) = &mut d.window {
        w.softirq = Reading::absent("eBPF is switched off (--no-bpf)");
    }
    let says = "  softirq time by eBPF: eBPF is switched off (--no-bpf); shares of softirqs are \
                /proc/stat's claim\n";
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
    assert!(short.lines().count() < 60, "{short}");
    assert!(
        text(&d, TextStyle { verbose: true, ..TextStyle::default() }).contains("  64. echo 63")
    );
}
