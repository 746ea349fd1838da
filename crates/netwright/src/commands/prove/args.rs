//! Flags of `netwright prove`.

use std::path::PathBuf;

use clap::Args;

use crate::{
    args::{HostArgs, OutputArgs, WorkloadArgs, share},
    record_args::RecordArgs,
};

const WORKLOAD: &str = "A netwright measurement to run; `measure …` or `rtt://HOST`, `stream://`, \
                        `connect://`, `http://`, `pg://`, `redis://`, followed by its options; \
                        `{level}` in it stands for the level, otherwise the words of a level are \
                        appended";
const HEADING: &str = "Instead of a file";

#[derive(Debug, Args)]
#[command(
    mut_arg("workload", |a| a.help(WORKLOAD).help_heading(HEADING)),
    mut_arg("command", |a| a.help_heading(HEADING)),
    mut_arg("metric", |a| a.help_heading(HEADING)),
    after_help = examples!(
    "  # an experiment from a file: docs/prove.md
  netwright prove channels.toml
  netwright prove --workload 'measure rtt db1 --duration 500ms' \\
      --level '--cpu 0' --level '--cpu 1'
  netwright prove --workload 'measure rtt {level} --duration 500ms' \\
      --level db1:4040 --level db1:4041
  netwright prove --command 'pgbench -T 2 -c {level} bench' --level 4 \\
      --level 8 --level 16 \\
      --metric 'tps=/tps = ([0-9.]+)/:higher' --budget 3m
  netwright prove --change nic.eth0.channels=4 --workload pg://db1/bench
  # did this commit cost anything? exit code 0: shown to cost less than 3%
  netwright prove --builds main HEAD --build-command 'cargo build --release' \\
      --command '{build}/target/release/bench' --metric 's=time:lower' \\
      --limit 3%
  # a knob of the server
  netwright prove --change peer:sysctl.net.ipv4.tcp_rmem='4096 131072 8388608' \\
      --workload stream://db1 --responder ssh://db1
  netwright prove channels.toml --status   # its state, from another shell
  netwright prove channels.toml --resume   # go on with one that was interrupted

Exit code 0 says better; with --limit, within the limit.",
    "worse, mixed, undecided, or no difference of that size; not within --limit"
))]
pub struct ProveArgs {
    /// The experiment: factors and levels, workload, metrics, budget.
    #[arg(value_name = "FILE.toml", conflicts_with_all = ["workload", "command", "level", "metric", "change", "builds"])]
    pub file: Option<PathBuf>,
    #[command(flatten)]
    pub run: WorkloadArgs,
    /// A level, two at least; the others are compared with the first.
    #[arg(
        long,
        value_name = "TEXT",
        allow_hyphen_values = true,
        help_heading = HEADING
    )]
    pub level: Vec<String>,
    /// A knob of `netwright tune` to try: its present value against this one. Repeat to change
    /// several knobs together.
    #[arg(
        long,
        value_name = "KNOB=VALUE",
        conflicts_with = "level",
        help_heading = HEADING
    )]
    pub change: Vec<String>,
    /// Two builds to compare: paths, or git revisions; a revision is in a worktree of its own that is
    /// kept; `{build}` in the workload is the path or the worktree.
    #[arg(
        long,
        value_names = ["A", "B"],
        num_args = 2,
        conflicts_with_all = ["level", "change"],
        help_heading = HEADING
    )]
    pub builds: Vec<String>,
    /// The command that builds a revision, run by `sh -c` in its worktree, once for each commit
    /// [default: nothing is built].
    #[arg(long, value_name = "LINE", requires = "builds", help_heading = HEADING)]
    pub build_command: Option<String>,
    /// Time budget of the experiment [default: 60s; the file's before that].
    #[arg(long, value_name = "DURATION", conflicts_with = "runs", help_heading = "Extent")]
    pub budget: Option<String>,
    /// Or the number of runs of the whole experiment [default: what --budget permits].
    #[arg(long, value_name = "N", help_heading = "Extent")]
    pub runs: Option<usize>,
    /// Smallest relevant difference; the experiment ends early when it shows a smaller one
    /// [default: the file's; without one it does not end for that].
    #[arg(long, value_name = "SHARE%", help_heading = "Extent")]
    pub min_effect: Option<String>,
    /// Exit with code 0 only if each metric is shown to be worse by less than this share (two levels);
    /// also the --min-effect where none is given.
    #[arg(long, value_name = "PERCENT", value_parser = share, help_heading = "Extent")]
    pub limit: Option<f64>,
    /// Seed of the random order of the runs [default: the clock].
    #[arg(long, value_name = "N", help_heading = "Extent")]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub host: HostArgs,
    /// Try also settings that netwright does not know, and PCI registers, which may wedge a device.
    #[arg(long, help_heading = "Extent")]
    pub i_understand: bool,
    /// Vary knobs of this host as well, `peer:KNOB`, over ssh: `ssh://[USER@]HOST[:PORT]`.
    #[arg(long, value_name = "URL", help_heading = "Extent")]
    pub responder: Option<String>,
    /// File of the record [default: NAME.jsonl, by flags prove-NUMBER.jsonl, in
    /// NETWRIGHT_STATE/prove; without that variable in /var/lib/netwright/prove as root, otherwise
    /// in ~/.local/state/netwright/prove].
    #[arg(long, value_name = "FILE", help_heading = "Record")]
    pub record: Option<PathBuf>,
    /// Continue an interrupted experiment from its record; --record alone selects it.
    #[arg(long, conflicts_with = "status", help_heading = "Record")]
    pub resume: bool,
    /// Only report the state of an experiment from its record, also while it runs; --record alone
    /// selects it.
    #[arg(long, help_heading = "Record")]
    pub status: bool,
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub keep: RecordArgs,
}
