//! The `netdev` generic-netlink family: queues, NAPI instances, per-queue statistics.
//!
//! **Source**: the kernel's `Documentation/netlink/specs/netdev.yaml`; `queue-get` and
//! `napi-get` since 6.8, `qstats-get` since 6.9. A counter or setting that this kernel or
//! driver does not have is not in the message, hence not in the result.

use std::collections::BTreeMap;

use model::{QueueId, ids::Direction};
use serde::{Deserialize, Serialize};

use crate::netlink::{Attribute, attributes};

/// One answer of netdev netlink `queue-get`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueMessage {
    pub ifindex: u32,
    pub id: QueueId,
    /// The NAPI instance that polls it; `None` for a queue without one (veth without XDP).
    pub napi_id: Option<u32>,
}

/// One answer of netdev netlink `napi-get`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NapiMessage {
    pub ifindex: u32,
    pub id: u32,
    /// Its interrupt; `None` where the driver did not report it to the core.
    pub irq: Option<u32>,
    /// Its kernel thread, when threaded.
    pub pid: Option<u32>,
    /// Number of empty polls, since Linux 6.13.
    pub defer_hard_irqs: Option<u32>,
    /// Nanoseconds, since Linux 6.13; 0 is off.
    pub gro_flush_timeout: Option<u64>,
    /// Nanoseconds, since Linux 6.13; 0 is off.
    pub irq_suspend_timeout: Option<u64>,
    /// Polled by a thread where it is not 0, since 6.17; 2 is a thread that polls busily, since 6.19.
    pub threaded: Option<u32>,
}

/// `qstats-get` of one queue: counters since the device came up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueStats {
    pub ifindex: u32,
    /// Which queue; `None` for a whole device.
    pub id: Option<QueueId>,
    /// By the specification's name: `rx-packets`, `rx-hw-drop-overruns`, … A counter newer
    /// than this table is `attribute-N`.
    pub counters: BTreeMap<String, u64>,
}

/// Counters from attribute 8 up, in the specification's order.
const COUNTERS: [&str; 27] = [
    "rx-packets",
    "rx-bytes",
    "tx-packets",
    "tx-bytes",
    "rx-alloc-fail",
    "rx-hw-drops",
    "rx-hw-drop-overruns",
    "rx-csum-complete",
    "rx-csum-unnecessary",
    "rx-csum-none",
    "rx-csum-bad",
    "rx-hw-gro-packets",
    "rx-hw-gro-bytes",
    "rx-hw-gro-wire-packets",
    "rx-hw-gro-wire-bytes",
    "rx-hw-drop-ratelimits",
    "tx-hw-drops",
    "tx-hw-drop-errors",
    "tx-csum-none",
    "tx-needs-csum",
    "tx-hw-gso-packets",
    "tx-hw-gso-bytes",
    "tx-hw-gso-wire-packets",
    "tx-hw-gso-wire-bytes",
    "tx-hw-drop-ratelimits",
    "tx-stop",
    "tx-wake",
];
const FIRST_COUNTER: u16 = 8;

/// The generic-netlink header before the attributes.
const GENL_BYTES: usize = 4;

fn by_kind(payload: &[u8]) -> Option<BTreeMap<u16, Attribute<'_>>> {
    Some(attributes(payload.get(GENL_BYTES..)?).map(|a| (a.kind, a)).collect())
}

fn queue_id(kind: Option<u32>, index: Option<u32>) -> Option<QueueId> {
    let direction = match kind? {
        0 => Direction::Rx,
        1 => Direction::Tx,
        _ => return None,
    };
    Some(QueueId { direction, index: index? })
}

/// Parses an answer of `queue-get`; `None` where it names no queue.
pub fn queue(payload: &[u8]) -> Option<QueueMessage> {
    let a = by_kind(payload)?;
    let number = |kind: u16| a.get(&kind).and_then(Attribute::u32);
    Some(QueueMessage {
        ifindex: number(2)?,
        id: queue_id(number(3), number(1))?,
        napi_id: number(4).filter(|&id| id != 0),
    })
}

