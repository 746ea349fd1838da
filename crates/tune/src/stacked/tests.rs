//! A bridge on a VLAN on a NIC, with a second port; a bond of two.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use model::{
    Reading,
    nic::KindDetails,
    tune::{Plan, PlanNote},
};
use probe::{Root, facts};

use crate::{
    Host, change_request,
    knob::{PlanContext, mtu_of},
    knobs, plan,
    session::Session,
};

/// `br0` with `eth0.5` (on eth0) and eth1; `bond0` of eth2 and eth3.
fn tree(at: &Path) {
    let put = |file: String, text: &str| {
        let file = at.join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    };
    let nics = ["eth0", "eth1", "eth2", "eth3", "eth0.5", "br0", "bond0"];
    for (n, nic) in nics.iter().enumerate() {
        let file = |name: &str, text: &str| put(format!("sys/class/net/{nic}/{name}"), text);
        file("ifindex", &format!("{}\n", n + 2));
        file("type", "1\n");
        file("flags", "0x1003\n");
        file("mtu", "1500\n");
        if nic.starts_with("eth") && *nic != "eth0.5" {
            file("device/vendor", "0x8086\n");
        }
        put(format!("proc/sys/net/ipv6/conf/{}/mtu", nic), "1500\n");
    }
    put("sys/class/net/eth0.5/uevent".into(), "DEVTYPE=vlan\n");
    put(
        "proc/net/vlan/config".into(),
        "VLAN Dev name    | VLAN ID\nName-Type: VLAN_NAME_TYPE_RAW_PLUS_VID_NO_PAD\n\
         eth0.5         | 5  | eth0\n",
    );
    put("sys/class/net/br0/bridge/stp_state".into(), "0\n");
    put("sys/class/net/bond0/bonding/mode".into(), "802.3ad 4\n");
    let links = [
        ("eth0", "eth0.5"),
        ("eth0.5", "br0"),
        ("eth1", "br0"),
        ("eth2", "bond0"),
        ("eth3", "bond0"),
    ];
    for (lower, upper) in links {
        let net = at.join("sys/class/net");
        let link = |to: &str, at: String| {
            std::os::unix::fs::symlink(format!("../{to}"), net.join(at)).unwrap();
        };
        link(upper, format!("{lower}/upper_{upper}"));
        link(lower, format!("{upper}/lower_{lower}"));
        if upper != "eth0.5" {
            link(upper, format!("{lower}/master"));
        }
    }
}

fn made(change_requests: &[&str]) -> Plan {
    let folder = tempfile::tempdir().unwrap();
    tree(folder.path());
    let facts = facts::collect(&Root::open(folder.path()).unwrap(), &facts::Request::default());
    let host = Host::tree(folder.path()).unwrap();
    let change_requests: Vec<String> = change_requests.iter().map(|w| (*w).to_owned()).collect();
    let change_requests = change_request::arguments(&change_requests).unwrap();
    let seen = plan::look(&host, &change_requests.change_requests);
    plan::make(PlanContext::new(&facts, &Session::default()), host.id(), &change_requests, &seen)
}

/// The interfaces in the order of their changes.
fn order(plan: &Plan) -> Vec<&str> {
    assert_eq!(plan.refused, []);
    plan.changes.iter().filter_map(|c| mtu_of(&c.knob)).collect()
}

fn stays(note: &PlanNote) -> bool {
    matches!(note, PlanNote::BridgeMtuStays { .. })
}

#[test]
fn what_is_below_is_raised_first_and_lowered_last() {
    let all = |mtu: u32, nics: &[&str]| -> Vec<String> {
        nics.iter().map(|n| format!("nic.{n}.mtu={mtu}")).collect()
    };
    let stack = ["eth0", "eth0.5", "eth1", "br0"];
    for turn in 0..stack.len() {
        let mut asked = stack;
        asked.rotate_left(turn);
        let plan = |mtu| {
            let change_requests = all(mtu, &asked);
            made(&change_requests.iter().map(String::as_str).collect::<Vec<_>>())
        };
        let (up, down) = (plan(9000), plan(1400));
        for (plan, grows) in [(&up, true), (&down, false)] {
            let order = order(plan);
            let at = |nic: &str| order.iter().position(|n| *n == nic).unwrap();
            for (lower, upper) in [("eth0", "eth0.5"), ("eth0.5", "br0"), ("eth1", "br0")] {
                assert_eq!(at(lower) < at(upper), grows, "{order:?} of {asked:?}");
            }
        }
        // Reported once, and not for a plan without the bridge.
        assert_eq!(up.notes.iter().filter(|n| stays(n)).count(), 1, "{:?}", up.notes);
    }
    assert!(!made(&["nic.eth1.mtu=9000"]).notes.iter().any(stays));
    // Not adjacent in the plan, but stacked.
    let across = ["nic.br0.mtu=1300", "nic.eth0.mtu=1400"];
    assert_eq!(order(&made(&across)), ["br0", "eth0"]);
}

