//! The result of `measure offload`: which offload of which end falsifies packets.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Direction, End, Transport};
use crate::Reading;

/// The parameters of `measure offload`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OffloadSpec {
    /// The server: `HOST`, `HOST:PORT`.
    pub target: String,
    /// Address family, 4 or 6; `None` for either.
    pub family: Option<u8>,
    /// Local address to send from.
    pub bind: Option<String>,
}

/// How pieces are sent and received. Each kind steers which offloads are on the path, by options of
/// the sockets alone.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum OffloadProbe {
    /// UDP, one outstanding, without a UDP checksum (`SO_NO_CHECK`): damage is not hidden.
    UdpUnsummed,
    /// UDP, one outstanding, checksum computed by the kernel (`MSG_MORE`).
    UdpKernelSum,
    /// UDP, one outstanding, checksum left to the device.
    UdpAlone,
    /// UDP, many back to back, one datagram a call.
    UdpBurst,
    /// The same, received with `UDP_GRO`.
    UdpBurstGro,
    /// UDP, many datagrams a call (`UDP_SEGMENT`).
    UdpSegmented,
    /// The same, received with `UDP_GRO`.
    UdpSegmentedGro,
    /// UDP from a raw socket, with a wrong checksum: must not be delivered.
    UdpBadSum,
    /// TCP, one segment outstanding.
    TcpAlone,
    /// TCP, many segments back to back, each written on its own (`MSG_EOR`): no TSO.
    TcpBurst,
    /// TCP, many segments a write: TSO.
    TcpBulk,
}

/// Sizes of the pieces of a probe.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum PieceSize {
    /// A payload of 64 bytes.
    Small,
    /// As large as one packet carries.
    Large,
    /// Each piece of a burst is larger than the one before: a receiver must not merge them.
    Rising,
}

/// What one end of a probe counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OffloadCounts {
    /// Number of pieces sent.
    pub sent: u64,
    /// Pieces received as they were sent.
    pub right: u64,
    /// Pieces with another content.
    pub damaged: u64,
    /// Datagrams that ended too early.
    pub cut: u64,
    /// Datagrams that went on after their end.
    pub merged: u64,
    /// Pieces received more than once.
    pub duplicates: u64,
    /// Pieces that never came.
    pub missing: u64,
    /// Datagrams that the kernel received merged (`UDP_GRO`) and gave with their boundaries.
    pub received_merged: u64,
    /// TCP: writes, each followed by a pause until the receiver had it.
    pub batches: u64,
    /// TCP: writes during which the sender retransmitted.
    pub batches_retransmitted: u64,
    /// Of TCP: number of segments retransmitted.
    pub retransmits: u64,
    /// Whether the sender gave up waiting.
    pub stalled: bool,
}

/// The judgement on one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OffloadRowVerdict {
    /// All pieces came as they were sent.
    Right,
    /// Pieces are missing or were retransmitted, but the content was right.
    Lossy,
    /// A piece came with another content, length or boundary, or one came that must not.
    Wrong,
    /// The probe could not run.
    NotRun,
}

/// One probe in one direction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OffloadRow {
    pub probe: OffloadProbe,
    pub size: PieceSize,
    pub direction: Direction,
    #[serde(flatten)]
    pub counts: OffloadCounts,
    /// Growth of the receiver's `InCsumErrors` of TCP, or of UDP and UDPv6.
    pub checksum_errors: u64,
    pub verdict: OffloadRowVerdict,
    /// Why the probe did not run.
    pub not_run: Option<String>,
}

/// What can be at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Offload {
    TxChecksum,
    RxChecksum,
    /// TCP segmentation by the device.
    Tso,
    /// UDP segmentation by the device.
    Uso,
    /// Segmentation by the kernel: the device's is off.
    Gso,
    /// Merging of received TCP segments: LRO, hardware GRO, GRO.
    TcpMerge,
    /// Merging of received datagrams: hardware GRO, GRO.
    UdpMerge,
    /// No offload: the path damages packets in every way of sending.
    Path,
}

/// An offload that lies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OffloadLie {
    pub offload: Offload,
    /// `local`, `peer`; `between` for the path.
    pub end: String,
    /// The direction of the packets, as seen from the client.
    pub direction: Direction,
    /// Rows that show it, as indices of `rows`.
    pub against: Vec<usize>,
    /// Rows that differ only by this offload, as indices of `rows`.
    pub contrast: Vec<usize>,
    /// What the rows cannot tell it from.
    pub or: Option<Offload>,
    /// The command that switches it off at that end.
    pub command: Option<String>,
}

/// The interface that an end uses towards the other one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OffloadNic {
    pub name: String,
    /// Offloads by the kernel's name, and whether each is on (`ethtool -k`).
    pub features: BTreeMap<String, bool>,
}

/// Interfaces of both ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BothNics {
    pub local: Reading<OffloadNic>,
    pub peer: Reading<OffloadNic>,
}

/// The document of `measure offload --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OffloadDocument {
    /// Version of the document's shape.
    pub schema_version: u32,
    /// Kind of the document: always `offload`.
    pub kind: String,
    /// Start of the run, seconds since 1970.
    pub started_unix_s: u64,
    /// All parameters that are needed to repeat the run.
    pub request: OffloadSpec,
    pub local: End,
    pub peer: End,
    pub nics: BothNics,
    /// Bytes of a large piece.
    pub large_bytes: u64,
    /// How often all probes ran: a suspicion of loss alone is confirmed by a second time.
    pub rounds: u32,
    /// The rows of the last round.
    pub rows: Vec<OffloadRow>,
    /// The offloads that lie; empty where none was seen.
    pub lies: Vec<OffloadLie>,
    /// Time of all probes, ns.
    pub took_ns: crate::Nanos,
    /// Whether the run was ended early.
    pub interrupted: bool,
}

impl OffloadCounts {
    /// Pieces received that were not as sent.
    pub fn wrong(&self) -> u64 {
        self.damaged + self.cut + self.merged
    }
}

impl OffloadProbe {
    /// The transport of its pieces.
    pub fn transport(self) -> Transport {
        match self {
            Self::TcpAlone | Self::TcpBurst | Self::TcpBulk => Transport::Tcp,
            _ => Transport::Udp,
        }
    }
}
