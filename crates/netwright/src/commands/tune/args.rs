//! Flags of `netwright tune`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use model::Nanos;
use tune::target::TargetNames;

use crate::{args::OutputArgs, record_args::RecordArgs};

#[derive(Debug, Args)]
#[command(after_help = examples!(
    "  netwright tune plan nic.eth0.channels=4         # writes nothing
  netwright tune apply nic.eth0.channels=4 --confirm 2m
  netwright tune status                           # what is in force
  netwright tune rollback                         # the old value again",
    "the answer is no: refused, too late, drift (each command's --help says)"
))]
pub struct TuneArgs {
    /// What to do with settings and changes.
    #[command(subcommand)]
    pub command: TuneCommand,
}

/// The commands of `tune`.
#[derive(Debug, Subcommand)]
pub enum TuneCommand {
    /// Show the changes, their impact, and refused requests. Writes nothing.
    Plan(PlanArgs),
    /// Make changes; the first failure undoes all.
    Apply(ApplyArgs),
    /// Confirm a change, so that the watchdog does not undo it.
    Confirm(ConfirmArgs),
    /// Restore the values from before a change.
    Rollback(RollbackArgs),
    /// Show the changes in force, and external changes since.
    Status(StatusArgs),
    /// Show all changes ever made.
    Log(LogArgs),
    /// Keep the changes in force over a reboot, in the distribution's own files.
    Persist(PersistArgs),
    /// Show the profiles: settings that belong together, each with its reason.
    Profiles(ProfilesArgs),
    /// Undo a change unless it is confirmed in time, or the changes on trial of a process that
    /// ended.
    #[command(hide = true)]
    Watchdog(WatchdogArgs),
}

/// The host and its journal.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Host and journal")]
pub struct PlaceArgs {
    /// Directory of the journal [default: NETWRIGHT_STATE or /var/lib/netwright].
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
    /// Work on this directory, with the layout of a host's root, instead of the running host.
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Enter this network namespace: a name of `ip netns`, or a path such as /proc/PID/ns/net.
    #[arg(long, value_name = "NAME-or-PATH", conflicts_with = "root")]
    pub netns: Option<String>,
    /// Enter the network namespace of this container, or of this process.
    #[arg(long, value_name = "NAME|ID|PID", conflicts_with_all = ["root", "netns"])]
    pub container: Option<String>,
}

impl From<PlaceArgs> for TargetNames {
    fn from(args: PlaceArgs) -> Self {
        let PlaceArgs { state_dir, root, netns, container } = args;
        Self { state_dir, root, netns, container }
    }
}

/// What to do while another process changes the host.
#[derive(Debug, Args)]
pub struct LockArgs {
    /// Fail at once when another netwright is changing the host.
    #[arg(long)]
    pub no_wait: bool,
}

/// A profile to take changes from.
#[derive(Debug, Args)]
#[command(next_help_heading = "Profile")]
pub struct ProfileArgs {
    /// Take the lines of this profile (`netwright tune profiles` lists them), or of your own file.
    /// Lines that do not apply to this host are left out, with the reason.
    #[arg(long, value_name = "NAME-or-FILE", conflicts_with = "what")]
    pub profile: Option<String>,
    /// The interfaces that the profile's `nic.*` stands for, separated by commas; repeatable
    /// [default: each physical interface that is up].
    #[arg(long, value_name = "NIC", value_delimiter = ',', requires = "profile")]
    pub nic: Vec<String>,
}

/// Output format of the changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Ansible tasks that write the same files.
    Ansible,
    /// A script that sets the values now.
    Shell,
    /// A profile for tuned.
    Tuned,
}

