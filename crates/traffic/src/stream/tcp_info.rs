//! The kernel's state of a sending TCP connection.
//!
//! **Source**: `TCP_INFO` (`struct tcp_info` of the kernel's `include/uapi/linux/tcp.h`). Reads
//! only the first 128 bytes, which every kernel since 4.1 fills; fields that a kernel does not fill
//! are `None`.

use std::os::fd::RawFd;

use model::Reading;

use crate::net::sys;

/// Number of single-byte fields before the first 32-bit field.
const HEAD: usize = 8;
const WORDS: usize = 30;
/// Indices of the 32-bit fields used.
const SND_MSS: usize = 2;
const RTT: usize = 15;
const SND_CWND: usize = 18;
const TOTAL_RETRANS: usize = 23;
/// A 64-bit field: two words in native byte order.
const BYTES_ACKED: usize = 28;

/// The structure as the kernel lays it out.
#[derive(Clone, Copy)]
#[repr(C)]
struct Raw {
    head: [u8; HEAD],
    words: [u32; WORDS],
}

// SAFETY: numbers.
unsafe impl sys::Plain for Raw {}

impl Raw {
    /// The 64-bit field that begins at this word.
    fn pair(&self, at: usize) -> Option<u64> {
        let (a, b) = (self.words.get(at)?.to_ne_bytes(), self.words.get(at + 1)?.to_ne_bytes());
        let mut bytes = [0; 8];
        bytes.iter_mut().zip(a.into_iter().chain(b)).for_each(|(to, from)| *to = from);
        Some(u64::from_ne_bytes(bytes))
    }
}

/// One connection at one time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// Segments retransmitted since the connection began.
    pub retransmits: Option<u64>,
    pub cwnd_bytes: Option<u64>,
    /// Smoothed round-trip time, ns. **Source**: `tcpi_rtt` of `TCP_INFO`, in µs there.
    pub rtt_ns: Option<u64>,
    /// Maximum segment size of the sender, bytes. **Source**: `tcpi_snd_mss` of `TCP_INFO`.
    pub mss_bytes: Option<u64>,
    /// Payload bytes acknowledged by the other end's kernel; a SYN counts as one.
    pub bytes_acked: Option<u64>,
}

impl TcpInfo {
    fn of(raw: &Raw, length: usize) -> Self {
        let word = |at: usize| {
            let given = length >= HEAD + (at + 1) * size_of::<u32>();
            raw.words.get(at).filter(|_| given).map(|w| u64::from(*w))
        };
        let mss = word(SND_MSS);
        Self {
            retransmits: word(TOTAL_RETRANS),
            cwnd_bytes: word(SND_CWND).and_then(|n| Some(n * mss?)),
            rtt_ns: word(RTT).map(|us| us * 1000),
            mss_bytes: mss,
            bytes_acked: word(BYTES_ACKED + 1).and_then(|_| raw.pair(BYTES_ACKED)),
        }
    }

    /// Reads it from the kernel; `None` if the socket is no TCP connection.
    pub fn read(fd: RawFd) -> Option<Self> {
        let mut raw = Raw { head: [0; HEAD], words: [0; WORDS] };
        let length = sys::option(fd, libc::IPPROTO_TCP, libc::TCP_INFO, &mut raw).ok()?;
        Some(Self::of(&raw, length))
    }
}

/// Sums over all sending connections of one end.
#[derive(Debug, Clone, PartialEq)]
pub struct Sum {
    /// Retransmitted segments of all connections.
    pub retransmits: Reading<u64>,
    /// Congestion windows in bytes, summed.
    pub cwnd_bytes: Reading<u64>,
    /// Mean smoothed round-trip time.
    pub rtt_ns: Reading<u64>,
    pub mss_bytes: Reading<u64>,
}

