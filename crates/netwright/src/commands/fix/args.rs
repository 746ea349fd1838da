//! Flags of `netwright fix`.

use clap::{Args, ValueEnum};
use model::Nanos;
use prove::figure::Goal;

use crate::{
    args::{HostArgs, OutputArgs, WorkloadArgs},
    record_args::RecordArgs,
};

const WORKLOAD: &str = "The workload to improve; a netwright measurement, `measure …` or \
                        `rtt://HOST`, `stream://`, `connect://`, `http://`, `pg://`, `redis://`, \
                        followed by its options. A run should be short";

#[derive(Debug, Args)]
#[command(
    mut_arg("workload", |a| a.help(WORKLOAD)),
    mut_arg("command", |a| a.help("Or any command, run by `sh -c`, with --metric").requires("metric")),
    mut_arg("allow_disconnect", |a| a.help_heading("Consent")),
    after_help = examples!(
    "  # asks before each change
  netwright fix --workload pg://db1/bench
  netwright fix --workload stream://db1 --yes --budget 5m
  # only what would be tried
  netwright fix --workload rtt://db1 --goal p99 --dry-run
  netwright fix --command 'pgbench -T 2 bench' \\
      --metric 'tps=/tps = ([0-9.]+)/:higher' --yes
  netwright fix --workload rtt://db1 --try nic.eth0.coalesce.rx_usecs=0 --yes
  # both hosts
  netwright fix --workload stream://db1 --responder ssh://db1 --yes

Exit code 0 says that something was kept.",
    "nothing helped"
))]
pub struct FixArgs {
    #[command(flatten)]
    pub run: WorkloadArgs,
    /// The goal, for a netwright measurement.
    #[arg(long, value_enum, default_value = "throughput", conflicts_with = "metric")]
    pub goal: GoalArg,
    /// Change this host as well, over ssh; `ssh://[USER@]HOST[:PORT][/PATH/OF/netwright]`.
    #[arg(long, value_name = "URL")]
    pub responder: Option<String>,
    /// Try this as well, after the changes that the findings propose; `peer:KNOB=VALUE` at the
    /// server.
    #[arg(long = "try", value_name = "KNOB=VALUE")]
    pub also: Vec<String>,
    /// Time budget for the whole run.
    #[arg(value_parser = model::seconds, long, value_name = "DURATION", default_value = "15m", help_heading = "Extent")]
    pub budget: Nanos,
    /// Maximum number of runs of each experiment, at least 24 [default: what an equal share of
    /// --budget permits].
    #[arg(long, value_name = "N", help_heading = "Extent")]
    pub runs: Option<usize>,
    /// Time to sample the counters under the workload before each diagnosis.
    #[arg(value_parser = model::seconds, long, value_name = "DURATION", default_value = "3s", help_heading = "Extent")]
    pub window: Nanos,
    /// Attach no eBPF programs on this host while it is observed; NETWRIGHT_BPF=off in the
    /// environment does it for every command, and for the workload.
    #[arg(long, help_heading = "Extent")]
    pub no_bpf: bool,
    #[command(flatten)]
    pub host: HostArgs,
    /// Ask before each change; the default on a terminal.
    #[arg(long, conflicts_with_all = ["yes", "dry_run"], help_heading = "Consent")]
    pub ask: bool,
    /// Change this host without asking.
    #[arg(long, conflicts_with = "dry_run", help_heading = "Consent")]
    pub yes: bool,
    /// Run the workload and list what would be tried; no setting is changed.
    #[arg(long, help_heading = "Consent")]
    pub dry_run: bool,
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub keep: RecordArgs,
}

/// The figure that decides whether a remedy is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum GoalArg {
    /// Bits, requests, transactions or connections per second.
    Throughput,
    /// The 99th percentile of the response times.
    P99,
    /// Less CPU of this host for the same work.
    Cpu,
}

impl GoalArg {
    /// The goal of the experiments that judge a remedy.
    pub fn of_figures(self) -> Goal {
        match self {
            Self::Throughput => Goal::Throughput,
            Self::P99 => Goal::P99,
            Self::Cpu => Goal::Cpu,
        }
    }

    /// The goal that doctor's rules judge by; they know no CPU goal.
    pub fn of_findings(self) -> model::Goal {
        match self {
            Self::P99 => model::Goal::Latency,
            Self::Throughput | Self::Cpu => model::Goal::Throughput,
        }
    }
}
