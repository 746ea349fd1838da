//! What `tc -s qdisc show` printed, as support archives keep it.
//!
//! **Source**: `print_qdisc` in `tc/tc_qdisc.c` and `print_tcstats2_attr` in `tc/tc_util.c` of
//! iproute2 6.1.

use crate::rtnl_qdisc::QdiscMessage;

/// Each discipline with the name of its interface. `ifindex` is 0: it is not printed.
pub fn parse(bytes: &[u8]) -> Vec<(String, QdiscMessage)> {
    parse_of(bytes, None)
}

/// The same of `tc -s qdisc show dev NIC`, which names no interface.
pub fn parse_of(bytes: &[u8], nic: Option<&str>) -> Vec<(String, QdiscMessage)> {
    let text = String::from_utf8_lossy(bytes);
    let mut all: Vec<(String, QdiscMessage)> = vec![];
    let mut current = None;
    for line in text.lines() {
        if line.starts_with("qdisc ") {
            current = first_line(line, nic).map(|q| {
                all.push(q);
                all.len() - 1
            });
        }
        // What follows a line that was not understood is of no other discipline.
        let Some((_, q)) = current.and_then(|n| all.get_mut(n)) else { continue };
        let words: Vec<&str> = line.split([' ', '(', ')', ',']).filter(|w| !w.is_empty()).collect();
        match words[..] {
            ["Sent", bytes, "bytes", packets, "pkt", "dropped", drops, "overlimits", over, ..] => {
                q.sent_bytes = bytes.parse().ok();
                q.sent_packets = packets.parse().ok();
                q.drops = drops.parse().ok();
                q.overlimits = over.parse().ok();
                q.requeues = words.get(10).and_then(|n| n.parse().ok());
            }
            ["backlog", bytes, packets, ..] => {
                q.backlog_bytes = bytes.strip_suffix('b').and_then(size);
                q.backlog_packets = packets.strip_suffix('p').and_then(|n| n.parse().ok());
            }
            _ => {}
        }
    }
    all
}

/// `qdisc fq_codel 8001: dev eth0 parent :1 limit …`
fn first_line(line: &str, nic: Option<&str>) -> Option<(String, QdiscMessage)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (kind, id, dev, rest) = match (&words[..], nic) {
        (["qdisc", kind, id, "dev", dev, rest @ ..], _) => (*kind, *id, *dev, rest),
        (["qdisc", kind, id, rest @ ..], Some(nic)) => (*kind, *id, nic, rest),
        _ => return None,
    };
    let rest = rest.strip_prefix(&["offloaded"]).unwrap_or(rest);
    let parent = match rest {
        ["root", ..] => u32::MAX,
        ["parent", parent, ..] => handle(parent)?,
        _ => return None,
    };
    let q = QdiscMessage {
        ifindex: 0,
        kind: kind.to_owned(),
        handle: handle(id)?,
        parent,
        sent_bytes: None,
        sent_packets: None,
        drops: None,
        overlimits: None,
        requeues: None,
        backlog_bytes: None,
        backlog_packets: None,
    };
    Some((dev.to_owned(), q))
}

/// `8001:2`: hexadecimal, each part may be missing.
fn handle(text: &str) -> Option<u32> {
    let (major, minor) = text.split_once(':')?;
    let part = |s: &str| if s.is_empty() { Some(0) } else { u16::from_str_radix(s, 16).ok() };
    Some(u32::from(part(major)?) << 16 | u32::from(part(minor)?))
}

/// `1500`, `12K`, `3M`, by 1024.
fn size(text: &str) -> Option<u32> {
    let (number, unit) = match text.strip_suffix(['K', 'M']) {
        Some(number) => (number, if text.ends_with('K') { 1 << 10 } else { 1 << 20 }),
        None => (text, 1),
    };
    number.parse::<u32>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = "\
qdisc noqueue 0: dev lo root refcnt 2 \n Sent 0 bytes 0 pkt (dropped 0, overlimits 0 requeues 0) \n backlog 0b 0p requeues 0
qdisc mq 0: dev eth0 root \n Sent 97 bytes 2 pkt (dropped 5, overlimits 6 requeues 7) \n backlog 12Kb 8p requeues 7
qdisc fq_codel 8001: dev eth0 parent :1 limit 10240p flows 1024 quantum 1514 \n Sent 9 bytes 1 pkt (dropped 3, overlimits 0 requeues 0) \n backlog 0b 0p requeues 0
  maxpacket 1514 drop_overlimit 0 new_flow_count 1 ecn_mark 0
";

    #[test]
    fn every_discipline_has_its_place_and_counters() {
        let [lo, mq, leaf] = &parse(PRINTED.as_bytes())[..] else { panic!() };
        assert_eq!((lo.0.as_str(), lo.1.kind.as_str(), lo.1.drops), ("lo", "noqueue", Some(0)));
        assert_eq!((mq.1.parent, mq.1.sent_packets), (u32::MAX, Some(2)));
        assert_eq!((mq.1.drops, mq.1.overlimits, mq.1.requeues), (Some(5), Some(6), Some(7)));
        assert_eq!((mq.1.backlog_bytes, mq.1.backlog_packets), (Some(12 << 10), Some(8)));
        assert_eq!((leaf.1.handle, leaf.1.parent, leaf.1.drops), (0x8001_0000, 1, Some(3)));
    }

    #[test]
    fn what_is_none_gives_none() {
        let strange = "qdisc fq 1: dev a root\nqdisc x y\n Sent 9 bytes 1 pkt (dropped 3, overlimits 0 requeues 0)\n\
            qdisc mq 8002: dev b offloaded root\n Sent 7 bytes 1 pkt (dropped 2, overlimits 0 requeues 0)\n";
        let [a, b] = &parse(strange.as_bytes())[..] else { panic!() };
        assert_eq!((a.1.drops, b.1.drops, b.1.parent), (None, Some(2), u32::MAX));
        assert!(parse(b" Sent 1 bytes\nqdisc\nqdisc x y dev z\n\xff").is_empty());
    }
}
