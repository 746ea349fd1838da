//! UDP streams: numbered datagrams with send times.
//!
//! The header: seconds and microseconds of the sender's clock, then a sequence number from 1, of 32
//! or 64 bits; all big-endian.

use std::{io, mem, os::fd::AsRawFd, sync::atomic::Ordering::Relaxed, time::Duration};

use traffic::net::{now_ns, sys};

use super::{Flow, Load, pace::Pace, sequence::Sequence};

/// Most datagrams read with one call.
const BATCH: usize = 16;
/// Approximate bytes read with one call: what stays in the L1 cache is cheaper to write.
const BATCH_BYTES: usize = 32 << 10;
/// If datagrams arrive singly, a batch read wastes a call each time: this many are read singly
/// before the next batch.
const ALONE: u32 = 8;
/// Datagrams sent with one call without pacing: they share one timestamp.
const SEND_BATCH: usize = 8;
/// Most datagrams of a requested burst sent with one call.
const SEND_MOST: usize = 64;
/// Length in bytes of the longest header: seconds, microseconds, 64-bit number.
const HEADER: usize = 16;
/// Pause after an ICMP error: nothing listens, so full speed is pointless.
const REFUSED_PAUSE: Duration = Duration::from_millis(10);
/// Size of the control buffer for the kernel's receive timestamp.
const CONTROL: usize = 64;

/// Number of datagrams of `len` bytes read with one call.
pub fn batch(len: usize) -> usize {
    (BATCH_BYTES / len.max(1)).clamp(1, BATCH)
}

fn io_vector(bytes: &mut [u8]) -> libc::iovec {
    libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() }
}

/// An empty message header. (Not all platforms have the same private fields.)
fn empty_message() -> libc::mmsghdr {
    // SAFETY: zero is a valid value of every field.
    unsafe { mem::zeroed() }
}

/// Sends datagrams until told to stop.
pub fn send(flow: &Flow, load: &Load) {
    let fd = flow.socket.as_raw_fd();
    let pace = Pace::new(load.rate);
    let many = match (&pace, load.burst) {
        (None, _) => SEND_BATCH,
        (Some(_), burst) => (burst.max(1) as usize).min(SEND_MOST),
    };
    let head = if load.counters_64bit { HEADER } else { HEADER - 4 }.min(load.payload.len());
    let body = load.payload.get(head..).unwrap_or_default();
    let mut headers = vec![[0u8; HEADER]; many];
    let mut parts: Vec<[libc::iovec; 2]> = headers
        .iter_mut()
        .map(|h| {
            let header = io_vector(h.get_mut(..head).unwrap_or_default());
            // The kernel only reads it.
            let body =
                libc::iovec { iov_base: body.as_ptr().cast_mut().cast(), iov_len: body.len() };
            [header, body]
        })
        .collect();
    let mut messages: Vec<libc::mmsghdr> = parts
        .iter_mut()
        .map(|p| {
            let mut m = empty_message();
            m.msg_hdr.msg_iov = p.as_mut_ptr();
            m.msg_hdr.msg_iovlen = p.len() as _;
            m
        })
        .collect();
    let (mut sent, mut bytes, mut refused) = (0u64, 0u64, 0u64);
    while !flow.stopped() {
        let now = now_ns();
        for (n, header) in (sent + 1..).zip(&mut headers) {
            stamp(header, now, n, load.counters_64bit);
        }
        // SAFETY: headers, parts and messages live until the end of this function and are not
        // moved; the kernel writes only the lengths of the messages.
        let n = unsafe {
            libc::sendmmsg(
                fd,
                messages.as_mut_ptr(),
                messages.len() as u32,
                libc::MSG_NOSIGNAL as _,
            )
        };
        if n < 0 {
            let e = io::Error::last_os_error();
            match e.raw_os_error() {
                Some(libc::EINTR) => {}
                Some(libc::ENOBUFS | libc::EAGAIN) => {
                    refused += 1;
                    flow.gauges.refused.store(refused, Relaxed);
                }
                // Nothing listens there; the control connection tells more.
                Some(libc::ECONNREFUSED) => std::thread::sleep(REFUSED_PAUSE),
                _ => return flow.fail(&e),
            }
            continue;
        }
        sent += n as u64;
        bytes += n as u64 * load.payload.len() as u64;
        flow.gauges.datagrams.store(sent, Relaxed);
        flow.gauges.bytes.store(bytes, Relaxed);
        if pace.as_ref().is_some_and(|p| !p.wait(bytes, flow)) {
            return;
        }
    }
}

#[inline]
fn stamp(header: &mut [u8; HEADER], now: u64, number: u64, wide: bool) {
    let seconds = (now / 1_000_000_000) as u32;
    let micros = (now % 1_000_000_000 / 1000) as u32;
    let time = u64::from(seconds) << 32 | u64::from(micros);
    let number = if wide { number } else { number << 32 };
    let all = u128::from(time) << 64 | u128::from(number);
    *header = all.to_be_bytes();
}

/// Sequence number and send time; `None` if the datagram is too short.
#[inline]
pub fn read(datagram: &[u8], wide: bool, sequence: &Sequence) -> Option<(u64, u64)> {
    let four = |at: usize| Some(u32::from_be_bytes(datagram.get(at..at + 4)?.try_into().ok()?));
    let sent = u64::from(four(0)?)
        .saturating_mul(1_000_000_000)
        .saturating_add(u64::from(four(4)?) * 1000);
    let low = four(8)?;
    let number = match wide {
        true => u64::from(low) << 32 | u64::from(four(12)?),
        false => sequence.widen(low),
    };
    Some((number, sent))
}

