//! Flags of `netwright lab`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Args)]
#[command(after_help = examples!(
    "  # two hosts, left and right, on a link
  netwright lab up pair
  netwright lab exec left -- ping -c 3 10.99.0.2
  netwright lab up pair --name slow --rate 100Mbit --delay 80us --loss 0.1%
  netwright lab up containers                  # c1 and c2 on a bridge
  # a guest: 4 CPUs, 2 nodes, 4 queues
  netwright lab up server
  netwright lab exec server -- $(command -v netwright) inspect
  # an aarch64 guest, see docs/aarch64.md
  netwright lab up server --topology kunpeng
  # the situation of a field case, see docs/lab.md
  netwright lab up server --preset queues
  netwright lab list
  netwright lab down                           # the only lab, or all with --all

Needs root. Only things of its own are made and removed; `lab down` leaves no
trace.",
    @ "  N  `exec`: the exit code of the command itself\n"
))]
pub struct LabArgs {
    /// What to do with practice hosts.
    #[command(subcommand)]
    pub command: LabCommand,
}

/// The commands of `lab`.
#[derive(Debug, Subcommand)]
pub enum LabCommand {
    /// Bring up practice hosts.
    Up(UpArgs),
    /// Run a command on a practice host.
    Exec(ExecArgs),
    /// List the running labs.
    List(ListArgs),
    /// Remove practice hosts, whatever state they are in.
    Down(DownArgs),
    /// The link's own process.
    #[command(hide = true)]
    PairLink {
        /// A `LinkSpec` as JSON.
        spec: String,
    },
    /// The process that moves the threads of the preset `migration`.
    #[command(hide = true)]
    Wander {
        /// Folders of the cgroups whose threads it moves.
        folders: Vec<std::path::PathBuf>,
    },
    /// The guest's own process.
    #[command(hide = true)]
    Agent,
}

#[derive(Debug, Args)]
#[command(after_help = examples!(
    "  netwright lab up pair                        # two namespaces on a link
  netwright lab up server --preset queues      # the situation of a field case"
))]
pub struct UpArgs {
    /// The hosts to bring up and their network.
    #[command(subcommand)]
    pub topology: LabTopology,
}

/// The topologies of `lab up`.
#[derive(Debug, Subcommand)]
pub enum LabTopology {
    /// Two hosts on a link.
    Pair(PairArgs),
    /// Container-like hosts on a bridge.
    Containers(ContainersArgs),
    /// A guest with NUMA nodes and a multi-queue NIC.
    Server(ServerArgs),
}

/// Common to all topologies.
#[derive(Debug, Args)]
pub struct NameArgs {
    /// The lab's name [default: the topology's or the preset's].
    #[arg(long, value_name = "NAME", help_heading = "Lab")]
    pub name: Option<String>,
    /// The situation of a field case [default: none].
    #[arg(long, value_enum, value_name = "PRESET", help_heading = "Lab")]
    pub preset: Option<Preset>,
    /// No progress on standard error.
    #[arg(long, short, help_heading = "Output")]
    pub quiet: bool,
}

/// Situations of the field cases, in miniature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Preset {
    /// pair or server: one channel of four possible ones.
    Queues,
    /// server: softirqs on another node than the application.
    Softirq,
    /// pair: a path that is slower than loopback.
    Latency,
    /// containers: two, with processes that migrate between CPUs.
    Migration,
    /// pair: small buffers and MTU on a fast, long link.
    Tengig,
}

