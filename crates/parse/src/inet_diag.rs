//! `inet_diag_msg`: one socket in the answers of `sock_diag`.
//!
//! **Source**: `include/uapi/linux/inet_diag.h`. Ports and addresses are in network order, the rest
//! in the machine's.

use std::net::{IpAddr, SocketAddr};

use crate::netlink::{attribute, be16_at, u32_at, u64_at};
use crate::rtnl_addr::ip;

/// Bytes before the attributes.
const HEADER: usize = 72;
/// Attributes of an answer: `INET_DIAG_INFO`, and `INET_DIAG_SKMEMINFO` below.
const INFO: u16 = 2;
const SKMEMINFO: u16 = 7;
/// Asks for both: a bit for each attribute, from number 1 on.
pub const WITH_INFO_AND_MEMORY: u8 = 1 << (INFO - 1) | 1 << (SKMEMINFO - 1);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SocketMessage {
    /// State number, see [`state_name`].
    pub state: u8,
    /// Own address and port.
    pub local: SocketAddr,
    /// The other end's; of none the unspecified address and port 0.
    pub remote: SocketAddr,
    /// The kernel's own number of the socket, never used twice.
    pub cookie: u64,
    /// Bound to this device, 0 if to none.
    pub ifindex: u32,
    /// A listener's waiting connections; else bytes received and not read.
    pub receive_queue: u32,
    /// A listener's limit; else bytes sent and not acknowledged.
    pub send_queue: u32,
    /// Inode of its descriptor, 0 if it has none (`TIME_WAIT`).
    pub inode: u32,
}

/// The state `TCP_LISTEN` of `idiag_state`.
pub const LISTEN: u8 = 10;

/// Parses the payload of one message; `None` for other families and short ones.
pub fn parse(payload: &[u8]) -> Option<SocketMessage> {
    let bytes = match payload.first()? {
        2 => 4,
        10 => 16,
        _ => return None,
    };
    let address: IpAddr = ip(payload.get(8..8 + bytes)?)?;
    let other: IpAddr = ip(payload.get(24..24 + bytes)?)?;
    Some(SocketMessage {
        state: *payload.get(1)?,
        local: SocketAddr::new(address, be16_at(payload, 4)?),
        remote: SocketAddr::new(other, be16_at(payload, 6)?),
        cookie: u64_at(payload, 44)?,
        ifindex: u32_at(payload, 40)?,
        receive_queue: u32_at(payload, 56)?,
        send_queue: u32_at(payload, 60)?,
        inode: u32_at(payload, 68)?,
    })
}

/// What a socket's memory is. **Source**: `INET_DIAG_SKMEMINFO`, `sk_get_meminfo`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SocketMemory {
    /// Size of the receive buffer in bytes.
    pub receive_buffer: u32,
    /// Size of the send buffer in bytes.
    pub send_buffer: u32,
    /// Packets dropped because the receive buffer was full. Since Linux 4.5.
    pub drops: Option<u32>,
}

/// The socket's memory; `None` where the message has none.
pub fn memory(payload: &[u8]) -> Option<SocketMemory> {
    let words = attribute(payload, HEADER, SKMEMINFO)?.bytes;
    Some(SocketMemory {
        receive_buffer: u32_at(words, 4)?,
        send_buffer: u32_at(words, 12)?,
        drops: u32_at(words, 32),
    })
}

/// `struct tcp_info` of one connection. A field that an older kernel lacks is `None`. **Source**:
/// `include/uapi/linux/tcp.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpInfo {
    /// `tcpi_total_retrans`: segments sent again.
    pub retransmits: u32,
    /// Bytes that the peer acknowledged. **Source**: `tcpi_bytes_acked`.
    pub bytes_acked: Option<u64>,
    /// Bytes that arrived in order. **Source**: `tcpi_bytes_received`.
    pub bytes_received: Option<u64>,
    /// Whether a full segment waits to be sent for the first time. Less is what Nagle's algorithm
    /// keeps. **Source**: `tcpi_notsent_bytes`, `tcpi_snd_mss`.
    pub waits: Option<bool>,
    /// `tcpi_min_rtt`; `None` also where none was measured.
    pub min_rtt_us: Option<u32>,
    /// Segments sent with data, retransmits included. **Source**: `tcpi_data_segs_out`.
    pub segments_out: Option<u32>,
    /// Time with data to send or unacknowledged. **Source**: `tcpi_busy_time`.
    pub busy_us: Option<u64>,
    /// Time limited by the peer's receive window. **Source**: `tcpi_rwnd_limited`.
    pub rwnd_limited_us: Option<u64>,
    /// Time limited by the send buffer. **Source**: `tcpi_sndbuf_limited`.
    pub sndbuf_limited_us: Option<u64>,
    /// `tcpi_snd_wnd`: the window that the other end offers, in bytes.
    pub peer_window: Option<u32>,
}

