//! The meaning of the kernel's drop reasons: a fault, evidence of another rule, or harmless.
//!
//! **Source**: `include/net/dropreason-core.h`.

use model::{Reading, watch::PacketDrops};

use crate::{Case, rule::Draft, text};

/// What a drop reason means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// Another rule judges it by the kernel's own counters.
    Rule(&'static str),
    /// A fault: packets are lost that a receiver waits for. With its description and remedy.
    Fault(&'static str, &'static str),
    /// Harmless: intended, or part of normal work.
    Expected(&'static str),
}

use Meaning::{Expected, Fault, Rule};

const FIREWALL: Meaning = Expected("a packet filter rule of this host drops them");
const STALE: Meaning = Expected("TCP discards what is old, repeated or of a closed connection");
/// Within a connection (RFC 7323, section 5): `retransmits` judges what is lost by it. On a path with
/// several queues acknowledgements overtake each other.
const OVERTAKEN: Meaning =
    Expected("TCP discards a segment that is older than one it has: repeated, or overtaken");
const BAD_PACKET: Meaning =
    Fault("malformed headers", "capture some (tcpdump) and find the sender");
const SIGNATURE: Meaning = Fault(
    "TCP signatures (MD5, AO) do not match",
    "compare the keys of both ends; routers' BGP sessions use them",
);
const NEIGHBOUR: Meaning = Fault(
    "the next hop does not answer (ARP, neighbour discovery)",
    "ip neighbour show; whether the next hop is up and in the same network",
);
const CHECKSUM: Meaning = Fault(
    "bad checksums",
    "ethtool -K NIC rx off on the receiver for a test: if they go, the NIC's own check is wrong; else a cable, a switch or the sender's offload corrupts",
);

/// The meaning of a reason by the kernel's name; `None` for `NOT_SPECIFIED` and for unknown
/// reasons.
pub(crate) fn of(reason: &str) -> Option<Meaning> {
    Some(match reason {
        "SOCKET_RCVBUFF" => Rule("udp_receive_drops"),
        "CPU_BACKLOG" => Rule("backlog_drops"),
        "QDISC_DROP" | "QDISC_OVERLIMIT" | "QDISC_CONGESTED" | "CAKE_FLOOD" | "FQ_BAND_LIMIT"
        | "FQ_HORIZON_LIMIT" | "FQ_FLOW_LIMIT" | "DUALPI2_STEP_DROP" => Rule("qdisc_drops"),
        "TCP_LISTEN_OVERFLOW" => Rule("accept_queue_overflow"),
        "PROTO_MEM" | "TCP_OFO_QUEUE_PRUNE" | "TCP_ZEROWINDOW" => Rule("tcp_memory_pressure"),
        "PKT_TOO_BIG" => Rule("mtu_mismatch"),
        "TCP_CSUM" | "UDP_CSUM" | "IP_CSUM" | "SKB_CSUM" | "ICMP_CSUM" => CHECKSUM,
        "IP_RPFILTER" => Fault(
            "the reverse path filter refuses their source",
            "ip route get SOURCE must name the interface that they come in by; with asymmetric routes net.ipv4.conf.all.rp_filter=2",
        ),
        "SOCKET_BACKLOG" => Fault(
            "a TCP connection's backlog is full while its application holds it",
            "a larger receive buffer (net.ipv4.tcp_rmem), an application that reads more often",
        ),
        "PFMEMALLOC" => Fault(
            "no memory but the emergency reserve was left when they came",
            "vm.min_free_kbytes higher; what uses up the memory",
        ),
        "NOMEM" | "SKB_UCOPY_FAULT" => {
            Fault("no memory for them", "what uses up the memory; kernel log")
        }
        "IP_OUTNOROUTES" | "IP_INNOROUTES" => {
            Fault("no route for them", "ip route get ADDRESS; the routes of this host")
        }
        "NEIGH_CREATEFAIL" => Fault(
            "the neighbour table is full",
            "net.ipv4.neigh.default.gc_thresh3 higher, in the first network namespace: the table is one for the host",
        ),
        "NEIGH_FAILED" | "NEIGH_QUEUEFULL" | "NEIGH_DEAD" | "NEIGH_HH_FILLFAIL" => NEIGHBOUR,
        "FULL_RING" => Fault(
            "a ring between the kernel and a program (tun, packet socket) is full",
            "the program that reads it: its CPU, its ring's size",
        ),
        "FRAG_REASM_TIMEOUT" | "FRAG_TOO_FAR" | "DUP_FRAG" => Fault(
            "fragments that never became whole",
            "avoid fragments: the path's MTU; net.ipv4.ipfrag_high_thresh for many",
        ),
        "TCP_AUTH_HDR" | "TCP_MD5NOTFOUND" | "TCP_MD5UNEXPECTED" | "TCP_MD5FAILURE"
        | "TCP_AONOTFOUND" | "TCP_AOUNEXPECTED" | "TCP_AOKEYNOTFOUND" | "TCP_AOFAILURE" => {
            SIGNATURE
        }
        "IP_INHDR" | "PKT_TOO_SMALL" | "HDR_TRUNC" | "IPV6_BAD_EXTHDR" | "DEV_HDR" => BAD_PACKET,
        "TCP_RFC7323_TW_PAWS" | "TCP_RFC7323_TSECR" => Fault(
            "TCP timestamps that run backwards",
            "several hosts behind one address (NAT) with clocks of their own; ss -ti",
        ),
        "TCP_RFC7323_PAWS" => OVERTAKEN,
        "NETFILTER_DROP" | "SOCKET_FILTER" | "BPF_CGROUP_EGRESS" | "XDP" | "TC_INGRESS"
        | "TC_EGRESS" | "SECURITY_HOOK" | "XFRM_POLICY" | "TAP_FILTER" | "TAP_TXFILTER" => FIREWALL,
        "NO_SOCKET" => Expected("nobody listens on their port"),
        "OTHERHOST" | "UNICAST_IN_L2_MULTICAST" | "NO_TX_TARGET" | "LOCAL_MAC" => {
            Expected("they are for another host")
        }
        "UNHANDLED_PROTO" | "IP_NOPROTO" | "INVALID_PROTO" | "IPV6DISABLED" => {
            Expected("no protocol here takes them")
        }
        "SOCKET_CLOSE" | "UNIX_DISCONNECT" | "UNIX_SKIP_OOB" | "QUEUE_PURGE" | "DEV_READY" => {
            Expected("their socket or interface was closed")
        }
        "TCP_FLAGS"
        | "TCP_ABORT_ON_DATA"
        | "TCP_OLD_DATA"
        | "TCP_OVERWINDOW"
        | "TCP_OFOMERGE"
        | "TCP_OFO_DROP"
        | "TCP_RFC7323_PAWS_ACK"
        | "TCP_OLD_SEQUENCE"
        | "TCP_INVALID_SEQUENCE"
        | "TCP_INVALID_END_SEQUENCE"
        | "TCP_INVALID_ACK_SEQUENCE"
        | "TCP_RESET"
        | "TCP_INVALID_SYN"
        | "TCP_CLOSE"
        | "TCP_FASTOPEN"
        | "TCP_OLD_ACK"
        | "TCP_TOO_OLD_ACK"
        | "TCP_ACK_UNSENT_DATA" => STALE,
        _ => return None,
    })
}

/// The drops with reasons of this rule, as evidence.
pub(crate) fn show(case: &Case<'_>, rule: &str, mut draft: Draft) -> Draft {
    let all = case.samples().ok().and_then(|s| s.drops.known());
    let of_rule = |d: &&PacketDrops| {
        d.reason.known().is_some_and(|r| of(r).is_some_and(|m| m == Rule(known(rule))))
    };
    for d in all.into_iter().flatten().filter(of_rule).take(2) {
        draft = draft.show(what(case, d), text::count(d.packets), "skb:kfree_skb");
    }
    draft
}

/// The rule's name as it is in the table.
fn known(rule: &str) -> &'static str {
    crate::rules::ALL.iter().find(|r| r.id == rule).map_or("", |r| r.id)
}

/// `drops for SOCKET_RCVBUFF (IPv4 lo, in __udp_enqueue_schedule_skb) over 5.0 s`.
pub(crate) fn what(case: &Case<'_>, d: &PacketDrops) -> String {
    let or = |r: &Reading<String>, else_: &str| r.known().cloned().unwrap_or_else(|| else_.into());
    let mut place = d.protocol.clone();
    if let Some(nic) = d.nic.known() {
        place = format!("{place} {nic}");
    }
    if let Some(function) = d.function.known() {
        place = format!("{place}, in {function}");
    }
    format!("drops for {} ({place}) {}", or(&d.reason, "an unknown reason"), case.over())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_that_a_reason_names_is_there() {
        for reason in [
            "SOCKET_RCVBUFF",
            "CPU_BACKLOG",
            "QDISC_DROP",
            "TCP_LISTEN_OVERFLOW",
            "PROTO_MEM",
            "PKT_TOO_BIG",
        ] {
            let Some(Rule(rule)) = of(reason) else { panic!("{reason}: {:?}", of(reason)) };
            assert_eq!(known(rule), rule);
        }
    }
}
