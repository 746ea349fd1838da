//! A severity as typed.

use clap::ValueEnum;
use model::Severity;

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SeverityArg {
    /// Worth knowing; costs nothing measurable now.
    Info,
    /// Costs something now or soon will.
    Warning,
    /// Limits the host now, or loses data.
    Critical,
}

impl From<SeverityArg> for Severity {
    fn from(typed: SeverityArg) -> Self {
        match typed {
            SeverityArg::Info => Self::Info,
            SeverityArg::Warning => Self::Warning,
            SeverityArg::Critical => Self::Critical,
        }
    }
}
