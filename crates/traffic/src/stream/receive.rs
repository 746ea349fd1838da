//! Receives on one socket: all available bytes with each call, into one buffer that stays in the
//! cache.

use std::{
    collections::{BTreeMap, HashMap},
    io,
    net::SocketAddr,
    os::fd::{AsFd, BorrowedFd, RawFd},
};

use model::measure::{SPIN_NS, Transport, Wait};
use socket2::{SockAddr, SockRef};

use super::{
    StreamShape,
    datagram::{self, Arrivals},
    lowat::LowWater,
    shared_counts::{Ledger, put},
};
use crate::{
    Error,
    engine::{
        ran_on::{RanOn, current_cpu},
        rx_cpu_samples::RxCpuSamples,
        wait::server_gone,
        worker_pool::{Worker, WorkerPool},
    },
    net::{now_ns, sys},
};

/// Size of the receive buffer: half of a common second-level cache.
pub const ROOM: usize = 512 << 10;
/// Reads the receiving CPU once per this many receive calls.
const LOOK_EVERY: u64 = 1024;
/// Polls without data between two checks of the time.
const QUESTIONS: u32 = 256;

/// A socket to receive on.
#[derive(Debug)]
pub struct ReceiveSocket<'a> {
    pub socket: BorrowedFd<'a>,
    pub fd: RawFd,
    pub index: u32,
    /// UDP: client addresses with their flow numbers; empty for a connected socket.
    pub peers: BTreeMap<SocketAddr, u32>,
}

/// Why nothing was received.
#[derive(Debug)]
pub enum Nothing {
    /// Nothing is available now.
    Yet,
    /// The kernel's error of the socket.
    Broken(io::Error),
}

fn recv(fd: RawFd, room: &mut [u8], flags: i32) -> Result<usize, Nothing> {
    sys::recv(fd, room, flags).map_err(|e| match e.kind() {
        io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock => Nothing::Yet,
        _ => Nothing::Broken(e),
    })
}

/// Receives in the given way; returns [`Nothing::Yet`] at times, so that the caller can check the
/// time.
///
/// # Errors
/// [`Nothing::Yet`] when a receive found no data or was interrupted; [`Nothing::Broken`] with the
/// kernel's error of the socket.
#[inline]
pub fn wait_for(fd: RawFd, room: &mut [u8], flags: i32, wait: Wait) -> Result<usize, Nothing> {
    if matches!(wait, Wait::Block | Wait::BusyPoll) {
        return recv(fd, room, flags);
    }
    let until = match wait {
        Wait::SpinThenBlock => now_ns() + SPIN_NS.0,
        _ => 0,
    };
    loop {
        for _ in 0..QUESTIONS {
            match recv(fd, room, flags | libc::MSG_DONTWAIT) {
                Err(Nothing::Yet) => {}
                other => return other,
            }
            if until > 0 && now_ns() >= until {
                return recv(fd, room, flags);
            }
        }
        if until == 0 {
            return Err(Nothing::Yet);
        }
    }
}

/// A thread's notes on its receive calls.
#[derive(Debug)]
pub struct Notes {
    ran_on: RanOn,
    rx_cpus: RxCpuSamples,
    done: u64,
}

impl Notes {
    pub fn new(fd: RawFd) -> Self {
        Self { ran_on: RanOn::default(), rx_cpus: RxCpuSamples::new(fd), done: 0 }
    }

    #[inline]
    pub fn one(&mut self, worker: &Worker) {
        self.done += 1;
        self.ran_on.on(current_cpu());
        worker.handled(self.done);
        if self.done % LOOK_EVERY == 1 {
            self.rx_cpus.sample();
        }
    }

    pub fn tell(mut self, worker: &Worker) {
        worker.see(|seen| {
            self.ran_on.tell(seen);
            self.rx_cpus.add_to(seen);
        });
    }
}

/// The `recv` flag that makes the kernel discard the bytes.
pub fn flags(shape: &StreamShape) -> i32 {
    if shape.skip_receive_copy { libc::MSG_TRUNC } else { 0 }
}

/// Receives on one socket until the pool ends.
///
/// # Errors
/// The flow ended early.
pub fn one(
    ear: &ReceiveSocket<'_>,
    shape: &StreamShape,
    ledger: &Ledger,
    greeting: &[u8],
    pool: &WorkerPool,
    worker: &Worker,
) -> Result<(), Error> {
    let mut notes = Notes::new(ear.fd);
    let result = match shape.bytes() {
        true => stream(ear, shape, ledger, pool, worker, &mut notes),
        false => datagrams(ear, shape, ledger, greeting, pool, worker, &mut notes),
    };
    notes.tell(worker);
    result
}

fn stream(
    ear: &ReceiveSocket<'_>,
    shape: &StreamShape,
    ledger: &Ledger,
    pool: &WorkerPool,
    worker: &Worker,
    notes: &mut Notes,
) -> Result<(), Error> {
    let Some(counts) = ledger.flows.get(ear.index as usize) else { return Ok(()) };
    let mut room = vec![1u8; ROOM];
    let (flags, mut got) = (flags(shape), 0u64);
    let sleeps = shape.transport == Transport::Tcp && shape.wait != Wait::Spin;
    let mut low_water = sleeps.then(|| LowWater::new(ear.socket, now_ns()));
    while !pool.stopping() {
        match wait_for(ear.fd, &mut room, flags, shape.wait) {
            Ok(0) => return Err(server_gone(None)),
            Ok(n) => {
                got += n as u64;
                put(&counts.received_bytes, got);
                notes.one(worker);
                if let Some(low_water) = &mut low_water {
                    low_water.received(n as u64, now_ns());
                }
            }
            Err(Nothing::Yet) => {}
            Err(Nothing::Broken(e)) => return Err(server_gone(Some(&e))),
        }
    }
    Ok(())
}

