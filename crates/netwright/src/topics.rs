//! The concepts that `netwright help TOPIC` explains, a page each.

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
#[command(
    disable_help_subcommand = true,
    subcommand_value_name = "TOPIC|COMMAND",
    subcommand_help_heading = "Topics",
    override_usage = "netwright help [TOPIC]\n       netwright help COMMAND...",
    after_help = examples!(
        "  netwright help exit-codes
  netwright help tune plan    # as `netwright tune plan --help`"
    )
)]
pub struct HelpArgs {
    /// What to explain; nothing: all commands.
    #[command(subcommand)]
    pub about: Option<Topic>,
}

/// What `netwright help` explains.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum Topic {
    /// Durations, sizes and rates, as they are typed and printed.
    Units,
    /// What a script learns from the end of a command.
    ExitCodes,
    /// Why absent is not zero, and denied is not absent.
    MissingValues,
    /// Where secrets come from, and where they never go.
    Secrets,
    /// Which CPU does which work, and how to choose.
    Placement,
    /// A command, by its words.
    #[command(external_subcommand)]
    Command(Vec<String>),
}

/// The pages, by the name that is typed.
pub const PAGES: [(&str, &str); 5] = [
    ("units", include_str!("topics/units.txt")),
    ("exit-codes", include_str!("topics/exit-codes.txt")),
    ("missing-values", include_str!("topics/missing-values.txt")),
    ("secrets", include_str!("topics/secrets.txt")),
    ("placement", include_str!("topics/placement.txt")),
];

impl Topic {
    /// The page of a concept: plain text of at most 80 columns. `None` for a command.
    pub fn page(&self) -> Option<&'static str> {
        let [units, exit_codes, missing_values, secrets, placement] = PAGES.map(|(_, page)| page);
        Some(match self {
            Self::Units => units,
            Self::ExitCodes => exit_codes,
            Self::MissingValues => missing_values,
            Self::Secrets => secrets,
            Self::Placement => placement,
            Self::Command(_) => return None,
        })
    }
}

#[cfg(test)]
mod tests;
