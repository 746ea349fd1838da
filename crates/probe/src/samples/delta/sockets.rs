//! Growth of single sockets' counters: those that dropped datagrams, and every connection.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
};

use model::{
    Reading,
    samples::{ConnectionSample, Delta, UdpSocketSample},
};

use super::grown;
use crate::{
    ask::sock_diag::{Connection, UdpSocket},
    samples::raw::Raw,
};

/// A UDP socket from one reading to the next. The kernel may hand a number out again, but not with
/// the same address and to a socket that has dropped more.
type UdpKey = (u64, SocketAddr);

/// UDP sockets that dropped anything, most drops first; the first reason where a reading has none.
pub(super) fn udp(readings: &[Raw]) -> Reading<Vec<UdpSocketSample>> {
    super::all_known(readings.iter().map(|r| r.udp.as_ref())).map(|all| {
        let mut found: Vec<UdpSocketSample> =
            dropping(&all).into_values().map(|(new, seen)| udp_sample(new, &seen)).collect();
        found.sort_by_key(|s| Reverse(s.drops.get()));
        found
    })
}

/// A socket as each reading has it, and whether it came within the window: then all that it dropped is new.
type Dropping<'a> = (bool, Vec<&'a UdpSocket>);

/// The sockets that dropped anything, by inode and address.
fn dropping<'a>(all: &[&'a Vec<UdpSocket>]) -> BTreeMap<UdpKey, Dropping<'a>> {
    let mut sockets: BTreeMap<UdpKey, Vec<&UdpSocket>> = BTreeMap::new();
    for (n, reading) in all.iter().enumerate() {
        for socket in reading.iter() {
            let key = (socket.inode, socket.address);
            // One that came within the window began with no drops: its first count is all new.
            if n > 0 || socket.drops.is_some() {
                sockets.entry(key).or_default().push(socket);
            }
        }
    }
    let first: BTreeSet<UdpKey> =
        all.first().into_iter().flat_map(|r| r.iter()).map(|s| (s.inode, s.address)).collect();
    sockets.retain(|key, seen| {
        let before = if first.contains(key) { seen.first().and_then(|s| s.drops) } else { Some(0) };
        let after = seen.last().and_then(|s| s.drops);
        before.zip(after).is_some_and(|(before, after)| after > before)
    });
    sockets.into_iter().map(|(key, seen)| (key, (!first.contains(&key), seen))).collect()
}

fn udp_sample(new: bool, seen: &[&UdpSocket]) -> UdpSocketSample {
    let steps = |grew: fn(&UdpSocket, &UdpSocket) -> bool| {
        let pairs = seen.iter().zip(seen.iter().skip(1));
        pairs.filter(|(before, after)| grew(before, after)).count() as u32
    };
    // At least half: the kernel frees a read datagram's memory in batches of up to a quarter of the
    // buffer, and large datagrams fill it coarsely.
    let filled = |s: &&&UdpSocket| s.buffer.is_some_and(|b| s.queue >= b / 2 && b > 0);
    UdpSocketSample {
        address: seen.first().map(|s| s.address.to_string()).unwrap_or_default(),
        inode: seen.first().map(|s| s.inode).unwrap_or_default(),
        drops: grown(new.then_some(Some(0)).into_iter().chain(seen.iter().map(|s| s.drops))),
        dropped_in: steps(|before, after| after.drops > before.drops),
        readings: seen.len() as u32,
        filled_readings: seen.iter().filter(filled).count() as u32,
        most_queue_bytes: seen.iter().map(|s| u64::from(s.queue)).max().unwrap_or_default(),
        shrank_in: steps(|before, after| after.queue < before.queue),
        buffer_bytes: match seen.last().and_then(|s| s.buffer) {
            Some(bytes) => Reading::Known(bytes.into()),
            None => Reading::absent("/proc/net/udp does not report it; sock_diag does"),
        },
        owners: Reading::absent("not looked for"),
    }
}

/// Every connection that any reading has; the first reason where a reading has none.
pub(super) fn connections(readings: &[Raw]) -> Reading<Vec<ConnectionSample>> {
    let all = super::all_known(readings.iter().map(|r| r.connections.as_ref()));
    all.map(|all| by_cookie(&all).into_values().map(|seen| connection(&seen)).collect())
}

/// Each connection as the readings have it; `None` stands for a beginning within the window, when
/// all of its counters were zero.
fn by_cookie<'a>(
    all: &[&'a BTreeMap<u64, Connection>],
) -> BTreeMap<u64, Vec<Option<&'a Connection>>> {
    let mut found: BTreeMap<u64, Vec<Option<&Connection>>> = BTreeMap::new();
    for (n, reading) in all.iter().enumerate() {
        for (cookie, connection) in reading.iter() {
            let seen = found.entry(*cookie).or_default();
            if seen.is_empty() && n > 0 {
                seen.push(None);
            }
            seen.push(Some(connection));
        }
    }
    found
}

fn connection(seen: &[Option<&Connection>]) -> ConnectionSample {
    let last = seen.iter().rev().find_map(|c| *c);
    let growth = |pick: fn(&Connection) -> Option<u64>| -> Delta {
        let known = seen.iter().all(|c| c.is_none_or(|c| pick(c).is_some()));
        if !known {
            return Reading::absent("this kernel's tcp_info does not report it");
        }
        grown(seen.iter().map(|c| c.map_or(Some(0), pick)))
    };
    let ns = |delta: Delta| delta.map(|us| us.saturating_mul(1_000));
    let reported = |value: Option<u64>| match value {
        Some(v) => Reading::Known(v),
        None => Reading::absent("this kernel's tcp_info does not report it"),
    };
    let waits = seen.iter().flatten().map(|c| c.info.waits.map(u32::from));
    let windows = seen.iter().flatten().filter_map(|c| c.info.peer_window);
    ConnectionSample {
        local: last.map(|c| c.socket.local.to_string()).unwrap_or_default(),
        remote: last.map(|c| c.socket.remote.to_string()).unwrap_or_default(),
        inode: last.map(|c| c.socket.inode.into()).unwrap_or_default(),
        retransmits: growth(|c| Some(c.info.retransmits.into())),
        segments_out: growth(|c| c.info.segments_out.map(u64::from)),
        bytes_acked: growth(|c| c.info.bytes_acked),
        bytes_received: growth(|c| c.info.bytes_received),
        busy_ns: ns(growth(|c| c.info.busy_us)),
        rwnd_limited_ns: ns(growth(|c| c.info.rwnd_limited_us)),
        sndbuf_limited_ns: ns(growth(|c| c.info.sndbuf_limited_us)),
        readings: seen.iter().flatten().count() as u32,
        waiting_readings: match waits.sum::<Option<u32>>() {
            Some(n) => Reading::Known(n),
            None => Reading::absent("this kernel's tcp_info does not tell"),
        },
        min_rtt_ns: reported(last.and_then(|c| c.info.min_rtt_us).map(|us| u64::from(us) * 1_000)),
        peer_window_bytes: reported(windows.max().map(u64::from)),
        send_buffer_bytes: reported(last.and_then(|c| c.send_buffer).map(u64::from)),
        owners: Reading::absent("not looked for"),
    }
}
