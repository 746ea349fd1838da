//! Flags that several commands share, and those of commands in a single file. [`crate::request`]
//! has the checked values.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use model::Nanos;

use crate::{fleet_args::FleetArgs, record_args::RecordArgs, severity_arg::SeverityArg};

/// Appends the exit codes to a command's examples; for a command that answers a question, also what
/// its "no" means.
macro_rules! examples {
    ($examples:literal) => {
        examples!($examples, @ "")
    };
    ($examples:literal, $no:literal) => {
        examples!($examples, @ concat!("  1  ", $no, "\n"))
    };
    ($examples:literal, @ $($no:tt)*) => {
        concat!(
            "Examples:\n",
            $examples,
            "\n\n",
            "Exit codes:\n",
            "  0  done\n",
            $($no)*,
            "  2  wrong usage\n",
            "  3  not permitted\n",
            "  4  runtime error (no such file, NIC, process or server)\n",
            "  5  internal error"
        )
    };
}

/// Source of the host's data.
#[derive(Debug, Args)]
pub struct SourceArgs {
    /// Read this directory tree, snapshot or sosreport instead of the running host.
    #[arg(long, value_name = "DIR-or-FILE", help_heading = "Source")]
    pub root: Option<PathBuf>,
}

/// Which processes to look at; each may be given several times.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Processes to look at (repeatable)")]
pub struct ProcessArgs {
    /// Processes with this id.
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pub pid: Vec<u32>,
    /// By short name or program file name.
    #[arg(long, value_name = "NAME")]
    pub name: Vec<String>,
    /// By the port they listen on.
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub port: Vec<u16>,
    /// By systemd unit, such as 'ceph-osd@*'.
    #[arg(long, value_name = "UNIT")]
    pub unit: Vec<String>,
    /// By container name or id prefix.
    #[arg(long, value_name = "CONTAINER")]
    pub container: Vec<String>,
}

/// How long the counters are compared.
#[derive(Debug, Args)]
pub struct WindowArgs {
    /// How long to watch the counters, 100ms to 10m [default: 5s].
    #[arg(value_parser = model::seconds, long, value_name = "DURATION")]
    pub window: Option<Nanos>,
}

/// The form and the file of a command's answer.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// Write one JSON document; `netwright schema NAME` prints its schema.
    #[arg(long)]
    pub json: bool,
    /// Write to this file instead of standard output; an existing file is replaced.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub talk: TalkArgs,
}

/// How much to say.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct TalkArgs {
    /// No progress and no notes on standard error.
    #[arg(long, short, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Print the details that are left out for brevity.
    #[arg(long, short)]
    pub verbose: bool,
}

/// The workload of an experiment, and what counts. A command says in `mut_arg` what it does with
/// them.
#[derive(Debug, Args)]
pub struct WorkloadArgs {
    /// Measure with netwright: `'measure rtt db1'`, or a URL such as pg://db1/bench.
    #[arg(long, value_name = "'measure …'|URL")]
    pub workload: Option<String>,
    /// Or any command, run by `sh -c`.
    #[arg(long, value_name = "LINE", conflicts_with = "workload")]
    pub command: Option<String>,
    /// A metric, its location and its better direction; `p50=runs.0.rtt_ns.p50:lower` in JSON,
    /// `tps=/tps = ([0-9.]+)/:higher` by a regular expression; `:lower:guard` for a guard.
    #[arg(long, value_name = "NAME=WHERE:higher|lower")]
    pub metric: Vec<String>,
}

/// What an experiment may do to the host beside its changes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Extent")]
pub struct HostArgs {
    /// Freeze the host meanwhile: irqbalance paused, frequency governors at performance; both are
    /// restored at the end.
    #[arg(long)]
    pub freeze_host: bool,
    /// Try also changes that may cut your own connection.
    #[arg(long)]
    pub allow_disconnect: bool,
}

