//! Why a value is not taken.

use model::{
    settings::{Judgement, Verdict},
    tune::RefusedAs,
};

/// Why, and who can do something about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// By who can do something about it.
    pub kind: RefusedAs,
    /// The reason, in one line.
    pub why: String,
    /// What a kernel setting's value is, and what that rests on.
    pub verdict: Option<(Verdict, &'static str)>,
}

impl Refusal {
    /// For a reason of its own.
    pub fn new(kind: RefusedAs, why: impl Into<String>) -> Self {
        Self { kind, why: why.into(), verdict: None }
    }
}

/// What the table of settings says against a value.
impl From<Judgement> for Refusal {
    fn from(judged: Judgement) -> Self {
        let Judgement { verdict, why, source } = judged;
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

/// Not a value of the knob.
pub fn usage<T>(why: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::new(RefusedAs::Usage, why))
}

/// A value that does harm.
pub fn harmful<T>(why: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::new(RefusedAs::Harmful, why))
}

/// A value that this host cannot take.
pub fn cannot<T>(why: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::new(RefusedAs::Environment, why))
}