/// The connection's `tcp_info`; `None` where the message has none.
pub fn tcp_info(payload: &[u8]) -> Option<TcpInfo> {
    let info = attribute(payload, HEADER, INFO)?.bytes;
    Some(TcpInfo {
        retransmits: u32_at(info, 100)?,
        bytes_acked: u64_at(info, 120),
        bytes_received: u64_at(info, 128),
        waits: u32_at(info, 144).zip(u32_at(info, 16)).map(|(unsent, mss)| unsent >= mss.max(1)),
        // The kernel's word for none is all ones.
        min_rtt_us: u32_at(info, 148).filter(|us| *us != u32::MAX && *us > 0),
        segments_out: u32_at(info, 156),
        busy_us: u64_at(info, 168),
        rwnd_limited_us: u64_at(info, 176),
        sndbuf_limited_us: u64_at(info, 184),
        peer_window: u32_at(info, 228),
    })
}

/// The kernel's name of a TCP state, in lower case.
pub fn state_name(state: u8) -> String {
    const NAMES: [&str; 12] = [
        "established",
        "syn_sent",
        "syn_recv",
        "fin_wait1",
        "fin_wait2",
        "time_wait",
        "close",
        "close_wait",
        "last_ack",
        "listen",
        "closing",
        "new_syn_recv",
    ];
    usize::from(state)
        .checked_sub(1)
        .and_then(|i| NAMES.get(i))
        .map_or_else(|| format!("state_{state}"), |n| (*n).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(family: u8, address: &[u8]) -> Vec<u8> {
        let mut m = vec![0; 72];
        m[0] = family;
        m[1] = LISTEN;
        m[4..6].copy_from_slice(&5432u16.to_be_bytes());
        m[8..8 + address.len()].copy_from_slice(address);
        m[40..44].copy_from_slice(&3u32.to_ne_bytes());
        m[56..60].copy_from_slice(&2u32.to_ne_bytes());
        m[60..64].copy_from_slice(&128u32.to_ne_bytes());
        m[68..72].copy_from_slice(&4711u32.to_ne_bytes());
        m
    }

    #[test]
    fn a_listener_of_either_family() {
        let s = parse(&message(2, &[127, 0, 0, 1])).unwrap();
        assert_eq!((s.state, s.local.to_string()), (LISTEN, "127.0.0.1:5432".into()));
        assert_eq!((s.receive_queue, s.send_queue, s.inode, s.ifindex), (2, 128, 4711, 3));
        assert_eq!(parse(&message(10, &[0; 16])).unwrap().local.to_string(), "[::]:5432");
        assert_eq!(parse(&message(1, &[])), None);
        assert_eq!(parse(&message(2, &[0; 4])[..70]), None);
        assert_eq!(parse(&[]), None);
    }

    fn with_attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut m = message(2, &[127, 0, 0, 1]);
        m.extend((value.len() as u16 + 4).to_ne_bytes());
        m.extend(kind.to_ne_bytes());
        m.extend(value);
        m
    }

    #[test]
    fn memory_and_tcp_info_have_the_fields_that_the_kernel_has() {
        let words: Vec<u8> = (0..9u32).flat_map(|n| (n * 10).to_ne_bytes()).collect();
        let reported = memory(&with_attribute(SKMEMINFO, &words)).unwrap();
        assert_eq!(
            (reported.receive_buffer, reported.send_buffer, reported.drops),
            (10, 30, Some(80))
        );
        assert_eq!(memory(&with_attribute(SKMEMINFO, &words[..32])).unwrap().drops, None);
        assert_eq!(memory(&message(2, &[0; 4])), None);

        let mut info = vec![0; 240];
        info[100..104].copy_from_slice(&7u32.to_ne_bytes());
        info[16..20].copy_from_slice(&1448u32.to_ne_bytes());
        info[144..148].copy_from_slice(&1448u32.to_ne_bytes());
        info[148..152].copy_from_slice(&10_100u32.to_ne_bytes());
        info[176..184].copy_from_slice(&5_000_000u64.to_ne_bytes());
        info[228..232].copy_from_slice(&65_536u32.to_ne_bytes());
        let reported = tcp_info(&with_attribute(INFO, &info)).unwrap();
        assert_eq!((reported.retransmits, reported.min_rtt_us), (7, Some(10_100)));
        assert_eq!(reported.waits, Some(true));
        info[144..148].copy_from_slice(&1447u32.to_ne_bytes());
        assert_eq!(tcp_info(&with_attribute(INFO, &info)).unwrap().waits, Some(false));
        assert_eq!(
            (reported.rwnd_limited_us, reported.peer_window),
            (Some(5_000_000), Some(65_536))
        );
        let old = tcp_info(&with_attribute(INFO, &info[..104])).unwrap();
        assert_eq!((old.retransmits, old.busy_us, old.peer_window), (7, None, None));
    }

    #[test]
    fn states_by_name() {
        assert_eq!(state_name(1), "established");
        assert_eq!(state_name(6), "time_wait");
        assert_eq!(state_name(LISTEN), "listen");
        assert_eq!(state_name(0), "state_0");
        assert_eq!(state_name(13), "state_13");
    }
}
