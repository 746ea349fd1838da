//! Sends on one flow, at full speed or by schedule.

use std::{
    io,
    os::fd::{OwnedFd, RawFd},
};

use model::measure::{SPIN_NS, Wait, ZeroCopy};
use probe::samples::clock::sleep_until;
use socket2::SockAddr;

use super::{
    StreamShape,
    datagram::{self, HEADER},
    pace::{Pacer, piece},
    shared_counts::{Ledger, SharedCounts, put},
    zerocopy::{self, REAP_EVERY},
};
use crate::{
    Error,
    engine::{
        ran_on::{RanOn, current_cpu},
        wait::server_gone,
        worker_pool::{Worker, WorkerPool},
    },
    net::{now_ns, sys},
};

/// The data to send repeatedly.
#[derive(Debug)]
pub enum Source {
    /// Bytes that the kernel copies.
    Plain(Vec<u8>),
    /// Bytes that the kernel pins (`MSG_ZEROCOPY`).
    Pinned(Vec<u8>),
    /// A memory file and its length (`sendfile`).
    File(OwnedFd, usize),
}

impl Source {
    /// The source for this kind of sending.
    ///
    /// # Errors
    /// No memory file could be made.
    pub fn new(shape: &StreamShape, length: usize) -> io::Result<Self> {
        // Written to, so that it is real memory and not the kernel's shared zero page.
        let bytes: Vec<u8> = (0..length).map(|i| (i % 251) as u8).collect();
        Ok(match shape.zerocopy {
            None => Self::Plain(bytes),
            Some(ZeroCopy::Msg) => Self::Pinned(bytes),
            Some(ZeroCopy::Sendfile) => Self::File(zerocopy::file_of(&bytes)?, length),
        })
    }

    /// Bytes of one send call.
    pub fn length(&self) -> usize {
        match self {
            Self::Plain(b) | Self::Pinned(b) => b.len(),
            Self::File(_, n) => *n,
        }
    }
}

/// A flow to send on.
#[derive(Debug)]
pub struct Lane {
    pub fd: RawFd,
    pub index: u32,
    /// Destination address, if the socket is not connected.
    pub to: Option<SockAddr>,
    /// Payload bytes sent so far on this flow.
    pub sent: u64,
    number: u64,
    unreaped: u32,
}

fn send(fd: RawFd, bytes: &[u8], flags: i32) -> io::Result<usize> {
    sys::send(fd, bytes, flags)
}

impl Lane {
    /// A flow with nothing sent yet.
    pub fn new(fd: RawFd, index: u32, to: Option<SockAddr>) -> Self {
        Self { fd, index, to, sent: 0, number: 0, unreaped: 0 }
    }

    /// Makes one send call of a stream.
    ///
    /// # Errors
    /// As the kernel says; `WouldBlock` where the socket is full.
    #[inline]
    pub fn push(&mut self, source: &Source, counts: &SharedCounts) -> io::Result<usize> {
        let n = match source {
            Source::Plain(bytes) => send(self.fd, bytes, 0)?,
            Source::File(file, length) => zerocopy::send_file(self.fd, file, *length)?,
            Source::Pinned(bytes) => {
                self.unreaped += 1;
                if self.unreaped >= REAP_EVERY {
                    self.unreaped = 0;
                    zerocopy::reap(self.fd, counts);
                }
                send(self.fd, bytes, libc::MSG_ZEROCOPY)?
            }
        };
        self.sent += n as u64;
        put(&counts.sent_bytes, self.sent);
        Ok(n)
    }

    /// Sends one datagram.
    ///
    /// # Errors
    /// As the kernel says.
    #[inline]
    pub fn throw(&mut self, bytes: &mut [u8], now: u64, counts: &SharedCounts) -> io::Result<()> {
        datagram::stamp(bytes, self.number, now);
        match &self.to {
            None => send(self.fd, bytes, 0)?,
            Some(to) => {
                // SAFETY: buffer and address outlive the call and their lengths are given.
                let n = unsafe {
                    libc::sendto(
                        self.fd,
                        bytes.as_ptr().cast(),
                        bytes.len(),
                        libc::MSG_NOSIGNAL,
                        to.as_ptr().cast(),
                        to.len(),
                    )
                };
                usize::try_from(n).map_err(|_| io::Error::last_os_error())?
            }
        };
        self.number += 1;
        self.sent += bytes.len() as u64;
        put(&counts.next_sequence, self.number);
        put(&counts.sent_bytes, self.sent);
        Ok(())
    }
}

/// Meaning of a send error.
#[derive(Debug)]
pub enum Trouble {
    /// The socket has no room now.
    Full,
    Again,
    /// The flow has ended.
    Over(Error),
}

/// Classifies a send error, see [`Trouble`]. At the client, a closed connection fails the test.
pub fn trouble(e: &io::Error) -> Trouble {
    match e.raw_os_error() {
        Some(libc::EINTR) => Trouble::Again,
        Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM) => Trouble::Full,
        Some(libc::EMSGSIZE) => Trouble::Over(Error::Environment(
            "a datagram of this size does not fit: it would have to be fragmented, or is too long"
                .into(),
        )),
        _ => Trouble::Over(server_gone(Some(e))),
    }
}

/// Makes a socket non-blocking.
pub fn nonblocking(fd: RawFd) {
    sys::set_nonblocking(fd);
}

