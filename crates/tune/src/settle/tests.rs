//! Uses a directory in which `carrier` is a link to `mtu`: an MTU other than 1 takes the interface
//! down at once, and the test brings it back.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::{fs, os::unix::fs::symlink, path::PathBuf};

use model::{
    Reading,
    tune::{By, Disruption, Impact, LinkMember, Plan, Planned},
};

use super::*;
use crate::{
    Store,
    apply::{Applied, Applier},
    undo,
};

struct Tree(tempfile::TempDir);

impl Tree {
    /// A bond of two members.
    fn new() -> Self {
        let tree = Self(tempfile::tempdir().unwrap());
        tree.put("bond0/bonding/mode", "active-backup 1\n");
        for nic in ["eth0", "eth1"] {
            tree.put(&format!("{nic}/mtu"), "1\n");
            tree.put(&format!("{nic}/bonding_slave/mii_status"), "up\n");
            symlink("../bond0", tree.at(&format!("{nic}/master"))).unwrap();
        }
        tree
    }

    fn at(&self, file: &str) -> PathBuf {
        self.0.path().join("sys/class/net").join(file)
    }

    fn put(&self, file: &str, text: &str) {
        let path = self.at(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn mtu(&self, nic: &str) -> String {
        fs::read_to_string(self.at(&format!("{nic}/mtu"))).unwrap().trim().to_owned()
    }

    fn until_mtu(&self, nic: &str, mtu: &str) {
        let begun = Instant::now();
        while self.mtu(nic) != mtu {
            assert!(begun.elapsed() < Duration::from_secs(60), "{nic} never got {mtu}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Ties each link to its MTU: up while the MTU reads 1.
    fn falls_with_its_mtu(&self) {
        for nic in ["eth0", "eth1"] {
            let _ = fs::remove_file(self.at(&format!("{nic}/carrier")));
            symlink("mtu", self.at(&format!("{nic}/carrier"))).unwrap();
        }
    }

    /// Brings the link up, whatever the MTU.
    fn comes_back(&self, nic: &str) {
        let new = self.at(&format!("{nic}/new"));
        fs::write(&new, "1\n").unwrap();
        fs::rename(new, self.at(&format!("{nic}/carrier"))).unwrap();
    }

    fn host(&self) -> Host {
        Host::tree(self.0.path()).unwrap()
    }

    fn store(&self) -> Store {
        Store::at(self.0.path().join("state"))
    }

    fn plan(&self, old: &str, new: &str) -> Plan {
        let change = |nic: &str| Planned {
            knob: format!("nic.{nic}.mtu"),
            old: old.into(),
            new: new.into(),
            unit: "bytes".into(),
            impact: Impact::of(Disruption::LinkReset, "a test"),
            owner: String::new(),
            undo: String::new(),
            command: String::new(),
            asked_by: String::new(),
            why: String::new(),
            member: Some(LinkMember {
                nic: nic.into(),
                master: "bond0".into(),
                up: vec!["eth0".into(), "eth1".into()],
            }),
            nic: None,
        };
        Plan {
            schema_version: model::SCHEMA_VERSION,
            host: self.host().id(),
            changes: vec![change("eth0"), change("eth1")],
            refused: vec![],
            unchanged: vec![],
            notes: vec![],
        }
    }

    fn apply(&self, plan: &Plan, stop: &AtomicBool) -> Applied {
        let store = self.store();
        let lock = store.lock(None, &mut |_| {}).unwrap();
        let host = self.host();
        let path = crate::mtu_path::PathCheck::default();
        let work =
            Applier { host: &host, store: &store, lock: &lock, stop, link_wait: PATIENCE, path };
        work.apply(plan, by(), None).unwrap()
    }

    fn roll_back(&self, id: u64) {
        let store = self.store();
        let lock = store.lock(None, &mut |_| {}).unwrap();
        let set = store.set(id).unwrap().unwrap();
        let mut journal = store.resume(id, &lock).unwrap();
        let report = undo::all(&self.host(), &mut journal, &set, undo::ASKED);
        assert!(report.is_whole(), "{report:?}");
    }
}

fn by() -> By {
    By { login: Reading::absent("a test"), uid: 0, pid: 1, start_ticks: 1, version: "0".into() }
}

/// Longer than any wait that could happen by accident.
const A_WHILE: Duration = Duration::from_millis(150);

#[test]
fn the_next_members_link_is_reset_when_the_one_before_is_back() {
    let tree = Tree::new();
    tree.falls_with_its_mtu();
    let plan = tree.plan("1", "1400");
    let applied = std::thread::scope(|s| {
        let applied = s.spawn(|| tree.apply(&plan, &AtomicBool::new(false)));
        tree.until_mtu("eth0", "1400");
        std::thread::sleep(A_WHILE);
        assert_eq!(tree.mtu("eth1"), "1");
        // The link is up, but the bond does not use it yet.
        tree.put("eth0/bonding_slave/mii_status", "going back\n");
        tree.comes_back("eth0");
        std::thread::sleep(A_WHILE);
        assert_eq!(tree.mtu("eth1"), "1");
        tree.put("eth0/bonding_slave/mii_status", "up\n");
        tree.until_mtu("eth1", "1400");
        tree.comes_back("eth1");
        applied.join().unwrap()
    });
    assert_eq!(applied, Applied::Whole(1));
}

#[test]
fn one_that_does_not_come_back_ends_it_and_all_is_undone() {
    let tree = Tree::new();
    tree.falls_with_its_mtu();
    let plan = tree.plan("1", "1400");
    let applied = std::thread::scope(|s| {
        let applied = s.spawn(|| tree.apply(&plan, &AtomicBool::new(false)));
        tree.until_mtu("eth0", "1400");
        tree.comes_back("eth0");
        applied.join().unwrap()
    });
    let Applied::Undone { why, report, .. } = applied else { panic!("{applied:?}") };
    let why = why.to_string();
    assert!(why.contains("did not come back into bond0: eth1 has no link after 2 s"), "{why}");
    assert_eq!(report.restored, ["nic.eth1.mtu", "nic.eth0.mtu"]);
    assert_eq!((tree.mtu("eth0"), tree.mtu("eth1")), ("1".into(), "1".into()));
}

#[test]
fn undoing_waits_as_well_but_stops_at_nothing() {
    let tree = Tree::new();
    tree.put("eth0/mtu", "1400\n");
    tree.put("eth1/mtu", "1400\n");
    for nic in ["eth0", "eth1"] {
        tree.comes_back(nic);
    }
    assert_eq!(tree.apply(&tree.plan("1400", "1"), &AtomicBool::new(false)), Applied::Whole(1));
    tree.falls_with_its_mtu();
    std::thread::scope(|s| {
        let undone = s.spawn(|| tree.roll_back(1));
        tree.until_mtu("eth1", "1400");
        std::thread::sleep(A_WHILE);
        assert_eq!(tree.mtu("eth0"), "1");
        tree.comes_back("eth1");
        // eth0 stays down.
        undone.join().unwrap();
    });
    assert_eq!(tree.mtu("eth0"), "1400");
}

#[test]
fn no_link_is_reset_while_another_that_was_up_is_down() {
    let tree = Tree::new();
    tree.falls_with_its_mtu();
    let (host, mut plan) = (tree.host(), tree.plan("1", "1400"));
    settle_note(&host, &mut plan, &["eth0", "eth1"]);
    tree.put("eth1/bonding_slave/mii_status", "down\n");
    let member = plan.changes[0].member.clone().unwrap();
    let why = others(&host, &member, PATIENCE, &AtomicBool::new(false)).unwrap_err().to_string();
    assert!(why.contains("eth0 is not reset: bond0 takes eth1 for down after 2 s"), "{why}");
    let why = others(&host, &member, PATIENCE, &AtomicBool::new(true)).unwrap_err().to_string();
    assert!(why.contains("interrupted"), "{why}");
    // A member that was down before is never waited for.
    settle_note(&host, &mut plan, &["eth0"]);
    let of = |n: usize| plan.changes[n].member.clone().unwrap();
    others(&host, &of(0), PATIENCE, &AtomicBool::new(false)).unwrap();
    back(&host, &of(1), PATIENCE, &AtomicBool::new(false)).unwrap();
}

#[track_caller]
fn settle_note(host: &Host, plan: &mut Plan, up: &[&str]) {
    note(host.root(), &mut plan.changes);
    assert_eq!(plan.changes[0].member.as_ref().unwrap().up, up);
}

#[test]
fn a_link_is_not_all_that_a_master_asks_for() {
    let tree = Tree::new();
    for nic in ["eth0", "eth1"] {
        tree.comes_back(nic);
    }
    let why = |nic: &str, master: &str| carries(tree.host().root(), nic, master).unwrap_err();
    assert_eq!(why("eth0", "bond1"), "eth0 is no longer a member of bond1");

    tree.put("bond0/bonding/mode", "802.3ad 4\n");
    tree.put("bond0/bonding/ad_aggregator", "1\n");
    tree.put("eth0/bonding_slave/ad_aggregator_id", "1\n");
    tree.put("eth0/bonding_slave/ad_actor_oper_port_state", "61\n");
    assert_eq!(carries(tree.host().root(), "eth0", "bond0"), Ok(()));
    tree.put("eth0/bonding_slave/ad_actor_oper_port_state", "13\n"); // in sync, no more
    assert!(why("eth0", "bond0").contains("active aggregate"));
    tree.put("eth0/bonding_slave/ad_actor_oper_port_state", "61\n");
    tree.put("eth0/bonding_slave/ad_aggregator_id", "2\n");
    assert!(why("eth0", "bond0").contains("active aggregate"));

    tree.put("br0/bridge/stp_state", "1\n");
    tree.put("br0/bridge/forward_delay", "1500\n");
    tree.put("eth2/carrier", "1\n");
    tree.put("eth2/brport/state", "2\n"); // learning
    symlink("../br0", tree.at("eth2/master")).unwrap();
    assert_eq!(why("eth2", "br0"), "eth2 does not forward in br0 yet");
    let of = |master| patience(tree.host().root(), master, PATIENCE);
    assert_eq!(of("br0"), PATIENCE + Duration::from_secs(30));
    assert_eq!(of("bond0"), PATIENCE + LACP_SLOW);
}
