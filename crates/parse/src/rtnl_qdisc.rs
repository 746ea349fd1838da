//! `RTM_NEWQDISC`: one queueing discipline with its counters.
//!
//! **Source**: `struct tcmsg` and `TCA_*` of `include/uapi/linux/rtnetlink.h`, `TCA_STATS_*`
//! of `gen_stats.h`, `struct tc_stats` of `pkt_sched.h`.

use serde::{Deserialize, Serialize};

use crate::netlink::{Attribute, attributes, i32_at, u32_at, u64_at};

/// What the kernel said; counters since the discipline was put in place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QdiscMessage {
    pub ifindex: u32,
    /// Name of the discipline: `fq_codel`, `mq`.
    pub kind: String,
    /// Handle, major in the upper half.
    pub handle: u32,
    /// Parent, `0xffffffff` for the root.
    pub parent: u32,
    /// Bytes sent. **Source**: `TCA_STATS2` basic, else `TCA_STATS`.
    pub sent_bytes: Option<u64>,
    /// Packets sent; 64 bits wide since 5.5, where the kernel says so.
    pub sent_packets: Option<u64>,
    /// Packets dropped (32 bits in the kernel, wraps).
    pub drops: Option<u32>,
    /// Times over limit (32 bits, wraps).
    pub overlimits: Option<u32>,
    /// Requeues (32 bits, wraps; only `TCA_STATS2` has them).
    pub requeues: Option<u32>,
    /// Bytes in the queue at the reading.
    pub backlog_bytes: Option<u32>,
    pub backlog_packets: Option<u32>,
}

const TCM_BYTES: usize = 20;
const TCA_KIND: u16 = 1;
const TCA_STATS: u16 = 3;
const TCA_STATS2: u16 = 7;
const STATS_BASIC: u16 = 1;
const STATS_QUEUE: u16 = 3;
const STATS_PKT64: u16 = 8;

/// Parses the payload of one message; `None` where it is too short or names no discipline.
pub fn parse(payload: &[u8]) -> Option<QdiscMessage> {
    let mut q = QdiscMessage {
        ifindex: u32::try_from(i32_at(payload, 4)?).ok()?,
        kind: String::new(),
        handle: u32_at(payload, 8)?,
        parent: u32_at(payload, 12)?,
        sent_bytes: None,
        sent_packets: None,
        drops: None,
        overlimits: None,
        requeues: None,
        backlog_bytes: None,
        backlog_packets: None,
    };
    let mut old = None;
    for a in attributes(payload.get(TCM_BYTES..)?) {
        match a.kind {
            TCA_KIND => q.kind = a.text(),
            TCA_STATS => old = Some(a.bytes),
            TCA_STATS2 => stats2(&mut q, &a),
            _ => {}
        }
    }
    if let Some(old) = old {
        stats(&mut q, old);
    }
    (!q.kind.is_empty()).then_some(q)
}

fn stats2(q: &mut QdiscMessage, stats: &Attribute<'_>) {
    let mut packets = None;
    for a in stats.nested() {
        match a.kind {
            STATS_BASIC => {
                q.sent_bytes = u64_at(a.bytes, 0);
                packets = packets.or(u32_at(a.bytes, 8).map(Into::into));
            }
            STATS_PKT64 => packets = u64_at(a.bytes, 0),
            STATS_QUEUE => {
                q.backlog_packets = u32_at(a.bytes, 0);
                q.backlog_bytes = u32_at(a.bytes, 4);
                q.drops = u32_at(a.bytes, 8);
                q.requeues = u32_at(a.bytes, 12);
                q.overlimits = u32_at(a.bytes, 16);
            }
            _ => {}
        }
    }
    q.sent_packets = packets;
}

/// `struct tc_stats`, used only without `TCA_STATS2`.
fn stats(q: &mut QdiscMessage, b: &[u8]) {
    q.sent_bytes = q.sent_bytes.or(u64_at(b, 0));
    q.sent_packets = q.sent_packets.or(u32_at(b, 8).map(Into::into));
    q.drops = q.drops.or(u32_at(b, 12));
    q.overlimits = q.overlimits.or(u32_at(b, 16));
    q.backlog_packets = q.backlog_packets.or(u32_at(b, 28));
    q.backlog_bytes = q.backlog_bytes.or(u32_at(b, 32));
}

