//! Flags of `netwright export`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use model::Nanos;

use crate::{
    args::TalkArgs,
    commands::watch::args::{ObserveArg, ServeAddress, SoftirqWhen},
};

#[derive(Debug, Args)]
#[command(after_help = examples!(
    "  netwright export                       # http://127.0.0.1:7473/metrics
  netwright export --listen 10.0.0.5 --secret-file /etc/netwright/secret
  netwright export --once | promtool check metrics
  netwright export --probe rtt://db1 --every 60s --jitter
  # for node_exporter's textfile collector
  netwright export --once -o /var/lib/node_exporter/netwright.prom

Series are bounded by CPUs, NICs, queues and processes: docs/export.md."
))]
pub struct ExportArgs {
    /// Serve /metrics on this address, port or both [default: 127.0.0.1:7473]. Beyond loopback a
    /// scraper needs a secret as its bearer token: the one in --secret-file, otherwise in
    /// NETWRIGHT_SECRET, otherwise a generated one that is printed.
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<ServeAddress>,
    /// Require the secret in this file, also on loopback.
    #[arg(long, value_name = "FILE", conflicts_with = "once")]
    pub secret_file: Option<PathBuf>,
    /// Watch one interval, print the metrics, and end.
    #[arg(long, conflicts_with = "listen")]
    pub once: bool,
    /// The form of --once.
    #[arg(
        long,
        value_enum,
        default_value = "prometheus",
        value_name = "FORM",
        hide_short_help = true
    )]
    pub format: FormatArg,
    /// Write --once to this file; an existing file is replaced.
    #[arg(long, short, value_name = "FILE", requires = "once")]
    pub output: Option<PathBuf>,
    /// Length of an interval, 100ms to 1h: how often sums, findings and drift are renewed.
    #[arg(value_parser = model::seconds, long, value_name = "DURATION", default_value = "5s")]
    pub interval: Nanos,
    /// Attach no eBPF programs: only data from /proc.
    #[arg(long, help_heading = "What is observed")]
    pub no_bpf: bool,
    /// Softirq time: scaled from a share of each interval, or exact.
    #[arg(
        long,
        value_enum,
        default_value = "auto",
        value_name = "WHEN",
        hide_short_help = true,
        help_heading = "What is observed"
    )]
    pub softirq: SoftirqWhen,
    /// Where packets wait, by process.
    #[arg(
        long,
        value_enum,
        default_value = "auto",
        value_name = "WHEN",
        hide_short_help = true,
        help_heading = "What is observed"
    )]
    pub waits: ObserveArg,
    /// Dropped packets by reason.
    #[arg(
        long,
        value_enum,
        default_value = "auto",
        value_name = "WHEN",
        hide_short_help = true,
        help_heading = "What is observed"
    )]
    pub drops: ObserveArg,
    /// Names of processes with series of their own; all others are one.
    #[arg(
        long, value_name = "NUMBER", default_value_t = 10, help_heading = "What is observed",
        value_parser = clap::value_parser!(u16).range(0..=1000)
    )]
    pub processes: u16,
    /// Directory of tune's journal [default: NETWRIGHT_STATE or /var/lib/netwright].
    #[arg(long, value_name = "DIR", hide_short_help = true, help_heading = "What is observed")]
    pub state_dir: Option<PathBuf>,
    #[command(flatten)]
    pub probes: ProbeArgs,
    #[command(flatten)]
    pub talk: TalkArgs,
}

/// Probes of other hosts.
#[derive(Debug, Args)]
#[command(next_help_heading = "Probes")]
pub struct ProbeArgs {
    /// Measure round trips with `netwright serve` there, `rtt://HOST[:PORT]` (repeatable); it gets the
    /// secret of --secret-file or NETWRIGHT_SECRET, too.
    #[arg(long, value_name = "rtt://HOST", conflicts_with = "once")]
    pub probe: Vec<String>,
    /// The period of probes, 1s to 1h.
    #[arg(
        value_parser = model::seconds, long, value_name = "DURATION", default_value = "60s",
        requires = "probe"
    )]
    pub every: Nanos,
    /// Probe at a random time of each period, so that many hosts do not probe at once.
    #[arg(long, requires = "probe")]
    pub jitter: bool,
}

/// Text formats that scrapers read.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum FormatArg {
    /// Prometheus' text format 0.0.4.
    Prometheus,
    /// OpenMetrics 1.0, with units.
    Openmetrics,
}
