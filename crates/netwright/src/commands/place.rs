//! `netwright place`: reads the host, asks which devices the services use, and proposes CPUs for
//! them and for their NICs' interrupts. Writes nothing.

use clap::Args;
use diagnose::{
    Case,
    placement::{self, PlacementOptions},
};
use model::{Goal, Reading};
use probe::facts::process::devices;

use crate::{
    args::{OutputArgs, ProcessArgs, SourceArgs},
    failure::{CommandEnd, Failure},
    output::Sink,
    request::Source,
};

#[derive(Debug, Args)]
#[command(after_help = examples!(
    "  netwright place --unit 'ceph-osd@*'    # each OSD with its NIC and its disk
  netwright place --name postgres --interrupt-cores 2
  netwright place --port 443 --lines > placement.conf
  netwright tune plan placement.conf     # what it would change, and its impact
  netwright place --unit 'ceph-osd@*' --json | jq '.services[] | {name, cpus}'"
))]
pub struct PlaceArgs {
    #[command(flatten)]
    processes: ProcessArgs,
    /// Cores for each service [default: all free cores of its node, shared evenly].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096),
          help_heading = "Placement")]
    cores: Option<u32>,
    /// Cores for each NIC's interrupts; 0 leaves interrupts alone [default: a quarter of the
    /// node's cores, at most one for each queue].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=4096),
          help_heading = "Placement")]
    interrupt_cores: Option<u32>,
    /// Print the changes as lines for `tune plan` instead of the page.
    #[arg(long, conflicts_with = "json", help_heading = "Output")]
    lines: bool,
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// Proposes a placement, and prints it as a page, as lines for `tune` or as JSON.
pub fn run(args: PlaceArgs) -> Result<CommandEnd, Failure> {
    let sink = Sink::new(args.output.output);
    sink.check()?;
    let source = Source::open(args.source.root, args.processes)?;
    if source.request.processes.is_empty() {
        return Err(Failure::Usage(
            "which services? Name them by --unit, --container, --name, --port or --pid".into(),
        ));
    }
    let facts = source.facts()?;
    let uses: Vec<_> = facts.processes.iter().map(|p| devices::read(&source.root, p.pid)).collect();
    let no_samples = Reading::absent("a placement needs no window");
    let case = Case { facts: &facts, samples: &no_samples, goal: Goal::Throughput };
    let options = PlacementOptions {
        cores: args.cores.map(|n| n as usize),
        interrupt_cores: args.interrupt_cores.map(|n| n as usize),
    };
    let document =
        placement::place(&case, &uses, options, &source.name).map_err(Failure::Environment)?;
    if args.output.json {
        sink.json(&document)?;
    } else if args.lines {
        sink.text(&report::place::lines(&document))?;
    } else {
        sink.text(&report::place::text(&document, sink.look(args.output.talk.verbose)))?;
    }
    Ok(CommandEnd::Yes)
}
