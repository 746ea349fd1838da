//! Tests of other tuners, on generated trees of several distributions.

use std::{fs, os::unix::fs::symlink};

use model::{IrqId, Reading, tuner::Tuner};

use super::read;
use crate::Root;

struct Tree(tempfile::TempDir);

impl Tree {
    fn of(files: &[(&str, &str)]) -> Self {
        let this = Self(tempfile::tempdir().unwrap());
        for (path, text) in files {
            let to = this.0.path().join(path.trim_start_matches('/'));
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::write(to, text).unwrap();
        }
        this
    }

    fn link(&self, path: &str, target: &str) -> &Self {
        let to = self.0.path().join(path.trim_start_matches('/'));
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        symlink(target, to).unwrap();
        self
    }

    fn tuners(&self) -> Vec<Tuner> {
        read(&Root::open(self.0.path()).unwrap())
    }

    fn only(&self) -> Tuner {
        let mut all = self.tuners();
        assert_eq!(all.len(), 1, "{all:#?}");
        all.remove(0)
    }
}

#[test]
fn an_empty_tree_has_none() {
    assert_eq!(Tree::of(&[("/proc/1/comm", "init\n")]).tuners(), []);
}

#[test]
fn irqbalance_as_it_runs_with_its_own_variables_only() {
    let t = Tree::of(&[
        ("/proc/612/comm", "irqbalance\n"),
        ("/proc/612/cmdline", "/usr/sbin/irqbalance\0--foreground\0--banirq=25\0"),
        (
            "/proc/612/environ",
            "SECRET=hunter2\0IRQBALANCE_BANNED_CPUS=0000ffff,ffffffff\0PATH=/bin\0",
        ),
        ("/etc/default/irqbalance", "IRQBALANCE_BANNED_CPULIST=1\n"),
    ]);
    let r = t.only();
    assert_eq!((r.running, r.pid), (Reading::Known(true), Reading::Known(612)));
    assert_eq!(r.banned_cpus.known().unwrap().to_string(), "0-47");
    assert_eq!(r.banned_irqs, Reading::Known(vec![IrqId(25)]));
    let evidence = r.evidence.join("\n");
    assert!(evidence.contains("/proc/612/environ: IRQBALANCE_BANNED_CPUS=0000ffff,ffffffff"));
    assert!(evidence.contains("/etc/default/irqbalance:1: IRQBALANCE_BANNED_CPULIST=1"));
    assert!(!evidence.contains("hunter2") && !evidence.contains("PATH"));
}

#[test]
fn irqbalance_names_the_file_that_this_distribution_reads() {
    let t = Tree::of(&[
        ("/usr/sbin/irqbalance", ""),
        (
            "/usr/lib/systemd/system/irqbalance.service",
            "[Service]\nEnvironmentFile=-/etc/sysconfig/irqbalance\nExecStart=/usr/sbin/irqbalance --foreground $IRQBALANCE_ARGS\n",
        ),
        (
            "/etc/systemd/system/irqbalance.service.d/ban.conf",
            "[Service]\nEnvironment=\"IRQBALANCE_BANNED_CPULIST=2-3\"\n",
        ),
        (
            "/etc/sysconfig/irqbalance",
            "#IRQBALANCE_BANNED_CPUS=ff\nIRQBALANCE_ARGS=\"--banirq=7\"\n",
        ),
        ("/etc/default/irqbalance", "IRQBALANCE_BANNED_CPULIST=9\n"),
    ]);
    t.link(
        "/etc/systemd/system/multi-user.target.wants/irqbalance.service",
        "/usr/lib/systemd/system/irqbalance.service",
    );
    let r = t.only();
    assert_eq!(r.running, Reading::Known(false));
    assert_eq!(r.settings_files, ["/etc/sysconfig/irqbalance"]);
    assert_eq!(r.banned_cpus.known().unwrap().to_string(), "2-3");
    assert_eq!(r.banned_irqs, Reading::Known(vec![IrqId(7)]));
    assert!(
        r.evidence.iter().any(|e| e.ends_with("irqbalance.service: started at boot")),
        "{:?}",
        r.evidence
    );
}

