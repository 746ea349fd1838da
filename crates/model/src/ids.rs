//! The kernel's identifiers. They are never positions in a list: CPUs go offline, queues have gaps.

use std::fmt;

use schemars::JsonSchema;
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{self, Visitor},
};

/// Accepts a number, or its digits as text. Keys of a JSON map are text, and inside of a
/// [`crate::Reading`] only the id itself can turn them back into numbers.
struct IdVisitor;

impl Visitor<'_> for IdVisitor {
    type Value = u32;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number")
    }

    fn visit_u64<E: de::Error>(self, n: u64) -> Result<u32, E> {
        u32::try_from(n).map_err(|_| E::invalid_value(de::Unexpected::Unsigned(n), &self))
    }

    fn visit_str<E: de::Error>(self, s: &str) -> Result<u32, E> {
        s.parse().map_err(|_| E::invalid_value(de::Unexpected::Str(s), &self))
    }
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(pub u32);

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                d.deserialize_any(IdVisitor).map(Self)
            }
        }

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

/// Direction of a queue.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    Rx,
    Tx,
}

/// One hardware or software queue of a NIC: `rx-3`, `tx-0`.
/// **Source**: `/sys/class/net/X/queues/{rx,tx}-N`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct QueueId {
    pub direction: Direction,
    /// The kernel's queue number within the NIC and direction.
    pub index: u32,
}

impl QueueId {
    pub const fn rx(index: u32) -> Self {
        Self { direction: Direction::Rx, index }
    }

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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::Reading;

    #[test]
    fn ids_are_numbers_and_come_back_as_the_keys_of_a_map() {
        assert_eq!(serde_json::to_string(&CpuId(3)).unwrap(), "3");
        assert_eq!(serde_json::from_str::<CpuId>("3").unwrap(), CpuId(3));
        for bad in ["-1", "4294967296", "\"x\"", "null", "1.5"] {
            assert!(serde_json::from_str::<CpuId>(bad).is_err(), "{bad} was taken");
        }
        let distances = Reading::Known(BTreeMap::from([(NumaNode(0), 10u32), (NumaNode(1), 21)]));
        let text = serde_json::to_string(&distances).unwrap();
        assert_eq!(text, r#"{"0":10,"1":21}"#);
        assert_eq!(
            serde_json::from_str::<Reading<BTreeMap<NumaNode, u32>>>(&text).unwrap(),
            distances
        );
    }
}
