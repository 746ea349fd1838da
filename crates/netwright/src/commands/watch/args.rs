//! What `watch` takes.

use clap::Args;
use model::Nanos;

use crate::args::OutputArgs;

/// `netwright watch`.
#[derive(Debug, Args)]
#[command(after_help = examples!(
    "  netwright watch
  netwright watch --json --interval 1s --duration 10s"
))]
pub struct WatchArgs {
    /// How long an interval is, 100ms to 1h.
    #[arg(long, value_name = "DURATION", default_value = "1s")]
    pub interval: Nanos,
    /// End after this time; without, watch until Ctrl-C.
    #[arg(long, value_name = "DURATION")]
    pub duration: Option<Nanos>,
    /// Follow the threads of this process, too (repeatable).
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pub pid: Vec<u32>,
    /// Attach no eBPF programs: only what /proc tells.
    #[arg(long)]
    pub no_bpf: bool,
    #[command(flatten)]
    pub output: OutputArgs,
}
