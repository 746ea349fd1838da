//! A CPU saturated by packets, and processes at the wrong distance from it.

use std::time::Duration;

use lab::testing::TestLab;

use super::{
    Traffic, apply,
    doctor_run::{DoctorRun, asks, figure, shows},
    guest,
};

/// The setup: one queue of eight gets about as many packets as CPU 4 can take, GRO is off, and flow
/// steering is half set. A busy process runs on CPU 4's sibling, another on the other node. Two
/// processes of the lowest weight use the rest of CPU 4. A look counts once `/proc/stat` shows a
/// full CPU, so that the speed of emulation does not decide the findings.
pub fn a_full_cpu(lab: &TestLab) {
    let _flood = Traffic::start(lab, 0, 8, 200, Duration::from_micros(50));
    let started = guest(
        lab,
        "ethtool -L eth0 combined 1; ethtool -K eth0 gro off; place eth0 4
        steer 'rx-*/rps_cpus' 0; steer 'rx-*/rps_flow_cnt' 0
        sysctl -qw net.core.rps_sock_flow_entries=32768
        start 5 -e \"$works\"; start 0 -e \"$spins\"; start 4 -e \"$fills\"; renice -n 19 -p $! >&2
        start 4 -e \"$fills\"; renice -n 19 -p $! >&2",
    );
    let [spin, away, rest, more] = started.lines().collect::<Vec<_>>()[..] else {
        panic!("{started}")
    };
    let args = format!("--pid {spin} --pid {away}");
    let full =
        |look: &DoctorRun| matches!(look.cpu(4), (busy, kernel) if busy > 0.88 && kernel > 0.55);
    let mut looks = (0..10).map(|_| DoctorRun::new(lab, &args));
    let look = looks.find(full).expect("CPU 4 was never full of packets");

    let f = look.found("offloads_off", "eth0");
    assert_eq!(shows(f, "rx-gro of eth0"), "off");
    assert_eq!(asks(f), ["nic.eth0.features.rx-gro=on"]);
    let f = look.found("rfs_half_set", "net.core.rps_sock_flow_entries");
    assert_eq!(figure(f, "net.core.rps_sock_flow_entries"), 32_768, "{f:#}");
    let f = look.found("smt_sibling_shared", &format!("perl[{spin}]"));
    assert_eq!(shows(f, "siblings of CPU 4"), "4-5");
    let f = look.found("app_off_softirq_node", &format!("perl[{away}]"));
    assert!(shows(f, "CPU samples").ends_with("on CPU 0 off node 1"), "{f:#}");
    // Two rules would move the interrupts: instead the processes move to the packets' node.
    apply(lab, &look, &["offloads_off", "rfs_half_set"]);
    guest(lab, &format!("taskset -cp 6 {spin}; taskset -cp 7 {away}"));
    let look = DoctorRun::new(lab, &args);
    look.silent(&["offloads_off", "rfs_half_set"]);
    // Emulated CPUs' counters may go backwards; then these two rules are skipped.
    for rule in ["smt_sibling_shared", "app_off_softirq_node"] {
        assert!(look.finding(rule).is_none(), "{:#}", look.d);
    }
    guest(lab, &format!("kill {spin} {away} {rest} {more}"));
}
