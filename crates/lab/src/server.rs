//! A server with NUMA nodes and a multi-queue NIC: a QEMU guest under software emulation,
//! joined to a namespace of this machine by a veth with as many queues, a bridge and a tap.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rustix::process::{Pid, WaitOptions, setsid, waitpid};

use crate::{
    LabError,
    arch::{self, Arch},
    channel::Channel,
    image::{self, Image},
    netns, qemu,
    state::{HostState, Lab, NodeAccess},
    tool,
};

/// What stands behind the NIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NicModel {
    Virtio,
    /// The same whose receive hash can be set: table, key and fields.
    VirtioRss,
    Vmxnet3,
    /// Intel's 82574, on PCI Express: interrupt rates, pause, read requests.
    E1000e,
    /// Intel's 82540, of the time of PCI.
    E1000,
}

impl NicModel {
    /// Whether it has as many queues as asked for; the others have one.
    pub(crate) const fn is_multi_queue(self) -> bool {
        matches!(self, Self::Virtio | Self::VirtioRss)
    }

    /// Its driver, where the initramfs does not load it.
    const fn module(self) -> Option<&'static str> {
        match self {
            Self::E1000e => Some("e1000e"),
            Self::E1000 => Some("e1000"),
            Self::Virtio | Self::VirtioRss | Self::Vmxnet3 => None,
        }
    }
}

/// What stands behind the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskModel {
    None,
    Virtio,
    Nvme,
}

/// What runs the guest's CPUs on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Emulation {
    /// One thread, which gives them turns: sure, and work that is spread over them gains no time.
    One,
    /// A thread for each: they have as many of this machine's CPUs as are free. An x86-64 guest may
    /// hang where its kernel changes its own code, as when eBPF programs are attached.
    Each,
}

/// The shape of a server.
#[derive(Debug, Clone)]
pub struct ServerSpec {
    pub arch: Arch,
    pub cpus: u32,
    /// Hardware threads a core.
    pub threads: u32,
    pub nodes: u32,
    /// Packages; each node is one by default.
    pub packages: Option<u32>,
    /// Cores that share a cluster; only an aarch64 board describes clusters.
    pub cluster: Option<u32>,
    /// Memory in MiB over all nodes.
    pub memory_mib: u32,
    /// What runs its CPUs; by default one thread, with aarch64 and up to 16 CPUs one for each.
    pub emulation: Option<Emulation>,
    /// Queues of the NIC.
    pub queues: u32,
    pub nics: u32,
    /// Node of the NICs. Not used on aarch64: that board tells a PCI bus's node by ACPI only,
    /// which needs firmware, so the NICs have none there.
    pub nic_node: u32,
    /// Models of the NICs in turn; those beyond have the last one's.
    pub models: Vec<NicModel>,
    pub disk: DiskModel,
    /// A raw image as one more disk, the last virtio one: what is written there outlives the guest.
    pub image: Option<PathBuf>,
    /// Whether its clock counts instructions instead of this machine's time.
    pub virtual_time: bool,
    /// Boots the distribution's systemd as the first process, this folder laid over the guest's root
    /// before; x86-64 only.
    pub systemd: Option<PathBuf>,
    /// The binary that serves inside: reachable under this machine's root, or, for another
    /// architecture, a static one that is copied into the guest.
    pub agent: PathBuf,
    /// Where kernels are cached.
    pub cache: PathBuf,
    /// How long a boot may take.
    pub patience: Duration,
}

impl ServerSpec {
    /// The default shape with a given binary inside.
    pub fn new(agent: impl Into<PathBuf>) -> Self {
        Self {
            arch: Arch::here(),
            cpus: 4,
            threads: 1,
            nodes: 2,
            packages: None,
            cluster: None,
            memory_mib: 1024,
            emulation: None,
            queues: 4,
            nics: 1,
            nic_node: 1,
            models: vec![NicModel::Virtio],
            disk: DiskModel::None,
            image: None,
            virtual_time: false,
            systemd: None,
            agent: agent.into(),
            cache: image::DEFAULT_CACHE.into(),
            patience: Duration::from_secs(90),
        }
    }

