//! Captures headers of TCP segments on loopback by `AF_PACKET`.

use std::{
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
};

/// One direction: segments with data, and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CapturedDirection {
    pub segments: u64,
    pub bytes: u64,
}

/// Both directions of a server's port.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CapturedPort {
    pub to: CapturedDirection,
    pub from: CapturedDirection,
}

/// A capture that runs in a thread until it is ended.
pub struct Capture {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<CapturedPort>,
}

impl Capture {
    /// Captures IPv4 and one port of this host. Needs root.
    pub fn of_loopback(port: u16) -> Self {
        // SAFETY: plain numbers; the descriptor is ours from here on.
        let socket = unsafe {
            let fd = libc::socket(libc::AF_PACKET, libc::SOCK_DGRAM, 0);
            assert!(fd >= 0, "{}", std::io::Error::last_os_error());
            OwnedFd::from_raw_fd(fd)
        };
        let (room, patience) = (32i32 << 20, libc::timeval { tv_sec: 0, tv_usec: 20_000 });
        set(&socket, libc::SO_RCVBUFFORCE, &room);
        set(&socket, libc::SO_RCVTIMEO, &patience);
        // SAFETY: a zeroed address is valid, and its length is given.
        let bound = unsafe {
            let mut address: libc::sockaddr_ll = std::mem::zeroed();
            address.sll_family = libc::AF_PACKET as u16;
            address.sll_protocol = (libc::ETH_P_IP as u16).to_be();
            address.sll_ifindex = libc::if_nametoindex(c"lo".as_ptr()).cast_signed();
            libc::bind(
                socket.as_raw_fd(),
                (&raw const address).cast(),
                size_of::<libc::sockaddr_ll>() as u32,
            )
        };
        assert_eq!(bound, 0, "{}", std::io::Error::last_os_error());
        let stop = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&stop);
        Self { stop, thread: std::thread::spawn(move || read(&socket, port, &ended)) }
    }

    /// Ends the capture; returns the counts.
    pub fn end(self) -> CapturedPort {
        self.stop.store(true, Ordering::Release);
        self.thread.join().expect("the capture")
    }
}

fn set<T>(socket: &OwnedFd, option: i32, value: &T) {
    // SAFETY: the value outlives the call and its length is given.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            option,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as u32,
        )
    };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
}

/// Counts until it must end and nothing arrives any more.
fn read(socket: &OwnedFd, port: u16, ended: &AtomicBool) -> CapturedPort {
    let (mut seen, mut headers) = (CapturedPort::default(), [0u8; 120]);
    loop {
        // SAFETY: a zeroed address is valid; the buffers outlive the call, their lengths are given.
        let (n, kind) = unsafe {
            let mut from: libc::sockaddr_ll = std::mem::zeroed();
            let mut len = size_of::<libc::sockaddr_ll>() as u32;
            let n = libc::recvfrom(
                socket.as_raw_fd(),
                headers.as_mut_ptr().cast(),
                headers.len(),
                libc::MSG_TRUNC,
                (&raw mut from).cast(),
                &raw mut len,
            );
            (n, from.sll_pkttype)
        };
        if n <= 0 {
            if ended.load(Ordering::Acquire) {
                return seen;
            }
            continue;
        }
        // On loopback each segment is seen twice, outgoing and incoming.
        if kind != libc::PACKET_OUTGOING {
            count(&headers, port, &mut seen);
        }
    }
}

fn count(headers: &[u8; 120], port: u16, seen: &mut CapturedPort) {
    let two = |at: usize| u64::from(u16::from_be_bytes([headers[at], headers[at + 1]]));
    let ip = usize::from(headers[0] & 15) * 4;
    if headers[0] >> 4 != 4 || i32::from(headers[9]) != libc::IPPROTO_TCP {
        return;
    }
    let tcp = usize::from(headers[ip + 12] >> 4) * 4;
    let bytes = two(2).saturating_sub((ip + tcp) as u64);
    let way = match (two(ip), two(ip + 2)) {
        (_, to) if to == u64::from(port) => &mut seen.to,
        (from, _) if from == u64::from(port) => &mut seen.from,
        _ => return,
    };
    way.segments += u64::from(bytes > 0);
    way.bytes += bytes;
}
