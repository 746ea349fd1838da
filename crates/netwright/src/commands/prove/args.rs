//! Flags of `netwright prove`.

use std::path::PathBuf;

use clap::Args;

use crate::args::OutputArgs;

/// `netwright prove`.
#[derive(Debug, Args)]
#[command(after_help = examples!(
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
  # a knob of the server
  netwright prove --change peer:sysctl.net.ipv4.tcp_rmem='4096 131072 8388608' \\
      --workload stream://db1 --responder ssh://db1
  netwright prove channels.toml --status   # the state so far, from another terminal
  netwright prove channels.toml --resume   # go on with one that was interrupted

Exit code 0 says better.",
    "worse, mixed, undecided, or no difference of that size"
))]
pub struct ProveArgs {
    /// The experiment: factors and levels, workload, metrics, budget.
    #[arg(value_name = "FILE.toml", conflicts_with_all = ["workload", "command", "level", "metric", "change"])]
    pub file: Option<PathBuf>,
    /// A measurement of ours to run, `measure …` or `rtt://HOST`, `stream://`, `connect://`,
    /// `http://`, `pg://`, options after it; `{level}` in it stands for the level, else a level's
    /// words are appended.
    #[arg(long, value_name = "'measure …'|URL", help_heading = "Instead of a file")]
    pub workload: Option<String>,
    /// Or a command of yours, for `sh -c`.
    #[arg(
        long,
        value_name = "LINE",
        conflicts_with = "workload",
        help_heading = "Instead of a file"
    )]
    pub command: Option<String>,
    /// A level, two at least; the first is what the others are compared with.
    #[arg(
        long,
        value_name = "TEXT",
        allow_hyphen_values = true,
        help_heading = "Instead of a file"
    )]
    pub level: Vec<String>,
    /// A knob of `netwright tune` to try: as it is now against this value. Several are one change.
    #[arg(
        long,
        value_name = "KNOB=VALUE",
        conflicts_with = "level",
        help_heading = "Instead of a file"
    )]
    pub change: Vec<String>,
    /// A figure, where it is and which way is good: `p50=runs.0.rtt_ns.p50:lower` in JSON,
    /// `tps=/tps = ([0-9.]+)/:higher` by a regular expression; `:lower:guard` for a guard.
    #[arg(long, value_name = "NAME=WHERE:higher|lower", help_heading = "Instead of a file")]
    pub metric: Vec<String>,
    /// How long all may take [default: the file's, else 60s].
    #[arg(long, value_name = "DURATION", conflicts_with = "runs", help_heading = "Extent")]
    pub budget: Option<String>,
    /// Or how many runs all may take.
    #[arg(long, value_name = "N", help_heading = "Extent")]
    pub runs: Option<usize>,
    /// Differences smaller than this do not matter; shown to be smaller, it ends early.
    #[arg(long, value_name = "SHARE%", help_heading = "Extent")]
    pub min_effect: Option<String>,
    /// What the order of the runs is drawn from [default: the clock].
    #[arg(long, value_name = "N", help_heading = "Extent")]
    pub seed: Option<u64>,
    /// Hold the host still meanwhile: irqbalance paused, frequency governors at performance; both
    /// are put back at the end.
    #[arg(long, help_heading = "Extent")]
    pub freeze_host: bool,
    /// Try also what may cut the connection that you work over.
    #[arg(long, help_heading = "Extent")]
    pub allow_disconnect: bool,
    /// Try also settings that netwright does not know, and PCI registers, which may wedge a device.
    #[arg(long, help_heading = "Extent")]
    pub i_understand: bool,
    /// Vary knobs of this host as well, `peer:KNOB`, over ssh: `ssh://[USER@]HOST[:PORT]`.
    #[arg(long, value_name = "URL", help_heading = "Extent")]
    pub responder: Option<String>,
    /// Where the record is kept [default: NAME.jsonl, by flags prove-NUMBER.jsonl, in NETWRIGHT_STATE/prove,
    /// without that in /var/lib/netwright/prove as root, else in ~/.local/state/netwright/prove].
    #[arg(long, value_name = "FILE", help_heading = "Record")]
    pub record: Option<PathBuf>,
    /// Go on with an experiment that was broken off, from its record; --record alone names which.
    #[arg(long, conflicts_with = "status", help_heading = "Record")]
    pub resume: bool,
    /// Only print the state so far, from the record, also of a running experiment; --record alone
    /// names which.
    #[arg(long, help_heading = "Record")]
    pub status: bool,
    #[command(flatten)]
    pub output: OutputArgs,
}
