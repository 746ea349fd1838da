//! Data connections: one thread for each; its counters can be read while it runs.

mod flow_threads;
mod pace;
pub mod sequence;
mod tcp;
pub mod udp;

use std::{
    fs::File,
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering::Relaxed},
    },
};

use socket2::Socket;
use traffic::net::{now_ns, wake::Sleeper};

use super::{params::Params, sock, wire::client_results_limit};
pub use flow_threads::{FlowCounters, FlowSnapshot, FlowThreads};

/// Smallest read buffer for TCP: smaller reads only cost more calls.
const READ_MIN: usize = 128 << 10;
const READ_MAX: usize = 256 << 10;
/// Worst-case memory of a parsed JSON text, as a multiple of its length.
const PARSED: usize = 32;

/// Data and parameters for each thread of a test.
pub struct Load {
    pub udp: bool,
    pub counters_64bit: bool,
    /// Data sent repeatedly by all threads.
    payload: Arc<[u8]>,
    /// The same data in a file, for `sendfile`.
    file: Option<File>,
    /// Bits per second of one flow; 0 for no limit.
    pub rate: u64,
    /// Blocks sent back to back when pacing.
    burst: u32,
    skip_copy: bool,
}

impl Load {
    /// # Errors
    /// No memory file could be made.
    pub fn new(asked: &Params) -> io::Result<Self> {
        let payload = payload(asked.len, asked.repeating_payload);
        let file = match asked.zerocopy && !asked.udp {
            true => Some(sock::in_memory(&payload)?),
            false => None,
        };
        Ok(Self {
            udp: asked.udp,
            counters_64bit: asked.udp_counters_64bit,
            payload: payload.into(),
            file,
            rate: asked.rate,
            burst: asked.burst,
            skip_copy: asked.skip_rx_copy,
        })
    }

    /// Memory of a test in bytes, without kernel buffers.
    pub fn memory(asked: &Params) -> usize {
        let each = match asked.udp {
            true => udp::batch(asked.len) * asked.len,
            false => asked.len.clamp(READ_MIN, READ_MAX),
        };
        let said = client_results_limit(asked.streams()) * PARSED;
        asked.len * 2 + asked.streams() * (each + flow_threads::STACK) + said
    }
}

/// Repeating digits, or random bytes that no link can compress.
fn payload(len: usize, repeating: bool) -> Vec<u8> {
    if repeating {
        return b"0123456789".iter().copied().cycle().take(len).collect();
    }
    // xorshift64, Marsaglia 2003.
    let mut x = now_ns() | 1;
    let mut next = || {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        x
    };
    (0..len.div_ceil(8)).flat_map(|_| next().to_ne_bytes()).take(len).collect()
}

pub struct Flow {
    pub id: u64,
    pub sends: bool,
    pub socket: Socket,
    gauges: Gauges,
    stop: AtomicBool,
    sleeper: Sleeper,
}

/// A thread's counters. The thread is the only writer: plain stores, no read-modify-write.
#[derive(Default)]
#[repr(align(128))]
struct Gauges {
    bytes: AtomicU64,
    /// UDP: datagrams sent, or received without duplicates.
    datagrams: AtomicU64,
    /// UDP: the highest sequence number received.
    highest: AtomicU64,
    reordered: AtomicU64,
    duplicates: AtomicU64,
    jitter_ns: AtomicU64,
    /// UDP: datagrams that the kernel had no room for.
    refused: AtomicU64,
    /// Errno if the thread ended by itself.
    failed: AtomicI32,
    /// CPU time of the ended thread in user and kernel mode.
    user_ns: AtomicU64,
    system_ns: AtomicU64,
}

impl Flow {
    pub fn new(id: u64, sends: bool, socket: Socket) -> Self {
        Self {
            id,
            sends,
            socket,
            gauges: Gauges::default(),
            stop: AtomicBool::new(false),
            sleeper: Sleeper::default(),
        }
    }

    fn stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }

    fn fail(&self, e: &io::Error) {
        self.gauges.failed.store(e.raw_os_error().unwrap_or(libc::EIO), Relaxed);
    }

    /// Why its thread ended by itself, if it did.
    pub fn failed(&self) -> Option<io::Error> {
        match self.gauges.failed.load(Relaxed) {
            0 => None,
            n => Some(io::Error::from_raw_os_error(n)),
        }
    }

    /// Sends or receives until told to stop.
    fn work(&self, load: &Load) {
        match (load.udp, self.sends) {
            (false, true) => tcp::send(self, load),
            (false, false) => tcp::receive(self, load),
            (true, true) => udp::send(self, load),
            (true, false) => udp::receive(self, load),
        }
        let (user, system) = own_cpu_ns();
        self.gauges.user_ns.store(user, Relaxed);
        self.gauges.system_ns.store(system, Relaxed);
    }
}

/// CPU time of the calling thread in user and kernel mode. The kernel splits the exact total by
/// ticks.
pub fn own_cpu_ns() -> (u64, u64) {
    // SAFETY: the kernel writes one rusage, of which zero is a valid value.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
        usage
    };
    let ns = |t: libc::timeval| {
        (t.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(t.tv_usec as u64 * 1000)
    };
    (ns(usage.ru_utime), ns(usage.ru_stime))
}
