//! Parameters of a server, and their limits.

use std::{path::PathBuf, time::Duration};

use crate::{
    LabError,
    arch::{self, Arch},
    image,
};

/// Device model of the NIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NicModel {
    Virtio,
    /// virtio-net with configurable RSS: table, key and fields.
    VirtioRss,
    /// VMware's vmxnet3, a multi-queue NIC.
    Vmxnet3,
    /// Intel's 82574 on PCI Express: interrupt rates, pause frames, read requests.
    E1000e,
    /// Intel's 82540 on conventional PCI.
    E1000,
}

impl NicModel {
    /// Whether it has the requested number of queues; other models have one.
    pub(super) const fn is_multi_queue(self) -> bool {
        matches!(self, Self::Virtio | Self::VirtioRss)
    }

    /// Its driver module, if the initramfs does not load it.
    pub(super) const fn module(self) -> Option<&'static str> {
        match self {
            Self::E1000e => Some("e1000e"),
            Self::E1000 => Some("e1000"),
            Self::Virtio | Self::VirtioRss | Self::Vmxnet3 => None,
        }
    }
}

/// Device model of the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskModel {
    /// The guest has no disk.
    None,
    Virtio,
    Nvme,
}

/// Emulation threads for the guest's CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Emulation {
    /// One thread for all CPUs, in turns: reliable, but work spread over CPUs gains no time.
    One,
    /// One thread for each CPU: they run in parallel on this machine's free CPUs. An x86-64 guest
    /// may hang when its kernel patches its own code, as when eBPF programs are attached.
    Each,
}

/// Parameters of a server.
#[derive(Debug, Clone)]
pub struct ServerSpec {
    pub arch: Arch,
    pub cpus: u32,
    /// Hardware threads of each core.
    pub threads: u32,
    pub nodes: u32,
    /// Number of packages; `None` makes each node a package.
    pub packages: Option<u32>,
    /// Cores that share a cluster; supported by the aarch64 board only.
    pub cluster: Option<u32>,
    /// Memory in MiB, summed over all nodes.
    pub memory_mib: u32,
    /// Emulation threads; by default one, for aarch64 with up to 16 CPUs one for each.
    pub emulation: Option<Emulation>,
    /// Queues of each multi-queue NIC.
    pub queues: u32,
    pub nics: u32,
    /// Node of the NICs. Unused on aarch64: its board describes a PCI bus's node only by ACPI,
    /// which needs firmware, so its NICs have no node.
    pub nic_node: u32,
    /// Models of the NICs, in order; further NICs have the last model.
    pub models: Vec<NicModel>,
    pub disk: DiskModel,
    /// A raw image as another disk, the last virtio one; writes to it persist after the guest.
    pub image: Option<PathBuf>,
    /// Whether the guest's clock counts instructions instead of real time.
    pub virtual_time: bool,
    /// Boots the distribution's systemd as init, with this directory overlaid on the guest's root;
    /// x86-64 only.
    pub systemd: Option<PathBuf>,
    /// The agent binary: reachable under this machine's root, or for another architecture a static
    /// one that is copied into the guest.
    pub agent: PathBuf,
    /// Directory of cached kernels.
    pub cache: PathBuf,
    /// Timeout of a boot.
    pub patience: Duration,
}

impl ServerSpec {
    /// Default parameters with this agent binary.
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

    /// A small Kunpeng 920 server as far as QEMU can describe it: 2 packages with 2 nodes each,
    /// clusters of 4 cores; aarch64. Without its caches (QEMU describes none) and the nodes of its
    /// NICs.
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

    /// Device model of a NIC by its index.
    pub(super) fn model(&self, nic: u32) -> NicModel {
        let of = |n| self.models.get(n).copied();
        of(nic as usize).or_else(|| self.models.last().copied()).unwrap_or(NicModel::Virtio)
    }

    pub(super) fn packages(&self) -> u32 {
        self.packages.unwrap_or(self.nodes)
    }

    pub(super) fn check(&self) -> Result<(), LabError> {
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

    /// Checks that nodes, packages and clusters hold equal numbers of whole cores.
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
