//! What a server makes of each request.
//!
//! | counts, by service port and program | unit |
//! |---|---|
//! | exchanges: sending upon receiving on the same connection | number |
//! | bytes of the request, and of all that was sent until the next | bytes |
//! | calls that sent | number |
//! | queueing: `sk_data_ready` of the request's last data to the first `sock_recv_length` after it | ns, distribution |
//! | wake-up: `sched_waking` to `sched_switch` of the reader, where that data woke it up | ns, distribution |
//! | service: that `sock_recv_length` to the response's first bytes | ns, distribution |
//! | path: TCP's smoothed round trip time as the response leaves (`srtt_us`) | ns, distribution |
//! | least path: TCP's least of the last minutes then (`rtt_min`) | ns, distribution |
//!
//! The response's first bytes leave when TCP hands them down (`tcp_wstamp_ns`); on Unix sockets,
//! and where TCP held them back, by the end of the call (`sock_send_length`): `by_call` counts
//! these. **Source**: tracepoints since Linux 6.3. Connections of TCP whose local port is marked
//! and, where processes are asked for, Unix stream sockets with a name, of all network
//! namespaces. Only sizes and times are taken.

mod times;

use std::io;

use aya::{
    Pod,
    maps::{Array, HashMap, MapData},
};
use model::{CpuId, Reading};

pub use self::times::{BUCKETS, times};
use super::{Object, ProgramSpec};
use crate::samples::clock::monotonic_ns;

pub(super) static BYTES: &[u8] =
    aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/exchanges.bpf.o"));

pub const NAME: &str = "exchanges";

/// When a request's data came.
pub const READY: ProgramSpec = ProgramSpec { program: "sk_data_ready", gives: "queueing" };
/// The programs in the order of [`CpuState::runs`].
pub const PROGRAMS: [ProgramSpec; 6] = [
    READY,
    ProgramSpec { program: "sched_waking", gives: "wake-ups" },
    ProgramSpec { program: "sched_switch", gives: "wake-ups" },
    ProgramSpec { program: "sock_recv_length", gives: "exchanges, all times" },
    ProgramSpec { program: "sock_send_length", gives: "exchanges, all times" },
    ProgramSpec { program: "inet_sock_set_state", gives: "ports that begin to listen meanwhile" },
];

/// The programs without which there is no result.
const NEEDED: [&str; 2] = ["sock_recv_length", "sock_send_length"];

/// Times of an exchange, in the order of [`Sums::buckets`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExchangesPart {
    /// From read to answered.
    Service,
    /// From readable to read.
    Queueing,
    /// From woken up to running.
    Wakeup,
    /// TCP's smoothed round trip.
    Path,
    LeastPath,
}

const PARTS: usize = 5;

pub const TCP: u8 = 0;

/// What the programs hold for each CPU; the layout of `struct cpu_state`.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct CpuState {
    /// How often each of [`PROGRAMS`] ran.
    pub runs: [u64; PROGRAMS.len()],
    /// Exchanges of classes for which there was no room.
    pub lost: u64,
    /// Processes for which there was none.
    pub unnamed: u64,
    scratch: [u64; 2],
    more_scratch: [u32; 2],
}

// SAFETY: plain numbers without padding, any bits are valid.
unsafe impl Pod for CpuState {}

/// A class of connections; the layout of `struct class`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(C)]
pub struct Class {
    /// The program's short name, ended by a zero byte.
    pub name: [u8; 16],
    /// The service's port, 0 for a Unix socket.
    pub port: u16,
    /// [`TCP`], or 1 for a Unix socket.
    pub kind: u8,
    /// Parts of one sum.
    pub shard: u8,
}

// SAFETY: as above.
unsafe impl Pod for Class {}

/// A process that serves; the layout of `struct server`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Server {
    pub class: Class,
    pub pid: u32,
}

// SAFETY: as above.
unsafe impl Pod for Server {}

/// What was added up; the layout of `struct sums`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Sums {
    pub exchanges: u64,
    /// Bytes of their requests.
    pub request_bytes: u64,
    /// Bytes of all responses.
    pub response_bytes: u64,
    pub sends: u64,
    /// Exchanges with a response timed by the end of the sending call.
    pub by_call: u64,
    /// Sum of nanoseconds, by [`ExchangesPart`].
    pub sum_ns: [u64; PARTS],
    /// How many, by [`ExchangesPart`] and bucket.
    pub buckets: [[u32; BUCKETS]; PARTS],
    pad: u32,
}

// SAFETY: as above.
unsafe impl Pod for Sums {}

impl Default for Sums {
    fn default() -> Self {
        Self {
            exchanges: 0,
            request_bytes: 0,
            response_bytes: 0,
            sends: 0,
            by_call: 0,
            sum_ns: [0; PARTS],
            buckets: [[0; BUCKETS]; PARTS],
            pad: 0,
        }
    }
}

