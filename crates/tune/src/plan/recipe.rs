//! Plans a known tuning recipe line by line, on a tree of a host with Linux 6.18 and 24 GiB.

use model::{
    sysctls::Verdict::{self, Dangerous, Gone, Harmful, Lowers, NoEffect},
    tune::{Plan, RefusedAs},
};
use probe::{Root, facts};

use super::*;
use crate::session::Session;

const VALUES: &[(&str, &str)] = &[
    ("fs/file-max", "2457600"),
    ("fs/suid_dumpable", "0"),
    ("kernel/osrelease", "6.18.44"),
    ("kernel/poweroff_cmd", "/sbin/poweroff"),
    ("kernel/unheard_of", "1"),
    ("kernel/sem", "32000\t1024000000\t500\t32000"),
    ("kernel/shmmax", "18446744073692774399"),
    ("net/core/netdev_budget", "300"),
    ("net/core/netdev_budget_usecs", "8000"),
    ("net/core/netdev_max_backlog", "1000"),
    ("net/core/optmem_max", "131072"),
    ("net/core/rmem_default", "212992"),
    ("net/core/rmem_max", "4194304"),
    ("net/core/somaxconn", "4096"),
    ("net/core/wmem_default", "212992"),
    ("net/core/wmem_max", "4194304"),
    ("net/ipv4/ip_local_port_range", "32768\t60999"),
    ("net/ipv4/tcp_abort_on_overflow", "0"),
    ("net/ipv4/tcp_dsack", "1"),
    ("net/ipv4/tcp_fack", "0"),
    ("net/ipv4/tcp_frto", "2"),
    ("net/ipv4/tcp_limit_output_bytes", "4194304"),
    ("net/ipv4/tcp_low_latency", "0"),
    ("net/ipv4/tcp_mem", "287000\t382666\t574000"),
    ("net/ipv4/tcp_retries2", "15"),
    ("net/ipv4/tcp_rmem", "4096\t131072\t33554432"),
    ("net/ipv4/tcp_sack", "1"),
    ("net/ipv4/tcp_syncookies", "1"),
    ("net/ipv4/tcp_timestamps", "1"),
    ("net/ipv4/tcp_wmem", "4096\t16384\t4194304"),
    ("vm/dirty_bytes", "0"),
    ("vm/dirty_ratio", "20"),
];

fn planned(change_requests: impl FnOnce(&model::Facts) -> ChangeRequests) -> Plan {
    let folder = tempfile::tempdir().unwrap();
    let put = |path: &str, text: &str| {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("{text}\n")).unwrap();
    };
    VALUES.iter().for_each(|(path, value)| put(&format!("proc/sys/{path}"), value));
    put("proc/meminfo", "MemTotal:       24684092 kB");
    for (file, text) in [
        ("ifindex", "2"),
        ("type", "1"),
        ("flags", "0x1003"),
        ("operstate", "up"),
        ("mtu", "1500"),
        ("tx_queue_len", "500"),
        ("device/vendor", "0x8086"),
    ] {
        put(&format!("sys/class/net/eth1/{file}"), text);
    }
    let facts = facts::collect(&Root::open(folder.path()).unwrap(), &facts::Request::default());
    let host = Host::tree(folder.path()).unwrap();
    let change_requests = change_requests(&facts);
    let seen = look(&host, &change_requests.change_requests);
    make(PlanContext::new(&facts, &Session::default()), host.id(), &change_requests, &seen)
}

fn of(text: &str) -> Plan {
    planned(|_| change_request::document(text).unwrap())
}

fn verdict(plan: &Plan, knob: &str) -> Option<Verdict> {
    plan.refused.iter().find(|r| r.knob == knob).unwrap_or_else(|| panic!("{knob} passed")).verdict
}

