//! Uses a directory tree laid out like a host, with journals as netwright writes them.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::{fs, path::PathBuf};

use model::{
    Reading,
    tune::{By, Event, HostId, Impact, Planned, ReadBack, Record},
};

use super::*;
use crate::{
    Store,
    undo::{self, ASKED, OnDrift},
};

/// Directory of all test knobs except interrupts.
const FOLDER: &str = "net/core";

struct Tree(tempfile::TempDir);

fn knob(key: &str) -> String {
    match key.parse::<u32>() {
        Ok(irq) => format!("irq.{irq}.affinity"),
        Err(_) => format!("sysctl.{}.{key}", FOLDER.replace('/', ".")),
    }
}

impl Tree {
    /// Files and their current values.
    fn new(values: &[(&str, &str)]) -> Self {
        let tree = Self(tempfile::tempdir().unwrap());
        values.iter().for_each(|(key, value)| tree.put(key, value));
        tree
    }

    fn at(&self, key: &str) -> PathBuf {
        let file = match key.parse::<u32>() {
            Ok(irq) => format!("proc/irq/{irq}/smp_affinity_list"),
            Err(_) => format!("proc/sys/{FOLDER}/{key}"),
        };
        self.0.path().join(file)
    }

    fn put(&self, key: &str, value: &str) {
        fs::create_dir_all(self.at(key).parent().unwrap()).unwrap();
        fs::write(self.at(key), format!("{value}\n")).unwrap();
    }

    fn get(&self, key: &str) -> String {
        fs::read_to_string(self.at(key)).unwrap().trim().to_owned()
    }

    fn host(&self) -> Host {
        Host::tree(self.0.path()).unwrap()
    }

    /// External changes by knob: value left, value found.
    fn found(&self, set: &JournaledSet) -> Vec<(String, String, String)> {
        check(&self.host(), set).drifted.into_iter().map(|d| (d.knob, d.written, d.found)).collect()
    }
}