impl Sum {
    pub fn read(fds: impl Iterator<Item = RawFd>) -> Self {
        let all: Option<Vec<TcpInfo>> = fds.map(TcpInfo::read).collect();
        match all.as_deref() {
            None => Self::none("TCP_INFO: the kernel does not report it"),
            Some([]) => Self::none("this end sends nothing"),
            Some(all) => {
                let part = |of: fn(&TcpInfo) -> Option<u64>| -> Reading<u64> {
                    match all.iter().map(of).sum::<Option<u64>>() {
                        Some(n) => Reading::Known(n),
                        None => Reading::absent("TCP_INFO: this kernel does not report it"),
                    }
                };
                let least = all.iter().filter_map(|i| i.mss_bytes).min();
                Self {
                    retransmits: part(|i| i.retransmits),
                    cwnd_bytes: part(|i| i.cwnd_bytes),
                    rtt_ns: part(|i| i.rtt_ns).map(|n| n / all.len() as u64),
                    mss_bytes: least.map_or_else(|| Reading::absent("TCP_INFO"), Reading::Known),
                }
            }
        }
    }

    /// No figures, for this reason.
    pub fn none(why: &str) -> Self {
        let none = || Reading::absent(why);
        Self { retransmits: none(), cwnd_bytes: none(), rtt_ns: none(), mss_bytes: none() }
    }
}

/// Name of a connection's congestion control.
pub fn congestion(fd: RawFd) -> Reading<String> {
    let mut name = [0u8; 16];
    if sys::option(fd, libc::IPPROTO_TCP, libc::TCP_CONGESTION, &mut name).is_err() {
        return Reading::absent("TCP_CONGESTION: the kernel does not report it");
    }
    let text: Vec<u8> = name.into_iter().take_while(|b| *b != 0).collect();
    Reading::Known(String::from_utf8_lossy(&text).into_owned())
}

#[cfg(test)]
mod tests {
    use std::{
        net::{TcpListener, TcpStream},
        os::fd::AsRawFd,
    };

    use super::*;

    #[test]
    fn an_older_kernel_leaves_out_what_lies_beyond() {
        let mut raw = Raw { head: [0; HEAD], words: [0; WORDS] };
        (raw.words[SND_MSS], raw.words[SND_CWND]) = (1000, 10);
        (raw.words[RTT], raw.words[TOTAL_RETRANS]) = (250, 7);
        let whole = TcpInfo {
            retransmits: Some(7),
            cwnd_bytes: Some(10_000),
            rtt_ns: Some(250_000),
            mss_bytes: Some(1000),
            bytes_acked: Some(5 << 32),
        };
        let five_high = (5u64 << 32).to_ne_bytes();
        let (low, high) = five_high.split_first_chunk::<4>().unwrap();
        raw.words[BYTES_ACKED] = u32::from_ne_bytes(*low);
        raw.words[BYTES_ACKED + 1] = u32::from_ne_bytes(high.try_into().unwrap());
        assert_eq!(TcpInfo::of(&raw, 128), whole);
        assert_eq!(TcpInfo::of(&raw, 232), whole);
        let old = TcpInfo { bytes_acked: None, ..whole };
        assert_eq!(TcpInfo::of(&raw, 124), old);
        assert_eq!(TcpInfo::of(&raw, 104), old);
        assert_eq!(TcpInfo::of(&raw, 100), TcpInfo { retransmits: None, ..old });
        assert_eq!(TcpInfo::of(&raw, 0), TcpInfo::default());
    }

    #[test]
    fn a_connection_tells_of_itself() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let sum = Sum::read([one.as_raw_fd(), one.as_raw_fd()].into_iter());
        assert_eq!(sum.retransmits, Reading::Known(0));
        assert!(sum.mss_bytes.get().unwrap() >= 500);
        assert!(sum.cwnd_bytes.get().unwrap() >= 2 * sum.mss_bytes.get().unwrap());
        let wanted = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").unwrap();
        assert_eq!(congestion(one.as_raw_fd()), Reading::Known(wanted.trim().to_owned()));
        assert_eq!(TcpInfo::read(-1), None);
    }
}