/// Waits for an event on one socket; a completion or an error ends the wait too.
pub fn await_room(fd: RawFd) {
    // A signal ends the wait.
    let _ = sys::poll(&mut [libc::pollfd { fd, events: libc::POLLOUT, revents: 0 }], -1);
}

/// A thread's share of the rate in bits per second, for its number of flows.
pub fn share(shape: &StreamShape, lanes: usize) -> Option<f64> {
    shape.rate_bps.map(|r| r as f64 * lanes as f64 / f64::from(shape.flows.max(1)))
}

/// Bytes of one send call.
pub fn length(shape: &StreamShape, rate: Option<f64>) -> usize {
    match rate {
        Some(rate) if shape.bytes() => piece(shape.message_bytes, rate),
        _ => shape.message_bytes,
    }
}

/// Sends on one flow until the pool ends.
///
/// # Errors
/// The flow ended early.
pub fn one(
    mut lane: Lane,
    shape: &StreamShape,
    ledger: &Ledger,
    pool: &WorkerPool,
    worker: &Worker,
) -> Result<(), Error> {
    let Some(counts) = ledger.flows.get(lane.index as usize) else { return Ok(()) };
    if matches!(shape.wait, Wait::Spin | Wait::SpinThenBlock) {
        nonblocking(lane.fd);
    }
    let rate = share(shape, 1);
    let mut ran_on = RanOn::default();
    let result = match shape.bytes() {
        true => stream(&mut lane, shape, rate, counts, ledger, pool, worker, &mut ran_on),
        false => datagrams(&mut lane, shape, rate, counts, ledger, pool, worker, &mut ran_on),
    };
    worker.see(|seen| ran_on.tell(seen));
    result
}

#[allow(clippy::too_many_arguments, reason = "a loop is handed everything once")]
fn stream(
    lane: &mut Lane,
    shape: &StreamShape,
    rate: Option<f64>,
    counts: &SharedCounts,
    ledger: &Ledger,
    pool: &WorkerPool,
    worker: &Worker,
    ran_on: &mut RanOn,
) -> Result<(), Error> {
    let source = Source::new(shape, length(shape, rate))
        .map_err(|e| Error::io("no file in memory (memfd_create)", &e))?;
    let mut pacer = rate.map(|r| Pacer::new(r, shape.wait));
    let (mut done, mut full_since) = (0u64, 0u64);
    while !pool.stopping() {
        if let Some(pacer) = &mut pacer
            && pacer.turn(pool, ledger).is_none()
        {
            continue;
        }
        match lane.push(&source, counts) {
            Ok(n) => {
                if let Some(pacer) = &mut pacer {
                    pacer.sent(n as u64);
                }
                full_since = 0;
                done += 1;
                ran_on.on(current_cpu());
                worker.handled(done);
            }
            Err(e) => match trouble(&e) {
                _ if pool.stopping() => break,
                Trouble::Again => {}
                Trouble::Full => {
                    if matches!(source, Source::Pinned(_)) && zerocopy::reap(lane.fd, counts) > 0 {
                        continue;
                    }
                    full_since = full(lane.fd, shape.wait, full_since);
                }
                Trouble::Over(why) => return Err(why),
            },
        }
    }
    Ok(())
}

/// Waits for room in the given way; returns the time since when there is none.
fn full(fd: RawFd, wait: Wait, since: u64) -> u64 {
    match wait {
        Wait::Spin => since,
        Wait::SpinThenBlock => {
            let now = now_ns();
            match since {
                0 => now,
                since if now - since < SPIN_NS.0 => since,
                _ => {
                    await_room(fd);
                    0
                }
            }
        }
        Wait::Block | Wait::BusyPoll => {
            await_room(fd);
            0
        }
    }
}

#[allow(clippy::too_many_arguments, reason = "a loop is handed everything once")]
fn datagrams(
    lane: &mut Lane,
    shape: &StreamShape,
    rate: Option<f64>,
    counts: &SharedCounts,
    ledger: &Ledger,
    pool: &WorkerPool,
    worker: &Worker,
    ran_on: &mut RanOn,
) -> Result<(), Error> {
    let mut bytes = vec![0x5au8; shape.message_bytes.max(HEADER)];
    let mut pacer = rate.map(|r| Pacer::new(r, shape.wait));
    let (mut done, mut refused) = (0u64, 0u64);
    while !pool.stopping() {
        if ledger.is_quiet() {
            sleep_until(now_ns() + 20_000_000);
            continue;
        }
        let now = match &mut pacer {
            None => now_ns(),
            Some(pacer) => match pacer.turn(pool, ledger) {
                Some(now) => now,
                None => continue,
            },
        };
        match lane.throw(&mut bytes, now, counts) {
            Ok(()) => {
                done += 1;
                ran_on.on(current_cpu());
                worker.handled(done);
            }
            Err(e) => match trouble(&e) {
                _ if pool.stopping() => break,
                Trouble::Again => continue,
                Trouble::Full => {
                    refused += 1;
                    put(&counts.refused, refused);
                }
                // A firewall may cause this briefly; a datagram that it blocks is not sent.
                Trouble::Over(_) if e.raw_os_error() == Some(libc::EPERM) => {
                    refused += 1;
                    put(&counts.refused, refused);
                }
                // An ICMP error says that nothing listens any more.
                Trouble::Over(why) => return Err(why),
            },
        }
        if let Some(pacer) = &mut pacer {
            pacer.sent(bytes.len() as u64);
        }
    }
    Ok(())
}
