//! The options of `netwright compare`.

use std::path::PathBuf;

use clap::Args;
use compare::Choice;
use model::prove::Direction;

use crate::args::{OutputArgs, share};

#[derive(Debug, Args)]
#[command(after_help = examples!(
    "  netwright compare before/ after/         # two folders, a run in each file
  netwright compare before/*.json -- after/*.json   # two lists of files
  # a column of a table has the groups
  netwright compare runs.csv --group build --metric p99_ms:lower
  # exit code 0: shown to be worse by less than 5%
  netwright compare before/ after/ --limit 5% --markdown
  # what this host shows where nothing was changed
  netwright compare --noise-floor same/*.json

Files are known by their content: netwright (measure, explain, prove), pgbench
and its logs, wrk, iperf3 -J, fio, sockperf, hyperfine, tables of numbers.",
    "a metric is worse or undecided; with --limit: not shown to be within it"
))]
pub struct CompareArgs {
    /// The runs before: files or folders. Without `--`: two files or folders, or files in two
    /// folders.
    #[arg(value_name = "BEFORE")]
    pub before: Vec<PathBuf>,
    /// The runs after, behind `--`: files or folders.
    #[arg(value_name = "AFTER", last = true)]
    pub after: Vec<PathBuf>,
    /// Take the groups from this column of a table, or from `case`: the command, job or level that
    /// each run names.
    #[arg(long, value_name = "COLUMN", conflicts_with = "after", help_heading = "Groups")]
    pub group: Option<String>,
    /// The value of the group before, where the column has more than two [default: the first].
    #[arg(long = "before", value_name = "VALUE", requires = "group", help_heading = "Groups")]
    pub before_value: Option<String>,
    /// The value of the group after.
    #[arg(long = "after", value_name = "VALUE", requires = "group", help_heading = "Groups")]
    pub after_value: Option<String>,
    /// Compare only this metric; with `:higher` or `:lower`, which says what is better; repeatable.
    #[arg(long, value_name = "NAME[:BETTER]", value_parser = choice, help_heading = "Metrics")]
    pub metric: Vec<Choice>,
    /// Compare every figure of the files, not only the main ones.
    #[arg(long, conflicts_with = "metric", help_heading = "Metrics")]
    pub all_metrics: bool,
    /// Exit with code 0 only if each metric is shown to be worse by less than this share.
    #[arg(long, value_name = "PERCENT", value_parser = share, help_heading = "Verdict")]
    pub limit: Option<f64>,
    /// Smaller effects do not matter.
    #[arg(long, value_name = "PERCENT", value_parser = share, help_heading = "Verdict")]
    pub min_effect: Option<f64>,
    /// Runs where nothing was changed: the smallest difference that this host shows; repeatable.
    #[arg(long, value_name = "FILE", num_args = 1.., help_heading = "Verdict")]
    pub noise_floor: Vec<PathBuf>,
    /// Write Markdown, for a pull request.
    #[arg(long, conflicts_with = "json", help_heading = "Output")]
    pub markdown: bool,
    #[command(flatten)]
    pub output: OutputArgs,
}

fn choice(text: &str) -> Result<Choice, String> {
    let (metric, direction) = match text.rsplit_once(':') {
        Some((metric, "higher")) => (metric, Some(Direction::HigherIsBetter)),
        Some((metric, "lower")) => (metric, Some(Direction::LowerIsBetter)),
        _ => (text, None),
    };
    match metric.is_empty() {
        true => Err("a metric has a name: p99_ms:lower".into()),
        false => Ok(Choice { metric: metric.to_owned(), direction }),
    }
}
