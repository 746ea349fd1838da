//! Network interfaces: settings, queues, counters, and related devices.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    BitsPerSec, Bytes, CpuSet, IrqId, Nanos, NumaNode, QueueId, Reading,
    link::{Fec, LinkModes, Module},
    napi::Napi,
};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Nic {
    /// Name in its namespace.
    pub name: String,
    /// Number within its network namespace. **Source**: `/sys/class/net/X/ifindex`.
    pub ifindex: Reading<u32>,
    /// `physical` (a device stands behind it, a virtual machine's included), `loopback`, `veth`,
    /// `bridge`, `bond`, `vlan`, `macvlan`, `ipvlan`, `tun`, `tap`, `dummy`, `ifb`, `vxlan`, …, as
    /// rtnetlink's `IFLA_INFO_KIND` says; `virtual` where rtnetlink reports no kind, `unknown`
    /// where it is not known whether a device stands behind it.
    pub kind: String,
    /// Data specific to its kind.
    pub details: KindDetails,
    /// Kernel driver. **Source**: `device/driver` link, else `ETHTOOL_GDRVINFO`.
    pub driver: Reading<String>,
    /// Driver version. **Source**: `ETHTOOL_GDRVINFO`.
    pub driver_version: Reading<String>,
    /// Version of the firmware as the driver writes it. **Source**: `ETHTOOL_GDRVINFO`.
    pub firmware: Reading<String>,
    /// Bus address, such as `0000:03:00.0`. **Source**: `device` link (virtio: its parent).
    pub bus_address: Reading<String>,
    pub pci: Reading<PciFunction>,
    /// Node; the kernel's −1 is absent. **Source**: `device/numa_node`.
    pub numa_node: Reading<NumaNode>,
    pub mac: Reading<String>,
    /// Addresses with prefix length, ascending.
    pub addresses: Reading<Vec<String>>,
    /// `up`, `down`, `unknown`, `lowerlayerdown`, … (RFC 2863). **Source**: `operstate`.
    pub operstate: Reading<String>,
    /// Whether it is administratively up (`IFF_UP`); the link can be down.
    pub up: Reading<bool>,
    /// Link detected. **Source**: `carrier`; EINVAL while down.
    pub carrier: Reading<bool>,
    /// Link speed. **Source**: `speed` (Mbit/s in the file; −1 and EINVAL are absent).
    pub speed_bps: Reading<BitsPerSec>,
    /// `full`, `half`. **Source**: `duplex`.
    pub duplex: Reading<String>,
    #[serde(default)]
    pub link_modes: Reading<LinkModes>,
    #[serde(default)]
    pub fec: Reading<Fec>,
    #[serde(default)]
    pub module: Reading<Module>,
    /// Largest packet in bytes, without the link header.
    pub mtu: Reading<u32>,
    /// Smallest supported MTU. **Source**: rtnetlink `IFLA_MIN_MTU`, since 4.19.
    pub min_mtu: Reading<u32>,
    /// Largest supported MTU; 0 from the kernel (no limit) is absent.
    pub max_mtu: Reading<u32>,
    /// Length of the transmit queue in packets. **Source**: `tx_queue_len`.
    pub txqueuelen: Reading<u32>,
    /// Present and maximum channels. **Source**: `ethtool -l`.
    pub channels: Reading<Channels>,
    /// Present and maximum ring sizes. **Source**: `ethtool -g`.
    pub rings: Reading<Rings>,
    /// Interrupt coalescing. **Source**: `ethtool -c`.
    pub coalesce: Reading<Coalesce>,
    /// `ethtool -k`, by the kernel's feature name (`rx-gro`, `tx-tcp-segmentation`).
    pub features: Reading<BTreeMap<String, Feature>>,
    /// `ethtool -x` and `-n rx-flow-hash`.
    pub rss: Reading<Rss>,
    /// Pause frames. **Source**: `ethtool -a`.
    pub pause: Reading<Pause>,
    /// Rules of `ethtool -n`.
    pub ntuple_rules: Reading<u32>,
    /// `ethtool -S` by name, since boot or driver load. A name that the driver reports twice is
    /// `name` and `name#2`. **Source**: `ETHTOOL_GSTATS`.
    pub driver_stats: Reading<BTreeMap<String, u64>>,
    /// Counters since boot, by file name. **Source**: `/sys/class/net/X/statistics`.
    pub statistics: Reading<BTreeMap<String, u64>>,
    /// Absent before Linux 3.19. **Source**: `/sys/class/net/X/gro_flush_timeout`.
    pub gro_flush_timeout_ns: Reading<Nanos>,
    /// Number of empty polls, since Linux 5.7. **Source**: `napi_defer_hard_irqs`.
    pub napi_defer_hard_irqs: Reading<u32>,
    /// Whether NAPI runs in kernel threads, since Linux 5.12. **Source**: `threaded`.
    pub threaded_napi: Reading<bool>,
    /// Queues, rx first, ascending.
    pub queues: Vec<Queue>,
    /// Its interrupts, ascending, configuration vectors included.
    pub irqs: Vec<IrqId>,
    pub napis: Reading<Vec<Napi>>,
    pub qdiscs: Reading<Vec<Qdisc>>,
    /// The bridge, bond or VRF it belongs to, `""` if none. **Source**: `master` link.
    pub master: Reading<String>,
    /// Whether an XDP program is attached. **Source**: rtnetlink `IFLA_XDP`.
    pub xdp: Reading<bool>,
}

