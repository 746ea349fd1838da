//! Identities as the kernel gives them. Never a position in a list: CPUs go offline, queues
//! have gaps.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(pub u32);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id! {
    /// A logical CPU. **Source**: `/sys/devices/system/cpu/cpuN`.
    CpuId
}
id! {
    /// A Linux interrupt number. **Source**: first column of `/proc/interrupts`, `/proc/irq/N`.
    IrqId
}
id! {
    /// A NUMA node. **Source**: `/sys/devices/system/node/nodeN`. The kernel's −1 ("no
    /// node") is not a node but an absent [`crate::Reading`].
    NumaNode
}

/// Which way a queue carries packets.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Receive.
    Rx,
    /// Transmit.
    Tx,
}

/// One hardware or software queue of a NIC: `rx-3`, `tx-0`.
/// **Source**: `/sys/class/net/X/queues/{rx,tx}-N`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct QueueId {
    /// Receive or transmit.
    pub direction: Direction,
    /// The kernel's queue number within the NIC and direction.
    pub index: u32,
}

impl QueueId {
    /// Receive queue `index`.
    pub const fn rx(index: u32) -> Self {
        Self { direction: Direction::Rx, index }
    }

    /// Transmit queue `index`.
    pub const fn tx(index: u32) -> Self {
        Self { direction: Direction::Tx, index }
    }
}

impl fmt::Display for QueueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let way = match self.direction {
            Direction::Rx => "rx",
            Direction::Tx => "tx",
        };
        write!(f, "{way}-{}", self.index)
    }
}
