use model::{
    Reading,
    reading::Known,
    tune::{
        ChangeNote, ChangeSet, ChangeState, Disruption, Drift, HostId, Impact, Log, NotKept, Now,
        PersistNote, PersistedFile, Plan, PlanNote, Planned, ProfileLine, Refused, RefusedAs,
        Status, Unchanged,
    },
};

use super::*;
use crate::testing::golden;

fn change(knob: &str, old: &str, new: &str, unit: &str) -> Planned {
    Planned {
        knob: knob.into(),
        old: old.into(),
        new: new.into(),
        unit: unit.into(),
        impact: Impact::none(),
        owner: String::new(),
        undo: "the old value is written back".into(),
        command: format!("set {knob} {new}"),
        asked_by: "argument 1".into(),
        why: String::new(),
        member: None,
        nic: None,
    }
}

fn changes() -> Vec<Planned> {
    let mut channels = change("nic.eth0.channels", "combined 1", "combined 4", "channels");
    channels.impact = Impact::of(Disruption::BriefStall, "virtio_net takes it without a reset");
    channels.undo = "the old number is set again, then queueing disciplines as they were".into();
    let mut affinity = change("irq.38.affinity", "0-3", "2", "");
    affinity.owner = "irqbalance may move it again".into();
    vec![
        channels,
        change("sysctl.net.ipv4.tcp_wmem", "4096 16384 4194304", "4096 16384 33554432", "bytes"),
        affinity,
    ]
}

fn planned() -> Plan {
    let none = || Reading::absent("a test");
    Plan {
        schema_version: 1,
        host: HostId {
            name: Known("box".into()),
            machine_id: none(),
            boot_id: none(),
            net_namespace: Reading::absent("a test"),
            net_cookie: Reading::absent("a test"),
        },
        changes: changes(),
        refused: vec![Refused {
            asked_by: "argument 3".into(),
            knob: "sysctl.net.ipv4.tcp_sack".into(),
            new: "0".into(),
            kind: RefusedAs::Harmful,
            why: "loss recovery needs it".into(),
            verdict: None,
            source: "Documentation/networking/ip-sysctl.rst".into(),
        }],
        unchanged: vec![Unchanged {
            asked_by: "argument 5".into(),
            knob: "nic.eth0.mtu".into(),
            value: "1500".into(),
        }],
        notes: vec![PlanNote::Other {
            code: "no_knob".into(),
            message: "finding ports_running_out: no knob covers it".into(),
        }],
    }
}

#[test]
fn a_plan_reads_well() {
    let answer = "3 changes: 2 without impact, 1 brief stall (eth0); 1 refused";
    golden!("plan", answer, |style| plan(&planned(), style));
    golden!("plan_v", answer, |style| plan(&planned(), TextStyle { verbose: true, ..style }));
}

#[test]
fn a_plan_that_may_cut_the_connection_warns_below_its_result() {
    let mut p = planned();
    p.changes[0].impact.own_connection = true;
    let text = plan(&p, TextStyle::default());
    let below = text.lines().nth(2).unwrap();
    assert!(below.starts_with("WARNING: may cut your own connection"), "{text}");
}

fn set(id: u64, state: ChangeState) -> ChangeSet {
    ChangeSet {
        id,
        state,
        begun_unix_ms: 1_795_262_700_000,
        by: "root".into(),
        watchdog_running: Reading::absent("nothing waits"),
        begun: 3,
        made: 3,
        changes: changes(),
        confirm_within_ms: Reading::absent("nothing waits"),
        undone_within_ms: Reading::absent("nothing waits"),
        trouble: vec![],
        net_namespace: Reading::absent("a test"),
        namespace: String::new(),
        remedies: match state {
            ChangeState::InForce => vec![format!("netwright tune rollback {id}")],
            _ => vec![],
        },
    }
}

fn now(c: &Planned, drift: Drift, now: &str) -> Now {
    Now {
        id: 7,
        knob: c.knob.clone(),
        called: String::new(),
        beside: String::new(),
        before: c.old.clone(),
        written: c.new.clone(),
        now: Known(now.into()),
        unit: c.unit.clone(),
        drift,
    }
}

#[test]
fn what_is_in_force_reads_well() {
    let [channels, wmem, affinity] = &changes()[..] else { unreachable!() };
    let drifted = Drift::Changed { suspects: vec!["irqbalance".into()] };
    let mut standing = Status {
        schema_version: 1,
        journal: "/var/lib/netwright/journal".into(),
        sets: vec![set(7, ChangeState::InForce)],
        values: vec![
            now(channels, Drift::None, &channels.new),
            now(wmem, Drift::None, &wmem.new),
            now(affinity, drifted, "1"),
        ],
        damaged: vec![],
    };
    let answer = "1 change in force; 1 of 3 values changed since";
    golden!("status", answer, |style| status(&standing, style));
    standing.values.pop();
    let held = status(&standing, TextStyle::default());
    assert!(held.starts_with("1 change in force; every value is as written\n"), "{held}");
}