/// A handle as `tc` writes it: `8001:`.
pub fn handle(h: u32) -> String {
    format!("{:x}:", h >> 16)
}

/// A parent as `tc` writes it: `root`, a class as `8001:1`, a class of an anonymous `mq` as
/// `:1`; that of `ingress` and `clsact` is `ffff:fff1`.
pub fn parent(p: u32) -> String {
    match (p, p >> 16, p & 0xffff) {
        (u32::MAX, ..) => "root".into(),
        (_, 0, minor) => format!(":{minor:x}"),
        (_, major, 0) => format!("{major:x}:"),
        (_, major, minor) => format!("{major:x}:{minor:x}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attr(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut v = ((value.len() + 4) as u16).to_ne_bytes().to_vec();
        v.extend(kind.to_ne_bytes());
        v.extend(value);
        v.resize(v.len().next_multiple_of(4), 0);
        v
    }

    fn words(list: &[u32]) -> Vec<u8> {
        list.iter().flat_map(|w| w.to_ne_bytes()).collect()
    }

    fn message(attributes: &[Vec<u8>]) -> Vec<u8> {
        let mut m = words(&[0, 3, 0x8001_0000, u32::MAX, 2]);
        m.extend(attributes.concat());
        m
    }

    #[test]
    fn the_new_statistics_win_and_packets_may_be_64_bits_wide() {
        let basic = [5_000_000_000u64.to_ne_bytes().to_vec(), words(&[7, 0])].concat();
        let queue = words(&[2, 3028, 11, 4, 9]);
        let wide = 4_294_967_303u64.to_ne_bytes();
        let stats2 = attr(
            TCA_STATS2,
            &[attr(STATS_BASIC, &basic), attr(STATS_PKT64, &wide), attr(STATS_QUEUE, &queue)]
                .concat(),
        );
        let old = attr(TCA_STATS, &[9; 40]);
        let q = parse(&message(&[attr(TCA_KIND, b"tbf\0"), stats2, old])).unwrap();
        assert_eq!(
            q,
            QdiscMessage {
                ifindex: 3,
                kind: "tbf".into(),
                handle: 0x8001_0000,
                parent: u32::MAX,
                sent_bytes: Some(5_000_000_000),
                sent_packets: Some(4_294_967_303),
                drops: Some(11),
                overlimits: Some(9),
                requeues: Some(4),
                backlog_bytes: Some(3028),
                backlog_packets: Some(2),
            }
        );
    }

    #[test]
    fn an_old_kernels_statistics_lack_requeues() {
        let old = [1000u64.to_ne_bytes().to_vec(), words(&[10, 3, 5, 0, 0, 1, 60, 0])].concat();
        let q = parse(&message(&[attr(TCA_KIND, b"pfifo\0"), attr(TCA_STATS, &old)])).unwrap();
        assert_eq!((q.sent_bytes, q.sent_packets), (Some(1000), Some(10)));
        assert_eq!((q.drops, q.overlimits, q.requeues), (Some(3), Some(5), None));
        assert_eq!((q.backlog_packets, q.backlog_bytes), (Some(1), Some(60)));
    }

    #[test]
    fn no_statistics_are_unknown_and_no_kind_is_no_discipline() {
        let q = parse(&message(&[attr(TCA_KIND, b"noqueue\0")])).unwrap();
        assert_eq!((q.sent_bytes, q.drops), (None, None));
        assert_eq!(parse(&message(&[])), None);
        assert_eq!(parse(&[0; 19]), None);
    }

    #[test]
    fn names_as_tc_writes_them() {
        assert_eq!((handle(0), handle(0x8001_0000)), ("0:".into(), "8001:".into()));
        assert_eq!(parent(u32::MAX), "root");
        assert_eq!(parent(0xffff_fff1), "ffff:fff1");
        assert_eq!(parent(0x8001_000a), "8001:a");
        assert_eq!(parent(0x0000_0002), ":2");
        assert_eq!(parent(0x8001_0000), "8001:");
    }
}
