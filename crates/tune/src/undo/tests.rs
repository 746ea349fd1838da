//! On a folder laid out like a host.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::{fs, path::PathBuf, sync::atomic::AtomicBool};

use model::{
    Reading,
    tune::{By, ChangeState, Drift, Impact, Plan, Planned},
};

use super::*;
use crate::{
    Store,
    apply::{Applied, Applier as Applying},
    residue, settle, status,
};

const KEYS: [&str; 3] = ["somaxconn", "busy_poll", "busy_read"];

struct Tree(tempfile::TempDir);

impl Tree {
    fn new() -> Self {
        let tree = Self(tempfile::tempdir().unwrap());
        fs::create_dir_all(tree.at("").parent().unwrap()).unwrap();
        KEYS.iter().for_each(|k| tree.put(k, "1\n"));
        tree
    }

    fn at(&self, key: &str) -> PathBuf {
        self.0.path().join("proc/sys/net/core").join(key)
    }

    fn put(&self, key: &str, value: &str) {
        fs::create_dir_all(self.at("")).unwrap();
        fs::write(self.at(key), value).unwrap();
    }

    fn values(&self) -> Vec<String> {
        let read = |k: &&str| fs::read_to_string(self.at(k)).unwrap_or_default().trim().to_owned();
        KEYS.iter().map(read).collect()
    }

    fn host(&self) -> Host {
        Host::tree(self.0.path()).unwrap()
    }

    fn store(&self) -> Store {
        Store::at(self.0.path().join("state"))
    }

    /// Changes every value from 1 to 2.
    fn apply(&self) {
        let change = |key: &&str| Planned {
            knob: format!("sysctl.net.core.{key}"),
            old: "1".into(),
            new: "2".into(),
            unit: String::new(),
            impact: Impact::none(),
            owner: String::new(),
            undo: String::new(),
            command: String::new(),
            asked_by: String::new(),
            why: String::new(),
            member: None,
            nic: None,
        };
        let plan = Plan {
            schema_version: model::SCHEMA_VERSION,
            host: self.host().id(),
            changes: KEYS.iter().map(change).collect(),
            refused: vec![],
            unchanged: vec![],
            notes: vec![],
        };
        let (host, store) = (self.host(), self.store());
        let lock = store.lock(None, &mut |_| {}).unwrap();
        let stop = &AtomicBool::new(false);
        let link_wait = settle::PATIENCE;
        let path = crate::mtu_path::PathCheck::default();
        let work = Applying { host: &host, store: &store, lock: &lock, stop, link_wait, path };
        let login = Reading::absent("a test");
        let by = By { login, uid: 0, pid: 1, start_ticks: 1, version: "0".into() };
        assert!(matches!(work.apply(&plan, by, None).unwrap(), Applied::Whole(1)));
        assert_eq!(self.values(), ["2", "2", "2"]);
    }

    fn roll_back(&self, on_drift: OnDrift) -> Report {
        let store = self.store();
        let lock = store.lock(None, &mut |_| {}).unwrap();
        let set = store.set(1).unwrap().unwrap();
        let mut journal = store.resume(1, &lock).unwrap();
        with(&self.host(), &mut journal, &set, ASKED, on_drift)
    }

    fn state(&self) -> ChangeState {
        self.store().set(1).unwrap().unwrap().state(None, false)
    }

    /// The residue in `tune status`: knob, current value.
    fn left(&self) -> Vec<(String, Option<String>)> {
        let status = status::status(&self.host(), &self.store(), None).unwrap();
        assert_eq!(status.sets.is_empty(), status.values.is_empty());
        let not_put_back = |d: &Drift| matches!(d, Drift::NotPutBack { .. });
        assert!(status.values.iter().all(|v| not_put_back(&v.drift)), "{:?}", status.values);
        status.values.into_iter().map(|v| (v.knob, v.now.known().cloned())).collect()
    }
}

#[test]
fn what_is_back_after_it_was_gone_is_left_until_it_is_put_back() {
    let tree = Tree::new();
    tree.apply();
    fs::remove_file(tree.at("busy_poll")).unwrap();
    let report = tree.roll_back(OnDrift::Overwrite);
    assert_eq!(report.gone.len(), 1);
    assert_eq!(
        (tree.state(), tree.values()),
        (ChangeState::PartlyRolledBack, vec!["1".into(), String::new(), "1".into()])
    );
    assert!(tree.left().is_empty(), "what is gone is not in force");
    // It reappears with our value.
    tree.put("busy_poll", "2\n");
    assert_eq!(tree.left(), [("sysctl.net.core.busy_poll".to_owned(), Some("2".to_owned()))]);
    let notice = status::notice(&tree.host(), &tree.store(), "", false).unwrap();
    assert!(notice.contains("tune rollback 1"), "{notice}");
    // An external change of an already restored value: the second try leaves it.
    tree.put("somaxconn", "7\n");
    assert!(tree.roll_back(OnDrift::Overwrite).is_whole());
    assert_eq!(
        (tree.state(), tree.values()),
        (ChangeState::RolledBack, vec!["7".into(), "1".into(), "1".into()])
    );
    assert!(tree.left().is_empty());
}

