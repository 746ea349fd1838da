//! A stored document as its command printed it.

use model::{
    explain::ExplainDocument,
    fix::FixDocument,
    measure::{
        ConnectDocument, HttpDocument, OffloadDocument, PgDocument, PgInitDocument, RedisDocument,
        RttDocument, StreamDocument,
    },
    passive::PassiveDocument,
    prove::ProveDocument,
    tune::Outcome,
};
use serde::de::DeserializeOwned;

use crate::{
    DoctorDocument,
    doctor::{self, peer::PeerDocument},
    explain, fix, measure, prove,
    text::TextStyle,
    tune,
};

/// The page of a document of this kind; `None` where the kind is unknown, or the document has
/// another shape than this version's.
pub fn page(kind: &str, document: &str, look: TextStyle) -> Option<String> {
    match kind {
        "doctor" => of(document, |d: &DoctorDocument| doctor::text(d, look)),
        "doctor-peer" => of(document, |d: &PeerDocument| doctor::peer::text(d, look)),
        "measure-rtt" => of(document, |d: &RttDocument| measure::rtt(d, look)),
        "measure-stream" => of(document, |d: &StreamDocument| measure::stream(d, look)),
        "measure-connect" => of(document, |d: &ConnectDocument| measure::connect(d, look)),
        "measure-http" => of(document, |d: &HttpDocument| measure::http(d, look)),
        "measure-offload" => of(document, |d: &OffloadDocument| measure::offload(d, look)),
        "measure-pg" => of(document, |d: &PgDocument| measure::pg(d, look)),
        "measure-pg-init" => of(document, |d: &PgInitDocument| measure::pg_init(d)),
        "measure-redis" => of(document, |d: &RedisDocument| measure::redis(d, look)),
        "explain" => of(document, |d: &ExplainDocument| explain::text(d, look)),
        "explain-passive" => of(document, |d: &PassiveDocument| explain::passive::text(d, look)),
        "prove" => of(document, |d: &ProveDocument| prove::text(d, look)),
        "fix" => of(document, |d: &FixDocument| fix::text(d, look)),
        "tune-apply" | "tune-rollback" => of(document, |d: &Outcome| tune::outcome(d, look)),
        _ => None,
    }
}

fn of<D: DeserializeOwned>(document: &str, text: impl FnOnce(&D) -> String) -> Option<String> {
    model::json::read(document).ok().map(|d| text(&d))
}
