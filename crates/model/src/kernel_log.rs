//! What the kernel's log says of network interfaces.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Kinds of log lines: what happened to the NIC, its link or its PCIe function.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum NicLogKind {
    /// The link went down.
    LinkDown,
    /// A transmit queue made no progress for so long that the kernel or the driver took it for hung.
    TransmitTimeout,
    /// The driver reset the NIC.
    Reset,
    /// PCIe reported an error that it repaired.
    PcieCorrected,
    /// PCIe reported an error that it did not repair.
    PcieUncorrected,
    /// An ENA device says that large LLQ entries do not suit ENA Express (its code 1).
    EnaLargeEntries,
    /// An ENA device dropped packets whose headers are longer than its LLQ entries take (its code 3).
    EnaHeaderTooLong,
}

/// All lines of one kind about one NIC.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NicLogEvent {
    /// The interface's name, or the PCI address of its function where the line has no name.
    pub subject: String,
    pub kind: NicLogKind,
    /// Lines of this kind.
    pub count: u64,
    /// When the first was written: seconds since boot or a date, as the log has it; empty without a
    /// stamp.
    pub first: String,
    /// When the last was written, in the form of `first`.
    pub last: String,
    /// The last line, without its stamp.
    pub line: String,
    /// The log: a file of the support archive, or the running kernel's own (`dmesg`).
    pub source: String,
}
