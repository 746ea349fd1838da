//! The shape of a server, and which shapes there can be.

use std::{path::PathBuf, time::Duration};

use crate::{
    LabError,
    arch::{self, Arch},
    image,
};

/// What stands behind the NIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NicModel {
    Virtio,
    /// The same whose receive hash can be set: table, key and fields.
    VirtioRss,
    /// VMware's vmxnet3.
    Vmxnet3,
    /// Intel's 82574, on PCI Express: interrupt rates, pause, read requests.
    E1000e,
    /// Intel's 82540, of the time of PCI.
    E1000,
}

impl NicModel {
    /// Whether it has as many queues as asked for; the others have one.
    pub(super) const fn is_multi_queue(self) -> bool {
        matches!(self, Self::Virtio | Self::VirtioRss)
    }

    /// Its driver, where the initramfs does not load it.
    pub(super) const fn module(self) -> Option<&'static str> {
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
    /// No disk.
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
