//! What limits the senders of this host, by process: `tcp_info` of their connections.

use std::collections::BTreeMap;

use model::{Reading, Samples, samples::ConnectionSample};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The connections of the processes of one name that sent data over the window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sender {
    /// Name of the processes; empty where it could not be read.
    pub process: String,
    pub connections: u64,
    /// Payload that was acknowledged, bits a second.
    pub bits_per_s: f64,
    /// What limits it: the receiver or the send buffer, whichever did longer, from a tenth of the busy
    /// time on, as in rule 16: the kernel counts whole ticks and misses much. Else the network, where
    /// data waited at a quarter of the readings or more; else the application, which had no
    /// more to send.
    pub limited_by: LimitedBy,
    /// Share of the window with data to send or not acknowledged, 0 to 1. As the shares below it is
    /// weighted by the bytes of each connection. **Source**: `tcpi_busy_time`.
    pub busy_share: f64,
    /// Share of the busy time in which the receive window of the other end was full.
    /// **Source**: `tcpi_rwnd_limited`.
    pub receiver_share: f64,
    /// Share of the busy time in which the own send buffer was full. **Source**:
    /// `tcpi_sndbuf_limited`.
    pub send_buffer_share: f64,
    /// Share of the readings at which a full segment waited to be sent for the first time. **Source**:
    /// `tcpi_notsent_bytes`.
    pub waiting_share: f64,
}

/// What a sender waits for most of its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LimitedBy {
    Application,
    Receiver,
    SendBuffer,
    Network,
}

impl LimitedBy {
    pub fn text(self) -> &'static str {
        match self {
            Self::Application => "the application",
            Self::Receiver => "the receiver's window",
            Self::SendBuffer => "its send buffer",
            Self::Network => "the network",
        }
    }
}

/// Share of the busy time from which a buffer limits, as in rule 16.
const LIMITED: f64 = 0.10;

/// Share of the readings from which waiting data says that the network limits. The queue of a sender
/// that is woken to refill it is empty at times. Our proposal.
const WAITS: f64 = 0.25;

/// Sums over connections, in bytes times share.
#[derive(Default)]
struct Sums {
    connections: u64,
    bytes: f64,
    busy: f64,
    receiver: f64,
    send_buffer: f64,
    waiting: f64,
}

/// Processes that sent, by name, most bytes first.
pub fn of(samples: &Samples) -> Reading<Vec<Sender>> {
    let window_ns = samples.window_ns.0 as f64;
    if samples.since_boot {
        return Reading::absent(
            "one reading does not say who sends now, nor for how long data waited",
        );
    }
    samples.connections.as_ref().and_then(|all| {
        let mut by_name: BTreeMap<&str, Sums> = BTreeMap::new();
        let mut missing = None;
        for c in all {
            let one = match of_one(c, window_ns) {
                Ok(Some(one)) => one,
                Ok(None) => continue,
                Err(why) => {
                    missing.get_or_insert(why);
                    continue;
                }
            };
            let owner = c.owners.known().and_then(|o| o.first());
            let sums = by_name.entry(owner.map_or("", |o| o.name.as_str())).or_default();
            sums.connections += 1;
            sums.bytes += one.bytes;
            sums.busy += one.bytes * one.busy;
            sums.receiver += one.bytes * one.receiver;
            sums.send_buffer += one.bytes * one.send_buffer;
            sums.waiting += one.bytes * one.waiting;
        }
        let mut senders: Vec<Sender> =
            by_name.into_iter().map(|(name, sums)| sender(name, &sums, window_ns)).collect();
        senders.sort_by(|a, b| b.bits_per_s.total_cmp(&a.bits_per_s));
        match missing {
            Some(why) if senders.is_empty() => Reading::absent(why),
            _ => Reading::Known(senders),
        }
    })
}

/// The bytes and shares of a connection; `None` where it sent nothing, an error where a value is
/// missing.
fn of_one(c: &ConnectionSample, window_ns: f64) -> Result<Option<Sums>, &str> {
    let (bytes, busy) = (read(&c.bytes_acked)?, read(&c.busy_ns)?);
    if bytes == 0 || busy == 0 {
        return Ok(None);
    }
    let share = |ns: u64| (ns as f64 / busy as f64).min(1.0);
    Ok(Some(Sums {
        connections: 1,
        bytes: bytes as f64,
        busy: (busy as f64 / window_ns).min(1.0),
        receiver: share(read(&c.rwnd_limited_ns)?),
        send_buffer: share(read(&c.sndbuf_limited_ns)?),
        waiting: f64::from(read(&c.waiting_readings)?) / f64::from(c.readings.max(1)),
    }))
}

fn read<T: Copy>(value: &Reading<T>) -> Result<T, &str> {
    value.get().ok_or_else(|| value.why_not().unwrap_or("not known"))
}

fn sender(name: &str, sums: &Sums, window_ns: f64) -> Sender {
    let share = |sum: f64| sum / sums.bytes;
    let (receiver, send_buffer) = (share(sums.receiver), share(sums.send_buffer));
    let waiting = share(sums.waiting);
    let limited_by = match waiting >= WAITS {
        _ if receiver.max(send_buffer) >= LIMITED && receiver >= send_buffer => LimitedBy::Receiver,
        _ if send_buffer >= LIMITED => LimitedBy::SendBuffer,
        true => LimitedBy::Network,
        false => LimitedBy::Application,
    };
    Sender {
        process: name.to_owned(),
        connections: sums.connections,
        bits_per_s: sums.bytes * 8e9 / window_ns,
        limited_by,
        busy_share: share(sums.busy),
        receiver_share: receiver,
        send_buffer_share: send_buffer,
        waiting_share: waiting,
    }
}
