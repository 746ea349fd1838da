//! What a command answered, kept until its run is recorded. The answer may be printed in three ways;
//! this is the document before.

use std::sync::Mutex;

use model::Facts;
use serde::Serialize;

/// What a command answered.
#[derive(Debug, Default)]
pub struct Answered {
    wanted: bool,
    /// The document of `--json`.
    pub document: Option<String>,
    /// The facts that the answer is made of, where they are not those of the running host of now.
    pub facts: Option<String>,
    pub host: Option<String>,
}

static ANSWERED: Mutex<Answered> =
    Mutex::new(Answered { wanted: false, document: None, facts: None, host: None });

/// From now on answers are kept.
pub fn wanted() {
    if let Ok(mut answered) = ANSWERED.lock() {
        answered.wanted = true;
    }
}

/// Keeps the document of an answer, where the run is recorded. The last one counts.
pub fn document(document: &impl Serialize) {
    if let Ok(mut answered) = ANSWERED.lock()
        && answered.wanted
    {
        answered.document = json::text(document).ok();
    }
}

/// Keeps the facts that a diagnosis is made of, and the host's name.
pub fn facts(facts: &Facts) {
    if let Ok(mut answered) = ANSWERED.lock()
        && answered.wanted
    {
        answered.facts = json::text(facts).ok();
        answered.host = facts.host.name.get();
    }
}

/// Takes the documents that were kept; afterwards there are none.
pub fn take() -> Answered {
    ANSWERED.lock().map(|mut answered| std::mem::take(&mut *answered)).unwrap_or_default()
}