/// The recipe for 10 Gbit/s from the kernel's ixgb document, with additions.
const RECIPE: &str = "\
setpci -d 8086:1a48 e6.b=2e
ip li set dev eth1 mtu 9000 txqueuelen 1000 up
### IPV4 specific settings
net.ipv4.tcp_timestamps = 0
net.ipv4.tcp_sack = 0
net.ipv4.tcp_rmem = 10000000 10000000 10000000
net.ipv4.tcp_wmem = 10000000 10000000 10000000
net.ipv4.tcp_mem = 10000000 10000000 10000000
net.core.rmem_max = 524287
net.core.wmem_max = 524287
net.core.rmem_default = 524287
net.core.wmem_default = 524287
net.core.optmem_max = 524287
net.core.netdev_max_backlog = 300000
fs.file-max = 65535
service irqbalance stop
";

#[test]
fn each_line_of_the_recipe_of_2008_is_judged() {
    let plan = of(RECIPE);
    for (knob, is, because) in [
        ("sysctl.net.ipv4.tcp_sack", Harmful, "loss recovery needs it"),
        ("sysctl.net.ipv4.tcp_timestamps", Harmful, "3.4 s at 10 Gbit/s"),
        ("sysctl.net.ipv4.tcp_mem", Harmful, "the unit is pages of 4096 bytes"),
        ("sysctl.net.ipv4.tcp_rmem", Harmful, "granted to every socket even under memory"),
        ("sysctl.net.ipv4.tcp_wmem", Harmful, "granted to every socket even under memory"),
        ("sysctl.net.core.rmem_max", Lowers, "this kernel's own default of 4194304"),
        ("sysctl.net.core.wmem_max", Lowers, "this kernel's own default of 4194304"),
        ("sysctl.net.core.rmem_default", NoEffect, "TCP takes tcp_rmem instead"),
        ("sysctl.net.core.wmem_default", NoEffect, "TCP takes tcp_wmem instead"),
        ("sysctl.net.core.optmem_max", NoEffect, "makes nothing faster"),
        ("sysctl.net.core.netdev_max_backlog", Harmful, "do not pass it without RPS"),
        ("sysctl.fs.file-max", Lowers, "this kernel's own default of"),
        ("setpci -d 8086:1a48 e6.b", Dangerous, "PCI-X card of 2004"),
        ("service irqbalance", Harmful, "right for the length of a measurement"),
    ] {
        assert_eq!(verdict(&plan, knob), Some(is), "{knob}");
        let refused = plan.refused.iter().find(|r| r.knob == knob).unwrap();
        assert!(refused.why.contains(because), "{refused:?}");
        let sourced = !refused.source.is_empty() || knob == "service irqbalance";
        assert!(sourced, "{refused:?}");
    }
    // Jumbo frames, good where the path carries them, and a plain setting.
    let changes: Vec<_> = plan.changes.iter().map(|c| (c.knob.as_str(), c.new.as_str())).collect();
    assert_eq!(changes, [("nic.eth1.mtu", "9000"), ("nic.eth1.txqueuelen", "1000")]);
    assert_eq!(plan.refused.len(), 14, "{:?}", plan.refused);
}

#[test]
fn the_counter_example_says_what_a_plan_of_the_same_says() {
    let lore = planned(|facts| {
        let profile = profile::load("lore-2008").unwrap();
        ChangeRequests {
            change_requests: profile::expand(&profile, facts, &[]).0,
            ..ChangeRequests::default()
        }
    });
    let plan = of(RECIPE);
    assert!(lore.changes.is_empty(), "{:?}", lore.changes);
    let mut compared = 0;
    for r in lore.refused.iter().filter(|r| r.knob.starts_with("sysctl.")) {
        let same = plan.refused.iter().find(|p| p.knob == r.knob).unwrap();
        assert_eq!((same.kind, same.verdict, &same.why), (r.kind, r.verdict, &r.why), "{}", r.knob);
        compared += 1;
    }
    assert_eq!(compared, 12);
}

