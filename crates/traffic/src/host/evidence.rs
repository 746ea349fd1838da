//! Kernel counters that can explain a measurement, and their changes in a window.
//!
//! Names are `source.counter`: `softnet.time_squeeze`, `softirq.NET_RX`, `Tcp.RetransSegs`,
//! `eth0.rx_dropped`, `eth0.qdisc_drops`. They count for the whole host (protocol counters for this
//! network namespace), so other traffic changes them too.

use std::collections::BTreeMap;

use model::{
    Reading,
    measure::Moved,
    samples::{Delta, SoftnetSample},
};
use probe::samples::brief::Growth;

/// Softirq vectors of the network.
const SOFTIRQS: [&str; 2] = ["NET_RX", "NET_TX"];

/// Counters of `/proc/net/dev` that mean loss.
const DEVICE: [&str; 9] = [
    "rx_errors",
    "rx_dropped",
    "rx_fifo_errors",
    "rx_frame_errors",
    "tx_errors",
    "tx_dropped",
    "tx_fifo_errors",
    "collisions",
    "tx_carrier_errors",
];

/// Protocol counters that show trouble or explain a figure. Counters of the traffic itself are left
/// out. A counter that the kernel lacks is not reported.
///
/// **Source**: `Documentation/networking/snmp_counter.rst`, `net/ipv4/proc.c`.
#[rustfmt::skip]
const PROTOCOLS: &[(&str, &[&str])] = &[
    ("Ip", IP), ("Ip6", IP),
    ("IpExt", &["InCsumErrors", "InTruncatedPkts", "InCEPkts"]),
    ("Icmp", &["InDestUnreachs", "OutDestUnreachs"]),
    ("Icmp6", &["InDestUnreachs", "OutDestUnreachs"]),
    ("Udp", UDP), ("Udp6", UDP),
    // Segments lost or corrupt; connections refused, reset or failed.
    ("Tcp", &["RetransSegs", "InErrs", "InCsumErrors", "AttemptFails", "EstabResets", "OutRsts"]),
    ("TcpExt", &[
        // Retransmissions, and how each loss was detected.
        "TCPTimeouts", "TCPLossProbes", "TCPLossProbeRecovery", "TCPFastRetrans",
        "TCPSlowStartRetrans", "TCPLostRetransmit", "TCPSynRetrans", "TCPRetransFail",
        // Spurious retransmissions.
        "TCPSpuriousRTOs", "TCPDSACKRecv", "TCPDSACKUndo",
        // Out of order.
        "TCPOFOQueue", "TCPOFODrop", "TCPSACKReorder", "TCPTSReorder", "OutOfWindowIcmps",
        "PAWSEstab", "TCPACKSkippedSeq", "TCPChallengeACK",
        // No room at the receiver: the socket's, its backlog's, the host's.
        "TCPBacklogDrop", "TCPRcvQDrop", "TCPZeroWindowDrop", "PFMemallocDrop", "PruneCalled",
        "RcvPruned", "OfoPruned", "TCPRcvCollapsed", "TCPMemoryPressures",
        "TCPToZeroWindowAdv", "TCPWantZeroWindowAdv", "TCPWqueueTooBig",
        // No room for connections.
        "ListenOverflows", "ListenDrops", "TCPReqQFullDrop", "TCPReqQFullDoCookies",
        "SyncookiesSent", "SyncookiesFailed", "TCPDeferAcceptDrop", "TCPTimeWaitOverflow",
        "TW", "TWRecycled",
        // Connections that ended badly.
        "TCPAbortOnTimeout", "TCPAbortOnMemory", "TCPAbortOnData", "TCPAbortOnClose",
        "TCPAbortFailed",
        // Deliberate waits: for more data, for an acknowledgement, in a poll.
        "DelayedACKs", "DelayedACKLost", "TCPAutoCorking", "BusyPollRxPackets",
    ]),
];
const IP: &[&str] =
    &["InDiscards", "OutDiscards", "OutNoRoutes", "InHdrErrors", "ReasmFails", "FragFails"];
const UDP: &[&str] =
    &["InErrors", "RcvbufErrors", "SndbufErrors", "NoPorts", "InCsumErrors", "MemErrors"];

/// Whether a counter such as `Tcp.RetransSegs` is in this list.
fn tells(name: &str) -> bool {
    name.split_once('.').is_some_and(|(protocol, counter)| {
        PROTOCOLS.iter().any(|(p, counters)| *p == protocol && counters.contains(&counter))
    })
}