fn datagrams(
    ear: &ReceiveSocket<'_>,
    shape: &StreamShape,
    ledger: &Ledger,
    greeting: &[u8],
    pool: &WorkerPool,
    worker: &Worker,
    notes: &mut Notes,
) -> Result<(), Error> {
    let mut inbox = Inbox::new(ear, shape, greeting);
    while !pool.stopping() {
        match inbox.take(shape.wait, ledger) {
            Ok(true) => notes.one(worker),
            Ok(false) | Err(Nothing::Yet) => {}
            // Nothing listens at the other end: at the client this ends the test.
            Err(Nothing::Broken(e)) if shape.local => return Err(server_gone(Some(&e))),
            Err(Nothing::Broken(_)) => {}
        }
    }
    Ok(())
}

/// Datagrams received on one socket.
#[derive(Debug)]
pub struct Inbox<'a> {
    ear: &'a ReceiveSocket<'a>,
    greeting: Vec<u8>,
    length: usize,
    flags: i32,
    room: Vec<u8>,
    flows: Vec<(u32, Arrivals)>,
    slots: HashMap<SocketAddr, usize>,
}

impl<'a> Inbox<'a> {
    /// An inbox that has received nothing.
    pub fn new(ear: &'a ReceiveSocket<'a>, shape: &StreamShape, greeting: &[u8]) -> Self {
        // Copies only the header if the rest is discarded. Otherwise one byte more than a datagram,
        // to detect a longer one.
        let room = if shape.skip_receive_copy { 64 } else { shape.message_bytes.max(64) + 1 };
        let indices: Vec<u32> = match ear.peers.is_empty() {
            true => vec![ear.index],
            false => ear.peers.values().copied().collect(),
        };
        Self {
            ear,
            greeting: greeting.to_vec(),
            length: shape.message_bytes,
            flags: flags(shape),
            room: vec![1; room],
            flows: indices.into_iter().map(|i| (i, Arrivals::default())).collect(),
            slots: ear.peers.keys().enumerate().map(|(slot, a)| (*a, slot)).collect(),
        }
    }

    /// Receives one datagram; returns whether it was one of ours.
    ///
    /// # Errors
    /// See [`Nothing`].
    #[inline]
    pub fn take(&mut self, wait: Wait, ledger: &Ledger) -> Result<bool, Nothing> {
        if self.slots.is_empty() {
            let n = wait_for(self.ear.fd, &mut self.room, self.flags, wait)?;
            return Ok(self.file(0, n, None, ledger));
        }
        let (n, from) = self.take_from_anyone(wait)?;
        let Some(address) = from.as_socket() else { return Ok(false) };
        match self.slots.get(&address).copied() {
            Some(slot) => Ok(self.file(slot, n, Some(&from), ledger)),
            None => Ok(false),
        }
    }

    /// Receives an available datagram; `None` if there is none. An error counts as none: it means
    /// that nothing listened at some time.
    pub fn take_now(&mut self, ledger: &Ledger) -> Option<bool> {
        // The socket is non-blocking, so every way of waiting tries once.
        match self.take(Wait::Block, ledger) {
            Ok(ours) => Some(ours),
            Err(Nothing::Broken(_)) => Some(false),
            Err(Nothing::Yet) => None,
        }
    }

    fn take_from_anyone(&mut self, wait: Wait) -> Result<(usize, SockAddr), Nothing> {
        let flags = match wait {
            Wait::Spin => self.flags | libc::MSG_DONTWAIT,
            _ => self.flags,
        };
        // SAFETY: initialised bytes are valid as possibly uninitialised ones, and the kernel
        // only writes initialised ones.
        let room = unsafe {
            std::slice::from_raw_parts_mut(self.room.as_mut_ptr().cast(), self.room.len())
        };
        SockRef::from(&self.ear.socket).recv_from_with_flags(room, flags).map_err(|e| {
            match e.kind() {
                io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock => Nothing::Yet,
                _ => Nothing::Broken(e),
            }
        })
    }

    #[inline]
    fn file(&mut self, slot: usize, n: usize, from: Option<&SockAddr>, ledger: &Ledger) -> bool {
        let now = now_ns();
        let bytes = self.room.get(..n.min(self.room.len())).unwrap_or_default();
        let read = if n == self.length { datagram::read(bytes) } else { None };
        let Some((number, sent_ns)) = read else {
            self.greet_again(n, from);
            return false;
        };
        let Some((index, arrivals)) = self.flows.get_mut(slot) else { return false };
        let Some(counts) = ledger.flows.get(*index as usize) else { return false };
        arrivals.take(number, sent_ns, now, n as u64, counts);
        true
    }

    /// Answers a repeated greeting, since the first answer was lost.
    #[cold]
    fn greet_again(&self, n: usize, from: Option<&SockAddr>) {
        let bytes = self.room.get(..n).unwrap_or_default();
        if self.greeting.is_empty() || !bytes.starts_with(&self.greeting) {
            return;
        }
        let socket = self.ear.socket.as_fd();
        let socket = SockRef::from(&socket);
        let _ = match from {
            Some(to) => socket.send_to(bytes, to),
            None => socket.send(bytes),
        };
    }
}
