//! What processes send and receive by their socket calls.
//!
//! | counts, by process, service port and kind of socket | unit |
//! |---|---|
//! | calls that sent, and that received | number |
//! | their bytes | bytes |
//! | sending calls upon a receiving one on the same socket | number |
//! | receiving calls on another CPU than the socket's last packet came to | number |
//! | receiving calls of sockets of which the kernel does not keep that CPU | number |
//!
//! **Source**: `sock_send_length` and `sock_recv_length` (since Linux 6.3); calls that failed,
//! that only looked (`MSG_PEEK`), and what is spliced out of a socket are not among them. Of
//! all network namespaces. The service's port is the side's that listens (seen at once by
//! `inet_sock_set_state`); where neither side is known to, the one outside the range from which
//! the kernel chooses ports; else, of datagrams, the side's that received first; else the other
//! side's.

use std::io;

use aya::{
    Pod,
    maps::{Array, MapData},
};
use model::{CpuId, Reading};

use super::{
    Object, ProgramSpec,
    double_buffer::{DrainedTable, Own, Sums, TablePair},
};

pub(super) static BYTES: &[u8] =
    aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/messages.bpf.o"));

pub const NAME: &str = "messages";

/// The programs, in the order of their own run counts.
pub const WANTED: [ProgramSpec; 3] = [
    ProgramSpec { program: "sock_send_length", gives: "sizes of messages, exchanges" },
    ProgramSpec { program: "sock_recv_length", gives: "sizes of messages, exchanges" },
    ProgramSpec {
        program: "inet_sock_set_state",
        gives: "ports that begin to listen while watching",
    },
];

/// Those that run for every call, the first of [`WANTED`].
pub const CALLS: [&str; 2] = ["sock_send_length", "sock_recv_length"];

/// A socket of a stream over IP.
pub const STREAM: u8 = 0;
pub const DATAGRAMS: u8 = 1;
pub const UNIX: u8 = 2;

/// The owner of the messages; the layout of `struct service`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(C)]
pub struct Key {
    pub pid: u32,
    /// The service's port, 0 where it is not known.
    pub port: u16,
    /// [`STREAM`], [`DATAGRAMS`] or [`UNIX`].
    pub kind: u8,
    /// Parts of one sum.
    pub shard: u8,
}

// SAFETY: plain numbers without padding, any bits are valid.
unsafe impl Pod for Key {}

/// The sums; the layout of `struct messages`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Calls {
    pub sends: u64,
    /// Bytes of all sends.
    pub sent_bytes: u64,
    pub receives: u64,
    /// Bytes of all receives.
    pub received_bytes: u64,
    /// Sending calls that follow a receiving one.
    pub exchanges: u64,
    /// Receiving calls on another CPU than the one that had the packets.
    pub elsewhere: u64,
    /// Those of which that is not known.
    pub unplaced: u64,
    /// The calling thread's short name, ended by a zero byte.
    pub name: [u8; 16],
}

// SAFETY: plain numbers without padding, any bits are valid.
unsafe impl Pod for Calls {}

impl Calls {
    fn numbers(&mut self) -> [&mut u64; 7] {
        [
            &mut self.sends,
            &mut self.sent_bytes,
            &mut self.receives,
            &mut self.received_bytes,
            &mut self.exchanges,
            &mut self.elsewhere,
            &mut self.unplaced,
        ]
    }
}

impl Sums for Calls {
    fn add(&mut self, more: &Self) {
        let mut more = *more;
        self.numbers().into_iter().zip(more.numbers()).for_each(|(sum, n)| *sum += *n);
    }

    fn since(&self, before: &Self) -> Self {
        let (mut now, mut before) = (*self, *before);
        let pairs = now.numbers().into_iter().zip(before.numbers());
        pairs.for_each(|(now, then)| *now = now.wrapping_sub(*then));
        now
    }
}

/// Marks of 64 ports; the layout of `struct ports`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Ports([u8; 64]);

// SAFETY: plain bytes, any bits are valid.
unsafe impl Pod for Ports {}

#[derive(Debug)]
pub struct MessageCalls {
    pub object: Object,
    tables: TablePair<Key, Calls>,
}

impl MessageCalls {
    /// Attaches. `listening` are the TCP ports of services here; from `first_chosen` on the
    /// kernel chooses ports by itself.
    ///
    /// # Errors
    /// See [`Object::load`]; or one of the two programs that count is refused.
    pub fn attach(
        possible: Vec<CpuId>,
        listening: &[u16],
        first_chosen: u16,
    ) -> Result<Self, Reading<()>> {
        let mut object = Object::load(NAME, BYTES, &WANTED, possible)?;
        object.needs(&CALLS)?;
        // The marks before the table is opened: what a socket is for is decided once.
        let begun = chosen_from(&mut object, first_chosen)
            .and_then(|()| mark(&mut object, listening, true))
            .and_then(|()| TablePair::open(&mut object, "calls"));
        let tables = begun.map_err(|e| Reading::absent(format!("{NAME}: {e}")))?;
        Ok(Self { object, tables })
    }

    /// Marks the ports of services that came or went.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn mark(&mut self, ports: &[u16], listening: bool) -> io::Result<()> {
        mark(&mut self.object, ports, listening)
    }

    /// How often each of [`CALLS`] ran since they were loaded, by CPU.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn cpus(&self) -> io::Result<Vec<(CpuId, Vec<u64>)>> {
        let own = self.object.of_cpus::<Own>("own")?;
        let runs = |(cpu, own): (CpuId, Own)| (cpu, own.runs[..CALLS.len()].to_vec());
        Ok(own.into_iter().map(runs).collect())
    }

    /// Calls since the last time.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn take(&mut self) -> io::Result<DrainedTable<Key, Calls>> {
        self.tables.take(&mut self.object)
    }
}

fn chosen_from(object: &mut Object, first: u16) -> io::Result<()> {
    let mut map: Array<&mut MapData, u32> = object.map_mut("first_chosen")?;
    map.set(0, u32::from(first), 0).map_err(io::Error::other)
}

fn mark(object: &mut Object, ports: &[u16], listening: bool) -> io::Result<()> {
    let mut map: Array<&mut MapData, Ports> = object.map_mut("listening")?;
    for port in ports {
        let row = u32::from(port / 64);
        let mut marks = map.get(&row, 0).map_err(io::Error::other)?;
        if let Some(mark) = marks.0.get_mut(usize::from(port % 64)) {
            *mark = u8::from(listening);
        }
        map.set(row, marks, 0).map_err(io::Error::other)?;
    }
    Ok(())
}