/// `netwright lab up pair`.
#[derive(Debug, Args)]
#[command(after_help = examples!(
    "  # hosts left and right, 4 queues each
  netwright lab up pair
  netwright lab up pair --name slow --rate 100Mbit --delay 80us --loss 0.1%
  netwright lab up pair --preset tengig    # small buffers on a long link"
))]
pub struct PairArgs {
    #[command(flatten)]
    pub common: NameArgs,
    /// Queues of each NIC [default: 4, or the preset's].
    #[arg(long, value_name = "N", help_heading = "NICs")]
    pub queues: Option<u32>,
    /// Links between the hosts: eth0, eth1, … [default: 1].
    #[arg(long, value_name = "N", help_heading = "Link")]
    pub links: Option<u32>,
    /// Rate limit in each direction, such as 100Mbit [default: none, or the preset's].
    #[arg(long, value_name = "RATE", help_heading = "Link")]
    pub rate: Option<model::BitsPerSec>,
    /// Time that the link spins before a frame is due, where the kernel has no netem: 0ns leaves
    /// the CPU to the hosts, and frames are later by the wake-up latency [default: 120us].
    #[arg(long, value_name = "DURATION", help_heading = "Link")]
    pub spin: Option<model::Nanos>,
    /// Added delay in each direction, such as 80us [default: none, or the preset's].
    #[arg(long, value_name = "TIME", help_heading = "Link")]
    pub delay: Option<model::Nanos>,
    /// Packet loss in each direction, such as 0.1% [default: none].
    #[arg(long, value_name = "SHARE", help_heading = "Link")]
    pub loss: Option<String>,
    /// MTU in bytes [default: 1500, or the preset's].
    #[arg(long, value_name = "BYTES", help_heading = "NICs")]
    pub mtu: Option<u32>,
    /// Mask of CPUs for receive packet steering on all queues, such as 3 [default: none].
    #[arg(long, value_name = "MASK", help_heading = "NICs")]
    pub rps: Option<String>,
}

/// `netwright lab up containers`.
#[derive(Debug, Args)]
#[command(after_help = examples!(
    "  netwright lab up containers                  # c1 and c2 on a bridge
  netwright lab up containers --count 4 --cpus 0-1"
))]
pub struct ContainersArgs {
    #[command(flatten)]
    pub common: NameArgs,
    /// Number of containers: c1, c2, …
    #[arg(long, value_name = "N", default_value_t = 2, help_heading = "Containers")]
    pub count: u32,
    /// CPUs of their cpusets [default: all].
    #[arg(long, value_name = "LIST", help_heading = "Containers")]
    pub cpus: Option<String>,
    /// MTU in bytes [default: 1500].
    #[arg(long, value_name = "BYTES", help_heading = "Containers")]
    pub mtu: Option<u32>,
}

/// `netwright lab up server`.
#[derive(Debug, Args)]
#[command(after_help = examples!(
    "  netwright lab up server                      # 4 CPUs, 2 nodes, 4 queues
  netwright lab up server --nic vmxnet3,e1000e --disk nvme
  # an aarch64 guest, see docs/aarch64.md
  netwright lab up server --topology kunpeng"
))]
pub struct ServerArgs {
    #[command(flatten)]
    pub common: NameArgs,
    /// Architecture [default: this machine's].
    #[arg(long, value_enum, value_name = "ARCH", help_heading = "Machine")]
    pub arch: Option<ArchKind>,
    /// A known machine's topology; its architecture, packages, nodes and clusters.
    #[arg(long, value_enum, value_name = "TOPOLOGY", conflicts_with_all = ["arch", "threads", "nodes", "packages", "cluster"], help_heading = "Machine")]
    pub topology: Option<KnownTopology>,
    /// The netwright that runs inside, of --arch [default: this one; for aarch64 the one of
    /// `make aarch64`].
    #[arg(long, value_name = "FILE", help_heading = "Emulation")]
    pub binary: Option<PathBuf>,
    /// CPUs [default: 4; with --topology the topology's].
    #[arg(long, value_name = "N", help_heading = "Machine")]
    pub cpus: Option<u32>,
    /// Hardware threads of a core, 1 or 2.
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Machine")]
    pub threads: u32,
    /// NUMA nodes; each has the same number of CPUs and the same memory.
    #[arg(long, value_name = "N", default_value_t = 2, help_heading = "Machine")]
    pub nodes: u32,
    /// Packages [default: one for each node].
    #[arg(long, value_name = "N", help_heading = "Machine")]
    pub packages: Option<u32>,
    /// Cores that share a cluster; aarch64 only [default: no clusters].
    #[arg(long, value_name = "CORES", help_heading = "Machine")]
    pub cluster: Option<u32>,
    /// Threads that emulate the CPUs: one for all, or one for each, with which they run in parallel
    /// but an x86-64 guest may hang when eBPF programs are attached [default: one; `lab up pair
    /// --preset queues`: each].
    #[arg(long, value_enum, value_name = "WHICH", help_heading = "Emulation")]
    pub emulation_threads: Option<EmulationKind>,
    /// Queues of each NIC.
    #[arg(long, value_name = "N", default_value_t = 4, help_heading = "NICs and disks")]
    pub queues: u32,
    /// NICs [default: as many as --nic names].
    #[arg(long, value_name = "N", help_heading = "NICs and disks")]
    pub nics: Option<u32>,
    /// Node of the NICs; not for aarch64: its board reports none [default: the last].
    #[arg(long, value_name = "NODE", help_heading = "NICs and disks")]
    pub nic_node: Option<u32>,
    /// NIC model, or one for each NIC, such as virtio,e1000e.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "virtio",
        help_heading = "NICs and disks"
    )]
    pub nic: Vec<NicKind>,
    /// A disk with managed interrupts.
    #[arg(long, value_enum, default_value = "none", help_heading = "NICs and disks")]
    pub disk: DiskKind,
    /// A raw disk image as one more virtio disk; data written to it outlives the guest.
    #[arg(long, value_name = "FILE", help_heading = "NICs and disks")]
    pub image: Option<PathBuf>,
    /// The guest's clock counts instructions; 2 ns each, and it skips waits: the load of this machine
    /// shows in no figure measured inside. All of its CPUs share that clock, so use one CPU: --cpus
    /// 1 --nodes 1. The guest uses one CPU of this machine all the time, and its clock differs from
    /// that of this machine.
    #[arg(long, conflicts_with = "emulation_threads", help_heading = "Emulation")]
    pub virtual_time: bool,
    /// Memory of the guest, such as 512M.
    #[arg(long, value_name = "SIZE", default_value = "1G", help_heading = "Machine")]
    pub memory: model::Bytes,
    /// Cache directory of Debian's kernel [default: /var/cache/netwright/lab].
    #[arg(long, value_name = "FOLDER", help_heading = "Emulation")]
    pub cache: Option<PathBuf>,
}