/// A share as typed: `5%` is 0.05.
///
/// # Errors
/// It is no number with a percent sign, or out of range.
pub fn share(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').and_then(|n| n.trim().parse::<f64>().ok());
    let within = number.filter(|n| (0.0..=1000.0).contains(n)).map(|n| n / 100.0);
    within.ok_or_else(|| "a share from 0% to 1000%, such as 5%".to_owned())
}

#[derive(Debug, Args)]
#[command(after_help = examples!(
    "  netwright inspect                      # the packet path at a glance
  netwright inspect cpus numa            # CPUs and nodes in full
  netwright inspect --nic eth0           # everything about one NIC, every queue
  netwright inspect processes --name nginx --port 5432
  # packages, nodes, caches, cores, NICs and IRQs
  netwright inspect --picture host.svg
  netwright inspect --json --root host.tar.zst | jq '.nics[].channels'"
))]
pub struct InspectArgs {
    /// Show these sections in full instead of the overview.
    #[arg(value_enum, value_name = "SECTION", conflicts_with = "json")]
    pub sections: Vec<Section>,
    /// Only this NIC, in full; repeatable.
    #[arg(long, value_name = "NAME")]
    pub nic: Vec<String>,
    /// Draw the host as an SVG file (`-` for standard output).
    #[arg(long, value_name = "FILE.svg")]
    pub picture: Option<PathBuf>,
    #[command(flatten)]
    pub source: SourceArgs,
    #[command(flatten)]
    pub processes: ProcessArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// A part of `inspect`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Section {
    /// Kernel, machine, memory, build options.
    Host,
    /// Every CPU with its topology and frequency; caches; idle states.
    Cpus,
    /// NUMA nodes with their CPUs, memory and distances.
    Numa,
    /// Every NIC in full.
    Nics,
    /// Every interrupt with its affinity and its CPUs.
    Irqs,
    /// Backlog counters by CPU.
    Softnet,
    /// Kernel settings, their defaults and their origin.
    Sysctls,
    /// Other tuners of this host.
    Tuners,
    /// The selected processes with every thread.
    Processes,
    /// Listening TCP sockets with their backlogs.
    Listeners,
    /// Storage controllers with their nodes and interrupts.
    Storage,
    /// Network namespaces and their links.
    Namespaces,
}

#[derive(Debug, Args)]
#[command(after_help = examples!(
    "  netwright doctor    # watch this host for 5 s and diagnose it
  netwright doctor --window 30s --for latency --name postgres
  netwright doctor --fail-on warning --json > report.json   # for a pipeline
  netwright doctor --peer ssh://root@db1   # which end limits?
  netwright doctor --fleet http://prometheus:9090   # which of many hosts?
  netwright doctor --root host.tar.zst   # someone else's host
  netwright doctor --root sosreport.tar.xz   # counters since boot
  # what happened between the two
  netwright doctor --since monday.tar.xz --root tuesday.tar.xz

Ctrl-C ends the window early: what was seen until then is judged (exit code as
usual); a second Ctrl-C ends netwright.",
    "a finding is at least as severe as --fail-on; with --fleet also a host
     that does not answer"
))]
pub struct DoctorArgs {
    #[command(flatten)]
    pub window: WindowArgs,
    /// What the host should be good at; some rules judge for one goal only.
    #[arg(long = "for", value_enum, value_name = "GOAL", default_value = "throughput")]
    pub goal: GoalArg,
    /// Attach no eBPF programs: softirq time is taken from /proc/stat. NETWRIGHT_BPF=off in the
    /// environment does it for every command.
    #[arg(long)]
    pub no_bpf: bool,
    /// Exit with code 1 when a finding is at least this severe.
    #[arg(long, value_enum, value_name = "SEVERITY")]
    pub fail_on: Option<SeverityArg>,
    #[command(flatten)]
    pub source: SourceArgs,
    /// An earlier snapshot or archive of the same host: judge the time between it and --root.
    #[arg(long, value_name = "FIRST", requires = "root")]
    pub since: Option<PathBuf>,
    /// Judge this host as well, over the same window, while streams load the path, and say which end
    /// limits: `ssh://[USER@]HOST[:PORT][/PATH/OF/netwright]`.
    #[arg(long, value_name = "ssh://HOST", conflicts_with = "root", help_heading = "Peer")]
    pub peer: Option<String>,
    /// Send nothing meanwhile: judge the traffic that is there.
    #[arg(long, requires = "peer", help_heading = "Peer")]
    pub no_load: bool,
    #[command(flatten)]
    pub fleet: FleetArgs,
    #[command(flatten)]
    pub processes: ProcessArgs,
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub keep: RecordArgs,
}