impl Sums {
    pub fn add(&mut self, more: &Self) {
        self.exchanges += more.exchanges;
        self.request_bytes += more.request_bytes;
        self.response_bytes += more.response_bytes;
        self.sends += more.sends;
        self.by_call += more.by_call;
        self.sum_ns.iter_mut().zip(more.sum_ns).for_each(|(sum, n)| *sum += n);
        let pairs = self.buckets.as_flattened_mut().iter_mut();
        pairs.zip(more.buckets.as_flattened()).for_each(|(sum, n)| *sum = sum.wrapping_add(*n));
    }
}

/// Marks of 64 ports; the layout of `struct ports`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Ports([u8; 64]);

// SAFETY: plain bytes, any bits are valid.
unsafe impl Pod for Ports {}

/// The layout of `struct asked`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct ExchangeFilter {
    since_ns: u64,
    processes: u32,
    any_port: u32,
}

// SAFETY: as above.
unsafe impl Pod for ExchangeFilter {}

#[derive(Debug)]
pub struct Exchanges {
    pub object: Object,
    processes: bool,
    any_port: bool,
}

impl Exchanges {
    /// Attaches. `ports` are the services' local ports; with `pids` only what these processes and
    /// their descendants serve; with `any_port` also on ports on which they begin to listen, and on
    /// Unix sockets.
    ///
    /// # Errors
    /// See [`Object::load`]; or sending or receiving calls cannot be seen.
    pub fn attach(
        possible: Vec<CpuId>,
        ports: &[u16],
        pids: &[u32],
        any_port: bool,
    ) -> Result<Self, Reading<()>> {
        let object = Object::load(NAME, BYTES, &PROGRAMS, possible)?;
        object.needs(&NEEDED)?;
        let mut exchanges = Self { object, processes: !pids.is_empty(), any_port };
        // The ports are set last: without a port no connection is observed, and each connection is
        // decided once.
        let reported = exchanges
            .ask_for(pids)
            .and_then(|()| exchanges.begin())
            .and_then(|()| exchanges.mark(ports))
            .map_err(|e| Reading::absent(format!("{NAME}: {e}")));
        reported.map(|()| exchanges)
    }

    /// Looks at these local ports, too.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn mark(&mut self, ports: &[u16]) -> io::Result<()> {
        let mut marks: Array<&mut MapData, Ports> = self.object.map_mut("ports_asked")?;
        for port in ports {
            let row = u32::from(port / 64);
            let mut ports = marks.get(&row, 0).map_err(io::Error::other)?;
            if let Some(mark) = ports.0.get_mut(usize::from(port % 64)) {
                *mark = 1;
            }
            marks.set(row, ports, 0).map_err(io::Error::other)?;
        }
        Ok(())
    }

    fn ask_for(&mut self, pids: &[u32]) -> io::Result<()> {
        let mut asked: HashMap<&mut MapData, u32, u32> = self.object.map_mut("processes_asked")?;
        pids.iter().try_for_each(|pid| asked.insert(pid, 1, 0)).map_err(io::Error::other)
    }

    /// What came before is not known.
    fn begin(&mut self) -> io::Result<()> {
        let asked = ExchangeFilter {
            since_ns: monotonic_ns(),
            processes: self.processes.into(),
            any_port: self.any_port.into(),
        };
        let mut map: Array<&mut MapData, ExchangeFilter> = self.object.map_mut("asked_for")?;
        map.set(0, asked, 0).map_err(io::Error::other)
    }

    /// Detaches, until [`Self::resume`], the programs that run for every packet, call or switch;
    /// counts stay.
    pub fn pause(&mut self) {
        let names = PROGRAMS.map(|p| p.program);
        self.object.pause(names.split_last().map_or(&[], |(_, often)| often));
    }

    /// Attaches again; an exchange that began before is not counted.
    pub fn resume(&mut self) {
        // If this fails, at worst one exchange per connection includes the pause.
        let _ = self.begin();
        self.object.resume();
    }

    /// How often each program ran since it was attached, by CPU.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn cpus(&self) -> io::Result<Vec<(CpuId, CpuState)>> {
        self.object.of_cpus("cpus")
    }

    /// All that was added up.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn classes(&self) -> io::Result<Vec<(Class, Sums)>> {
        let all: HashMap<&MapData, Class, Sums> = self.object.map("classes")?;
        all.iter().collect::<Result<_, _>>().map_err(io::Error::other)
    }

    /// The servers that were seen.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn servers(&self) -> io::Result<Vec<Server>> {
        let all: HashMap<&MapData, Server, u32> = self.object.map("servers")?;
        all.keys().collect::<Result<_, _>>().map_err(io::Error::other)
    }
}