    /// What QEMU can describe of a Kunpeng 920 server, in small: 2 packages, 2 nodes in each,
    /// clusters of 4 cores; aarch64. Not its caches (QEMU tells of none) and not the nodes of
    /// its NICs.
    pub fn kunpeng(agent: impl Into<PathBuf>) -> Self {
        Self {
            arch: Arch::Aarch64,
            cpus: 16,
            nodes: 4,
            packages: Some(2),
            cluster: Some(4),
            ..Self::new(agent)
        }
    }

    /// The model of a NIC.
    pub(crate) fn model(&self, nic: u32) -> NicModel {
        let of = |n| self.models.get(n).copied();
        of(nic as usize).or_else(|| self.models.last().copied()).unwrap_or(NicModel::Virtio)
    }

    pub(crate) fn packages(&self) -> u32 {
        self.packages.unwrap_or(self.nodes)
    }

    fn check(&self) -> Result<(), LabError> {
        let within = |what: &str, n: u32, low: u32, high: u32| {
            if (low..=high).contains(&n) {
                Ok(())
            } else {
                Err(LabError::Usage(format!("{what} must be {low} to {high}, not {n}")))
            }
        };
        within("--cpus", self.cpus, 1, 255)?;
        within("--threads", self.threads, 1, 2)?;
        within("--nodes", self.nodes, 1, 8)?;
        within("--queues", self.queues, 1, 16)?;
        within("--nics", self.nics, 1, 8)?;
        within("--memory", self.memory_mib, 256, 65_536)?;
        within("--nic-node", self.nic_node, 0, self.nodes - 1)?;
        within("--packages", self.packages(), 1, 8)?;
        self.check_shares()?;
        match self.arch {
            Arch::X86_64 if Arch::here() != Arch::X86_64 => Err(LabError::Usage(
                "--arch x86_64 runs this machine's own programs in the guest and needs an x86-64 machine"
                    .into(),
            )),
            Arch::X86_64 if self.cluster.is_some() => {
                Err(LabError::Usage("--cluster needs --arch aarch64: q35 describes none".into()))
            }
            Arch::X86_64 => Ok(()),
            Arch::Aarch64 if self.systemd.is_some() => Err(LabError::Usage(
                "systemd as the first process needs an x86-64 guest, whose root is this machine's".into(),
            )),
            Arch::Aarch64 if self.models.iter().any(|m| m.module().is_some()) => Err(
                LabError::Usage("--nic e1000e and e1000 need an x86-64 guest, which has their drivers".into()),
            ),
            Arch::Aarch64 => arch::check_guest_program(&self.agent),
        }
    }

    /// Nodes, packages and clusters hold whole cores, all as many.
    fn check_shares(&self) -> Result<(), LabError> {
        let cluster = self.cluster.unwrap_or(1).max(1);
        for (option, parts) in [("--nodes", self.nodes), ("--packages", self.packages())] {
            let each = parts * cluster * self.threads;
            if !self.cpus.is_multiple_of(each) {
                let of = match self.cluster {
                    Some(cores) => format!(" in clusters of {cores} cores"),
                    None => String::new(),
                };
                return Err(LabError::Usage(format!(
                    "--cpus {} cannot be shared evenly by {option} {parts} with --threads {}{of}",
                    self.cpus, self.threads
                )));
            }
        }
        Ok(())
    }
}

