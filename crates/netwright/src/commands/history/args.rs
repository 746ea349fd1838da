//! The options of `netwright history`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::{args::OutputArgs, commands::history::date, record_args::StoreArgs};

#[derive(Debug, Args)]
#[command(after_help = examples!(
    "  netwright measure rtt db1 --tag before  # kept as every run is, under a word
  netwright history list --kind measure   # the runs, newest first
  netwright history show 12               # what the run printed
  netwright history diff 12 15            # which facts and figures differ

Each doctor, measure, explain, prove, fix, tune apply and tune rollback is kept,
unless --no-store is given."
))]
pub struct HistoryArgs {
    /// What to do with the kept runs.
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
    /// Show which facts and figures differ between two runs or tags.
    Diff(DiffArgs),
    /// Remove runs by age, number or tag.
    Prune(PruneArgs),
    /// Write runs as compressed lines of JSON, or their figures as CSV.
    Export(ExportArgs),
    /// Take runs from exports; those that are there stay as they are.
    Import(ImportArgs),
}

#[derive(Debug, Args)]
#[command(after_help = examples!(
    "  netwright history diff 12 15
  # all runs of one tag against all of another: then a test decides
  netwright history diff tag:before tag:after"
))]
pub struct DiffArgs {
    /// The run before: its number, or `tag:WORD` for all runs with this tag.
    #[arg(value_name = "BEFORE")]
    pub before: RunsOf,
    /// The run after, or `tag:WORD`.
    #[arg(value_name = "AFTER")]
    pub after: RunsOf,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// One run, or the runs of a tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunsOf {
    Id(u64),
    Tag(String),
}

impl std::str::FromStr for RunsOf {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix("tag:") {
            Some("") => Err("tag: without a word".into()),
            Some(tag) => Ok(Self::Tag(tag.to_owned())),
            None => {
                let id = text.parse().map(Self::Id);
                id.map_err(|_| "a run's number, or tag:WORD".into())
            }
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = examples!(
    "  netwright history prune --older-than 90d --dry-run
  netwright history prune --keep 1000       # the newest stay
  netwright history prune --tag test --keep 0"
))]
pub struct PruneArgs {
    /// Remove all but the newest N of the chosen runs.
    #[arg(long, value_name = "N", required_unless_present = "older_than")]
    pub keep: Option<usize>,
    /// Remove only runs that are older, such as 90d, 12h or 8w; with --keep, those of them that are
    /// not among the newest N.
    #[arg(long, value_name = "DURATION", value_parser = date::age_ms)]
    pub older_than: Option<u64>,
    /// List the runs that would be removed, and remove none.
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub filter: FilterArgs,
}

#[derive(Debug, Args)]
#[command(after_help = examples!(
    "  netwright history export -o runs.ndjson.gz
  netwright history export --figures --kind measure -o figures.csv
  duckdb -c \"SELECT kind, count(*) FROM 'runs.ndjson.gz' GROUP BY kind\""
))]
pub struct ExportArgs {
    /// Write the figures of the runs as CSV, a figure a line.
    #[arg(long)]
    pub figures: bool,
    /// The file; an existing one is replaced [default: standard output].
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub filter: FilterArgs,
}

#[derive(Debug, Args)]
#[command(after_help = examples!(
    "  netwright history import runs.ndjson.gz
  netwright history import db1.ndjson.gz db2.ndjson.gz --store fleet.sqlite"
))]
pub struct ImportArgs {
    /// Files of `history export`.
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
}

/// The options that choose runs, of several commands.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Which runs")]
pub struct FilterArgs {
    /// Of this host: its name or its fingerprint.
    #[arg(long, value_name = "HOST")]
    pub host: Option<String>,
    /// Of this kind: `doctor`, `measure`, `measure-rtt`, `explain`, `prove`, `fix`, `tune`.
    #[arg(long, value_name = "KIND")]
    pub kind: Option<String>,
    /// Of this tag, which `--tag WORD` gave to the run.
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
