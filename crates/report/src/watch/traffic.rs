//! Traffic and losses of an interval, on one line.

use model::{
    BitsPerSec, Reading, Samples,
    samples::{Delta, NicSample},
    watch::WatchInterval,
};

use crate::words::grouped;

/// Statistics of packets that a NIC lost.
const LOST: [&str; 4] = ["rx_dropped", "tx_dropped", "rx_missed_errors", "rx_fifo_errors"];

/// `eth0 RX 9.41 Gbit/s 812,345 pkt/s  TX …  DROPS 0  RETR 12 (0.1%)`: of the interface with the most
/// bytes (table 7 has all), the drops of all queues and NICs, and the host's retransmitted segments.
pub fn traffic(interval: &WatchInterval) -> Option<String> {
    let samples = interval.samples.known()?;
    let s = interval.interval_s.max(1e-9);
    let mut parts = vec![];
    if let Some(nic) = samples.nics.iter().max_by_key(|n| of(n, "rx_bytes") + of(n, "tx_bytes")) {
        let way = |bytes: &str, packets: &str| {
            let bits = BitsPerSec((of(nic, bytes) as f64 * 8.0 / s).round() as u64);
            let packets = grouped((of(nic, packets) as f64 / s).round() as u64);
            format!("{bits} {packets} pkt/s")
        };
        parts.push(format!(
            "{} RX {}  TX {}",
            nic.name,
            way("rx_bytes", "rx_packets"),
            way("tx_bytes", "tx_packets")
        ));
    }
    parts.push(format!("DROPS {}", grouped(drops(interval, samples))));
    parts.extend(retransmits(samples));
    Some(parts.join("  "))
}

fn of(nic: &NicSample, name: &str) -> u64 {
    nic.statistics.known().and_then(|all| all.get(name)).and_then(Reading::get).unwrap_or(0)
}

/// Packets lost in backlogs and NICs, and datagrams at full sockets.
fn drops(interval: &WatchInterval, samples: &Samples) -> u64 {
    let known = |n: &Delta| n.get().unwrap_or(0);
    let cpus = interval.cpus.iter().map(|c| known(&c.backlog_drops) + known(&c.flow_limit_drops));
    let nics = samples.nics.iter().flat_map(|n| LOST.map(|name| of(n, name)));
    let udp = ["Udp.RcvbufErrors", "Udp6.RcvbufErrors"].map(|name| protocol(samples, name));
    cpus.chain(nics).sum::<u64>() + udp.into_iter().flatten().sum::<u64>()
}

fn retransmits(samples: &Samples) -> Option<String> {
    let again = protocol(samples, "Tcp.RetransSegs")?;
    let sent = protocol(samples, "Tcp.OutSegs").filter(|n| *n > 0);
    let share = sent.filter(|_| again > 0).map(|n| again as f64 * 100.0 / n as f64);
    let share = share.map_or_else(String::new, |p| format!(" ({p:.2}%)"));
    Some(format!("RETR {}{share}", grouped(again)))
}

fn protocol(samples: &Samples, name: &str) -> Option<u64> {
    samples.protocols.known()?.get(name).and_then(Reading::get)
}