#[test]
fn the_log_begins_with_how_many_there_were() {
    let written = Log {
        schema_version: 1,
        journal: "/var/lib/netwright/journal".into(),
        sets: vec![
            set(6, ChangeState::RolledBack),
            set(7, ChangeState::InForce),
            set(8, ChangeState::RolledBack),
        ],
        damaged: vec![],
    };
    let answer = "3 changes: 2 rolled back, 1 in force";
    golden!("log", answer, |style| log(&written, style));
}

#[test]
fn apply_and_rollback_say_what_is_in_force_and_the_next_command() {
    let ended = |done, notes| Outcome {
        schema_version: 1,
        set: Reading::absent("a test"),
        sets: vec![],
        drifted: vec![],
        done,
        notes,
    };
    let applied = ended(
        true,
        vec![
            ChangeNote::InForce { id: 7, command: "netwright tune rollback 7".into() },
            ChangeNote::UndoneUnlessConfirmed {
                within_s: 120,
                command: "netwright tune confirm 7".into(),
            },
        ],
    );
    golden!("apply", "Change 7 is in force; `netwright tune rollback 7`", |style| {
        outcome(&applied, style)
    });
    let back = ended(true, vec![ChangeNote::RolledBack { id: 7 }]);
    golden!("rollback", "Change 7 is rolled back", |style| outcome(&back, style));
    let late = ended(false, vec![ChangeNote::TooLate { id: 7, state: ChangeState::RolledBack }]);
    golden!("too_late", "Too late: change 7 is", |style| outcome(&late, style));
}

#[test]
fn what_persist_writes_begins_with_the_file_and_its_values() {
    let path = "/etc/sysctl.d/90-netwright.conf";
    let kept = |knob: &str, value: &str| KeptValue {
        id: 7,
        knob: knob.into(),
        value: value.into(),
        by: path.into(),
    };
    let doc = Persisted {
        schema_version: 1,
        dry_run: true,
        files: vec![PersistedFile {
            path: path.into(),
            act: FileAct::Written,
            mode: 0o644,
            content: "# netwright tune persist\nnet.ipv4.tcp_wmem = 4096 16384 33554432\n".into(),
        }],
        kept: vec![kept("sysctl.net.ipv4.tcp_wmem", "4096 16384 33554432")],
        not_kept: vec![NotKept {
            id: 7,
            knob: "irq.38.affinity".into(),
            value: "2".into(),
            why: "interrupt numbers change with a boot".into(),
        }],
        notes: vec![PersistNote::InForce],
    };
    golden!("persist", "90-netwright.conf  would be written", |style| persisted(&doc, style));
}

#[test]
fn profiles_are_a_line_each_and_in_full_with_reasons() {
    let line = |knob: &str, wanted, why: &str, refuted: Option<&str>| ProfileLine {
        knob: knob.into(),
        wanted,
        why: why.into(),
        refuted: refuted.map(Into::into),
        at: "web, line 4".into(),
    };
    let all = Profiles {
        schema_version: 1,
        profiles: vec![Profile {
            name: "web".into(),
            description: "many short connections: queues for bursts of new ones".into(),
            inherits: vec!["base".into()],
            lines: vec![
                line(
                    "sysctl.net.core.somaxconn",
                    ProfileValue::AtLeast("4096".into()),
                    "An accept queue that is full refuses connections.",
                    None,
                ),
                line(
                    "sysctl.net.ipv4.tcp_sack",
                    ProfileValue::Exactly("0".into()),
                    "Old advice.",
                    Some("loss recovery needs it"),
                ),
            ],
            left_out: vec![LeftOut {
                what: "tcp_tw_recycle".into(),
                why: "no kernel has it".into(),
            }],
        }],
    };
    golden!("profiles", "many short connections: queues", |style| profiles(&all, style));
    let full = |style| profiles(&all, TextStyle { verbose: true, ..style });
    golden!("profiles_v", "web: many short connections", full);
}

#[test]
fn days_are_dates() {
    let utc = standing::utc;
    assert_eq!(utc(0), "1970-01-01 00:00:00 UTC");
    assert_eq!(utc(951_782_400_000), "2000-02-29 00:00:00 UTC");
    assert_eq!(utc(1_795_262_700_000), "2026-11-21 12:05:00 UTC");
}
