//! The command line: all commands and the functions that run them.

use std::ffi::OsString;

use clap::{Args, Parser, Subcommand};

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

impl Cli {
    /// Parses a command line with the flags of its command alone: describing those of all commands takes
    /// longer than reading a small host. `None`: help was asked for, or the whole description must say what
    /// is wrong.
    pub fn of_one_command(words: impl Iterator<Item = OsString>) -> Option<Self> {
        let words: Vec<OsString> = words.skip(1).collect();
        let command = match words.first()?.to_str()? {
            "compare" => Command::Compare(flags(&words)?),
            "doctor" => Command::Doctor(flags(&words)?),
            "explain" => Command::Explain(flags(&words)?),
            "export" => Command::Export(flags(&words)?),
            "fix" => Command::Fix(flags(&words)?),
            "history" => Command::History(flags(&words)?),
            "inspect" => Command::Inspect(flags(&words)?),
            "lab" => Command::Lab(flags(&words)?),
            "lint" => Command::Lint(flags(&words)?),
            "measure" => Command::Measure(flags(&words)?),
            "mesh" => Command::Mesh(flags(&words)?),
            "place" => Command::Place(flags(&words)?),
            "prove" => Command::Prove(flags(&words)?),
            "remote" => Command::Remote(flags(&words)?),
            "report" => Command::Report(flags(&words)?),
            "serve" => Command::Serve(flags(&words)?),
            "snapshot" => Command::Snapshot(flags(&words)?),
            "tune" => Command::Tune(flags(&words)?),
            "watch" => Command::Watch(flags(&words)?),
            "schema" => Command::Schema(flags(&words)?),
            "help" => Command::Help(flags(&words)?),
            _ => return None,
        };
        Some(Self { verbose: false, command })
    }
}

/// The flags after a command's name, which stands where a program's name would.
fn flags<A: Args>(words: &[OsString]) -> Option<A> {
    let command = A::augment_args(clap::Command::new("netwright")).disable_help_flag(true);
    A::from_arg_matches(&command.try_get_matches_from(words).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    /// Every example of every command's help, and lines with faults.
    #[test]
    fn one_command_alone_reads_what_the_whole_description_reads() {
        let mut commands = vec![Cli::command()];
        let names: Vec<String> =
            Cli::command().get_subcommands().map(|c| c.get_name().to_owned()).collect();
        let mut read: std::collections::BTreeSet<String> = Default::default();
        let mut lines: Vec<String> = names.iter().map(|name| format!("netwright {name}")).collect();
        lines.extend(names.iter().map(|name| format!("netwright {name} --help")));
        lines.extend(names.iter().map(|name| format!("netwright {name} --no-such-flag")));
        lines.extend(["netwright", "netwright -v inspect", "netwright nothing"].map(str::to_owned));
        lines.extend(
            ["inspect -v --json", "watch --interval 5s --no-bpf", "schema inspect", "help units"]
                .map(|line| format!("netwright {line}")),
        );
        lines.push("netwright remote --stdio".to_owned());
        while let Some(command) = commands.pop() {
            commands.extend(command.get_subcommands().cloned());
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let examples = help.lines().map(str::trim).filter(|l| l.starts_with("netwright "));
            lines.extend(examples.map(|l| l.split(" # ").next().unwrap_or_default().to_owned()));
        }
        for line in &lines {
            let words = || line.split_whitespace().map(OsString::from);
            let alone = Cli::of_one_command(words()).map(|cli| format!("{cli:?}"));
            let whole = Cli::try_parse_from(words()).ok().filter(|cli| !cli.verbose);
            let name = words().nth(1).unwrap_or_default();
            assert_eq!(alone, whole.map(|cli| format!("{cli:?}")), "{line}");
            if alone.is_some() {
                read.insert(name.to_string_lossy().into_owned());
            }
        }
        let unread: Vec<_> = names.iter().filter(|name| !read.contains(*name)).collect();
        assert!(unread.is_empty(), "no line of {unread:?} was read");
    }

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
