//! Families by interface and queue, and of the protocols.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    CpuId, Facts, IrqId, Reading, Samples,
    ids::Direction,
    irq::Irq,
    nic::Nic,
    samples::{Delta, NicSample},
};

use crate::{Family, limits::NICS, totals::Totals};

/// Kinds of which a host has one for each container or guest.
const MANY: [&str; 2] = ["veth", "tap"];

/// The interfaces that have series: no veth and no tap, physical ones first, at most [`NICS`].
pub fn chosen(facts: &Facts) -> BTreeSet<&str> {
    let mut nics: Vec<&Nic> =
        facts.nics.iter().filter(|n| !MANY.contains(&n.kind.as_str())).collect();
    nics.sort_by_key(|n| (n.kind != "physical", n.name.as_str()));
    nics.into_iter().take(NICS).map(|n| n.name.as_str()).collect()
}

/// Counters of the chosen interfaces and their queues, since each of them was made.
pub fn nics(samples: &Samples, chosen: &BTreeSet<&str>) -> Vec<Family> {
    let mut packets =
        Family::counter("netwright_nic_packets", "Packets of an interface since it was made.");
    let mut bytes =
        Family::counter("netwright_nic_bytes", "Bytes of an interface since it was made.");
    let mut drops = Family::counter(
        "netwright_nic_dropped_packets",
        "Packets that an interface dropped since it was made: at the ring (the largest of \
         rx_missed_errors, rx_fifo_errors and rx_over_errors), in the stack (rx_dropped, tx_dropped), \
         or in its root qdisc.",
    );
    let mut errors = Family::counter(
        "netwright_nic_errors",
        "Packets with errors since the interface was made (rx_errors, tx_errors).",
    );
    let mut carrier = Family::counter(
        "netwright_nic_carrier_changes",
        "Changes of an interface's carrier since it was made.",
    );
    let mut queues = Family::counter(
        "netwright_queue_packets",
        "Packets of a queue since the driver counts them (netdev netlink, Linux 6.9).",
    );
    for nic in samples.nics.iter().filter(|n| chosen.contains(n.name.as_str())) {
        let name = ("nic", nic.name.as_str());
        let of = |key: &str| statistic(nic, key);
        for (direction, way) in [("receive", "rx"), ("transmit", "tx")] {
            let labels = [name, ("direction", direction)];
            packets.count(&labels, of(&format!("{way}_packets")));
            bytes.count(&labels, of(&format!("{way}_bytes")));
            errors.count(&labels, of(&format!("{way}_errors")));
            let labels = [name, ("direction", direction), ("reason", "stack")];
            drops.count(&labels, of(&format!("{way}_dropped")));
        }
        let ring = ["rx_missed_errors", "rx_fifo_errors", "rx_over_errors"].map(of);
        let at_ring = [name, ("direction", "receive"), ("reason", "ring")];
        drops.count(&at_ring, ring.into_iter().flatten().max());
        drops.count(&[name, ("direction", "transmit"), ("reason", "qdisc")], qdisc_drops(nic));
        carrier.count(&[name], nic.carrier_changes.get());
        for queue in nic.queues.known().into_iter().flatten() {
            let (direction, counter) = match queue.id.direction {
                Direction::Rx => ("receive", "rx-packets"),
                Direction::Tx => ("transmit", "tx-packets"),
            };
            let index = queue.id.index.to_string();
            let labels = [name, ("direction", direction), ("queue", &index)];
            queues.count(&labels, queue.counters.get(counter).and_then(Reading::get));
        }
    }
    vec![packets, bytes, drops, errors, carrier, queues]
}

fn statistic(nic: &NicSample, key: &str) -> Option<u64> {
    nic.statistics.known()?.get(key)?.get()
}

/// Drops of the root qdisc, which counts those of its children.
fn qdisc_drops(nic: &NicSample) -> Option<u64> {
    let root = nic.qdiscs.known()?.iter().find(|q| q.parent == "root")?;
    root.drops.get()
}

