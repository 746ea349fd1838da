//! Fuzz targets for journals, records, profiles and change documents. A target must not panic on
//! any input, and panics itself if a reader contradicts itself.

use std::sync::OnceLock;

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
    persist::record::Record,
    plan, profile,
    session::Session,
};

/// A parser's name, and the function that feeds it arbitrary bytes.
type Parser = (&'static str, fn(&[u8]));

/// Every parser of external input in this crate, sorted by name.
pub const PARSERS: &[Parser] = &[
    ("changes", changes),
    ("journal", journal),
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
