//! `netwright measure offload`: which offload falsifies packets.

use std::cell::Cell;

use clap::Args;
use model::measure::OffloadSpec;

use super::{
    flags::{AddressArgs, SecretArgs},
    target::with_port,
};
use crate::{
    args::OutputArgs,
    failure::{CommandEnd, Failure},
};

/// The options of `netwright measure offload`.
#[derive(Debug, Args)]
#[command(
    mut_arg("verbose", |a| a.help("Print each probe instead of one line an offload")),
    after_help = examples!(
    "  netwright serve --bind 10.0.0.5                    # at the server, first
  sudo netwright measure offload db1                 # root adds wrong checksums
  netwright measure offload db1 --json | jq '.lies[]'",
    "an offload lies, or the path damages packets"
))]
pub struct OffloadArgs {
    /// The server: HOST, HOST:PORT or `[::1]:PORT`.
    pub target: String,
    /// The server's port; used when the target names none [default: 7471].
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..), help_heading = "Server")]
    pub port: Option<u16>,
    #[command(flatten)]
    pub address: AddressArgs,
    #[command(flatten)]
    pub secret: SecretArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// The specification of the flags.
///
/// # Errors
/// The target names a port and so does `--port`, or it is no target (exit code 2).
pub fn spec(args: &OffloadArgs) -> Result<OffloadSpec, Failure> {
    Ok(OffloadSpec {
        target: with_port(&args.target, args.port, None)?,
        family: args.address.family(),
        bind: args.address.bind.clone(),
    })
}

/// Runs the probes and prints the result; `No` where an offload lies.
pub fn run(
    spec: &OffloadSpec,
    from: &SecretArgs,
    output: &OutputArgs,
) -> Result<CommandEnd, Failure> {
    let secret = super::secret(from)?;
    let lies = Cell::new(false);
    let end = super::conduct(
        output,
        |run| {
            let measured = traffic::measure_offload(spec, secret.as_ref(), run)?;
            lies.set(!measured.document.lies.is_empty());
            Ok(measured)
        },
        report::measure::offload,
    )?;
    Ok(if lies.get() { CommandEnd::No } else { end })
}
