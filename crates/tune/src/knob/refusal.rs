//! Why a value is refused.

use model::{
    sysctls::{JudgedValue, Verdict},
    tune::RefusedAs,
};

/// The reason, with the party that can resolve it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Kind of refusal, by who can resolve it.
    pub kind: RefusedAs,
    /// The reason, in one line.
    pub why: String,
    /// For a kernel setting: the verdict on the value, and its basis.
    pub verdict: Option<(Verdict, &'static str)>,
}

impl Refusal {
    /// A refusal with this reason.
    pub fn new(kind: RefusedAs, why: impl Into<String>) -> Self {
        Self { kind, why: why.into(), verdict: None }
    }
}

/// Converts the setting table's judgement of a value.
impl From<JudgedValue> for Refusal {
    fn from(judged: JudgedValue) -> Self {
        let JudgedValue { verdict, why, source, when: _ } = judged;
        let kind = match verdict {
            Verdict::NoEffect => RefusedAs::NoEffect,
            Verdict::Gone => RefusedAs::Environment,
            _ => RefusedAs::Harmful,
        };
        let why = match verdict {
            Verdict::NoEffect => format!("no effect: {why}"),
            Verdict::Dangerous => format!("{why}; netwright never does that"),
            Verdict::NotUndone => format!("{why}, so it is nothing to undo; sysctl -w does it"),
            _ => why,
        };
        let why = match verdict {
            Verdict::NoEffect | Verdict::Lowers => format!("{why}; --i-understand lets it pass"),
            _ => why,
        };
        Self { kind, why, verdict: Some((verdict, source)) }
    }
}

/// Refuses a value that the knob does not accept.
///
/// # Errors
/// Always: the refusal, as wrong usage.
pub fn usage<T>(why: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::new(RefusedAs::Usage, why))
}

/// Refuses a harmful value.
///
/// # Errors
/// Always: the refusal, as harmful.
pub fn harmful<T>(why: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::new(RefusedAs::Harmful, why))
}

/// Refuses a value that this host does not support.
///
/// # Errors
/// Always: the refusal, as not supported by this host.
pub fn cannot<T>(why: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::new(RefusedAs::Environment, why))
}