/// Threads that emulate a guest's CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EmulationKind {
    /// One thread runs all CPUs in turn.
    One,
    /// Each CPU has its own thread.
    Each,
}

/// Architectures that a guest can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ArchKind {
    /// Runs this machine's own programs.
    #[value(name = "x86_64")]
    X86_64,
    /// Runs busybox and a cross-built netwright.
    Aarch64,
}

/// Topologies of known machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum KnownTopology {
    /// aarch64: 2 packages, 4 nodes, clusters of 4 cores; 16 CPUs.
    Kunpeng,
}

/// NIC models that QEMU emulates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "kebab-case")]
pub enum NicKind {
    /// virtio-net with several queues.
    Virtio,
    /// The same with a configurable receive hash.
    VirtioRss,
    /// VMware's vmxnet3, several queues.
    Vmxnet3,
    /// Intel's 82574, one queue.
    E1000e,
    /// Intel's 82540, one queue.
    E1000,
}

/// Disk models that QEMU emulates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DiskKind {
    /// No disk with managed interrupts.
    None,
    /// A virtio-blk disk: a queue for each CPU, 16 at most.
    Virtio,
    /// An NVMe disk, as QEMU emulates it.
    Nvme,
}

#[derive(Debug, Args)]
#[command(after_help = examples!(
    "  netwright lab exec left -- ping -c 3 10.99.0.2
  # the host of one lab of several
  netwright lab exec slow/left -- ip -br addr", @ "  N  the exit code of the command itself\n"
))]
pub struct ExecArgs {
    /// HOST, or LAB/HOST where several labs have one of that name.
    pub host: String,
    /// The command, after `--`.
    #[arg(last = true, required = true)]
    pub command: Vec<String>,
}

#[derive(Debug, Args)]
#[command(after_help = examples!(
    "  netwright lab list                           # the labs and their hosts
  netwright lab list --json | jq '.labs[].name'"
))]
pub struct ListArgs {
    /// Write one JSON document with all labs and hosts.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = examples!(
    "  netwright lab down                           # the only lab
  netwright lab down slow
  netwright lab down --all"
))]
pub struct DownArgs {
    /// The lab; may be left out when there is only one.
    pub names: Vec<String>,
    /// Remove all labs of this machine.
    #[arg(long, conflicts_with = "names")]
    pub all: bool,
}
