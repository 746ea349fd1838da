//! A bond of three, a bridge, and a separate NIC.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::path::Path;

use model::tune::{HostId, Plan};
use probe::{Root, facts};

use crate::{Host, change_request, knob::PlanContext, plan, session::Session};

/// `bond0` of eth0 (active), eth1 and eth2 (no link); `br0` with eth3; eth4.
fn tree(at: &Path) {
    let put = |file: &str, text: &str| {
        let file = at.join("sys/class/net").join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    };
    let link = |to: &str, file: &str| {
        std::os::unix::fs::symlink(to, at.join("sys/class/net").join(file)).unwrap();
    };
    let nics = ["eth0", "eth1", "eth2", "eth3", "eth4", "bond0", "br0"];
    for (n, nic) in nics.iter().enumerate() {
        let file = |name: &str, text: &str| put(&format!("{nic}/{name}"), text);
        file("ifindex", &format!("{}\n", n + 2));
        file("type", "1\n");
        file("flags", "0x1003\n");
        file("mtu", "1500\n");
        file("tx_queue_len", "1000\n");
        file("carrier", if *nic == "eth2" { "0\n" } else { "1\n" });
        if nic.starts_with("eth") {
            put(&format!("{nic}/device/vendor"), "0x8086\n");
        }
    }
    for nic in ["eth0", "eth1", "eth2"] {
        link("../bond0", &format!("{nic}/master"));
    }
    link("../br0", "eth3/master");
    put("bond0/bonding/mode", "active-backup 1\n");
    put("bond0/bonding/active_slave", "eth0\n");
    std::fs::create_dir_all(at.join("sys/class/net/br0/bridge")).unwrap();
}

fn made(change_requests: &[&str]) -> Plan {
    let folder = tempfile::tempdir().unwrap();
    tree(folder.path());
    let facts = facts::collect(&Root::open(folder.path()).unwrap(), &facts::Request::default());
    let host = Host::tree(folder.path()).unwrap();
    let change_requests: Vec<String> = change_requests.iter().map(|w| (*w).to_owned()).collect();
    let change_requests = change_request::arguments(&change_requests).unwrap();
    let seen = plan::look(&host, &change_requests.change_requests);
    let id: HostId = host.id();
    plan::make(PlanContext::new(&facts, &Session::default()), id, &change_requests, &seen)
}

fn order(plan: &Plan) -> Vec<&str> {
    plan.changes.iter().map(|c| c.knob.as_str()).collect()
}

#[test]
fn what_one_member_is_set_to_stands_together_and_the_one_in_use_is_last() {
    let plan = made(&[
        "nic.eth0.mtu=9000",
        "nic.eth4.mtu=9000",
        "nic.eth0.txqueuelen=500",
        "nic.eth1.txqueuelen=500",
        "nic.eth4.txqueuelen=500",
        "nic.eth1.mtu=9000",
    ]);
    assert_eq!(plan.refused, []);
    let order = order(&plan);
    assert_eq!(
        order,
        [
            "nic.eth1.mtu",
            "nic.eth1.txqueuelen",
            "nic.eth0.mtu",
            "nic.eth0.txqueuelen",
            "nic.eth4.mtu",
            "nic.eth4.txqueuelen",
        ]
    );
    let member = plan.changes[0].member.as_ref().unwrap();
    assert_eq!((member.nic.as_str(), member.master.as_str()), ("eth1", "bond0"));
    assert_eq!(member.up, ["eth0", "eth1"], "eth2 was down before");
    assert_eq!(plan.changes[1].member, None, "no link is reset for a queue's length");
    assert_eq!(plan.changes[4].member, None, "nobody's member");
    let note = lines(&plan);
    assert!(note.contains("eth1, eth0 are members of bond0: one after the other"), "{note}");
}

fn lines(plan: &Plan) -> String {
    plan.notes.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_bond_that_is_left_without_a_member_is_said() {
    let of = |change_requests: &[&str]| lines(&made(change_requests));
    assert_eq!(of(&["nic.eth0.mtu=9000"]), "", "eth1 carries on");
    assert_eq!(of(&["nic.eth3.mtu=9000"]), "", "a bridge's ports do not stand in for each other");
    assert_eq!(made(&["nic.eth3.mtu=9000"]).changes[0].member.as_ref().unwrap().master, "br0");
}