/// A residual value that equals its old value closes the change, and is not undone if set again. A
/// value that cannot be read does not close it.
#[test]
fn what_is_no_longer_left_is_closed_and_does_not_come_back() {
    let tree = Tree::new();
    tree.apply();
    fs::remove_file(tree.at("busy_poll")).unwrap();
    tree.roll_back(OnDrift::Overwrite);
    let close = || {
        let (host, store) = (tree.host(), tree.store());
        let lock = store.lock(None, &mut |_| {}).unwrap();
        let sets = store.sets().unwrap().0.into_iter().map(|s| {
            let state = s.state(None, false);
            (s, state)
        });
        residue::close(&host, &store, &lock, &sets.collect::<Vec<_>>()).unwrap()
    };
    assert_eq!((close(), tree.state()), (vec![], ChangeState::PartlyRolledBack), "not there now");
    tree.put("busy_poll", "2\n");
    assert_eq!((close(), tree.state()), (vec![], ChangeState::PartlyRolledBack), "ours is there");
    tree.put("busy_poll", "1\n");
    // A later, unreadable change may have set it, and is undone later.
    let later = tree.store().folder().join("000002.jsonl");
    let newer = "{\"seq\":1,\"at_unix_ms\":5,\"event\":\"begin\",\"schema_version\":99}\n";
    fs::write(&later, newer).unwrap();
    assert_eq!(tree.store().newer_after(1).unwrap(), Some(2));
    assert_eq!(tree.store().newer_after(2).unwrap(), None);
    assert_eq!((close(), tree.state()), (vec![], ChangeState::PartlyRolledBack), "a newer one's");
    fs::remove_file(later).unwrap();
    assert_eq!((close(), tree.state()), (vec![1], ChangeState::RolledBack));
    tree.put("busy_poll", "7\n");
    assert!(tree.left().is_empty());
    assert_eq!(close(), [0; 0]);
}

#[test]
fn what_somebody_else_set_is_named_and_overwritten_or_left() {
    for (on_drift, after) in [(OnDrift::Overwrite, "1"), (OnDrift::Leave, "7")] {
        let tree = Tree::new();
        tree.apply();
        tree.put("busy_poll", "7\n");
        // A value that reads as before belongs to no change.
        tree.put("somaxconn", "1\n");
        let report = tree.roll_back(on_drift);
        assert!(report.is_whole(), "{report:?}");
        let found: Vec<_> = report
            .drifted
            .iter()
            .map(|d| (d.knob.as_str(), d.before.as_str(), d.written.as_str(), d.found.as_str()))
            .collect();
        assert_eq!(found, [("sysctl.net.core.busy_poll", "1", "2", "7")]);
        assert_eq!(
            (tree.state(), tree.values()),
            (ChangeState::RolledBack, vec!["1".into(), after.into(), "1".into()])
        );
        let set = tree.store().set(1).unwrap().unwrap();
        assert!(
            set.trouble
                .iter()
                .any(|t| t.to_string().contains("busy_poll: 7, set by another program")),
            "{:?}",
            set.trouble
        );
    }
}

#[test]
fn a_journal_that_was_cut_off_is_damage_and_one_that_was_never_begun_is_nothing() {
    let tree = Tree::new();
    tree.apply();
    let file = tree.store().folder().join("000001.jsonl");
    let whole = fs::read(&file).unwrap();
    let first = whole.iter().position(|b| *b == b'\n').unwrap();
    for cut in [0, 1, first / 2] {
        fs::write(&file, &whole[..cut]).unwrap();
        let e = tree.store().set(1).unwrap_err();
        assert!(e.to_string().contains("then move the file away"), "cut at {cut}: {e}");
        let notice = |uses| status::notice(&tree.host(), &tree.store(), "", uses);
        assert!(notice(true).unwrap().contains("damaged"));
        assert_eq!(notice(false), None, "who uses no journal is told nothing of it");
    }
    // Killed before its first record was whole: the remains are no journal.
    fs::remove_file(&file).unwrap();
    fs::write(tree.store().folder().join("begun.new"), "{").unwrap();
    assert_eq!(tree.store().sets().unwrap(), (vec![], vec![]));
    KEYS.iter().for_each(|k| tree.put(k, "1\n"));
    tree.apply();
    assert!(!tree.store().folder().join("begun.new").exists());
}

#[test]
fn what_forwarding_disturbs_is_named_as_anybody_names_it() {
    let tree = tempfile::tempdir().unwrap();
    for name in ["all", "eth0.100"] {
        fs::create_dir_all(tree.path().join("proc/sys/net/ipv4/conf").join(name)).unwrap();
    }
    let host = Host::tree(tree.path()).unwrap();
    let knob = knobs::find("sysctl.net.ipv4.ip_forward").unwrap();
    assert_eq!(
        knob.coupled_settings(&host),
        [
            "sysctl.net.ipv4.conf.all.forwarding",
            "sysctl.net.ipv4.conf.eth0/100.forwarding",
            "sysctl.net.ipv4.conf.all.accept_redirects",
        ]
    );
}