/// The counters that changed, and a line for each source that could not be read.
pub fn moved(growth: &Growth) -> (Moved, Vec<String>) {
    let mut found = EvidenceDeltas::default();
    found.softnet(growth);
    found.softirqs(growth);
    match &growth.samples.protocols {
        Reading::Known(all) => {
            all.iter().filter(|(name, _)| tells(name)).for_each(|(n, d)| found.one(n, d));
        }
        Reading::Absent(why) | Reading::Denied(why) => found.unread(why.clone()),
    }
    match &growth.devices {
        Reading::Known(all) => found.devices(all),
        Reading::Absent(why) | Reading::Denied(why) => found.unread(why.clone()),
    }
    match &growth.qdisc_drops {
        Reading::Known(all) => {
            // Names are looked up only for counters that changed.
            all.iter().filter(|(_, d)| d.get() != Some(0)).for_each(|(&index, d)| {
                found.one(&format!("{}.qdisc_drops", interface(index)), d);
            });
        }
        Reading::Absent(why) | Reading::Denied(why) => found.unread(why.clone()),
    }
    (found.moved, found.unread)
}

/// Name of an interface; its number if it is gone.
fn interface(index: u32) -> String {
    super::route::interface_name(index).unwrap_or_else(|| format!("if{index}"))
}

#[derive(Default)]
struct EvidenceDeltas {
    moved: Moved,
    unread: Vec<String>,
}

impl EvidenceDeltas {
    /// Adds a line unless it is there already: several counters may share a reason.
    fn unread(&mut self, why: String) {
        if !self.unread.contains(&why) {
            self.unread.push(why);
        }
    }

    fn one(&mut self, name: &str, delta: &Delta) {
        match delta {
            Reading::Known(0) => {}
            Reading::Known(n) => {
                let sum = self.moved.entry(name.to_owned()).or_default();
                *sum = sum.saturating_add(*n);
            }
            Reading::Absent(why) | Reading::Denied(why) => self.unread(format!("{name}: {why}")),
        }
    }

    /// Changes of `eth0.rx_dropped` and the like. An interface without any known counter appeared
    /// or disappeared; that gives one line.
    fn devices(&mut self, all: &BTreeMap<String, Delta>) {
        let mut known = BTreeMap::new();
        for (name, delta) in all {
            let interface = name.rsplit_once('.').map_or(name.as_str(), |(interface, _)| interface);
            *known.entry(interface).or_insert(false) |= delta.known().is_some();
        }
        for (name, delta) in all {
            let Some((interface, counter)) = name.rsplit_once('.') else { continue };
            if !DEVICE.contains(&counter) {
                continue;
            }
            match known.get(interface) {
                Some(false) => {
                    self.unread(format!("{interface}: came or went within the window"));
                }
                _ => self.one(name, delta),
            }
        }
    }

    fn softnet(&mut self, growth: &Growth) {
        type Pick = fn(&SoftnetSample) -> &Delta;
        let counters: [(&str, Pick); 5] = [
            ("softnet.processed", |s| &s.processed),
            ("softnet.dropped", |s| &s.dropped),
            ("softnet.time_squeeze", |s| &s.time_squeeze),
            ("softnet.received_rps", |s| &s.received_rps),
            ("softnet.flow_limit", |s| &s.flow_limit_count),
        ];
        for cpu in &growth.samples.cpus {
            match &cpu.softnet {
                Reading::Known(row) => {
                    counters.iter().for_each(|(name, pick)| self.one(name, pick(row)));
                }
                Reading::Absent(why) | Reading::Denied(why) => self.unread(why.clone()),
            }
        }
    }

    fn softirqs(&mut self, growth: &Growth) {
        for cpu in &growth.samples.cpus {
            match &cpu.softirqs {
                Reading::Known(vectors) => {
                    for vector in SOFTIRQS {
                        if let Some(delta) = vectors.get(vector) {
                            self.one(&format!("softirq.{vector}"), delta);
                        }
                    }
                }
                Reading::Absent(why) | Reading::Denied(why) => self.unread(why.clone()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_traffic_are_left_out_and_those_of_trouble_are_not() {
        for name in ["Tcp.RetransSegs", "TcpExt.TCPTimeouts", "Udp6.RcvbufErrors", "Ip.InDiscards"]
        {
            assert!(tells(name), "{name}");
        }
        for name in ["Tcp.InSegs", "TcpExt.TCPPureAcks", "Udp.InDatagrams", "Tcp", "Odd.InErrs"] {
            assert!(!tells(name), "{name}");
        }
    }

    #[test]
    fn this_kernel_has_the_counters_that_are_asked_for() {
        // A misspelled name would go unnoticed. Later kernels may drop some.
        let root = probe::Root::live();
        let g = probe::samples::brief::Brief::read(&root, &[])
            .growth(&probe::samples::brief::Brief::read(&root, &[]));
        let all = g.samples.protocols.known().unwrap();
        let wanted = PROTOCOLS.iter().filter(|(p, _)| ["Tcp", "TcpExt", "Udp", "Ip"].contains(p));
        let names = wanted.flat_map(|(p, names)| names.iter().map(move |n| format!("{p}.{n}")));
        let missing: Vec<String> = names.filter(|n| !all.contains_key(n)).collect();
        assert!(missing.len() <= 3, "{missing:?}");
    }

    #[test]
    fn interfaces_have_names() {
        assert_eq!(interface(1), "lo");
        assert_eq!(interface(2_000_000_000), "if2000000000");
    }
}