/// Parses an answer of `napi-get`; `None` where it names no instance.
pub fn napi(payload: &[u8]) -> Option<NapiMessage> {
    let a = by_kind(payload)?;
    let number = |kind: u16| a.get(&kind).and_then(Attribute::unsigned);
    let small = |kind: u16| a.get(&kind).and_then(Attribute::u32);
    Some(NapiMessage {
        ifindex: small(1)?,
        id: small(2)?,
        // 0 and −1 both stand for "none" in drivers.
        irq: small(3).filter(|&irq| irq != 0 && irq <= i32::MAX as u32),
        pid: small(4).filter(|&pid| pid != 0),
        defer_hard_irqs: small(5),
        gro_flush_timeout: number(6),
        irq_suspend_timeout: number(7),
        threaded: small(8),
    })
}

/// Parses an answer of `qstats-get`; `None` where it names no device.
pub fn qstats(payload: &[u8]) -> Option<QueueStats> {
    let a = by_kind(payload)?;
    let number = |kind: u16| a.get(&kind).and_then(Attribute::u32);
    let counters = a.values().filter(|a| a.kind >= FIRST_COUNTER).filter_map(|a| {
        let name = COUNTERS
            .get(usize::from(a.kind - FIRST_COUNTER))
            .map_or_else(|| format!("attribute-{}", a.kind), |n| (*n).to_owned());
        Some((name, a.unsigned()?))
    });
    Some(QueueStats {
        ifindex: number(1)?,
        id: queue_id(number(2), number(3)),
        counters: counters.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let mut m = vec![0; GENL_BYTES];
        for (kind, value) in attributes {
            m.extend(((value.len() + 4) as u16).to_ne_bytes());
            m.extend(kind.to_ne_bytes());
            m.extend(*value);
            m.resize(m.len().next_multiple_of(4), 0);
        }
        m
    }

    fn n(v: u32) -> [u8; 4] {
        v.to_ne_bytes()
    }

    #[test]
    fn a_queue_may_have_no_napi() {
        let with = message(&[(1, &n(3)), (3, &n(1)), (4, &n(514)), (2, &n(7))]);
        let q = queue(&with).unwrap();
        assert_eq!((q.ifindex, q.id, q.napi_id), (7, QueueId::tx(3), Some(514)));
        assert_eq!(queue(&message(&[(1, &n(0)), (3, &n(0)), (2, &n(7))])).unwrap().napi_id, None);
        assert_eq!(queue(&message(&[(1, &n(0)), (3, &n(9)), (2, &n(7))])), None);
        assert_eq!(queue(&[0, 0]), None);
    }

    #[test]
    fn a_napi_without_interrupt_and_settings_has_none_not_zero() {
        let bare = napi(&message(&[(1, &n(7)), (2, &n(514))])).unwrap();
        assert_eq!((bare.irq, bare.pid, bare.threaded), (None, None, None));
        assert_eq!((bare.defer_hard_irqs, bare.gro_flush_timeout), (None, None));
        let full = napi(&message(&[
            (1, &n(7)),
            (2, &n(514)),
            (3, &n(77)),
            (4, &n(1234)),
            (5, &n(2)),
            (6, &20_000u64.to_ne_bytes()),
            (8, &n(1)),
        ]))
        .unwrap();
        assert_eq!((full.irq, full.pid, full.threaded), (Some(77), Some(1234), Some(1)));
        assert_eq!((full.defer_hard_irqs, full.gro_flush_timeout), (Some(2), Some(20_000)));
        assert_eq!(napi(&message(&[(1, &n(7)), (2, &n(1)), (3, &n(u32::MAX))])).unwrap().irq, None);
    }

    #[test]
    fn counters_of_either_width_and_unknown_ones_keep_their_names() {
        let s = qstats(&message(&[
            (1, &n(4)),
            (2, &n(0)),
            (3, &n(1)),
            (8, &n(5)),
            (9, &(1u64 << 40).to_ne_bytes()),
            (14, &n(2)),
            (34, &n(8)),
            (99, &n(6)),
        ]))
        .unwrap();
        assert_eq!((s.ifindex, s.id), (4, Some(QueueId::rx(1))));
        let got: Vec<(&str, u64)> = s.counters.iter().map(|(k, v)| (k.as_str(), *v)).collect();
        assert_eq!(
            got,
            [
                ("attribute-99", 6),
                ("rx-bytes", 1 << 40),
                ("rx-hw-drop-overruns", 2),
                ("rx-packets", 5),
                ("tx-wake", 8)
            ]
        );
        assert_eq!(qstats(&message(&[(1, &n(4)), (8, &n(5))])).unwrap().id, None);
    }
}