/// The kind of an interface without information about its device, as in a copied tree that has the
/// interface's link but not its target.
pub const UNKNOWN_KIND: &str = "unknown";

/// Data specific to a kind of interface.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum KindDetails {
    None,
    /// One end of a veth pair.
    Veth {
        /// The other end's index in its namespace.
        peer_ifindex: Reading<u32>,
        /// The other end's name.
        peer: Reading<String>,
        /// Inode of the other end's namespace.
        peer_namespace: Reading<u64>,
        /// MTU of the other end.
        peer_mtu: Reading<u32>,
        /// Container at the other end, `none` if none.
        peer_container: Reading<String>,
    },
    Bridge {
        /// Names of its ports.
        ports: Vec<String>,
        stp: Reading<bool>,
        vlan_filtering: Reading<bool>,
    },
    Bond {
        /// Names of its members.
        members: Vec<String>,
        /// The kernel's name of the mode: `802.3ad`, `active-backup`.
        mode: Reading<String>,
        /// Member in use (active-backup).
        active: Reading<String>,
        /// The kernel's name of the policy: `layer2`, `layer3+4`.
        xmit_hash_policy: Reading<String>,
        /// Link check period in ms.
        miimon_ms: Reading<u32>,
    },
    Vlan {
        id: Reading<u16>,
        lower: Reading<String>,
    },
    /// A macvlan, macvtap or ipvlan.
    Macvlan {
        lower: Reading<String>,
        /// `bridge`, `private`, `vepa`, `passthru`, `source`, `l2`, `l3`.
        mode: Reading<String>,
    },
    /// A tun or tap device.
    Tun {
        multi_queue: Reading<bool>,
    },
}

/// A PCI function. **Source**: `/sys/bus/pci/devices/ADDRESS`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PciFunction {
    /// Vendor, four hex digits.
    pub vendor_id: Reading<String>,
    /// Device, four hex digits.
    pub device_id: Reading<String>,
    /// Class, six hex digits.
    pub class: Reading<String>,
    /// Present link speed, in mega-transfers per second per lane. **Source**: `current_link_speed`.
    pub link_speed_mts: Reading<u32>,
    /// Maximum link speed. **Source**: `max_link_speed`.
    pub max_link_speed_mts: Reading<u32>,
    /// Present number of lanes. **Source**: `current_link_width`; 0 is absent.
    pub link_width: Reading<u32>,
    /// Maximum number of lanes. **Source**: `max_link_width`.
    pub max_link_width: Reading<u32>,
    /// Read request size. **Source**: PCIe capability DevCtl 14:12 in `config`; only root can read
    /// beyond the first 64 bytes.
    pub read_request_bytes: Reading<Bytes>,
    /// Payload size in force. **Source**: DevCtl 7:5.
    pub max_payload_bytes: Reading<Bytes>,
    /// PCI-X memory read byte count, where the function has that capability.
    pub pcix_mmrbc_bytes: Reading<Bytes>,
    /// Capacity of the link in each direction after encoding, before packet overhead.
    pub usable_bps: Reading<BitsPerSec>,
    /// How an IOMMU translates its DMA: `DMA` (strict since Linux 5.15, strict or lazy before), `DMA-FQ`
    /// (lazy), `identity`, `none` without an IOMMU. **Source**: `iommu_group/type`, since 5.11.
    #[serde(default = "iommu_not_read")]
    pub iommu: Reading<String>,
}

/// The document is older than this fact.
fn iommu_not_read() -> Reading<String> {
    Reading::absent("not read")
}

/// PCI vendors of functions implemented in software: virtio, QEMU, VMware.
const EMULATED: [&str; 3] = ["1af4", "1b36", "15ad"];

impl PciFunction {
    /// Whether a hypervisor emulates this function; its link and request sizes then say nothing
    /// about a bus.
    pub fn is_emulated(&self) -> bool {
        self.vendor_id.known().is_some_and(|v| EMULATED.contains(&v.as_str()))
    }
}

/// Present and maximum channels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Channels {
    /// Channels that only receive.
    pub rx: u32,
    /// Channels that only transmit.
    pub tx: u32,
    /// Channels that receive and transmit.
    pub combined: u32,
    /// Channels for link interrupts and other control.
    pub other: u32,
    pub max_rx: u32,
    pub max_tx: u32,
    pub max_combined: u32,
    pub max_other: u32,
}

