//! Placement of interrupts, steering and rings, and a tuner that would undo it.

use std::time::Duration;

use lab::testing::TestLab;

use super::{
    Traffic, apply,
    doctor_run::{DoctorRun, asks, figure, interrupts, leaves_to, moves, named, shows},
    guest, host, irqs,
};

pub const RULES: [&str; 5] =
    ["irqs_piled_up", "irq_off_node", "rps_redundant", "ring_too_small", "xps_not_local"];

pub fn wrong_places(lab: &TestLab, balancer: &str, holder: &str) {
    let _flows = Traffic::start(lab, 0, 64, 16, Duration::from_millis(4));
    let _bursts = Traffic::start(lab, 1, 4, 90, Duration::from_millis(150));
    guest(
        lab,
        "ethtool -L eth0 combined 8; ethtool -G eth1 rx 64; sysctl -qw net.ipv4.tcp_mem='8 16 21012'
        place eth0 0; place eth0-tx 0; place eth1 0 1 2 3 4 5 6 7; place eth2 4
        sysctl -qw net.core.rps_sock_flow_entries=0
        steer 'rx-*/rps_cpus' ff; steer 'tx-*/xps_cpus' f0",
    );
    let (eth0, eth1) = (irqs(lab, "eth0"), irqs(lab, "eth1"));
    let look = DoctorRun::new(lab, "--for latency");

    // The remedied findings are gone. Eight queues' interrupts on one slow CPU may exceed even the
    // default budget; that is their fault, not the budget's.
    look.silent(&host::RULES.iter().copied().filter(|r| *r != "time_squeeze").collect::<Vec<_>>());
    if let Some(f) = look.finding("time_squeeze") {
        assert!(f["subject"] == "cpu 0" && leaves_to(f, "irqs_piled_up"), "{f:#}");
    }
    let f = look.found("irqs_piled_up", "eth0");
    assert!(shows(f, "eth0's queue interrupts").ends_with("of them on CPU 0"), "{f:#}");
    // A queue with too few flows to be busy (100 interrupts a second) is not named.
    let evidence = f["evidence"].to_string();
    let busy: Vec<u32> =
        eth0.iter().copied().filter(|irq| evidence.contains(&format!("\"IRQ {irq} "))).collect();
    assert!(busy.len() >= 2, "{f:#}");
    for irq in busy {
        let shown = format!("IRQ {irq} ");
        assert!(shows(f, &shown).ends_with("effective affinity 0"), "{f:#}");
        look.holds(figure(f, &shown), |t| interrupts(t, irq)[0]);
    }
    // The busiest queue's interrupt stays; the CPUs of the NIC's node share the others.
    let all = moves(f);
    assert!((5..=7).contains(&all.len()), "{f:#}");
    assert!(all.iter().all(|(irq, cpu)| eth0.contains(irq) && (4..8).contains(cpu)), "{f:#}");

    let f = look.found("irq_off_node", "eth0");
    assert_eq!((shows(f, "node of eth0"), shows(f, "CPUs of node 1")), ("1", "4-7"));
    let all = moves(f);
    for irq in all.keys() {
        assert!(shows(f, &format!("IRQ {irq} ")).contains("on CPU 0"), "{f:#}");
    }
    // Idle interrupts stay where they are.
    let (moved, left): (Vec<u32>, Vec<u32>) =
        eth0.iter().copied().partition(|irq| all.contains_key(irq));
    assert!(moved.len() == all.len() && all.len() >= 5, "{f:#}");
    for irq in left {
        let per_s = look.per_s(|t| interrupts(t, irq)[0]);
        assert!(per_s < 2.2 * 100.0, "IRQ {irq}: {per_s:.0} a second: {f:#}");
    }
    assert!(all.values().all(|cpu| *cpu >= 4), "{f:#}");

    let f = look.found("rps_redundant", "eth0");
    assert_eq!(shows(f, "receive queues of eth0"), "8");
    assert_eq!(shows(f, "queues with rps_cpus set"), "8 (000000ff)");
    let steered = (0..8).map(|n| format!("nic.eth0.queue.rx-{n}.rps_cpus=0"));
    assert_eq!(asks(f), steered.collect::<Vec<_>>());

    // The driver's own count: the interface's statistics do not include it.
    let f = look.found("ring_too_small", "eth1");
    look.holds(figure(f, "pkts rx OOB"), |t| named(t, "pkts rx OOB"));
    // One CPU had its packets and all of eth0's, which is dealt with first.
    assert!(leaves_to(f, "irqs_piled_up"), "{f:#}");

    let f = look.found("conflicting_tuner", "eth1");
    assert_eq!(shows(f, "requested affinity of eth1"), "queue 0 on CPU 0 and so on, 8 queues");
    assert_eq!(shows(f, "irqbalance"), format!("irqbalance (pid {balancer}): irq affinity"));
    let options = f["changes"][0]["command"].as_str().unwrap().split_whitespace();
    let bans: Vec<&str> = options.filter(|w| w.starts_with("--banirq=")).collect();
    assert_eq!(bans, eth1.iter().map(|irq| format!("--banirq={irq}")).collect::<Vec<_>>());

    let f = look.found("coalescing_goal", "eth2");
    assert_eq!(shows(f, "coalescing of eth2"), "rx-usecs 50");
    assert_eq!(asks(f), ["nic.eth2.coalesce.rx=rx-usecs 0"]);
    // The place of the interrupts is decided first.
    assert!(leaves_to(look.found("xps_not_local", "eth0"), "irqs_piled_up"), "{:#}", look.d);

    let f = look.found("tcp_memory_pressure", "net.ipv4.tcp_mem");
    let pages = |t: &str| {
        let line = t.lines().find(|l| l.starts_with("TCP: inuse")).unwrap();
        line.split_whitespace().last().unwrap().parse().unwrap()
    };
    look.gauge(figure(f, "memory of all TCP sockets"), pages);
    // Finding what holds the memory comes before raising a limit.
    assert!(asks(f).is_empty(), "{f:#}");

    // Two rules propose other CPUs for some interrupts: a plan takes the first rule's.
    let apply_plan = "\"$NETWRIGHT\" tune plan - --json < findings > plan
        \"$NETWRIGHT\" tune apply -q --no-confirm plan";
    let bans = bans.join(" ");
    // irqbalance may place interrupts until some time after it has started.
    let balance = format!("balance {bans}; sleep 5");
    guest(lab, &format!("set -e; kill {holder} {balancer}; {balance}; {apply_plan}"));
    let mut look = DoctorRun::new(lab, "--for latency");
    // A queue that was idle in the first window may be busy in this one.
    let late = look.finding("irq_off_node").or_else(|| look.finding("irqs_piled_up"));
    if let Some(late) = late.map(moves) {
        assert!(!late.is_empty() && late.keys().all(|irq| eth0.contains(irq)), "{late:?}");
        assert!(late.len() < eth0.len() / 2, "{late:?}");
        apply(lab, &look, &["irq_off_node", "irqs_piled_up"]);
        look = DoctorRun::new(lab, "--for latency");
    }
    // With a full CPU the drops would be the CPU's fault. The speed of emulation must not decide
    // the findings, so a look counts once `/proc/stat` shows that no CPU was full.
    let some_full = |look: &DoctorRun| (0..8).any(|cpu| look.cpu(cpu).0 > 0.85);
    for _ in 0..5 {
        if some_full(&look) {
            look = DoctorRun::new(lab, "--for latency");
        }
    }
    let f = look.found("ring_too_small", "eth1");
    assert_eq!(shows(f, "receive ring"), "64 of 4096 descriptors");
    assert_eq!(asks(f), ["nic.eth1.rings.rx=128"]);
    // The interrupts of the receive queues went to the NIC's node; nearly idle ones stayed.
    let f = look.found("xps_not_local", "eth0");
    let tx = shows(f, "tx-");
    // On the other node, wherever the kernel had room.
    let cpu = tx.strip_prefix("used by CPUs 4-7, its interrupt on CPU ").map(str::parse::<u32>);
    assert!(matches!(cpu, Some(Ok(0..4))), "{f:#}");
    assert!(asks(f).iter().all(|a| a.starts_with("nic.eth0.queue.tx-")), "{f:#}");
    look.silent(&["irqs_piled_up", "irq_off_node", "rps_redundant", "conflicting_tuner"]);
    look.silent(&["coalescing_goal", "tcp_memory_pressure", "link_faults"]);
    // Each larger ring is a step: bursts may need another.
    for _ in 0..3 {
        if RULES.iter().any(|rule| look.finding(rule).is_some()) {
            apply(lab, &look, &[]);
            look = DoctorRun::new(lab, "--for latency");
        }
    }
    look.silent(&RULES);
}
