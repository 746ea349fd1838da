//! Uses a directory tree laid out like a host with one interface.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use model::tune::{Plan, RefusedAs};
use probe::{Root, facts};

use crate::{Host, change_request, knob::PlanContext, plan, session::Session};

fn made(change_requests: &[&str]) -> Plan {
    let tree = tempfile::tempdir().unwrap();
    for (file, text) in [
        ("sys/class/net/v0.1/ifindex", "2\n"),
        ("sys/class/net/v0.1/type", "1\n"),
        ("sys/class/net/v0.1/flags", "0x1003\n"),
        ("sys/class/net/v0.1/mtu", "1500\n"),
        ("proc/sys/net/ipv4/ip_forward", "0\n"),
        ("proc/sys/net/ipv4/conf/all/forwarding", "0\n"),
        ("proc/sys/net/ipv4/conf/default/forwarding", "1\n"),
        ("proc/sys/net/ipv4/conf/v0.1/forwarding", "1\n"),
        ("proc/sys/net/ipv6/conf/v0.1/mtu", "1500\n"),
        ("proc/sys/net/ipv4/neigh/default/unres_qlen", "101\n"),
        ("proc/sys/net/ipv4/neigh/default/unres_qlen_bytes", "212992\n"),
        ("proc/sys/net/ipv4/neigh/v0.1/unres_qlen", "101\n"),
        ("proc/sys/net/ipv4/neigh/v0.1/unres_qlen_bytes", "212992\n"),
        ("proc/sys/net/core/somaxconn", "4096\n"),
    ] {
        let file = tree.path().join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }
    let facts = facts::collect(&Root::open(tree.path()).unwrap(), &facts::Request::default());
    let host = Host::tree(tree.path()).unwrap();
    let change_requests: Vec<String> = change_requests.iter().map(|w| (*w).to_owned()).collect();
    let change_requests = change_request::arguments(&change_requests).unwrap();
    let seen = plan::look(&host, &change_requests.change_requests);
    plan::make(PlanContext::new(&facts, &Session::default()), host.id(), &change_requests, &seen)
}

const ALL: &str = "sysctl.net.ipv4.conf.all.forwarding=1";
const OTHER: &str = "sysctl.net.core.somaxconn=5000";

/// The listed order is the expected one; requests are made in reverse.
#[test]
fn what_moves_others_along_is_written_before_them() {
    for order in [
        &[ALL, "sysctl.net.ipv4.conf.v0/1.forwarding=0"][..],
        &[ALL, "sysctl.net.ipv4.conf.default.forwarding=0"],
        &["sysctl.net.ipv4.ip_forward=1", "sysctl.net.ipv4.conf.default.forwarding=0"],
        &[OTHER, "nic.v0.1.mtu=1400", "sysctl.net.ipv6.conf.v0/1.mtu=1350"],
        // Both are the coarse unit: the moved value is the fine unit of the same setting.
        &[
            "sysctl.net.ipv4.neigh.default.unres_qlen=50",
            "sysctl.net.ipv4.neigh.v0/1.unres_qlen=30",
        ],
        // Unrelated settings.
        &[OTHER, ALL],
    ] {
        let mut asked = order.to_vec();
        if order != [OTHER, ALL] {
            asked.reverse();
        }
        let plan = made(&asked);
        assert_eq!(plan.refused, [], "{asked:?}");
        let made: Vec<String> =
            plan.changes.iter().map(|c| format!("{}={}", c.knob, c.new)).collect();
        assert_eq!(made, order);
    }
}

#[test]
fn two_names_of_one_value_are_refused_whatever_is_asked() {
    let bytes = "sysctl.net.ipv4.neigh.v0/1.unres_qlen_bytes=80003";
    for (first, second) in [
        (ALL, "sysctl.net.ipv4.ip_forward=0"),
        ("sysctl.net.ipv4.ip_forward=1", ALL),
        (bytes, "sysctl.net.ipv4.neigh.v0/1.unres_qlen=50"),
        ("sysctl.net.ipv4.neigh.v0/1.unres_qlen=50", bytes),
    ] {
        let plan = made(&[first, second]);
        let [refused] = plan.refused.as_slice() else { panic!("{plan:?}") };
        let name = first.split_once('=').unwrap().0;
        let why = format!("is the same value as {name} of this plan: ask for one of them");
        assert_eq!((refused.kind, &refused.why), (RefusedAs::Usage, &why));
        assert!(second.starts_with(&refused.knob));
    }
    let elsewhere = made(&[bytes, "sysctl.net.ipv4.neigh.default.unres_qlen=50"]);
    assert_eq!(elsewhere.refused, [], "another folder is another value");
}