/// Receives until told to stop.
pub fn receive(flow: &Flow, load: &Load) {
    let fd = flow.socket.as_raw_fd();
    let len = load.payload.len();
    let many = batch(len);
    // Without kernel timestamps, the time of reading is used.
    let stamped = stamp_arrivals(fd);
    // If bytes are not copied, only the header is read.
    let view = if load.skip_copy { len.min(HEADER) } else { len };
    let flags = if load.skip_copy { libc::MSG_TRUNC } else { 0 } | libc::MSG_WAITFORONE;
    let mut data = vec![0u8; many * view];
    let mut control = vec![[0u64; CONTROL / 8]; many];
    let mut parts: Vec<libc::iovec> = data.chunks_exact_mut(view).map(io_vector).collect();
    let mut messages: Vec<libc::mmsghdr> = parts
        .iter_mut()
        .map(|p| {
            let mut m = empty_message();
            m.msg_hdr.msg_iov = p;
            m.msg_hdr.msg_iovlen = 1;
            m
        })
        .collect();
    let mut sequence = Sequence::default();
    let mut bytes = 0u64;
    let mut alone = 0u32;
    while !flow.stopped() {
        let ask = if alone > 0 { 1 } else { many };
        for (m, c) in messages.iter_mut().zip(&mut control).take(ask) {
            m.msg_hdr.msg_control = c.as_mut_ptr().cast();
            m.msg_hdr.msg_controllen = CONTROL as _;
        }
        // SAFETY: data, control, parts and messages live until the end of this function and
        // are not moved.
        let n = unsafe {
            libc::recvmmsg(fd, messages.as_mut_ptr(), ask as u32, flags as _, std::ptr::null_mut())
        };
        if n < 0 {
            let e = io::Error::last_os_error();
            match e.raw_os_error() {
                Some(libc::EINTR) => continue,
                // Nothing arrived except an ICMP error for an earlier send.
                Some(libc::ECONNREFUSED) => {
                    std::thread::sleep(REFUSED_PAUSE);
                    continue;
                }
                _ => return flow.fail(&e),
            }
        }
        alone = match (ask, n) {
            (1, _) => alone.saturating_sub(1),
            (_, 1) => ALONE,
            _ => 0,
        };
        let read_at = if stamped { 0 } else { now_ns() };
        let came = messages.iter().zip(data.chunks_exact(view)).zip(&control).take(n as usize);
        for ((message, datagram), control) in came {
            let arrived = arrival(&message.msg_hdr, control).unwrap_or(read_at);
            let size = message.msg_len as usize;
            let datagram = datagram.get(..size.min(view)).unwrap_or_default();
            if let Some((number, sent)) = read(datagram, load.counters_64bit, &sequence) {
                sequence.record(number, sent, arrived);
                bytes += size as u64;
            }
        }
        publish(flow, &sequence, bytes);
    }
}

#[inline]
fn publish(flow: &Flow, sequence: &Sequence, bytes: u64) {
    let g = &flow.gauges;
    g.bytes.store(bytes, Relaxed);
    g.datagrams.store(sequence.received, Relaxed);
    g.highest.store(sequence.highest, Relaxed);
    g.reordered.store(sequence.reordered, Relaxed);
    g.duplicates.store(sequence.duplicates, Relaxed);
    g.jitter_ns.store(sequence.jitter_ns as u64, Relaxed);
}

/// Enables kernel receive timestamps: the time of reading would include this thread's wake-up
/// latency, and be the same for a whole batch.
fn stamp_arrivals(fd: i32) -> bool {
    sys::set_option(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1i32).is_ok()
}

/// The kernel's receive timestamp, from the control data.
#[inline]
fn arrival(header: &libc::msghdr, _control: &[u64; CONTROL / 8]) -> Option<u64> {
    // SAFETY: the kernel wrote the control data, whose length it set, into the buffer that is
    // borrowed here; the timespec may lie unaligned.
    unsafe {
        let c = libc::CMSG_FIRSTHDR(header);
        if c.is_null()
            || (*c).cmsg_level != libc::SOL_SOCKET
            || (*c).cmsg_type != libc::SCM_TIMESTAMPNS
        {
            return None;
        }
        let t: libc::timespec = libc::CMSG_DATA(c).cast::<libc::timespec>().read_unaligned();
        Some((t.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(t.tv_nsec as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stamped_reads_the_same() {
        let mut header = [0; HEADER];
        let now = 5_000_000_123_456_789;
        stamp(&mut header, now, 7, false);
        let sequence = Sequence::default();
        assert_eq!(read(&header, false, &sequence), Some((7, now / 1000 * 1000)));
        stamp(&mut header, now, 1 << 40, true);
        assert_eq!(read(&header, true, &sequence), Some((1 << 40, now / 1000 * 1000)));
        assert_eq!(read(&[0; 11], false, &sequence), None);
        assert_eq!(read(&[0; 15], true, &sequence), None);
    }

    #[test]
    fn a_batch_is_bounded_by_datagrams_and_bytes() {
        assert_eq!((batch(16), batch(1460), batch(32 << 10), batch(65_507)), (16, 16, 1, 1));
    }
}
