//! Why a lab could not be brought up, named by what the user can do.

/// One line that says what happened, where, and what to do next.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// Namespaces, taps and cgroups need root.
    #[error(
        "a lab makes network namespaces, taps and cgroups and needs root; run it with sudo (CAP_SYS_ADMIN and CAP_NET_ADMIN)"
    )]
    NeedsRoot,
    /// A program is missing.
    #[error("{tool} is missing; install Debian's package {package}")]
    Missing { tool: String, package: String },
    #[error("{step}: {why}")]
    Failed { step: String, why: String },
    /// A lab of that name is up.
    #[error(
        "lab {0:?} is up already; `netwright lab down {0}` removes it, --name chooses another name"
    )]
    Exists(String),
    /// No lab or host of that name.
    #[error("{what}; {hint}")]
    Unknown {
        /// What was asked for.
        what: String,
        hint: String,
    },
    /// Something did not happen in time.
    #[error("{what} did not happen within {seconds} s{tail}")]
    Timeout {
        what: String,
        seconds: u64,
        /// The last lines that were seen, with a line break before, or nothing.
        tail: String,
    },
    /// Options that make no sense together or exceed a bound.
    #[error("{0}")]
    Usage(String),
}

impl LabError {
    pub fn failed(step: impl Into<String>, why: impl std::fmt::Display) -> Self {
        Self::Failed { step: step.into(), why: why.to_string() }
    }
}
