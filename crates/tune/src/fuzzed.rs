//! Fuzz targets for journals, records, profiles and change documents. A target must not panic on
//! any input, and panics itself if a reader contradicts itself.

use std::{sync::OnceLock, time::Duration};

use model::Facts;
use probe::{
    Root,
    facts::{self, Request},
    root::Limits,
};

use crate::{
    change_request::{self, ChangeRequest, ChangeRequests},
    host::Host,
    journal,
    knob::PlanContext,
    lock, mtu_path,
    persist::record::Record,
    plan, profile,
    session::Session,
    settle,
};

/// A parser's name, and the function that feeds it arbitrary bytes.
type Parser = (&'static str, fn(&[u8]));

/// Every parser of external input in this crate, sorted by name.
pub const PARSERS: &[Parser] = &[
    ("changes", changes),
    ("journal", journal),
    ("kernel_file", kernel_file),
    ("knob_value", knob_value),
    ("persisted", persisted),
    ("profile", profile),
];

/// A host with no known facts.
fn nowhere() -> Option<&'static (Host, Facts)> {
    static NOWHERE: OnceLock<Option<(Host, Facts)>> = OnceLock::new();
    let made = NOWHERE.get_or_init(|| {
        let empty = [0; 1024];
        let root = Root::read_archive(&empty[..], &Limits::default()).ok()?;
        let facts = facts::collect(&root, &Request::default());
        Some((Host::read_only(root), facts))
    });
    made.as_ref()
}

fn planned(change_requests: &ChangeRequests) {
    let Some((host, facts)) = nowhere() else { return };
    let session = Session::default();
    let seen = plan::look(host, &change_requests.change_requests);
    let made = plan::make(PlanContext::new(facts, &session), host.id(), change_requests, &seen);
    assert!(made.changes.is_empty(), "a change to what is not there: {made:?}");
}

/// Lines of settings, a recipe's commands, findings or a plan.
fn changes(bytes: &[u8]) {
    let Ok(mut change_requests) = change_request::document(&String::from_utf8_lossy(bytes)) else {
        return;
    };
    change_requests.by_one_name();
    planned(&change_requests);
}

/// A journal: records that are read must survive writing and reading again.
fn journal(bytes: &[u8]) {
    let Ok(records) = journal::read::records(bytes) else { return };
    let mut again = vec![];
    for record in &records {
        let Ok(line) = journal::line::of(record) else { return };
        again.extend(line);
        again.push(b'\n');
    }
    assert_eq!(journal::read::records(&again).ok().as_ref(), Some(&records));
    let _ = journal::fold::JournaledSet::fold(records);
}

/// Files of the kernel that this crate parses itself, selected by the first byte.
const FILES: [&str; 10] = [
    "proc/locks",
    "proc/net/arp",
    "proc/self/stat",
    "proc/self/status",
    "proc/7/environ",
    "sys/class/net/eth0/carrier",
    "sys/class/net/eth0/bonding_slave/ad_actor_oper_port_state",
    "sys/class/net/bond0/bonding/updelay",
    "sys/class/net/bond0/bridge/forward_delay",
    "sys/class/net/bond0/bridge/stp_state",
];

/// A host of which one file is known beside a few right ones.
fn kernel_file(bytes: &[u8]) {
    let Some((which, bytes)) = bytes.split_first() else { return };
    let Some(path) = FILES.get(usize::from(*which) % FILES.len()) else { return };
    let rest: [(&str, &[u8]); 3] = [
        ("proc/self/stat", b"9 (x) S 7 9 9 0 -1 0 0 0 0 0 1 2 0 0 20 0 1 0 5 0 0 0 0 0 0 0 0\n"),
        ("proc/self/status", b"Uid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff\n"),
        ("sys/class/net/bond0/bridge/stp_state", b"1\n"),
    ];
    let mut files = vec![(*path, bytes)];
    files.extend(rest.into_iter().filter(|(other, _)| other != path));
    let Some(root) = probe::host_of(&files) else { return };
    let _ = settle::patience(&root, "bond0", Duration::ZERO);
    let _ = settle::carries(&root, "eth0", "bond0");
    let host = Host::read_only(root);
    let _ = lock::holder_of(&host.text("/proc/locks").unwrap_or_default(), (31, 5678));
    let _ = (mtu_path::neighbours(&host, "eth0"), host.start_ticks("self"), host.id());
    let Some((_, facts)) = nowhere() else { return };
    let _ = Session::find(host.root(), facts, None);
}

/// `KNOB=OLD=WANTED`: an old value from the kernel and a requested value.
fn knob_value(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut parts = text.splitn(3, '=');
    let (Some(name), Some(old), Some(wanted)) = (parts.next(), parts.next(), parts.next()) else {
        return;
    };
    let Some(knob) = crate::knobs::find(name) else { return };
    let Some((_, facts)) = nowhere() else { return };
    let session = Session::default();
    let context = PlanContext::new(facts, &session);
    let _ = (knob.never(), knob.same_as(), knob.show(old), knob.verify(wanted, old));
    if let Ok(value) = knob.validate(&context, old, wanted) {
        let _ = (knob.show(&value), knob.command(&value));
    }
    let asked = |value: &str| ChangeRequest {
        knob: name.into(),
        value: value.into(),
        ..ChangeRequest::default()
    };
    planned(&ChangeRequests {
        change_requests: vec![asked(wanted), asked(old)],
        ..ChangeRequests::default()
    });
}

/// The record of `tune persist`.
fn persisted(bytes: &[u8]) {
    let _ = Record::parsed("fuzzed", bytes);
}

/// A profile. Skips profiles that inherit, since that would read another file.
fn profile(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if text.contains('/') || text.contains(".toml") {
        return;
    }
    let _ = profile::parse("fuzzed", &text, None, 0);
}