#[derive(Debug, Args)]
#[command(after_help = examples!(
    "  netwright tune persist --dry-run      # which files, and what is in them
  netwright tune persist                # all that is in force
  netwright tune persist 7
  netwright tune persist --remove       # all of it away
  netwright tune persist --format ansible > netwright.yml",
    "a value cannot be kept, or not in the requested format; each is named"
))]
pub struct PersistArgs {
    /// The change [default: all that are in force].
    pub id: Option<u64>,
    /// Remove the files that were written, of this change or of all. The values in force stay:
    /// `tune rollback` restores the old ones.
    #[arg(long)]
    pub remove: bool,
    /// Show the files that would be written, and write none.
    #[arg(long)]
    pub dry_run: bool,
    /// Print this format instead of writing files.
    #[arg(long, value_enum, conflicts_with_all = ["remove", "dry_run", "json", "into"])]
    pub format: Option<Format>,
    /// Write below this directory instead of below /, for an image or for inspection.
    #[arg(long, value_name = "DIR", conflicts_with = "root")]
    pub into: Option<PathBuf>,
    #[command(flatten)]
    pub wait: LockArgs,
    #[command(flatten)]
    pub place: PlaceArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

#[derive(Debug, Args)]
#[command(after_help = examples!(
    "  netwright tune profiles               # all of them, a line each
  netwright tune profiles database      # its settings with their reasons
  netwright tune plan --profile database"
))]
pub struct ProfilesArgs {
    /// Show this profile, or your own file, in full.
    #[arg(value_name = "NAME-or-FILE")]
    pub name: Option<String>,
    #[command(flatten)]
    pub output: OutputArgs,
}

#[derive(Debug, Args)]
#[command(after_help = examples!(
    "  netwright tune plan sysctl.net.core.somaxconn=8192 nic.eth0.rings.rx=2048
  netwright tune plan irq.38.affinity=2 nic.eth0.queue.rx-0.rps_cpus=cpus:0-3
  netwright tune plan changes.txt              # lines of KNOB=VALUE, # comments
  netwright tune plan /etc/sysctl.conf        # judge it line by line
  netwright doctor --json | netwright tune plan - --json > plan.json
  netwright tune plan --profile web           # settings that go together
  netwright tune apply plan.json",
    "a change requested by name is refused because it is harmful"
))]
pub struct PlanArgs {
    /// KNOB=VALUE, or one document (a file, - for standard input): lines of KNOB=VALUE, a plain
    /// sysctl.conf, `doctor --json`, or an earlier plan.
    #[arg(value_name = "KNOB=VALUE|FILE", required_unless_present = "profile")]
    pub what: Vec<String>,
    #[command(flatten)]
    pub profile: ProfileArgs,
    /// Also plan changes of settings that netwright does not know, values that lower something or do
    /// nothing, and PCI registers, which may wedge a device.
    #[arg(long)]
    pub i_understand: bool,
    #[command(flatten)]
    pub place: PlaceArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

#[derive(Debug, Args)]
#[command(after_help = examples!(
    "  netwright tune apply plan.json
  netwright tune apply nic.eth0.mtu=9000 --confirm 2m
  netwright tune apply --dry-run plan.json    # all checks, no write
  netwright tune apply --finish 7             # complete what a crash ended

Where a change may cut the connection that you work over, a confirmation is
waited for (60 s) unless --no-confirm says otherwise: `netwright tune confirm`,
best from a new connection. It goes on when its terminal goes away. A change
that cannot cut the connection has no watchdog.",
    "a change requested by name is refused because it is harmful"
))]
pub struct ApplyArgs {
    /// A plan (a file, - for standard input), or KNOB=VALUE.
    #[arg(value_name = "PLAN|KNOB=VALUE", required_unless_present_any = ["finish", "profile"])]
    pub what: Vec<String>,
    #[command(flatten)]
    pub profile: ProfileArgs,
    /// Undo all unless `tune confirm` comes within this time, 1s to 1h.
    #[arg(value_parser = model::seconds, long, value_name = "DURATION", conflicts_with = "no_confirm")]
    pub confirm: Option<Nanos>,
    /// Require no confirmation, whatever the impact.
    #[arg(long)]
    pub no_confirm: bool,
    /// Undo all when a member of a bond, team or bridge is not up in it again within this time after
    /// its link was reset, 1s to 1h.
    #[arg(value_parser = model::seconds, long, value_name = "DURATION", default_value = "30s")]
    pub link_wait: Nanos,
    /// Check the path of a raised MTU to this host, instead of to the neighbours that answer; repeat for
    /// several.
    #[arg(long, value_name = "HOST")]
    pub peer: Vec<String>,
    /// Check everything and write nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Complete this change, which a crash interrupted; with a watchdog (60 s, or --confirm) where
    /// it had one or may cut your own connection.
    #[arg(long, value_name = "ID", conflicts_with_all = ["what", "profile"])]
    pub finish: Option<u64>,
    #[command(flatten)]
    pub wait: LockArgs,
    /// Also change settings that netwright does not know, take values that lower something or do
    /// nothing, write PCI registers, which may wedge a device, and keep an MTU that a neighbour does not
    /// carry.
    #[arg(long)]
    pub i_understand: bool,
    #[command(flatten)]
    pub place: PlaceArgs,
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub keep: RecordArgs,
}