/// The optimisation goal of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum GoalArg {
    /// Bits and requests per second.
    Throughput,
    /// The time of one request.
    Latency,
}

#[derive(Debug, Args)]
#[command(after_help = examples!(
    "  netwright snapshot                     # db1-20261122-143007.tar.zst
  netwright snapshot -o host.tar.zst --redact --window 30s --name postgres
  netwright doctor --root host.tar.zst   # anywhere else"
))]
pub struct SnapshotArgs {
    /// The archive to write [default: HOST-DATE-TIME.tar.zst in this folder].
    #[arg(long, short, value_name = "FILE.tar.zst")]
    pub output: Option<PathBuf>,
    /// Overwrite an existing archive.
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub window: WindowArgs,
    /// Replace addresses, host names, MACs and command lines, the same way everywhere.
    #[arg(long)]
    pub redact: bool,
    #[command(flatten)]
    pub processes: ProcessArgs,
    #[command(flatten)]
    pub talk: TalkArgs,
}

#[derive(Debug, Args)]
#[command(after_help = examples!(
    "  netwright schema doctor > doctor.schema.json
  # the documents that a schema describes
  netwright schema"
))]
pub struct SchemaArgs {
    /// The document; without it, the names of all.
    #[arg(value_enum)]
    pub document: Option<Document>,
}

/// A document with a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Document {
    /// The facts of a host: `inspect --json`.
    Inspect,
    /// Findings and plan: `doctor --json`.
    Doctor,
    /// Findings of both ends: `doctor --peer HOST --json`.
    DoctorPeer,
    /// Hosts, causes and changes: `doctor --fleet URL --json`.
    DoctorFleet,
    /// The verdict on two groups: `compare --json`.
    Compare,
    /// Components and predictions: `explain --json`.
    Explain,
    /// `explain --port PORT --json`, `explain --pid PID --json`.
    ExplainPassive,
    /// Verdicts on lines: `lint --json`.
    Lint,
    /// Round trips: `measure rtt --json`.
    MeasureRtt,
    /// Connections: `measure connect --json`.
    MeasureConnect,
    /// Throughput: `measure stream --json`.
    MeasureStream,
    /// What offloads do to packets: `measure offload --json`.
    MeasureOffload,
    /// HTTP requests: `measure http --json`.
    MeasureHttp,
    /// PostgreSQL transactions: `measure pg --json`.
    MeasurePg,
    /// `measure pg --init --json`.
    MeasurePgInit,
    /// Redis commands: `measure redis --json`.
    MeasureRedis,
    /// One host's targets among many peers: `mesh --once --json`.
    Mesh,
    /// Remedies and their outcomes: `fix --json`.
    Fix,
    /// Differences between runs: `history diff --json`.
    HistoryDiff,
    /// The kept runs: `history list --json`.
    HistoryList,
    /// An assignment of CPUs: `place --json`.
    Place,
    /// The verdict of an experiment: `prove --json`.
    Prove,
    /// A line of `watch --json`.
    Watch,
    /// A plan: `tune plan --json`.
    TunePlan,
    /// What was written: `tune apply|confirm|rollback --json`.
    TuneApply,
    /// Values in force, and drift: `tune status --json`.
    TuneStatus,
    /// All change sets: `tune log --json`.
    TuneLog,
    /// Files for the next boot: `tune persist --json`.
    TunePersist,
    /// The profiles and their lines: `tune profiles --json`.
    TuneProfiles,
    /// A line of a journal.
    TuneJournal,
}
