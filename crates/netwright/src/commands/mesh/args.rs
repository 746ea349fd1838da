//! Flags of `netwright mesh`.

use std::path::PathBuf;

use clap::Args;
use model::{Nanos, mesh::graph::MOST_TARGETS};

use crate::{args::OutputArgs, commands::watch::args::ServeAddress};

#[derive(Debug, Args)]
#[command(
    mut_arg("json", |a| a.requires("once")),
    mut_arg("output", |a| a.requires("once")),
    after_help = examples!(
    "  netwright serve --bind 10.0.0.5                # on every host, beside it
  netwright mesh --peers peers.txt               # http://127.0.0.1:7474/metrics
  netwright mesh --peers peers.txt --targets 1   # a ring
  netwright mesh --peers dns:mesh.lab --self 10.0.0.5
  netwright mesh --peers peers.txt --once        # one round, as a table

A host's cost does not depend on the number of peers: docs/mesh.md.",
    "a target did not answer (with --once)"
))]
pub struct MeshArgs {
    /// The list of all peers, which every host must have alike: a file with HOST or HOST:PORT on each
    /// line, or `dns:NAME[:PORT]` for all addresses of a name. It is read again each period.
    #[arg(long, value_name = "FILE|dns:NAME")]
    pub peers: String,
    /// This host's entry in the list [default: the one with an address or the name of this host].
    #[arg(long = "self", value_name = "NAME")]
    pub own: Option<String>,
    /// Targets of each host, in as many random rings; 1 is a ring.
    #[arg(
        long, value_name = "NUMBER", default_value_t = 3,
        value_parser = clap::value_parser!(u8).range(1..=MOST_TARGETS as i64)
    )]
    pub targets: u8,
    /// Seed of the rings, the same on every host.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub seed: u64,
    /// The period, 1s to 1h: each target is measured once, at a random time of it.
    #[arg(value_parser = model::seconds, long, value_name = "DURATION", default_value = "60s")]
    pub every: Nanos,
    /// Serve /metrics on this address, port or both [default: 127.0.0.1:7474]. Beyond loopback a
    /// scraper needs the secret as its bearer token; without one, a generated one that is printed.
    #[arg(long, value_name = "ADDRESS", conflicts_with = "once")]
    pub listen: Option<ServeAddress>,
    /// The secret of the peers' servers and of scrapers [default: from NETWRIGHT_SECRET].
    #[arg(long, value_name = "FILE")]
    pub secret_file: Option<PathBuf>,
    /// Measure each target once, print the results, and end.
    #[arg(long)]
    pub once: bool,
    #[command(flatten)]
    pub output: OutputArgs,
}
