//! Errors of a lab, grouped by what the user can do.

/// One line with the event, its object, and the next step.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// Namespaces, taps and cgroups need root.
    #[error(
        "a lab makes network namespaces, taps and cgroups and needs root; run it with sudo (CAP_SYS_ADMIN and CAP_NET_ADMIN)"
    )]
    NeedsRoot,
    /// A program is not installed.
    #[error("{tool} is missing; install Debian's package {package}")]
    Missing { tool: String, package: String },
    #[error("{step}: {why}")]
    Failed { step: String, why: String },
    /// A lab with this name is up.
    #[error(
        "lab {0:?} is up already; `netwright lab down {0}` removes it, --name chooses another name"
    )]
    Exists(String),
    /// Another process makes it.
    #[error("lab {name:?} is being brought up by process {pid}; stop that first")]
    BeingMade { name: String, pid: u32 },
    /// No lab or host has this name.
    #[error("{what}; {hint}")]
    Unknown {
        /// The name that was looked for.
        what: String,
        hint: String,
    },
    /// An operation timed out.
    #[error("{what} did not happen within {seconds} s{tail}")]
    Timeout {
        what: String,
        seconds: u64,
        /// The last lines of its output, preceded by a line break, or empty.
        tail: String,
    },
    /// Options contradict each other or exceed a limit.
    #[error("{0}")]
    Usage(String),
}

impl LabError {
    pub fn failed(step: impl Into<String>, why: impl std::fmt::Display) -> Self {
        Self::Failed { step: step.into(), why: why.to_string() }
    }
}
