//! Interval results from this end's counters while the test runs.

use std::collections::BTreeMap;

use model::{
    CpuId, Reading,
    measure::{Datagrams, StreamInterval},
};
use traffic::host;

use crate::iperf3::flow::{Flow, FlowCounters, FlowSnapshot};

/// Counters of all flows at one time.
#[derive(Debug, Clone)]
pub struct IperfCounters {
    pub flows: FlowSnapshot,
    pub host: host::CounterSnapshot,
}

/// The interval between two readings, for one direction.
pub fn interval(
    start: &IperfCounters,
    from: &IperfCounters,
    to: &IperfCounters,
    sends: bool,
    udp: bool,
) -> StreamInterval {
    let seconds = to.flows.seconds_since(&from.flows).max(1e-9);
    let pairs: Vec<(&FlowCounters, &FlowCounters)> =
        (from.flows.flows.iter().zip(&to.flows.flows)).filter(|(_, t)| t.sends == sends).collect();
    let bytes = pairs.iter().map(|(f, t)| arrived(f, t)).sum();
    let tcp = |of: fn(&FlowCounters, &FlowCounters) -> Option<u64>, join: fn(&[u64]) -> u64| {
        let each: Option<Vec<u64>> = pairs.iter().map(|(f, t)| of(f, t)).collect();
        match (sends, udp, each) {
            (true, false, Some(each)) => Reading::Known(join(&each)),
            (true, false, None) => Reading::absent("the connection is gone"),
            (false, false, _) => Reading::absent("an iperf3 sender does not report it meanwhile"),
            (_, true, _) => Reading::absent("UDP has none"),
        }
    };
    StreamInterval {
        start_s: from.flows.seconds_since(&start.flows),
        end_s: to.flows.seconds_since(&start.flows),
        bytes,
        bits_per_s: bytes as f64 * 8.0 / seconds,
        retransmits: tcp(retransmits, sum),
        cwnd_bytes: tcp(|_, t| t.tcp.map(|i| u64::from(i.snd_cwnd) * u64::from(i.snd_mss)), sum),
        rtt_ns: tcp(|_, t| t.tcp.map(|i| u64::from(i.rtt_us) * 1000), mean),
        migrations: host::between(&from.host, &to.host).extras.migrations,
        datagrams: (udp && !sends).then(|| datagrams(&pairs)),
    }
}

fn sum(each: &[u64]) -> u64 {
    each.iter().sum()
}

fn mean(each: &[u64]) -> u64 {
    sum(each) / (each.len() as u64).max(1)
}

/// Bytes that reached the receiver: received here, or acknowledged by the server's kernel. For sent
/// datagrams that is unknown; counts those sent.
pub fn arrived(from: &FlowCounters, to: &FlowCounters) -> u64 {
    match to.tcp.zip(from.tcp) {
        Some((t, f)) => t.bytes_acked.saturating_sub(f.bytes_acked),
        None => to.bytes.saturating_sub(from.bytes),
    }
}

/// Segments retransmitted between two readings.
pub fn retransmits(from: &FlowCounters, to: &FlowCounters) -> Option<u64> {
    let (to, from) = to.tcp.zip(from.tcp)?;
    Some(u64::from(to.retransmits.saturating_sub(from.retransmits)))
}

/// Counts of datagrams received at this end.
pub fn datagrams(pairs: &[(&FlowCounters, &FlowCounters)]) -> Datagrams {
    let grown = |of: fn(&FlowCounters) -> u64| -> u64 {
        pairs.iter().map(|(f, t)| of(t).saturating_sub(of(f))).sum()
    };
    let received = grown(|s| s.datagrams);
    let lost = grown(FlowCounters::missing);
    let jitters: Vec<u64> = pairs.iter().map(|(_, t)| t.jitter_ns).collect();
    Datagrams {
        sent: received + lost,
        received,
        lost,
        reordered: grown(|s| s.reordered).into(),
        duplicates: grown(|s| s.duplicates).into(),
        jitter_ns: mean(&jitters).into(),
        send_refused: 0,
    }
}

/// Counted samples of the CPU and NAPI instance that received packets.
#[derive(Debug, Default)]
pub struct Arrivals {
    pub cpus: BTreeMap<CpuId, u64>,
    pub napi_ids: BTreeMap<u32, u64>,
}

impl Arrivals {
    pub fn look(&mut self, flows: &[Flow]) {
        use std::os::fd::AsFd;
        for flow in flows {
            if let Some(cpu) = host::incoming::cpu(flow.socket.as_fd()) {
                *self.cpus.entry(cpu).or_default() += 1;
            }
            if let Some(id) = host::incoming::napi_id(flow.socket.as_fd()) {
                *self.napi_ids.entry(id).or_default() += 1;
            }
        }
    }
}
