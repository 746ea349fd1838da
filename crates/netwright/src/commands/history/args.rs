//! The options of `netwright history`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::{args::OutputArgs, commands::history::date};

/// Where the history is.
#[derive(Debug, Clone, Default, Args)]
pub struct StoreArgs {
    /// The history's file [default: NETWRIGHT_STORE; else history.sqlite in NETWRIGHT_STATE, as root
    /// in /var/lib/netwright, otherwise in $XDG_DATA_HOME/netwright or ~/.local/share/netwright].
    #[arg(
        long,
        global = true,
        hide_short_help = true,
        value_name = "FILE",
        help_heading = "History"
    )]
    pub store: Option<PathBuf>,
}

/// `netwright history`.
#[derive(Debug, Args)]
#[command(after_help = examples!(
    "  netwright measure rtt db1 --tag before  # kept as every run is, under a word
  netwright history list --kind measure   # the runs, newest first
  netwright history show 12               # what the run printed

Each doctor, measure, explain, prove, fix, tune apply and tune rollback is kept,
unless --no-store is given."
))]
pub struct HistoryArgs {
    /// The command.
    #[command(subcommand)]
    pub command: HistoryCommand,
    #[command(flatten)]
    pub store: StoreArgs,
}

/// The commands of `history`.
#[derive(Debug, Subcommand)]
pub enum HistoryCommand {
    /// List runs, the newest first.
    List(ListArgs),
    /// Show a run as its command printed it.
    Show(ShowArgs),
}

/// Which runs.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Which runs")]
pub struct FilterArgs {
    /// Of this host: its name or its fingerprint.
    #[arg(long, value_name = "HOST")]
    pub host: Option<String>,
    /// Of this kind: `doctor`, `measure`, `measure-rtt`, `explain`, `prove`, `fix`, `tune`.
    #[arg(long, value_name = "KIND")]
    pub kind: Option<String>,
    /// With this tag.
    #[arg(long, value_name = "WORD")]
    pub tag: Option<String>,
    /// From this date on, `2026-11-26` or `2026-11-26T14:30`, in UTC.
    #[arg(long, value_name = "DATE", value_parser = date::unix_ms)]
    pub since: Option<u64>,
    /// Before this date, in UTC.
    #[arg(long, value_name = "DATE", value_parser = date::unix_ms)]
    pub until: Option<u64>,
}

impl FilterArgs {
    /// The filter of the store.
    pub fn filter(&self) -> history::Filter {
        history::Filter {
            host: self.host.clone(),
            kind: self.kind.clone(),
            tag: self.tag.clone(),
            since_unix_ms: self.since,
            until_unix_ms: self.until,
            newest: None,
        }
    }
}

/// `netwright history list`.
#[derive(Debug, Args)]
#[command(after_help = examples!(
    "  netwright history list
  netwright history list --kind measure-rtt --tag before --since 2026-11-01
  netwright history list --json | jq -r '.runs[] | [.id, .headline] | @tsv'"
))]
pub struct ListArgs {
    #[command(flatten)]
    pub filter: FilterArgs,
    /// At most this many [default: 50, with --json all].
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u64).range(1..),
          help_heading = "Which runs")]
    pub last: Option<u64>,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// `netwright history show`.
#[derive(Debug, Args)]
#[command(after_help = examples!(
    "  netwright history show 12         # the page that the command printed
  netwright history show 12 -v      # all of it, with the command line
  netwright history show 12 --json > result.json
  netwright measure --rerun result.json"
))]
pub struct ShowArgs {
    /// Number of the run.
    pub id: u64,
    #[command(flatten)]
    pub output: OutputArgs,
}
