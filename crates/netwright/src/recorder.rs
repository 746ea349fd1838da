//! Keeps each run in the history. The answer is printed first; a store that cannot be written costs
//! one line and changes nothing.

use std::{
    path::PathBuf,
    time::{SystemTime, UNIX_EPOCH},
};

use ::history::{Record, Store, fingerprint, secrets};
use model::Reading;
use probe::{Root, facts::Request};
use serde_json::Value;

use crate::{
    answered::{self, Answered},
    cli::Command,
    commands::{history::place, tune::args::TuneCommand},
    exit,
    failure::{CommandEnd, Failure},
    output::note,
    record_args::RecordArgs,
};

/// A run that is recorded.
pub struct Recorder {
    store: PathBuf,
    tag: String,
    /// The kind of its document; `None` where the document says it.
    kind: Option<&'static str>,
}

/// Begins to record a command; `None` for a command that is not kept, and where nothing shall be.
pub fn begin(command: &Command) -> Option<Recorder> {
    let (kind, args) = wanted(command)?;
    if args.no_store {
        return None;
    }
    let Some(store) = place::of(args.at.store.as_deref()) else {
        if args.tag.is_some() {
            note("--tag: this run is not kept, as the environment names no store");
        }
        return None;
    };
    answered::wanted();
    Some(Recorder { store, tag: args.tag.clone().unwrap_or_default(), kind })
}

/// The kind of a command's document, and how to keep it. What only looks is not kept: a dry run, the
/// state of an experiment.
fn wanted(command: &Command) -> Option<(Option<&'static str>, &RecordArgs)> {
    match command {
        // What a Prometheus knows is kept there.
        Command::Doctor(a) if a.fleet.fleet.is_some() => None,
        Command::Doctor(a) if a.peer.is_some() => Some((Some("doctor-peer"), &a.keep)),
        Command::Doctor(a) => Some((Some("doctor"), &a.keep)),
        Command::Explain(a) => Some((None, &a.keep)),
        Command::Measure(a) => Some((None, &a.keep)),
        Command::Prove(a) if !a.status => Some((Some("prove"), &a.keep)),
        Command::Fix(a) if !a.dry_run => Some((Some("fix"), &a.keep)),
        Command::Tune(a) => match &a.command {
            TuneCommand::Apply(a) if !a.dry_run => Some((Some("tune-apply"), &a.keep)),
            TuneCommand::Rollback(a) if !a.dry_run => Some((Some("tune-rollback"), &a.keep)),
            _ => None,
        },
        _ => None,
    }
}

impl Recorder {
    /// Keeps the answer of a command that ended. A command without an answer leaves nothing.
    pub fn end(self, end: &Result<CommandEnd, Failure>) {
        let answered = answered::take();
        let Some(document) = answered.document.as_deref() else { return };
        // The store is opened before the host is read, which takes longer.
        let added = Store::open(&self.store).and_then(|mut store| {
            let record = self.record(document, &answered, end);
            store.add(&record)
        });
        if let Err(e) = added {
            note(&format!("this run is not in the history: {e}"));
        }
    }

    fn record(
        &self,
        document: &str,
        answered: &Answered,
        end: &Result<CommandEnd, Failure>,
    ) -> Record {
        let value: Value = serde_json::from_str(document).unwrap_or_default();
        let kind = self.kind.map_or_else(|| kind_of(&value), str::to_owned);
        // A change waits for nothing that it does not need: where it may cut the connection, the time to
        // confirm it runs already.
        let facts = match &answered.facts {
            Some(facts) => facts.clone(),
            None if kind.starts_with("tune-") => "{}".to_owned(),
            None => facts_of_now(),
        };
        let of_facts: Value = serde_json::from_str(&facts).unwrap_or_default();
        let fact = |pointer: &str, file: &str| match of_facts.pointer(pointer) {
            Some(fact) => fact.as_str().unwrap_or_default().to_owned(),
            None => Root::live().word(file).get().unwrap_or_default(),
        };
        // The machine id is the running host's: not of an archive.
        let elsewhere = value.pointer("/source/kind").is_some_and(|k| k != "live");
        let machine_id = match elsewhere {
            true => Reading::absent("an archive"),
            false => Root::live().word("/etc/machine-id"),
        };
        // The kept command runs on the same practice host.
        let host = lab::host::of_this_process(&lab::Registry::default());
        let prefix = host.map(|host| ["lab", "exec", &host, "--", "netwright"].map(str::to_owned));
        let own = std::env::args_os().skip(1).map(|w| w.to_string_lossy().into_owned());
        let words: Vec<String> = prefix.into_iter().flatten().chain(own).collect();
        let id = |pointer: &str| value.pointer(pointer).and_then(Value::as_u64);
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        Record {
            ended_unix_ms: now.map_or(0, |t| t.as_millis() as u64),
            host: answered
                .host
                .clone()
                .unwrap_or_else(|| fact("/host/name", "/proc/sys/kernel/hostname")),
            host_fingerprint: machine_id.get().map(|id| fingerprint(&id)).unwrap_or_default(),
            kernel: fact("/host/kernel", "/proc/sys/kernel/osrelease"),
            netwright: env!("CARGO_PKG_VERSION").into(),
            command: secrets::of_words(words.iter().map(String::as_str)),
            tag: self.tag.clone(),
            exit_code: exit::number(end),
            headline: secrets::of_text(&report::history::headline(&kind, document)),
            change: id("/set/id").or_else(|| id("/kept")),
            document: secrets::of_document(document),
            facts: secrets::of_document(&facts),
            kind,
        }
    }
}

/// The document's own kind, of `measure` with the command's name.
fn kind_of(document: &Value) -> String {
    let kind = document.get("kind").and_then(Value::as_str).unwrap_or_default().replace('_', "-");
    match kind.starts_with("explain") {
        true => kind,
        false => format!("measure-{kind}"),
    }
}

/// The running host's facts; empty where they cannot be read.
fn facts_of_now() -> String {
    let facts = probe::facts::collect(&Root::live(), &Request::default());
    serde_json::to_string(&facts).unwrap_or_default()
}
