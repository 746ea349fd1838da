//! The kernel's answers, with the field names and units of `include/uapi/linux/ethtool.h`. A
//! snapshot keeps these.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The strings of `struct ethtool_drvinfo`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriverInfo {
    pub driver: String,
    /// Driver version, often the kernel's.
    pub version: String,
    /// Firmware version, often empty.
    pub fw_version: String,
    /// Bus address, empty for a virtual device.
    pub bus_info: String,
}

/// A structure that is nothing but 32-bit words after its command.
pub trait WordStruct: Sized {
    /// How many words follow the command.
    const COUNT: usize;

    /// From the words in the kernel's order; `None` if there are too few.
    fn from_words(words: impl Iterator<Item = u32>) -> Option<Self>;
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident: $($(#[$field_doc:meta])* $field:ident),+ $(,)?) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        pub struct $name { $($(#[$field_doc])* pub $field: u32,)+ }

        impl WordStruct for $name {
            const COUNT: usize = [$(stringify!($field)),+].len();

            fn from_words(mut words: impl Iterator<Item = u32>) -> Option<Self> {
                Some(Self { $($field: words.next()?,)+ })
            }
        }
    };
}

words! {
    /// `struct ethtool_channels`: maxima, then the present numbers.
    Channels:
    max_rx,
    max_tx,
    max_other,
    max_combined,
    rx_count,
    tx_count,
    other_count,
    combined_count,
}

words! {
    /// `struct ethtool_ringparam`, in descriptors.
    Rings:
    rx_max_pending,
    rx_mini_max_pending,
    rx_jumbo_max_pending,
    tx_max_pending,
    rx_pending,
    rx_mini_pending,
    rx_jumbo_pending,
    tx_pending,
}

words! {
    /// `struct ethtool_coalesce`; a parameter that the driver does not have is 0. Times are in µs,
    /// `rate_sample_interval` in seconds; a switch is 0 or 1.
    Coalesce:
    rx_coalesce_usecs,
    rx_max_coalesced_frames,
    rx_coalesce_usecs_irq,
    rx_max_coalesced_frames_irq,
    tx_coalesce_usecs,
    tx_max_coalesced_frames,
    tx_coalesce_usecs_irq,
    tx_max_coalesced_frames_irq,
    stats_block_coalesce_usecs,
    use_adaptive_rx_coalesce,
    use_adaptive_tx_coalesce,
    /// Packets per second below which the values `_low` hold.
    pkt_rate_low,
    rx_coalesce_usecs_low,
    rx_max_coalesced_frames_low,
    tx_coalesce_usecs_low,
    tx_max_coalesced_frames_low,
    /// Packets per second above which the values `_high` hold.
    pkt_rate_high,
    rx_coalesce_usecs_high,
    rx_max_coalesced_frames_high,
    tx_coalesce_usecs_high,
    tx_max_coalesced_frames_high,
    rate_sample_interval,
}

words! {
    /// `struct ethtool_pauseparam`; each value is 0 or 1.
    Pause:
    autoneg,
    rx_pause,
    tx_pause,
}

/// One bit of `ETHTOOL_GFEATURES` in its four words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Feature {
    /// The kernel's name (`ETH_SS_FEATURES`).
    pub name: String,
    /// The driver lets it be changed.
    pub available: bool,
    pub requested: bool,
    pub active: bool,
    /// The kernel never lets it be changed.
    pub never_changed: bool,
    /// Which bit it is; names may have gaps. 0 in snapshots older than this field.
    #[serde(default)]
    pub bit: u32,
}

/// `struct ethtool_rxfh` of the default context, with `ETHTOOL_GRXRINGS`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rss {
    /// Hash bucket to receive queue; empty where the driver shows none.
    pub indir: Vec<u32>,
    /// Hash key; empty where the driver shows none.
    pub key: Vec<u8>,
    /// Bit 0 Toeplitz, 1 XOR, 2 CRC32; 0 where the driver does not say.
    pub hfunc: u8,
    /// Receive rings, where the driver says.
    pub rx_rings: Option<u64>,
}

/// `ETHTOOL_GRXFH`: `RXH_…` bits by flow type (`tcp4`), those that the driver answers for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HashFields {
    /// Bits by flow type.
    pub fields: BTreeMap<String, u64>,
}

/// The answer to `ETHTOOL_GRXCLSRLCNT`: how many ntuple rules there are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleCount {
    pub rule_cnt: u32,
}

/// `ETHTOOL_GSTATS` with `ETH_SS_STATS`, in the driver's order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stats {
    /// Name and value; a driver may give a name twice.
    pub stats: Vec<(String, u64)>,
}

/// The part of `struct ethtool_link_settings` that a link's speed is judged by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkSettings {
    /// Mbit/s; 4294967295 is unknown.
    pub speed: u32,
    /// 0 half, 1 full, 255 unknown.
    pub duplex: u8,
    /// 0 is off, 1 is on.
    pub autoneg: u8,
    /// Type of connector, `PORT_*` of `linux/ethtool.h`.
    pub port: u8,
}
