//! Sends and receives the TCP batches of a probe. The receiver acknowledges each batch.

use std::{
    io,
    os::fd::AsRawFd,
    time::{Duration, Instant},
};

use model::measure::{OffloadCounts, OffloadProbe as Probe};
use socket2::Socket;

use super::{pieces::Pieces, readable};
use crate::{net::sys, stream::tcp_info::TcpInfo};

/// Time to wait for a batch or its acknowledgement: several retransmission timeouts.
const PATIENCE: Duration = Duration::from_millis(1500);
/// A probe that took longer ends after its batch: retransmissions made it slow.
const LONGEST: Duration = Duration::from_secs(1);

/// Sends all batches, each after the acknowledgement of the one before; `progress` hears how many
/// pieces were sent.
///
/// # Errors
/// As the kernel says.
pub fn send(
    socket: &Socket,
    probe: Probe,
    pieces: &Pieces,
    progress: &dyn Fn(u64) -> bool,
) -> io::Result<OffloadCounts> {
    let fd = socket.as_raw_fd();
    socket.set_nonblocking(false)?;
    socket.set_write_timeout(Some(PATIENCE))?;
    let retransmits = || TcpInfo::read(fd).and_then(|i| i.retransmits).unwrap_or_default();
    let (first, begun) = (retransmits(), Instant::now());
    let (mut counts, mut seq) = (OffloadCounts::default(), 0);
    for batch in &pieces.batches {
        let before = retransmits();
        let all: Vec<Vec<u8>> = (seq..seq + batch.len()).map(|n| pieces.bytes(n)).collect();
        seq += batch.len();
        let sent = match probe {
            Probe::TcpBulk => whole(fd, &all.concat(), 0),
            // The end of a record: the kernel appends nothing to this segment. More follows: it
            // carries no PSH, which would keep the receiver from merging.
            _ => all.iter().enumerate().all(|(n, one)| {
                let more = if n + 1 < all.len() { libc::MSG_MORE } else { 0 };
                whole(fd, one, libc::MSG_EOR | more)
            }),
        };
        counts.sent += all.len() as u64;
        counts.batches += 1;
        let known = progress(counts.sent);
        counts.stalled = !sent || read(fd, &mut [0; 4]) < 4;
        counts.batches_retransmitted += u64::from(retransmits() > before);
        if counts.stalled || !known || begun.elapsed() > LONGEST {
            break;
        }
    }
    counts.retransmits = retransmits().saturating_sub(first);
    let _ = socket.shutdown(std::net::Shutdown::Write);
    Ok(counts)
}

fn whole(fd: i32, mut bytes: &[u8], flags: i32) -> bool {
    while !bytes.is_empty() {
        match sys::send(fd, bytes, flags) {
            Ok(n) => bytes = bytes.get(n..).unwrap_or_default(),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return false,
        }
    }
    true
}

/// Reads until `into` is full, the other end closed, or [`PATIENCE`] is over; bytes read.
fn read(fd: i32, into: &mut [u8]) -> usize {
    let (until, mut got) = (Instant::now() + PATIENCE, 0);
    while got < into.len() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || !readable(fd, left) {
            if left.is_zero() { break } else { continue }
        }
        match sys::recv(fd, into.get_mut(got..).unwrap_or_default(), libc::MSG_DONTWAIT) {
            Ok(0) => break,
            Ok(n) => got += n,
            Err(e)
                if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(_) => break,
        }
    }
    got
}

/// Receives all batches and compares them.
pub fn receive(socket: &Socket, pieces: &Pieces) -> OffloadCounts {
    let (fd, mut counts, mut seq) = (socket.as_raw_fd(), OffloadCounts::default(), 0);
    let _ = socket.set_nonblocking(false);
    let _ = socket.set_tcp_nodelay(true);
    for batch in &pieces.batches {
        let mut bytes = vec![0; batch.iter().sum()];
        let got = read(fd, &mut bytes);
        let mut at = 0;
        for length in batch {
            let one = bytes.get(at..(at + length).min(got)).unwrap_or_default();
            at += length;
            match one.len() == *length {
                true if one == pieces.bytes(seq) => counts.right += 1,
                true => counts.damaged += 1,
                false => {}
            }
            seq += 1;
        }
        if got < bytes.len() || sys::send(fd, b"done", 0).is_err() {
            break;
        }
    }
    counts
}