#[derive(Debug, Args)]
#[command(after_help = examples!(
    "  netwright tune confirm        # the change that waits
  netwright tune confirm 7      # change 7, if it still waits",
    "too late: the change was undone"
))]
pub struct ConfirmArgs {
    /// The change [default: the one that waits].
    pub id: Option<u64>,
    #[command(flatten)]
    pub place: PlaceArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// The option `--responder`: act on another host.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Server")]
pub struct ServerArgs {
    /// Act on this host, over ssh: `ssh://[USER@]HOST[:PORT]`.
    #[arg(long, value_name = "URL", conflicts_with_all = ["state_dir", "root"])]
    pub responder: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = examples!(
    "  # the last change that is in force or was interrupted
  netwright tune rollback
  netwright tune rollback 7
  # what `fix` kept there
  netwright tune rollback 7 --responder ssh://db1
  netwright tune rollback --unfinished   # all that was interrupted
  netwright tune rollback --all          # everything back
  netwright tune rollback 7 --force      # overwrites external changes",
    "not every value was restored; each is named. External changes stay"
))]
pub struct RollbackArgs {
    /// The change [default: the last one that is in force or was interrupted; of an interrupted
    /// experiment, all that it left].
    pub id: Option<u64>,
    /// All changes that are in force, were interrupted or are only partly rolled back, the last first.
    #[arg(long, conflicts_with = "id")]
    pub all: bool,
    /// All changes that were interrupted, the last first: those of experiments, and others.
    #[arg(long, conflicts_with_all = ["id", "all"])]
    pub unfinished: bool,
    /// Overwrite external changes with the old value; without this option such a value is left
    /// unchanged and reported, with the written and the old value.
    #[arg(long)]
    pub force: bool,
    /// Show the values that would be restored, and write nothing.
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub wait: LockArgs,
    #[command(flatten)]
    pub peer: ServerArgs,
    #[command(flatten)]
    pub place: PlaceArgs,
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub keep: RecordArgs,
}

#[derive(Debug, Args)]
#[command(after_help = examples!(
    "  netwright tune status
  # what `fix` kept on another host
  netwright tune status --responder ssh://db1",
    "a value drifted; a change was interrupted or partly rolled back, or waits
     for a confirmation without a watchdog"
))]
pub struct StatusArgs {
    #[command(flatten)]
    pub peer: ServerArgs,
    #[command(flatten)]
    pub place: PlaceArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

#[derive(Debug, Args)]
#[command(after_help = examples!(
    "  netwright tune log                     # all changes, with their steps
  netwright tune log --json | jq '.sets[].state'"
))]
pub struct LogArgs {
    #[command(flatten)]
    pub place: PlaceArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// `netwright tune watchdog`: what [`tune::watchdog`] starts.
#[derive(Debug, Args)]
pub struct WatchdogArgs {
    /// The change set, of one that has a deadline; the other one has its maker's pipe.
    #[arg(long, requires = "deadline_boot_ms")]
    pub id: Option<u64>,
    /// When to undo it, milliseconds of `CLOCK_BOOTTIME`.
    #[arg(long, requires = "id")]
    pub deadline_boot_ms: Option<u64>,
    /// Who makes the change.
    #[arg(long)]
    pub maker_pid: u32,
    /// Its start in ticks since boot.
    #[arg(long)]
    pub maker_start: u64,
    #[command(flatten)]
    pub place: PlaceArgs,
}