/// Interrupts of the chosen interfaces since boot: by queue, and by CPU.
pub fn interrupts(samples: &Samples, facts: &Facts, chosen: &BTreeSet<&str>) -> Vec<Family> {
    let mut by_queue: BTreeMap<(&str, String), u64> = BTreeMap::new();
    let mut by_cpu: BTreeMap<(&str, CpuId), u64> = BTreeMap::new();
    let known = facts.irqs.known().into_iter().flatten();
    let nics: BTreeMap<IrqId, &Irq> = known.map(|i| (i.irq, i)).collect();
    for sample in samples.irqs.known().into_iter().flatten() {
        let Some((irq, nic)) = nics.get(&sample.irq).and_then(|i| Some((i, i.nic.known()?))) else {
            continue;
        };
        // A torn row has no counts; its sums are known again in the next reading.
        let counts: Vec<(CpuId, u64)> =
            sample.cpus.iter().filter_map(|c| Some((c.cpu, c.count.get()?))).collect();
        let complete = counts.len() == sample.cpus.len();
        let Some(nic) = chosen.get(nic.as_str()).filter(|_| complete) else { continue };
        let queue = irq.queue.get().unwrap_or_else(|| "none".to_owned());
        *by_queue.entry((nic, queue)).or_default() += counts.iter().map(|c| c.1).sum::<u64>();
        for (cpu, count) in counts {
            *by_cpu.entry((nic, cpu)).or_default() += count;
        }
    }
    let mut queues = Family::counter(
        "netwright_queue_interrupts",
        "Interrupts of an interface since boot, by the queues that they serve; `none`: other events.",
    );
    for ((nic, queue), count) in by_queue {
        queues.count(&[("nic", nic), ("queue", &queue)], Some(count));
    }
    let mut cpus = Family::counter(
        "netwright_nic_interrupts",
        "Interrupts of an interface since boot, by the CPU that handled them (/proc/interrupts).",
    );
    for ((nic, cpu), count) in by_cpu {
        cpus.count(&[("nic", nic), ("cpu", &cpu.to_string())], Some(count));
    }
    vec![queues, cpus]
}

/// Counters of TCP and UDP of this network namespace, since it was made.
pub fn protocols(samples: &Samples) -> Vec<Family> {
    const COUNTERS: [(&str, &[&str], &str); 7] = [
        ("netwright_tcp_sent_segments", &["Tcp.OutSegs"], "TCP segments sent."),
        (
            "netwright_tcp_retransmitted_segments",
            &["Tcp.RetransSegs"],
            "TCP segments retransmitted.",
        ),
        ("netwright_tcp_timeouts", &["TcpExt.TCPTimeouts"], "Retransmission timeouts of TCP."),
        (
            "netwright_tcp_listen_overflows",
            &["TcpExt.ListenOverflows"],
            "Connections refused because a listener's accept queue was full.",
        ),
        (
            "netwright_tcp_backlog_dropped_packets",
            &["TcpExt.TCPBacklogDrop"],
            "Segments dropped because a socket's backlog was full.",
        ),
        (
            "netwright_udp_receive_buffer_dropped_datagrams",
            &["Udp.RcvbufErrors", "Udp6.RcvbufErrors"],
            "Datagrams dropped because a socket's receive buffer was full.",
        ),
        (
            "netwright_udp_received_datagrams",
            &["Udp.InDatagrams", "Udp6.InDatagrams"],
            "Datagrams delivered to sockets.",
        ),
    ];
    let Some(all) = samples.protocols.known() else { return vec![] };
    let of = |key: &str| all.get(key).and_then(Delta::get);
    let one = |(name, keys, help): (&'static str, &[&str], &'static str)| {
        let mut family = Family::counter(name, help);
        // Without IPv6 its counter is missing; what is known is the whole.
        let known: Vec<u64> = keys.iter().filter_map(|k| of(k)).collect();
        family.count(&[], (!known.is_empty()).then(|| known.iter().sum()));
        family
    };
    COUNTERS.into_iter().map(one).collect()
}

/// Dropped packets by the kernel's reason.
pub fn drops(totals: &Totals) -> Family {
    let mut family = Family::counter(
        "netwright_dropped_packets",
        "Packets that the kernel dropped by its own reason, all namespaces, counted by eBPF in the \
         observed time since the exporter started.",
    );
    for (reason, packets) in &totals.drops {
        family.count(&[("reason", reason)], Some(*packets));
    }
    family
}
