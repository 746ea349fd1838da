#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use model::tune::{Disruption, Impact};

use super::*;

fn change(knob: &str) -> Planned {
    Planned {
        knob: knob.into(),
        old: "1".into(),
        new: "2".into(),
        unit: String::new(),
        impact: Impact::of(Disruption::None, ""),
        owner: String::new(),
        undo: String::new(),
        command: String::new(),
        asked_by: String::new(),
        why: String::new(),
        member: None,
        nic: None,
    }
}

/// A set of the changes `a` and `b`, both made, followed by these records.
fn set(then: Vec<Event>) -> JournaledSet {
    let saved = |knob: &str| Saved { knob: knob.into(), old: "1\n".into(), nic: None };
    let unknown = || Reading::absent("a test");
    let mut events = vec![Event::Begin {
        schema_version: model::SCHEMA_VERSION,
        id: 12,
        host: HostId {
            name: unknown(),
            machine_id: unknown(),
            boot_id: unknown(),
            net_namespace: Reading::absent("a test"),
            net_cookie: Reading::absent("a test"),
        },
        by: By { pid: 1, start_ticks: 1, uid: 0, login: unknown(), version: "0".into() },
        changes: vec![change("a"), change("b")],
    }];
    for (n, knob) in ["a", "b"].into_iter().enumerate() {
        let coupled_settings = if n == 0 { vec![saved("c")] } else { vec![] };
        events.push(Event::Writing { n, saved: saved(knob), coupled_settings });
        events.push(Event::Written { n, read_back: "2\n".into(), coupled_settings: vec![] });
    }
    events.push(Event::Applied);
    events.extend(then);
    let record =
        |(i, event)| Record { seq: i as u64 + 1, at_unix_ms: 0, event, crc32: String::new() };
    JournaledSet::fold(events.into_iter().enumerate().map(record).collect()).unwrap()
}

fn undone(knob: &str) -> Event {
    Event::Undone {
        knob: knob.into(),
        read_back: "1\n".into(),
        overwrote: None,
        renamed: None,
        gone: None,
    }
}

fn not_undone(knob: &str) -> Event {
    Event::NotUndone { knob: knob.into(), why: "read-only".into() }
}

fn undoing() -> Event {
    Event::Undoing { why: crate::journal::ASKED.into() }
}

fn left(set: &JournaledSet) -> Vec<&str> {
    set.to_undo().iter().map(|(s, _)| s.knob.as_str()).collect()
}

#[test]
fn what_undoing_left_is_all_that_is_done_when_it_is_taken_up_again() {
    let partly = vec![undoing(), not_undone("b"), undone("a"), not_undone("c"), Event::RolledBack];
    let s = set(partly.clone());
    assert_eq!(s.state(None, false), ChangeState::PartlyRolledBack);
    assert_eq!(left(&s), ["b", "c"]);
    assert_eq!(s.knobs().into_iter().collect::<Vec<_>>(), ["b", "c"]);
    // Interrupted during the second try: the residue stays.
    let again = [partly.clone(), vec![undoing(), undone("b")]].concat();
    let s = set(again.clone());
    assert_eq!((s.state(None, false), left(&s)), (ChangeState::Unfinished, vec!["c"]));
    let s = set([again, vec![undone("c"), Event::RolledBack]].concat());
    assert_eq!((s.state(None, false), left(&s)), (ChangeState::RolledBack, vec![]));
    // Interrupted during the first try: undo all of it again.
    let s = set(vec![undoing(), not_undone("b")]);
    assert_eq!((s.state(None, false), left(&s)), (ChangeState::Unfinished, vec!["b", "a"]));
}

#[test]
fn a_boot_takes_what_undoing_left() {
    let mut s = set(vec![undoing(), not_undone("b"), undone("a"), Event::RolledBack]);
    s.host.boot_id = Reading::Known("one".into());
    s.applied = false;
    let state = |boot: &str| s.state(Some(&boot.to_owned()), false);
    assert_eq!(
        (state("one"), state("two")),
        (ChangeState::PartlyRolledBack, ChangeState::GoneWithBoot)
    );
    assert!(!s.was_interrupted(), "nobody is asked to close it");
}

#[test]
fn a_place_in_the_plan_is_no_number_of_a_change() {
    let s = set(vec![Event::Failed { n: 1, why: "b: not there".into() }]);
    assert_eq!(s.trouble.len(), 1);
    assert_eq!(s.trouble[0].to_string(), "step 2 of 2: b: not there");
}

#[test]
fn what_a_write_moved_along_counts_as_written() {
    let first = set(vec![]);
    let one = |knob: &str, coupled_settings: &[&str]| {
        let saved = |knob: &&str| Saved { knob: (*knob).into(), old: "1\n".into(), nic: None };
        let coupled_settings = coupled_settings.iter().map(saved).collect();
        let mut later = first.clone();
        later.writes =
            vec![Write { n: 0, saved: saved(&knob), coupled_settings, left: vec![], held: true }];
        later
    };
    assert_eq!(one("c", &[]).shares(&first), Some("c"), "the earlier one moved it");
    assert_eq!(one("d", &["b"]).shares(&first), Some("b"), "the later one moved it");
    assert_eq!(one("d", &["c"]).shares(&first), Some("c"), "both did");
    assert_eq!(one("d", &["e"]).shares(&first), None);
    let slashes = one("d", &["sysctl.net/ipv4/ip_forward"]);
    let dots = one("sysctl.net.ipv4.ip_forward", &[]);
    assert_eq!(slashes.shares(&dots), Some("sysctl.net/ipv4/ip_forward"));
    // After a rollback only its residue blocks earlier sets.
    let back = set(vec![undoing(), undone("b"), undone("a"), not_undone("c"), Event::RolledBack]);
    assert_eq!((back.shares(&one("a", &[])), back.shares(&one("c", &[]))), (None, Some("c")));
}
