//! The command line: all commands and the functions that run them.

use clap::{Parser, Subcommand};

use crate::{
    args::{DoctorArgs, InspectArgs, SchemaArgs, SnapshotArgs},
    commands::{
        compare, explain, export, fix, history, lab, lint, measure, mesh, place, prove, remote,
        report, serve, tune, watch,
    },
    topics::HelpArgs,
};

/// Finds the network bottleneck of a Linux host.
///
/// Reads the host, samples its counters for a few seconds, and reports what limits it, with the
/// evidence and the changes to make. Changes nothing unless requested (`tune apply`). Needs no
/// root, and reports what root would add.
#[derive(Debug, Parser)]
#[command(
    name = "netwright",
    version,
    max_term_width = 100,
    disable_help_subcommand = true,
    after_help = examples!(
    "  netwright doctor                       # diagnose this host
  netwright inspect                      # its packet path: NIC, queue, IRQ, CPU
  netwright snapshot -o host.tar.zst     # take it along
  netwright doctor --root host.tar.zst   # diagnose it elsewhere
  netwright inspect --json | jq .nics    # for programs
  # concepts: units, exit-codes, missing-values, secrets, placement
  netwright help units",
    "the answer is no: a finding, not proven, drift (each command's --help says)"
))]
pub struct Cli {
    /// With --version: the commit, target and compilers, and the SHA-256 of each eBPF object.
    #[arg(short, long)]
    pub verbose: bool,
    /// The command to run; there is no default.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands, by name in alphabetical order.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Compare two groups of runs that exist already.
    Compare(Box<compare::args::CompareArgs>),
    /// Diagnose: read the host, sample its counters, list findings.
    Doctor(DoctorArgs),
    /// Explain a response time by its components; predict other loads.
    Explain(Box<explain::args::ExplainArgs>),
    /// Serve metrics for Prometheus: softirq time, drops, waits, findings.
    Export(export::args::ExportArgs),
    /// Diagnose, try each remedy under a workload, keep what helps.
    Fix(Box<fix::args::FixArgs>),
    /// Show, compare, export and remove the runs that were kept.
    History(history::args::HistoryArgs),
    /// Show the host: NICs, queues, IRQs, CPUs, nodes, settings.
    Inspect(InspectArgs),
    /// Practice hosts on this machine: namespaces, containers, a guest.
    Lab(lab::args::LabArgs),
    /// Judge each line of inherited tuning, with the reason.
    Lint(lint::args::LintArgs),
    /// Send defined traffic to a server, and report the results.
    Measure(measure::args::MeasureArgs),
    /// Measure a few peers of many, in a graph that all hosts share.
    Mesh(mesh::args::MeshArgs),
    /// Propose CPUs for services, beside their NIC and disks.
    Place(place::PlaceArgs),
    /// Run an experiment: interleaved runs, and a verdict.
    Prove(Box<prove::args::ProveArgs>),
    /// Answer another host's `fix`, `prove` or `tune`, which start this over ssh.
    #[command(hide = true)]
    Remote(remote::RemoteArgs),
    /// Make one page of results: HTML with charts, or Markdown.
    Report(report::ReportArgs),
    /// Run the measurement server.
    Serve(serve::args::ServeArgs),
    /// Write the host's facts and raw sources into one archive.
    Snapshot(SnapshotArgs),
    /// Change the host, reversibly: plan, apply, confirm, roll back.
    Tune(tune::args::TuneArgs),
    /// Show live softirq time, the tasks that lose time to it, and where packets wait.
    Watch(watch::args::WatchArgs),
    /// Print the JSON schema of a command's --json document.
    Schema(SchemaArgs),
    /// Explain a concept, or print the whole help of a command.
    Help(HelpArgs),
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    /// clap wraps a longer line on a terminal, which would break a command in two.
    #[test]
    fn every_example_fits_on_80_columns() {
        let mut commands = vec![Cli::command()];
        let (mut seen, mut wide) = (0, vec![]);
        while let Some(command) = commands.pop() {
            commands.extend(command.get_subcommands().cloned());
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            for line in help.lines() {
                if line.chars().count() > 80 {
                    wide.push(format!("{}: {line}", command.get_name()));
                }
                seen += 1;
            }
        }
        assert!(wide.is_empty(), "{wide:#?}");
        assert!(seen > 200, "only {seen} lines were seen");
    }
}
