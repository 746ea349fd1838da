//! Sends and receives the datagrams of a probe.

use std::{
    io,
    os::fd::{AsRawFd, RawFd},
    time::{Duration, Instant},
};

use model::measure::{OffloadCounts, OffloadProbe as Probe};
use socket2::Socket;

use super::{
    damaged::BadSender,
    pieces::{Kind, Pieces, compare},
    readable,
};
use crate::net::{summed, sys};

const UDP_SEGMENT: i32 = 103;
const UDP_GRO: i32 = 104;
const UDP_NO_CHECK6_TX: i32 = 101;
const UDP_NO_CHECK6_RX: i32 = 102;
const SO_NO_CHECK: i32 = 11;

/// First bytes of an acknowledgement, which no piece has.
const ACK: [u8; 4] = *b"NWOA";
/// Time to wait for the first acknowledgements, and for those after [`LATE`] of them failed.
const PATIENCE: [Duration; 2] = [Duration::from_millis(100), Duration::from_millis(20)];
const LATE: u32 = 2;
/// Receive buffer, in bytes: a whole batch fits.
const ROOM: usize = 1 << 20;
/// Most bytes that the kernel gives at once.
const LARGEST: usize = 1 << 16;

/// Sets a numeric option.
fn set(fd: RawFd, level: i32, name: i32, value: i32) -> io::Result<()> {
    sys::set_option(fd, level, name, &value)
}

/// Sends all batches, each after the acknowledgement of the one before or a pause; `progress` hears
/// how many pieces were sent.
///
/// # Errors
/// The kernel has not the option that the probe needs, or refuses to send.
pub fn send(
    socket: &Socket,
    probe: Probe,
    pieces: &Pieces,
    progress: &dyn Fn(u64) -> bool,
) -> io::Result<OffloadCounts> {
    let fd = socket.as_raw_fd();
    let mut counts = OffloadCounts::default();
    let ip6 = socket.local_addr()?.is_ipv6();
    let bad = match probe {
        Probe::UdpBadSum => Some(BadSender::open(socket)?),
        _ => None,
    };
    if probe == Probe::UdpUnsummed {
        match ip6 {
            true => set(fd, libc::IPPROTO_UDP, UDP_NO_CHECK6_TX, 1)?,
            false => set(fd, libc::SOL_SOCKET, SO_NO_CHECK, 1)?,
        }
    }
    let (mut seq, mut late) = (0, 0);
    for (number, batch) in pieces.batches.iter().enumerate() {
        let all: Vec<Vec<u8>> = (seq..seq + batch.len()).map(|n| pieces.bytes(n)).collect();
        seq += batch.len();
        match (probe, &bad, all.as_slice()) {
            (Probe::UdpBadSum, Some(bad), [wrong, right]) => {
                bad.send(wrong)?;
                summed::send(fd, right)?;
            }
            (Probe::UdpSegmented | Probe::UdpSegmentedGro, _, _) => {
                let size = batch.first().copied().unwrap_or_default();
                let size = i32::try_from(size).unwrap_or(i32::MAX);
                set(fd, libc::IPPROTO_UDP, UDP_SEGMENT, size)?;
                sys::send(fd, &all.concat(), 0)?;
            }
            (Probe::UdpKernelSum, _, _) => {
                for one in &all {
                    summed::send(fd, one)?;
                }
            }
            _ => {
                for one in &all {
                    sys::send(fd, one, 0)?;
                }
            }
        }
        counts.sent += all.len() as u64;
        counts.batches += 1;
        if !progress(counts.sent) {
            break;
        }
        let patience = if late < LATE { PATIENCE[0] } else { PATIENCE[1] };
        if !acknowledged(fd, number, patience) {
            late += 1;
        }
    }
    Ok(counts)
}

/// Answers a repeated greeting, if one comes within this time.
pub fn answer(socket: &Socket, most: Duration) {
    let (fd, mut room) = (socket.as_raw_fd(), [0u8; 64]);
    if readable(fd, most) {
        let n = sys::recv(fd, &mut room, libc::MSG_DONTWAIT).unwrap_or_default();
        if let Some(greeting) = room.get(..n).filter(|b| super::is_greeting(b)) {
            let _ = summed::send(fd, greeting);
        }
    }
}

/// Waits for the acknowledgement of a batch.
fn acknowledged(fd: RawFd, batch: usize, patience: Duration) -> bool {
    let until = Instant::now() + patience;
    let mut room = [0u8; 64];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        readable(fd, left);
        while let Ok(n) = sys::recv(fd, &mut room, libc::MSG_DONTWAIT) {
            let said = room.get(..n).unwrap_or_default().strip_prefix(ACK.as_slice());
            if said.is_some_and(|said| said == (batch as u32).to_be_bytes()) {
                return true;
            }
        }
    }
}

