//! Traffic and losses of an interval: figures, and one line.

use std::fmt;

use model::{
    BitsPerSec, Reading, Samples,
    samples::{Delta, NicSample},
    watch::WatchInterval,
};

use crate::words::grouped;

/// Statistics of packets that a NIC lost.
const LOST: [&str; 4] = ["rx_dropped", "tx_dropped", "rx_missed_errors", "rx_fifo_errors"];

/// The traffic of an interval. Its text is
/// `eth0 RX 9.41 Gbit/s 812,345 pkt/s  TX …  DROPS 0  RETR 12 (0.1%)`.
#[derive(Debug, Clone, PartialEq)]
pub struct Traffic {
    /// The interface with the most bytes (table 7 has all); `None` on a host without one.
    pub nic: Option<NicTraffic>,
    /// Packets lost in backlogs and NICs, and datagrams at full sockets, over the interval.
    pub drops: u64,
    /// Retransmitted segments of the host; `None` where they were not read.
    pub retransmits: Option<Retransmitted>,
}

/// The traffic of one interface.
#[derive(Debug, Clone, PartialEq)]
pub struct NicTraffic {
    pub name: String,
    pub received: Rate,
    pub sent: Rate,
}

/// One direction, per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    pub bits: BitsPerSec,
    pub packets: u64,
}

/// Retransmitted segments over the interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Retransmitted {
    pub segments: u64,
    /// In percent of all sent segments; `None` where nothing was sent or sent again.
    pub percent: Option<f64>,
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} pkt/s", self.bits, grouped(self.packets))
    }
}

impl fmt::Display for Retransmitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&grouped(self.segments))?;
        self.percent.map_or(Ok(()), |p| write!(f, " ({p:.2}%)"))
    }
}

impl fmt::Display for Traffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(nic) = &self.nic {
            write!(f, "{} RX {}  TX {}  ", nic.name, nic.received, nic.sent)?;
        }
        write!(f, "DROPS {}", grouped(self.drops))?;
        self.retransmits.map_or(Ok(()), |r| write!(f, "  RETR {r}"))
    }
}

/// The traffic of an interval; `None` where its counters were not read.
pub fn traffic(interval: &WatchInterval) -> Option<Traffic> {
    let samples = interval.samples.known()?;
    let s = interval.interval_s.max(1e-9);
    let nic = samples.nics.iter().max_by_key(|n| of(n, "rx_bytes") + of(n, "tx_bytes"));
    let nic = nic.map(|nic| {
        let rate = |bytes: &str, packets: &str| Rate {
            bits: BitsPerSec((of(nic, bytes) as f64 * 8.0 / s).round() as u64),
            packets: (of(nic, packets) as f64 / s).round() as u64,
        };
        NicTraffic {
            name: nic.name.clone(),
            received: rate("rx_bytes", "rx_packets"),
            sent: rate("tx_bytes", "tx_packets"),
        }
    });
    Some(Traffic { nic, drops: drops(interval, samples), retransmits: retransmits(samples) })
}

fn of(nic: &NicSample, name: &str) -> u64 {
    nic.statistics.known().and_then(|all| all.get(name)).and_then(Reading::get).unwrap_or(0)
}

fn drops(interval: &WatchInterval, samples: &Samples) -> u64 {
    let known = |n: &Delta| n.get().unwrap_or(0);
    let cpus = interval.cpus.iter().map(|c| known(&c.backlog_drops) + known(&c.flow_limit_drops));
    let nics = samples.nics.iter().flat_map(|n| LOST.map(|name| of(n, name)));
    let udp = ["Udp.RcvbufErrors", "Udp6.RcvbufErrors"].map(|name| protocol(samples, name));
    cpus.chain(nics).sum::<u64>() + udp.into_iter().flatten().sum::<u64>()
}

fn retransmits(samples: &Samples) -> Option<Retransmitted> {
    let segments = protocol(samples, "Tcp.RetransSegs")?;
    let sent = protocol(samples, "Tcp.OutSegs").filter(|n| *n > 0);
    let percent = sent.filter(|_| segments > 0).map(|n| segments as f64 * 100.0 / n as f64);
    Some(Retransmitted { segments, percent })
}

fn protocol(samples: &Samples, name: &str) -> Option<u64> {
    samples.protocols.known()?.get(name).and_then(Reading::get)
}
