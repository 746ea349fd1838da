#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use model::Facts;
use probe::{Root, facts};

use crate::{
    Host,
    persist::{
        Destination, PersistedValue, Record, Subject,
        render::{Rendered, render},
        subject,
    },
};

fn put(at: &Path, file: &str, text: &str) {
    let file = at.join(file);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, text).unwrap();
}

fn facts_of(at: &Path) -> Facts {
    facts::collect(&Root::open(at).unwrap(), &facts::Request::default())
}

fn kept(knob: &str, value: &str, subject: Subject) -> PersistedValue {
    PersistedValue { id: 1, knob: knob.into(), set_as: None, value: value.into(), subject }
}

/// The files for eth0's MTU while it exists, and after it is gone.
fn here_and_gone(files: &[(&str, &str)]) -> (Rendered, Rendered) {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    put(at, "usr/lib/systemd/libsystemd-shared-252.so", "");
    put(at, "sys/class/net/eth0/ifindex", "2\n");
    put(at, "sys/class/net/eth0/device/vendor", "0x8086\n");
    files.iter().for_each(|(file, text)| put(at, file, text));
    let (host, target) = (Host::tree(at).unwrap(), Destination::this());
    let facts = facts_of(at);
    let nic = subject::interface(&host, &target, &facts, "eth0.mtu", &Record::default()).unwrap();
    // As read back from the record.
    let all = [kept("nic.eth0.mtu", "9000", Subject::Nic(nic))];
    let all: Vec<PersistedValue> =
        serde_json::from_str(&serde_json::to_string(&all).unwrap()).unwrap();
    let here = render(&host, &target, &facts, &all);
    std::fs::remove_dir_all(at.join("sys/class/net/eth0")).unwrap();
    for (file, _) in files.iter().filter(|(f, _)| f.starts_with("run/")) {
        std::fs::remove_file(at.join(file)).unwrap();
    }
    (here, render(&host, &target, &facts_of(at), &all))
}

#[test]
fn who_sets_the_mtu_after_udev_gets_it_also_while_the_interface_is_gone() {
    for (files, path, line) in [
        (
            &[("run/NetworkManager/devices/2", "connection-uuid=77-88\n")][..],
            "/etc/NetworkManager/conf.d/90-netwright.conf",
            "match-device=interface-name:=eth0\nethernet.mtu=9000\n",
        ),
        (
            &[
                ("run/systemd/netif/links/2", "NETWORK_FILE=/etc/systemd/network/10-lan.network\n"),
                (
                    "etc/systemd/network/10-lan.network",
                    "[Match]\nName=eth0\n[Link]\nMTUBytes=1500\n",
                ),
            ],
            "/etc/systemd/network/10-lan.network.d/90-netwright.conf",
            "[Link]\nMTUBytes=9000\n",
        ),
    ] {
        let (here, gone) = here_and_gone(files);
        let of = |r: &Rendered| r.files.iter().find(|f| f.path == path).map(|f| f.body.clone());
        assert!(of(&here).is_some_and(|body| body.ends_with(line)), "{here:?}");
        assert_eq!(here.files, gone.files);
    }
    let (here, gone) = here_and_gone(&[]);
    assert_eq!((here.files.len(), &here.files), (1, &gone.files), "the .link file alone");
}

#[test]
fn what_no_form_can_say_sends_nobody_to_one() {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), "sys/class/net/eth0/ifindex", "2\n");
    let (host, target) = (Host::tree(folder.path()).unwrap(), Destination::this());
    let facts = facts_of(folder.path());
    let nic = subject::interface(&host, &target, &facts, "eth0.qdisc", &Record::default());
    let of = |value: &str| {
        let all = [kept("nic.eth0.qdisc", value, Subject::Nic(nic.clone().unwrap()))];
        render(&host, &target, &facts, &all).not_kept.first().map(|n| n.why.clone()).unwrap()
    };
    let why = of("mq fq limit 100");
    assert!(why.contains("no format sets it; a custom script can: tc qdisc replace"), "{why}");
    assert_eq!(of("fq limit 100"), "no systemd here: see --format shell");
    put(folder.path(), "usr/lib/systemd/libsystemd-shared-252.so", "");
    let why = of("mq fq limit 100");
    assert!(why.contains("no format sets it"), "{why}");
}