#[test]
fn what_the_plan_makes_too_small_below_is_refused() {
    let refused = |change_requests: &[&str]| -> String {
        let plan = made(change_requests);
        plan.refused.iter().map(|r| format!("{}: {}", r.knob, r.why)).collect::<Vec<_>>().join("\n")
    };
    for (change_requests, why) in [
        (
            &["nic.br0.mtu=9000", "nic.eth1.mtu=9000"][..],
            "nic.br0.mtu: its port eth0.5 carries 1500 bytes; ask for nic.eth0.5.mtu=9000 in the same plan",
        ),
        (
            &["nic.eth0.5.mtu=9000"],
            "nic.eth0.5.mtu: eth0 below it carries 1500 bytes; ask for nic.eth0.mtu=9000 in the same plan",
        ),
        (
            &["nic.eth0.5.mtu=9000", "nic.eth0.mtu=8000"],
            "nic.eth0.5.mtu: eth0 below it carries 8000 bytes by the same plan",
        ),
        // The kernel would lower it to 1300 with eth0.
        (
            &["nic.eth0.mtu=1300", "nic.eth0.5.mtu=1400"],
            "nic.eth0.5.mtu: eth0 below it carries 1300 bytes by the same plan",
        ),
        (
            &["nic.bond0.mtu=9000", "nic.eth2.mtu=8000"],
            "nic.eth2.mtu: bond0 hands its MTU on to its members, and the same plan sets 9000: ask for \
             nic.bond0.mtu=8000 instead",
        ),
        (
            &["nic.eth2.mtu=1400"],
            "nic.eth2.mtu: bond0 hands its MTU on to its members, which is 1500: ask for \
             nic.bond0.mtu=1400 instead",
        ),
    ] {
        assert_eq!(refused(change_requests), why);
    }
    // The refused change below does not raise the limit.
    assert!(
        refused(&["nic.br0.mtu=9000", "nic.eth0.5.mtu=9000"]).contains("nic.br0.mtu: its port")
    );
    assert_eq!(order(&made(&["nic.eth2.mtu=9000", "nic.bond0.mtu=9000"])), ["eth2", "bond0"]);
}

#[test]
fn ipv6_is_not_taken_off_what_is_lowered_along() {
    let folder = tempfile::tempdir().unwrap();
    tree(folder.path());
    let host = Host::tree(folder.path()).unwrap();
    let root = Root::open(folder.path()).unwrap();
    let mut facts = facts::collect(&root, &facts::Request::default());
    let of = |facts: &model::Facts, change_request: &str| {
        let change_requests = change_request::arguments(&[change_request.to_owned()]).unwrap();
        let seen = plan::look(&host, &change_requests.change_requests);
        let session = Session::default();
        let context = PlanContext::new(facts, &session);
        plan::make(context, host.id(), &change_requests, &seen)
            .refused
            .first()
            .map(|r| r.why.clone())
    };
    let nic = |facts: &mut model::Facts, name: &str, edit: &dyn Fn(&mut model::nic::Nic)| {
        edit(facts.nics.iter_mut().find(|n| n.name == name).unwrap());
    };
    assert_eq!(of(&facts, "nic.eth0.mtu=1200"), None);
    for name in ["br0", "bond0"] {
        nic(&mut facts, name, &|n| n.addresses = model::Reading::Known(vec!["fd00::1/64".into()]));
    }
    let why = of(&facts, "nic.eth0.mtu=1200").unwrap();
    assert!(why.starts_with("below 1280 the kernel takes IPv6 off br0"), "{why}");
    assert_eq!(of(&facts, "nic.eth0.mtu=1280"), None);
    let why = of(&facts, "nic.eth2.mtu=1200").unwrap();
    assert!(why.starts_with("bond0 hands"), "a bond does not follow its members: {why}");
    // The peer of a member carries less.
    let veth = || KindDetails::Veth {
        peer_ifindex: Reading::Known(77),
        peer: Reading::Known("p".into()),
        peer_namespace: Reading::absent("x"),
        peer_mtu: Reading::Known(1500),
        peer_container: Reading::absent("x"),
    };
    assert_eq!(of(&facts, "nic.bond0.mtu=9000"), None);
    nic(&mut facts, "eth3", &|n| n.details = veth());
    let why = of(&facts, "nic.bond0.mtu=9000").unwrap();
    assert!(why.starts_with("of its member eth3, p at the other end, in another"), "{why}");
    // Its MTU was set by hand: it does not follow its ports.
    nic(&mut facts, "br0", &|n| n.mtu = model::Reading::Known(1400));
    assert_eq!(of(&facts, "nic.eth0.mtu=1200"), None);
}

#[test]
fn all_that_moves_along_is_saved_the_nearest_first() {
    let folder = tempfile::tempdir().unwrap();
    tree(folder.path());
    let host = Host::tree(folder.path()).unwrap();
    let along = |knob: &str| knobs::find(knob).unwrap().coupled_settings(&host).join(" ");
    assert_eq!(
        along("nic.eth0.mtu"),
        "nic.eth0.5.mtu nic.br0.mtu sysctl.net.ipv6.conf.eth0.mtu sysctl.net.ipv6.conf.eth0/5.mtu \
         sysctl.net.ipv6.conf.br0.mtu"
    );
    let bond = along("nic.bond0.mtu");
    assert!(bond.starts_with("nic.eth2.mtu nic.eth3.mtu sysctl"), "{bond}");
}