#[test]
fn irqbalance_left_to_itself_bans_isolated_cpus() {
    let t = Tree::of(&[
        ("/usr/sbin/irqbalance", ""),
        ("/sys/devices/system/cpu/isolated", "4-5\n"),
        ("/sys/devices/system/cpu/nohz_full", "(null)\n"),
    ]);
    assert_eq!(t.only().banned_cpus.known().unwrap().to_string(), "4-5");
}

#[test]
fn tuned_with_an_included_profile() {
    let t = Tree::of(&[
        ("/proc/700/comm", "python3\n"),
        ("/proc/700/cmdline", "/usr/bin/python3\0-Es\0/usr/sbin/tuned\0-l\0"),
        ("/etc/tuned/active_profile", "mine\n"),
        (
            "/etc/tuned/mine/tuned.conf",
            "[main]\ninclude=throughput-performance\n[net]\nchannels=combined 4\n",
        ),
        (
            "/usr/lib/tuned/throughput-performance/tuned.conf",
            "[cpu]\ngovernor=performance\n[sysctl]\nvm.swappiness=10\n[disk]\nreadahead=>4096\n",
        ),
    ]);
    let r = t.only();
    assert_eq!((r.profile, r.pid), (Reading::Known("mine".into()), Reading::Known(700)));
    assert_eq!(r.owns, ["governor", "sysctl", "nic settings"]);
    assert!(
        r.evidence.contains(&"/etc/tuned/mine/tuned.conf:4: [net] channels=combined 4".to_owned())
    );
}

#[test]
fn profiles_that_include_each_other_end() {
    let t = Tree::of(&[
        ("/etc/tuned/active_profile", "a ../../etc\n"),
        ("/etc/tuned/a/tuned.conf", "[main]\ninclude=b\n[sysctl]\nnet.core.somaxconn=1\n"),
        ("/etc/tuned/b/tuned.conf", "[main]\ninclude=a,missing\n"),
    ]);
    let r = t.only();
    assert_eq!(r.running, Reading::Known(false));
    assert!(r.evidence.iter().any(|e| e.starts_with("profile missing")));
}

#[test]
fn link_files_that_only_name_are_no_tuners() {
    let t = Tree::of(&[
        (
            "/usr/lib/systemd/network/99-default.link",
            "[Match]\nOriginalName=*\n[Link]\nNamePolicy=keep kernel\nMACAddressPolicy=persistent\n",
        ),
        (
            "/etc/systemd/network/10-x.link",
            "[Match]\nOriginalName=eth0\n\n[Link]\nMTUBytes=9000\nCombinedChannels=4\nRxBufferSize=4096\nTCPSegmentationOffload=no\n",
        ),
    ]);
    let r = t.only();
    assert_eq!((r.kind.as_str(), r.name.as_str()), ("link_file", "/etc/systemd/network/10-x.link"));
    assert_eq!(r.owns, ["mtu", "channels", "rings", "offloads"]);
    assert!(r.evidence.contains(&"/etc/systemd/network/10-x.link:5: MTUBytes=9000".to_owned()));
    assert!(!r.running.is_known());
}

#[test]
fn connections_show_their_settings_and_no_secret() {
    let t = Tree::of(&[
        ("/proc/500/comm", "NetworkManager\n"),
        (
            "/etc/NetworkManager/system-connections/a.nmconnection",
            "[connection]\nid=a\n[ethernet]\nmtu=9000\n[wifi-security]\npsk=hunter2\n[ethtool]\nring-rx=4096\n",
        ),
        (
            "/etc/sysconfig/network-scripts/ifcfg-eth0",
            "DEVICE=eth0\nETHTOOL_OPTS=\"-G eth0 rx 4096\"\n",
        ),
    ]);
    let r = t.only();
    assert_eq!(r.owns, ["mtu", "nic settings"]);
    assert_eq!(r.evidence.len(), 3);
    assert!(!r.evidence.join(" ").contains("hunter2"));
}