/// Present and maximum descriptor rings, in descriptors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rings {
    pub rx: u32,
    pub rx_mini: u32,
    pub rx_jumbo: u32,
    pub tx: u32,
    pub max_rx: u32,
    pub max_rx_mini: u32,
    pub max_rx_jumbo: u32,
    pub max_tx: u32,
    /// How much of a packet's start the driver may copy into the NIC's own memory, bytes; `ena` has 224
    /// with large LLQ entries, else 96. **Source**: `ETHTOOL_A_RINGS_TX_PUSH_BUF_LEN` (since 6.4),
    /// `TX push buff len` of `ethtool -g`.
    #[serde(default = "push_buffer_not_read")]
    pub tx_push_buffer_bytes: Reading<u32>,
}

/// The document is older than this fact.
fn push_buffer_not_read() -> Reading<u32> {
    Reading::absent("not read")
}

/// Interrupt coalescing, in the kernel's units. **Source**: `ETHTOOL_GCOALESCE`; netlink's
/// `COALESCE_GET` (since 5.7) reports which parameters a driver has. On older kernels a missing
/// parameter cannot be distinguished from one that is 0 or off.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Coalesce {
    /// Delay of a receive interrupt, µs.
    pub rx_usecs: Reading<u32>,
    /// Packets after which a receive interrupt is raised without the delay.
    pub rx_max_frames: Reading<u32>,
    /// Delay of a transmit interrupt, µs.
    pub tx_usecs: Reading<u32>,
    /// Packets after which a transmit interrupt is raised without the delay.
    pub tx_max_frames: Reading<u32>,
    pub adaptive_rx: Reading<bool>,
    pub adaptive_tx: Reading<bool>,
    /// Delay of a receive interrupt while another is serviced, µs.
    pub rx_usecs_irq: Reading<u32>,
    /// Delay of a transmit interrupt while another is serviced, µs.
    pub tx_usecs_irq: Reading<u32>,
    /// Time between updates of the statistics block, µs.
    pub stats_block_usecs: Reading<u32>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Feature {
    pub active: bool,
    /// Requested by the administrator; a dependency can keep it off.
    pub requested: bool,
    pub fixed: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rss {
    /// Indirection table: hash bucket to rx queue; empty where the driver reports none.
    pub table: Vec<u32>,
    /// Hash key in hex, bytes by colon.
    pub key: Reading<String>,
    /// Hash functions in use: `toeplitz`, `xor`, `crc32`.
    pub functions: Reading<Vec<String>>,
    /// Hash fields by flow type (`tcp4`: `src_ip dst_ip src_port dst_port`).
    pub hash_fields: Reading<BTreeMap<String, String>>,
    /// Additional RSS contexts in use. **Source**: netlink `RSS_GET`, since 6.11.
    pub contexts: Reading<u32>,
    /// Number of receive rings that the table can use. **Source**: `ETHTOOL_GRXRINGS`.
    pub rings: Reading<u32>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pause {
    pub autoneg: bool,
    pub rx: bool,
    pub tx: bool,
}

/// One queue of a NIC.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Queue {
    pub id: QueueId,
    /// NAPI instance that polls it.
    pub napi_id: Reading<u32>,
    /// Interrupt that serves it.
    pub irq: Reading<IrqId>,
    /// Receive packet steering: CPUs. **Source**: `rps_cpus` (rx only).
    pub rps_cpus: Reading<CpuSet>,
    /// Receive flow steering entries. **Source**: `rps_flow_cnt` (rx only).
    pub rfs_flows: Reading<u32>,
    /// Transmit packet steering by CPU. **Source**: `xps_cpus` (tx only).
    pub xps_cpus: Reading<CpuSet>,
    /// Transmit packet steering by receive queue. **Source**: `xps_rxqs` (tx only).
    pub xps_rxqs: Reading<CpuSet>,
}

/// One queueing discipline with its counters. **Source**: rtnetlink `RTM_GETQDISC`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Qdisc {
    /// `fq_codel`, `mq`, `tbf`, …
    pub kind: String,
    /// Handle as `tc` writes it: `8001:`.
    pub handle: String,
    /// Parent, `root` or `8001:1`.
    pub parent: String,
    /// Bytes handed to the driver, since it was attached.
    pub sent_bytes: Reading<u64>,
    /// Packets handed to the driver, since it was attached.
    pub sent_packets: Reading<u64>,
    /// Packets that it dropped, since it was attached.
    pub drops: Reading<u64>,
    /// How often it had to delay a packet to keep a rate.
    pub overlimits: Reading<u64>,
    /// Packets that the driver could not take and that went back into the queue.
    pub requeues: Reading<u64>,
    /// Bytes in the queue at the time of the reading.
    pub backlog_bytes: Reading<u64>,
    /// Packets in the queue at the time of the reading.
    pub backlog_packets: Reading<u64>,
}