/// Brings up the namespace `client` and the guest `server`, and waits until it takes commands.
///
/// # Errors
/// When QEMU, the kernel or memory is missing, or the guest does not come up in time; the
/// console's last lines are part of the message.
pub fn up(
    lab: &mut Lab,
    spec: &ServerSpec,
    progress: &mut dyn FnMut(&str),
) -> Result<(), LabError> {
    spec.check()?;
    check_memory(spec)?;
    let mut image = image::prepare(&spec.cache, spec.arch, progress)?;
    if !spec.arch.shares_root() {
        let whole = lab.folder.join("initramfs");
        image::with_program(&image.initramfs, &spec.agent, &whole)?;
        image.initramfs = whole;
    }
    let (client, link) = (netns::make(lab, "client")?, netns::make(lab, "wire")?);
    let mut addresses = Vec::new();
    for nic in 0..spec.nics {
        join(&client, &link, nic, spec)?;
        addresses.push(format!("10.97.{nic}.2"));
    }
    let console = lab.folder.join("console.log");
    let pid = start(lab, spec, &image, &link, &console)?;
    progress("waiting for the guest");
    let channel = wait(pid, &lab.folder, &console, spec.patience)?;
    configure(channel, &lab.folder, spec)?;
    lab.add_host(HostState {
        name: "client".into(),
        reach: NodeAccess::Namespace { namespace: client, cgroups: Vec::new() },
        addresses: (0..spec.nics).map(|n| format!("10.97.{n}.1")).collect(),
        about: "namespace at the other end of the server's wire".into(),
    });
    lab.add_host(HostState {
        name: "server".into(),
        reach: NodeAccess::Guest { ports: lab.folder.clone() },
        addresses,
        about: about(spec, &image.release),
    });
    Ok(())
}

/// Joins a NIC of the guest to the client's `ethN`. A tap answers no `ethtool -l`, so the client
/// has a veth, whose channels can be set as the guest's; a bridge in a namespace between them
/// carries the frames to the tap that the guest's program holds.
fn join(client: &str, link: &str, nic: u32, spec: &ServerSpec) -> Result<(), LabError> {
    let many = spec.queues > 1 && spec.model(nic).is_multi_queue();
    let multi = if many { " multi_queue" } else { "" };
    let queues = if many { spec.queues } else { 1 };
    let q = format!("numtxqueues {queues} numrxqueues {queues}");
    let ends = [format!("veth{nic}"), format!("tap{nic}")];
    tool::ip(&format!(
        "-n {client} link add eth{nic} {q} type veth peer name veth{nic} {q} netns {link}"
    ))?;
    tool::ip(&format!("-n {link} tuntap add dev tap{nic} mode tap{multi}"))?;
    tool::ip(&format!("-n {link} link add br{nic} type bridge mcast_snooping 0"))?;
    for end in ends {
        tool::ip(&format!("-n {link} link set {end} master br{nic} up"))?;
    }
    tool::ip(&format!("-n {link} link set br{nic} up"))?;
    netns::address(client, &format!("eth{nic}"), &[&format!("10.97.{nic}.1/24")])
}

fn about(spec: &ServerSpec, release: &str) -> String {
    let place = match spec.arch {
        Arch::X86_64 => format!("on node {}", spec.nic_node),
        Arch::Aarch64 => "on no known node".into(),
    };
    format!(
        "guest, {}, {} CPUs, {} nodes, {} NIC(s) with {} queues {place}, Linux {release}",
        spec.arch.name(),
        spec.cpus,
        spec.nodes,
        spec.nics,
        spec.queues
    )
}

/// A guest that does not fit would make this machine swap or kill; better to say so.
fn check_memory(spec: &ServerSpec) -> Result<(), LabError> {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let available_kib: Option<u64> = text
        .lines()
        .find_map(|l| l.strip_prefix("MemAvailable:"))
        .and_then(|l| l.trim().split(' ').next()?.parse().ok());
    let needed = u64::from(spec.memory_mib) + 256;
    match available_kib {
        Some(kib) if kib / 1024 < needed => Err(LabError::failed(
            "starting the guest",
            format!(
                "it needs {needed} MiB of memory, {} MiB are available; --memory asks for less",
                kib / 1024
            ),
        )),
        _ => Ok(()),
    }
}