/// The receiving end of a probe.
#[derive(Debug)]
pub struct Receiver<'a> {
    socket: &'a Socket,
    probe: Probe,
    pieces: &'a Pieces,
    /// How often each piece came.
    came: Vec<u32>,
    counts: OffloadCounts,
    /// Whether it answers greetings, as a server.
    answers: bool,
    room: Vec<u8>,
    /// Time of the last arrival.
    pub last: Instant,
}

impl<'a> Receiver<'a> {
    /// Prepares the socket.
    ///
    /// # Errors
    /// The kernel has not the option that the probe needs.
    pub fn new(
        socket: &'a Socket,
        probe: Probe,
        pieces: &'a Pieces,
        answers: bool,
    ) -> io::Result<Self> {
        let fd = socket.as_raw_fd();
        let _ = socket.set_recv_buffer_size(ROOM);
        if socket.local_addr()?.is_ipv6() && probe == Probe::UdpUnsummed {
            set(fd, libc::IPPROTO_UDP, UDP_NO_CHECK6_RX, 1)?;
        }
        if matches!(probe, Probe::UdpBurstGro | Probe::UdpSegmentedGro) {
            set(fd, libc::IPPROTO_UDP, UDP_GRO, 1)?;
        }
        Ok(Self {
            socket,
            probe,
            pieces,
            came: vec![0; pieces.total()],
            counts: OffloadCounts::default(),
            answers,
            room: vec![0; LARGEST],
            last: Instant::now(),
        })
    }

    /// Receives what is there, or waits up to `most` for more.
    pub fn turn(&mut self, most: Duration) {
        let fd = self.socket.as_raw_fd();
        if !readable(fd, most) {
            return;
        }
        while let Some((n, segment)) = self.receive() {
            self.last = Instant::now();
            let bytes: Vec<u8> = self.room.get(..n).unwrap_or_default().to_vec();
            let merged = segment.filter(|s| *s > 0 && *s < n);
            self.counts.received_merged += u64::from(merged.is_some());
            bytes.chunks(merged.unwrap_or(n.max(1))).for_each(|one| self.hear(one));
        }
    }

    /// One datagram, and the size of its segments where the kernel merged several.
    fn receive(&mut self) -> Option<(usize, Option<usize>)> {
        let mut control = [0u8; 64];
        let (flags, fd) = (libc::MSG_DONTWAIT, self.socket.as_raw_fd());
        let (n, used) = sys::recv_control(fd, &mut self.room, &mut control, flags).ok()?;
        Some((n, segment(control.get(..used).unwrap_or_default())))
    }

    fn hear(&mut self, bytes: &[u8]) {
        if super::is_greeting(bytes) {
            // The answer to the first one was lost.
            if self.answers {
                let _ = summed::send(self.socket.as_raw_fd(), bytes);
            }
            return;
        }
        let (number, kind) = compare(self.pieces, bytes);
        match kind {
            Kind::Right => self.counts.right += 1,
            Kind::Damaged => self.counts.damaged += 1,
            Kind::Cut => self.counts.cut += 1,
            Kind::Merged => self.counts.merged += 1,
        }
        let Some(number) = number else { return };
        if let Some(came) = self.came.get_mut(number) {
            *came += 1;
            if *came > 1 {
                self.counts.duplicates += 1;
                self.counts.right -= u64::from(kind == Kind::Right);
            }
        }
        if let Some(batch) = self.pieces.ends_batch(number) {
            let ack = [ACK, (batch as u32).to_be_bytes()].concat();
            let _ = summed::send(self.socket.as_raw_fd(), &ack);
        }
    }

    /// Whether every piece that must come has come.
    pub fn is_complete(&self) -> bool {
        match self.probe {
            Probe::UdpBadSum => self.came.iter().skip(1).step_by(2).all(|n| *n > 0),
            _ => self.came.iter().all(|n| *n > 0),
        }
    }

    /// The receiver's counts; `sent` and `missing` are set by [`super::combine`].
    pub fn counts(&self) -> OffloadCounts {
        let came = |from: usize, step: usize| {
            self.came.iter().skip(from).step_by(step).filter(|n| **n > 0).count() as u64
        };
        match self.probe {
            // Of a wrong checksum nothing may come; the right ones say that the path is there.
            Probe::UdpBadSum => {
                OffloadCounts { damaged: came(0, 2), right: came(1, 2), ..self.counts.clone() }
            }
            _ => self.counts.clone(),
        }
    }

    /// Pieces that came in whatever form.
    pub fn came(&self) -> u64 {
        self.came.iter().filter(|n| **n > 0).count() as u64
    }
}

/// The segment size in a control message `UDP_GRO` (`struct cmsghdr`: length, level, type, value).
fn segment(control: &[u8]) -> Option<usize> {
    let number = |at: usize| -> Option<i32> {
        Some(i32::from_ne_bytes(control.get(at..at + 4)?.try_into().ok()?))
    };
    let at = size_of::<usize>();
    let ours = number(at)? == libc::IPPROTO_UDP && number(at + 4)? == UDP_GRO;
    ours.then(|| number(at + 8)).flatten().and_then(|n| usize::try_from(n).ok())
}
