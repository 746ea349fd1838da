//! Settings of the whole host, which only the initial network namespace has.

use lab::testing::TestLab;

use super::{
    apply,
    doctor_run::{DoctorRun, asks, figure, leaves_to, named, shows, softnet, table_sum},
    guest,
};

pub const RULES: [&str; 4] =
    ["backlog_drops", "time_squeeze", "conntrack_filling", "tcp_mem_units"];

/// Plants the faults and applies the remedies; the next look shows that they are gone. A burst of
/// 30 packets over loopback is steered to CPU 3. It meets a backlog of 10, a poll budget of 4 and a
/// table of 50 connections. `tcp_mem` is in bytes, and eth0 says that its link is in half duplex.
pub fn wrong_settings(lab: &TestLab, flows: &str) {
    // New flows, as the earlier ones are in the table.
    let pages = guest(
        lab,
        &format!(
            "kill {flows}
        sysctl -n net.ipv4.tcp_mem | tee pages
        sysctl -qw net.ipv4.tcp_mem=\"$(awk '{{print $1 * 4096, $2 * 4096, $3 * 4096}}' pages)\" \
          net.core.netdev_max_backlog=10 net.core.netdev_budget=4 net.netfilter.nf_conntrack_max=50
        ethtool -s eth0 speed 1000 duplex half
        start 2 -e \"$flows\" > again"
        ),
    );
    let look = DoctorRun::new(lab, "");

    let f = look.found("backlog_drops", "cpu 3");
    look.holds(figure(f, "dropped on CPU 3"), |t| softnet(t, 1, 3));
    assert_eq!(figure(f, "net.core.netdev_max_backlog"), 10, "{f:#}");
    assert!(leaves_to(f, "below_kernel_default"), "{f:#}");

    let f = look.found("time_squeeze", "cpu 3");
    look.holds(figure(f, "time_squeeze on CPU 3"), |t| softnet(t, 2, 3));
    assert_eq!(figure(f, "net.core.netdev_budget"), 4, "{f:#}");
    assert!(leaves_to(f, "below_kernel_default"), "{f:#}");

    let f = look.found("conntrack_filling", "net.netfilter.nf_conntrack_max");
    look.gauge(figure(f, "net.netfilter.nf_conntrack_count"), |t| named(t, "entries in table"));
    look.holds(figure(f, "drop over"), |t| table_sum(t, "drop"));
    assert!(leaves_to(f, "below_kernel_default"), "{f:#}");

    let f = look.found("tcp_mem_units", "net.ipv4.tcp_mem");
    let memory: u64 = pages.split_whitespace().last().unwrap().parse().unwrap();
    let wrong: Vec<u64> = shows(f, "net.ipv4.tcp_mem")
        .split_whitespace()
        .filter_map(|n| n.replace(',', "").parse().ok())
        .collect();
    assert_eq!(wrong[2], memory * 4096, "{f:#}");
    // The kernel's own default, which depends on the free memory at boot.
    let asked = asks(f)[0].split_whitespace().last().unwrap().parse::<f64>().unwrap();
    assert!((0.9..1.15).contains(&(asked / memory as f64)), "{asked}, {memory}");

    let f = look.found("link_faults", "eth0");
    assert_eq!(shows(f, "duplex of eth0"), "half, 1 Gbit/s");
    assert!(asks(f).is_empty(), "nothing that `tune` could write: {f:#}");

    apply(lab, &look, &[]);
    guest(lab, "ethtool -s eth0 speed 1000 duplex full");
}

/// Datagrams to hosts of the link that are not there, in a table with room for a few. The change is
/// one of the first network namespace, which `tune` does not write.
pub fn a_full_neighbour_table(lab: &TestLab) {
    let sender = guest(
        lab,
        "sysctl -n net.ipv4.neigh.default.gc_thresh3 > most
        sysctl -qw net.ipv4.neigh.default.gc_thresh3=8
        start 2 -e \"$strangers\"",
    );
    let look = DoctorRun::new(lab, "");
    let f = look.found("neighbour_table", "ipv4");
    assert_eq!(figure(f, "net.ipv4.neigh.default.gc_thresh3"), 8, "{f:#}");
    look.holds(figure(f, "table_fulls over"), |t| table_sum(t, "table_fulls"));
    guest(lab, "sysctl -qw net.ipv4.neigh.default.gc_thresh3=\"$(cat most)\"");
    let look = DoctorRun::new(lab, "");
    look.silent(&["neighbour_table"]);
    guest(lab, &format!("kill {sender}"));
}

/// The clock of a device, read by a system call. The change is a file of sysfs that `tune` does not write.
pub fn a_slow_clock(lab: &TestLab) {
    let clock = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    assert_eq!(guest(lab, &format!("cat {clock}; echo acpi_pm > {clock}")), "tsc");
    let look = DoctorRun::new(lab, "");
    let f = look.found("slow_clocksource", "acpi_pm");
    assert_eq!(shows(f, "clocksource"), guest(lab, &format!("cat {clock}")));
    // Emulation makes the other clock slow too, so the figure is not compared.
    assert!(shows(f, "time of one read").ends_with('s'), "{f:#}");
    let command = f["changes"][0]["command"].as_str().unwrap();
    let (now, _) = command.split_once(';').unwrap();
    guest(lab, now);
    DoctorRun::new(lab, "").silent(&["slow_clocksource"]);
}

/// A sender that fills a ring of 32 descriptors, and its remedy.
pub fn a_full_transmit_ring(lab: &TestLab) {
    let sender = guest(lab, "ethtool -G eth1 tx 32; start 2 -e \"$segments\"");
    let fulls = |text: &str| -> u64 {
        let of_queues = text.lines().filter_map(|l| l.trim().strip_prefix("ring full:"));
        of_queues.map(|n| n.trim().parse::<u64>().unwrap()).sum()
    };
    let look = DoctorRun::new(lab, "");
    let f = look.found("driver_starvation", "eth1");
    look.holds(figure(f, "ring full over"), fulls);
    assert_eq!(shows(f, "transmit ring"), "32 of 4096 descriptors");
    assert_eq!(asks(f), ["nic.eth1.rings.tx=64"]);
    apply(lab, &look, &["driver_starvation"]);
    // Doubled once more and again: a socket's buffer holds fewer packets than this ring.
    guest(lab, "ethtool -g eth1 | tail -8 | grep -q 'TX:.*64'; ethtool -G eth1 tx 1024");
    DoctorRun::new(lab, "").silent(&["driver_starvation"]);
    guest(lab, &format!("kill {sender}; ethtool -G eth1 tx 512"));
}