fn start(
    lab: &mut Lab,
    spec: &ServerSpec,
    image: &Image,
    link: &str,
    console: &Path,
) -> Result<u32, LabError> {
    let log = lab.folder.join("qemu.log");
    let failed = |e: std::io::Error| LabError::failed("starting the guest", e);
    let log_file = fs::File::create(&log).map_err(failed)?;
    // Asked for first, so that a missing QEMU is named rather than `ip`'s failure to run it.
    tool::run(spec.arch.qemu(), &["--version"])?;
    let mut command = tool::gated("ip");
    command
        .args(["netns", "exec", link, spec.arch.qemu()])
        .args(qemu::arguments(spec, image, &lab.folder, console, &lab.state.name))
        .stdout(log_file.try_clone().map_err(failed)?)
        .stderr(log_file);
    // A session of its own: the terminal's Ctrl-C and hang-up are not the guest's.
    let detach = || {
        // Fails only for a group leader, which a forked child is not.
        setsid().map(drop).map_err(Into::into)
    };
    // SAFETY: only setsid is called between fork and exec.
    unsafe { std::os::unix::process::CommandExt::pre_exec(&mut command, detach) };
    let mut child = command.spawn().map_err(failed)?;
    // The gate becomes `ip netns exec` becomes QEMU: same pid.
    lab.release(&mut child, "the guest's QEMU")?;
    Ok(child.id())
}

/// Waits until the guest takes commands, or ends, panics, or takes too long.
fn wait(pid: u32, folder: &Path, console: &Path, patience: Duration) -> Result<Channel, LabError> {
    let begin = Instant::now();
    while begin.elapsed() < patience {
        if let Ok(channel) = Channel::open(folder, Duration::from_millis(400)) {
            return Ok(channel);
        }
        // Reaps QEMU if it ended: it is our child.
        let ended = matches!(waitpid(Pid::from_raw(pid as i32), WaitOptions::NOHANG), Ok(Some(_)));
        let said = fs::read(console).unwrap_or_default();
        let panicked = String::from_utf8_lossy(&said).contains("Kernel panic");
        if ended || panicked {
            let log = fs::read(folder.join("qemu.log")).unwrap_or_default();
            let what = if panicked { "the guest's kernel panicked" } else { "QEMU ended" };
            return Err(LabError::failed(
                "starting the guest",
                format!("{what}{}{}", last_lines(&log), last_lines(&said)),
            ));
        }
    }
    let said = fs::read(console).unwrap_or_default();
    Err(LabError::Timeout {
        what: "the guest taking commands".into(),
        seconds: patience.as_secs(),
        tail: last_lines(&said),
    })
}

/// The last lines of a log, without terminal codes, each on a line of its own.
fn last_lines(log: &[u8]) -> String {
    let text: String =
        String::from_utf8_lossy(log).chars().filter(|c| *c == '\n' || !c.is_control()).collect();
    let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|l| !l.is_empty()).collect();
    lines.iter().skip(lines.len().saturating_sub(12)).map(|l| format!("\n  | {l}")).collect()
}

/// Gives the guest's NICs their addresses.
fn configure(first: Channel, folder: &Path, spec: &ServerSpec) -> Result<(), LabError> {
    let drivers: String = spec
        .models
        .iter()
        .filter_map(|m| m.module())
        .map(|m| format!("busybox modprobe {m} || exit 1; "))
        .collect();
    // Names by MAC: the kernel's own order of names is not ours to know.
    let script = (0..spec.nics)
        .map(|n| {
            format!(
                "d=$(grep -l 52:54:00:6e:77:{n:02x} /sys/class/net/*/address | cut -d/ -f5); \
                 ip link set $d down; ip link set $d name eth{n} 2>/dev/null; \
                 ip addr add 10.97.{n}.2/24 dev eth{n} && ip link set eth{n} up || exit 1; "
            )
        })
        .collect::<String>();
    // A running udevd may be about to set a link up, or to name it.
    let settle = if spec.systemd.is_some() { "udevadm settle -t 20; " } else { "" };
    let argv =
        ["sh", "-c", &format!("ip link set lo up; {drivers}{settle}{script}")].map(str::to_owned);
    let done = first.output(&argv, Duration::from_secs(30))?;
    if done.code != 0 {
        let console = fs::read(folder.join("console.log")).unwrap_or_default();
        return Err(LabError::failed(
            "configuring the guest's NIC",
            format!("{}{}", String::from_utf8_lossy(&done.stderr).trim(), last_lines(&console)),
        ));
    }
    Ok(())
}
