//! Which document a file holds, and its figures by their place in it.

use model::{
    Facts,
    compare::CompareDocument,
    explain::ExplainDocument,
    fix::FixDocument,
    measure::{
        ConnectDocument, HttpDocument, PgDocument, RedisDocument, RttDocument, StreamDocument,
    },
    passive::PassiveDocument,
    prove::ProveDocument,
    quote,
};
use report::DoctorDocument;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    block::Cell,
    unit::{NONE, Unit},
};

/// A document of Netwright, as its type.
#[derive(Debug, Clone)]
pub enum Kind {
    Doctor(Box<DoctorDocument>),
    Inspect(Box<Facts>),
    Rtt(Box<RttDocument>),
    Stream(Box<StreamDocument>),
    Connect(Box<ConnectDocument>),
    Http(Box<HttpDocument>),
    Pg(Box<PgDocument>),
    Redis(Box<RedisDocument>),
    Explain(Box<ExplainDocument>),
    Passive(Box<PassiveDocument>),
    Prove(Box<ProveDocument>),
    Fix(Box<FixDocument>),
    Compare(Box<CompareDocument>),
}

/// A document with the name of its file.
#[derive(Debug, Clone)]
pub struct Document {
    pub name: String,
    pub kind: Kind,
    /// The command line that made it, where it is known.
    pub(crate) command: Option<String>,
    value: Value,
}

/// Why a text is no document for a page.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotADocument {
    #[error("is not JSON: {0}")]
    NotJson(String),
    #[error("is JSON, but no document that `netwright … --json` prints")]
    Unknown,
    #[error("is a document of {0}, for which there is no page")]
    NoPage(String),
    #[error(
        "is a document of netwright for which there is no page: pages are of doctor, inspect, \
         measure, explain, prove, fix and compare"
    )]
    OtherDocument,
    #[error("says that it is a document of {kind}, but cannot be read as one: {why}")]
    Unreadable { kind: &'static str, why: String },
    #[error("has several JSON values; a page is of single documents")]
    Several,
}

/// Reads a document.
///
/// # Errors
/// The text is no document of Netwright, or one without a page.
pub fn read(name: &str, text: &str) -> Result<Document, NotADocument> {
    // Editors on other systems begin a file with a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    model::json::bounded(text.as_bytes()).map_err(|e| NotADocument::NotJson(e.to_string()))?;
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let value = match values.next() {
        Some(Ok(value)) => value,
        Some(Err(e)) => return Err(NotADocument::NotJson(e.to_string())),
        None => return Err(NotADocument::NotJson("it is empty".into())),
    };
    match values.next() {
        None => {}
        Some(Ok(_)) => return Err(NotADocument::Several),
        Some(Err(e)) => return Err(NotADocument::NotJson(e.to_string())),
    }
    let kind = kind(&value)?;
    Ok(Document { name: name.to_owned(), kind, command: None, value })
}

fn kind(value: &Value) -> Result<Kind, NotADocument> {
    let has = |keys: &[&str]| keys.iter().all(|k| value.get(k).is_some());
    match value.get("kind").and_then(Value::as_str) {
        Some("rtt") => typed("measure rtt", value).map(Kind::Rtt),
        Some("stream") => typed("measure stream", value).map(Kind::Stream),
        Some("connect") => typed("measure connect", value).map(Kind::Connect),
        Some("http") => typed("measure http", value).map(Kind::Http),
        Some("pg") => typed("measure pg", value).map(Kind::Pg),
        Some("redis") => typed("measure redis", value).map(Kind::Redis),
        Some("explain") => typed("explain", value).map(Kind::Explain),
        Some("explain-passive") => typed("explain --port", value).map(Kind::Passive),
        Some("compare") => typed("compare", value).map(Kind::Compare),
        Some(other) if has(&["schema_version"]) => {
            Err(NotADocument::NoPage(model::quote::shown(other)))
        }
        _ if !has(&["schema_version"]) => Err(NotADocument::Unknown),
        _ if has(&["findings", "passed", "skipped"]) => typed("doctor", value).map(Kind::Doctor),
        _ if has(&["design", "levels", "verdict"]) => typed("prove", value).map(Kind::Prove),
        _ if has(&["candidates", "workload"]) => typed("fix", value).map(Kind::Fix),
        _ if has(&["host", "cpus", "nics"]) => typed("inspect", value).map(Kind::Inspect),
        _ => Err(NotADocument::OtherDocument),
    }
}

fn typed<T: DeserializeOwned>(kind: &'static str, value: &Value) -> Result<Box<T>, NotADocument> {
    let why = |e: serde_json::Error| {
        let newer = value.get("schema_version").and_then(Value::as_u64);
        let newer = newer.is_some_and(|v| v > model::SCHEMA_VERSION.into());
        let hint = if newer { "; a newer netwright wrote it" } else { "" };
        NotADocument::Unreadable { kind, why: format!("{e}{hint}") }
    };
    T::deserialize(value).map(Box::new).map_err(why)
}

impl Document {
    /// The same, with the words of the command that made it, the program among them.
    pub fn made_by(mut self, command: &[String]) -> Self {
        let words: Vec<String> = command.iter().map(|w| quote::shell(w)).collect();
        self.command = Some(words.join(" "));
        self
    }

    /// The value at a JSON pointer.
    pub fn at(&self, pointer: &str) -> Option<&Value> {
        self.value.pointer(pointer)
    }

    /// The number there; `None` where it is missing.
    pub fn number(&self, pointer: &str) -> Option<f64> {
        self.at(pointer)?.as_f64()
    }

    /// The text there; empty where it is missing.
    pub fn text(&self, pointer: &str) -> String {
        self.at(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
    }

    /// The number there as people read it.
    pub fn shown(&self, pointer: &str, unit: Unit) -> String {
        self.number(pointer).map_or_else(|| NONE.into(), |x| unit.show(x))
    }

    /// The figure there as a cell, or why it is missing.
    pub fn cell(&self, pointer: &str, unit: Unit) -> Cell {
        if let Some(x) = self.number(pointer) {
            return Cell::figure(pointer, x, unit);
        }
        let missing = |key: &str| self.at(pointer)?.get(key)?.as_str().map(str::to_owned);
        match missing("absent").or_else(|| missing("denied")) {
            Some(why) => Cell { missing: Some(why), ..Cell::text("not known") },
            None => Cell::none(),
        }
    }

    /// The number of elements of the list there.
    pub fn len(&self, pointer: &str) -> usize {
        self.at(pointer).and_then(Value::as_array).map_or(0, Vec::len)
    }

    /// The keys of the object there, in their order.
    pub fn keys(&self, pointer: &str) -> Vec<String> {
        let object = self.at(pointer).and_then(Value::as_object);
        object.map(|o| o.keys().cloned().collect()).unwrap_or_default()
    }

    /// The ends of an interval, where both are known.
    pub fn ends(&self, low: &str, high: &str) -> Option<(f64, f64)> {
        Some((self.number(low)?, self.number(high)?))
    }
}

/// A key as a part of a JSON pointer.
pub fn key(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