#[test]
fn scripts_and_rules_are_quoted_with_their_lines() {
    let t = Tree::of(&[
        (
            "/etc/rc.local",
            "#!/bin/sh\npassword=hunter2\nethtool -G eth0 rx 4096\necho f > /sys/class/net/eth0/queues/rx-0/rps_cpus\n",
        ),
        ("/etc/network/if-up.d/ethtool", "ethtool -K $IFACE tso off\n"),
        ("/etc/cron.d/pin", "* * * * * root echo 1 > /proc/irq/30/smp_affinity_list\n"),
        (
            "/etc/systemd/system/tune.service",
            "[Service]\nExecStart=/usr/sbin/ethtool -L eth0 combined 8\n",
        ),
        (
            "/etc/udev/rules.d/60-net.rules",
            "# x\nACTION==\"add\", SUBSYSTEM==\"net\", ATTR{tx_queue_len}=\"10000\"\n",
        ),
        (
            "/usr/lib/udev/rules.d/99-systemd.rules",
            "ACTION==\"add\", SUBSYSTEM==\"net\", RUN+=\"/usr/lib/systemd/systemd-sysctl --prefix=/net/ipv4/conf/$name\"\n",
        ),
    ]);
    let all = t.tuners();
    let names: Vec<_> = all.iter().map(|r| r.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "/etc/udev/rules.d/60-net.rules",
            "/etc/cron.d/pin",
            "/etc/rc.local",
            "/etc/systemd/system/tune.service"
        ]
    );
    assert_eq!(
        all[2].evidence,
        [
            "/etc/rc.local:3: ethtool -G eth0 rx 4096",
            "/etc/rc.local:4: echo f > /sys/class/net/eth0/queues/rx-0/rps_cpus",
        ]
    );
    assert_eq!(all[2].owns, ["rings", "rps"]);
    assert_eq!(all[1].owns, ["irq affinity"]);
}

#[test]
fn agents_of_clouds() {
    let t = Tree::of(&[
        ("/proc/800/comm", "google_guest_ag\n"),
        ("/usr/bin/google_set_multiqueue", ""),
        ("/etc/default/instance_configs.cfg", "[InstanceSetup]\nset_multiqueue = false\n"),
        ("/proc/900/comm", "python3\n"),
        ("/proc/900/cmdline", "python3\0-u\0/usr/sbin/waagent\0-daemon\0"),
    ]);
    let all = t.tuners();
    assert_eq!(
        all.iter().map(|r| r.name.as_str()).collect::<Vec<_>>(),
        ["google-guest-agent", "waagent"]
    );
    assert!(all[0].evidence.iter().any(|e| e.contains("set_multiqueue=false")));
    assert_eq!(all[1].pid, Reading::Known(900));
}

#[test]
fn sysctl_files_that_set_what_is_judged() {
    let t = Tree::of(&[
        ("/etc/sysctl.d/90-net.conf", "net.core.rmem_max=524287\nkernel.pid_max=99\n"),
        ("/etc/sysctl.d/91-other.conf", "kernel.pid_max=99\n"),
    ]);
    let r = t.only();
    assert_eq!(r.evidence, ["/etc/sysctl.d/90-net.conf:1: net.core.rmem_max = 524287"]);
}

/// The list names every kind there is a file for.
#[test]
fn every_kind_is_looked_for() {
    let helpers = ["mod", "conf_dirs", "scan", "tests", "unit", "words"];
    let mut files: Vec<String> =
        fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src/facts/tuner"))
            .unwrap()
            .filter_map(|e| {
                e.unwrap().file_name().into_string().unwrap().strip_suffix(".rs").map(str::to_owned)
            })
            .filter(|n| !helpers.contains(&n.as_str()))
            .collect();
    files.sort();
    let mut named: Vec<&str> = super::KINDS.iter().map(|k| k.0).collect();
    named.sort_unstable();
    assert_eq!(files, named);
}