const LORE: &[(&str, Verdict)] = &[
    ("net.ipv4.ip_local_port_range = 1024 65535", Harmful),
    ("net.ipv4.tcp_syncookies=0", Harmful),
    ("net.ipv4.tcp_dsack=0", Harmful),
    ("net.ipv4.tcp_abort_on_overflow=1", Harmful),
    ("net.core.netdev_budget=50000", Harmful),
    ("vm.dirty_ratio=0", Harmful),
    ("net.ipv4.tcp_frto=0", Lowers),
    ("net.ipv4.tcp_retries2=3", Lowers),
    ("net.ipv4.tcp_limit_output_bytes=131072", Lowers),
    ("net.core.netdev_budget_usecs=2000", Lowers),
    ("kernel.shmmax=68719476736", Lowers),
    ("kernel.sem=250 32000 100 128", Lowers),
    ("net.ipv4.tcp_low_latency=1", NoEffect),
    ("net.ipv4.tcp_fack=1", NoEffect),
    ("kernel.poweroff_cmd=/tmp/x", Dangerous),
    ("fs.suid_dumpable=2", Dangerous),
    ("net.ipv4.tcp_tw_recycle=1", Gone),
];

#[test]
fn nothing_of_the_lore_passes_in_silence() {
    let text = |lines: &[(&str, Verdict)]| lines.iter().map(|(l, _)| format!("{l}\n")).collect();
    let lines: String = text(LORE);
    let plan = of(&lines);
    assert!(plan.changes.is_empty(), "{:?}", plan.changes);
    let understood = planned(|_| ChangeRequests {
        understood: true,
        ..change_request::document(&lines).unwrap()
    });
    for (line, is) in LORE {
        let knob = format!("sysctl.{}", line.split('=').next().unwrap().trim());
        assert_eq!(verdict(&plan, &knob), Some(*is), "{line}");
        let meant = matches!(is, Lowers | NoEffect);
        let passes = understood.changes.iter().any(|c| c.knob == knob);
        assert_eq!(passes, meant, "{line} with --i-understand");
    }
    let recycle = plan.refused.iter().find(|r| r.knob.ends_with("tw_recycle")).unwrap();
    assert!(recycle.why.starts_with("Linux 4.12 took it away"), "{recycle:?}");
    assert_eq!(recycle.kind, RefusedAs::Environment);
}

#[test]
fn what_is_not_known_needs_a_second_word() {
    let ask = "kernel.unheard_of=2\n";
    let plan = of(ask);
    assert!(plan.changes.is_empty());
    assert!(plan.refused[0].why.contains("does not know this setting"), "{:?}", plan.refused);
    let plan =
        planned(|_| ChangeRequests { understood: true, ..change_request::document(ask).unwrap() });
    assert_eq!(plan.changes[0].impact.disruption, model::tune::Disruption::ConnectionLoss);
}

#[test]
fn a_zero_beside_the_other_unit_asks_for_nothing() {
    for text in
        ["vm.dirty_ratio=0\nvm.dirty_bytes=256M\n", "vm.dirty_bytes=256M\nvm.dirty_ratio = 0\n"]
    {
        let plan = of(text);
        let changes: Vec<_> =
            plan.changes.iter().map(|c| (c.knob.as_str(), c.new.as_str())).collect();
        assert_eq!(changes, [("sysctl.vm.dirty_bytes", "268435456")], "{text}");
        assert!(plan.refused.is_empty(), "{:?}", plan.refused);
    }
    let both = of("vm.dirty_ratio=10\nvm.dirty_bytes=256M\n");
    assert!(both.refused[0].why.contains("is the same value as"), "{:?}", both.refused);
}

#[test]
fn mistyped_names_are_answered_with_the_nearest() {
    for (text, meant) in [
        ("sysctl.net.core.somaxcon=1\n", "did you mean sysctl.net.core.somaxconn?"),
        ("net.core.somaxcon=1\n", "did you mean sysctl.net.core.somaxconn?"),
        ("nic.eht1.mtu=1400\n", "there is no such interface here; did you mean eth1?"),
        ("nic.eth1.mut=1400\n", "did you mean nic.NIC.mtu=BYTES?"),
    ] {
        let plan = of(text);
        assert!(plan.refused[0].why.contains(meant), "{:?}", plan.refused);
    }
}