/// A set that writes 2 over 1 for each of these.
fn begin(own: &[&str]) -> Event {
    let change = |key: &&str| Planned {
        knob: knob(key),
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
    let unknown = || Reading::absent("a test");
    Event::Begin {
        schema_version: model::SCHEMA_VERSION,
        id: 1,
        host: HostId {
            name: unknown(),
            machine_id: unknown(),
            boot_id: unknown(),
            net_namespace: Reading::absent("a test"),
            net_cookie: Reading::absent("a test"),
        },
        by: By { pid: 1, start_ticks: 1, uid: 0, login: unknown(), version: "0".into() },
        changes: own.iter().map(change).collect(),
    }
}

/// The write of a change that moves other values from these old ones.
fn writing(n: usize, own: &str, along: &[(&str, &str)]) -> Event {
    let saved =
        |(key, old): &(&str, &str)| Saved { knob: knob(key), old: format!("{old}\n"), nic: None };
    let coupled_settings = along.iter().map(saved).collect();
    Event::Writing { n, saved: saved(&(own, "1")), coupled_settings }
}

/// The write succeeded and left these values.
fn written(n: usize, left: &[(&str, &str)]) -> Event {
    let read =
        |(key, left): &(&str, &str)| ReadBack { knob: knob(key), read_back: format!("{left}\n") };
    let coupled_settings = left.iter().map(read).collect();
    Event::Written { n, read_back: "2\n".into(), coupled_settings }
}

fn fold(events: Vec<Event>) -> JournaledSet {
    let record =
        |(i, event)| Record { seq: i as u64 + 1, at_unix_ms: 0, event, crc32: String::new() };
    JournaledSet::fold(events.into_iter().enumerate().map(record).collect()).unwrap()
}

fn undoing() -> Event {
    Event::Undoing { why: ASKED.into() }
}

#[test]
fn what_was_moved_along_is_held_against_what_the_last_write_left() {
    let one = |left: &[(&str, &str)]| {
        vec![begin(&["a"]), writing(0, "a", &[("c", "5")]), written(0, left), Event::Applied]
    };
    let two = |left: &[(&str, &str)]| {
        let mut all = vec![begin(&["a", "b"]), writing(0, "a", &[("c", "5")])];
        all.extend([written(0, &[("c", "6")]), writing(1, "b", &[]), written(1, left)]);
        all
    };
    let interrupted = || [&two(&[])[..4], &[]].concat();
    for (now, events, theirs) in [
        ("7", one(&[("c", "6")]), Some("6")),
        ("6", one(&[("c", "6")]), None),
        ("5", one(&[("c", "6")]), None),
        ("7", one(&[("c", "5")]), Some("5")),
        // The journal does not record it: the old values count.
        ("7", one(&[]), None),
        // The second write moved it, but is not known to.
        ("8", two(&[("c", "8")]), None),
        ("6", two(&[("c", "8")]), Some("8")),
        ("7", two(&[]), Some("6")),
        // The effect of an interrupted write is unknown.
        ("7", interrupted(), None),
    ] {
        let tree = Tree::new(&[("a", "2"), ("b", "2"), ("c", now)]);
        let expected: Vec<_> =
            theirs.map(|left| (knob("c"), left.into(), now.into())).into_iter().collect();
        assert_eq!(tree.found(&fold(events.clone())), expected, "{now}: {events:?}");
    }
}

#[test]
fn what_was_set_beside_and_written_later_is_held_against_that() {
    // The first write moved it to 6, the second wrote 2 over that.
    let events = vec![
        begin(&["a", "c"]),
        writing(0, "a", &[("c", "5")]),
        written(0, &[("c", "6")]),
        writing(1, "c", &[]),
        written(1, &[]),
        Event::Applied,
    ];
    for (now, theirs) in [("2", None), ("5", None), ("6", Some("6"))] {
        let tree = Tree::new(&[("a", "2"), ("c", now)]);
        let expected: Vec<_> =
            theirs.map(|n| (knob("c"), "2".into(), n.into())).into_iter().collect();
        assert_eq!(tree.found(&fold(events.clone())), expected, "{now}");
    }
}

#[test]
fn what_follows_its_knob_or_moves_by_itself_is_nobodys() {
    let events = |key: &'static str, left: &'static str| {
        vec![begin(&["a"]), writing(0, "a", &[(key, "1")]), written(0, &[(key, left)])]
    };
    // Somebody set the knob, and the dependent value followed: one line reports both.
    let tree = Tree::new(&[("a", "9"), ("c", "9")]);
    assert_eq!(tree.found(&fold(events("c", "2"))), [(knob("a"), "2".into(), "9".into())]);
    tree.put("c", "7");
    assert_eq!(tree.found(&fold(events("c", "2"))).len(), 2, "it was set by itself");

    let tree = Tree::new(&[("a", "2"), ("24", "3")]);
    assert_eq!(tree.found(&fold(events("24", "2"))), [(knob("24"), "2".into(), "3".into())]);
    fs::create_dir_all(tree.0.path().join("proc/77")).unwrap();
    fs::write(tree.0.path().join("proc/77/comm"), "irqbalance\n").unwrap();
    fs::write(
        tree.0.path().join("proc/77/stat"),
        "77 (irqbalance) S 1 77 77 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 99 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 \
         17 3 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
    )
    .unwrap();
    assert_eq!(tree.found(&fold(events("24", "2"))), [], "irqbalance runs");
}

/// The undo was killed after it restored the knob, which also moved the other value.
#[test]
fn an_interrupted_undo_blames_nobody_for_what_it_moved() {
    let made = vec![begin(&["a"]), writing(0, "a", &[("c", "5")]), written(0, &[("c", "6")])];
    let tree = Tree::new(&[("a", "1"), ("c", "0")]);
    assert_eq!(tree.found(&fold([made.clone(), vec![undoing()]].concat())), []);
    // A value that undoing had not reached yet can only be an external change.
    tree.put("a", "2");
    let expected = [(knob("c"), "6".into(), "0".into())];
    assert_eq!(tree.found(&fold([made.clone(), vec![undoing()]].concat())), expected);
    // The journal lists the value to keep, and it is set again.
    tree.put("a", "1");
    let left = Event::LeftAsFound { knob: knob("c"), found: "7".into(), exact: Some("7\n".into()) };
    let store = Store::at(tree.0.path().join("state"));
    let lock = store.lock(None, &mut |_| {}).unwrap();
    let mut journal = store.begin(&lock, |_| made[0].clone()).unwrap();
    for event in made.into_iter().skip(1).chain([undoing(), left]) {
        journal.sync(event).unwrap();
    }
    let set = store.set(1).unwrap().unwrap();
    let mut journal = store.resume(1, &lock).unwrap();
    let report = undo::with(&tree.host(), &mut journal, &set, ASKED, OnDrift::Leave);
    assert!(report.is_whole(), "{report:?}");
    assert_eq!((tree.get("a"), tree.get("c")), ("1".into(), "7".into()));
    let lines = store.set(1).unwrap().unwrap().trouble;
    let left = format!("{}: 7, set by another program, was left", knob("c"));
    assert_eq!(lines.iter().map(ToString::to_string).collect::<Vec<_>>(), [left]);
}
