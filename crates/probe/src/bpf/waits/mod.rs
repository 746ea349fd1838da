//! Where packets wait on their way to a reader.
//!
//! | counts, by process | unit |
//! |---|---|
//! | `netif_receive_skb` to `sk_data_ready`: stack | ns, distribution |
//! | `sk_data_ready` to `sched_waking`: wake-up | ns, distribution |
//! | `sched_waking` to `sched_switch`: run queue; apart where the CPU was idle | ns, distribution |
//! | `sched_switch` to `sock_recv_length`: copy | ns, distribution |
//! | reads that found data, reads that were late | number |
//!
//! A wait is that of a thread that slept, was woken up because this socket became readable, and
//! read from it before it slept again. Any other read is counted, not timed.

mod distribution;

use std::io;

use aya::{
    Pod,
    maps::{Array, HashMap, MapData, PerCpuArray, PerCpuValues},
};
use model::{CpuId, Reading};

pub use self::distribution::{BUCKETS, wait_ns};
use super::{Object, ProgramSpec};
use crate::samples::clock::monotonic_ns;

pub(super) static BYTES: &[u8] =
    aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/waits.bpf.o"));

pub const NAME: &str = "waits";

/// Entry to readable, readable to woken, woken to running, the same from idle, running to read.
pub const STAGES: usize = 5;

/// When a packet enters.
pub const ENTRY: ProgramSpec =
    ProgramSpec { program: "netif_receive_skb", gives: "time in the stack; late reads" };
/// When a socket becomes readable.
pub const READY: ProgramSpec =
    ProgramSpec { program: "sk_data_ready", gives: "time in the stack, wake-ups, late reads" };
/// When a thread is woken up.
pub const WAKING: ProgramSpec = ProgramSpec { program: "sched_waking", gives: "all waits" };
/// When the woken thread runs.
pub const SWITCH: ProgramSpec = ProgramSpec { program: "sched_switch", gives: "all waits" };
/// When it has its data, and from which socket.
pub const RECV: ProgramSpec = ProgramSpec { program: "sock_recv_length", gives: "all waits" };
/// The same where the former does not exist; a long read counts once for each packet.
pub const COPIED: ProgramSpec =
    ProgramSpec { program: "skb_copy_datagram_iovec", gives: "all waits" };

/// The programs in the order of [`CpuState::runs`].
pub const PROGRAMS: [ProgramSpec; 6] = [ENTRY, READY, WAKING, SWITCH, RECV, COPIED];

/// What the program holds for each CPU; the layout of its `struct cpu_state`.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct CpuState {
    /// How often each of [`PROGRAMS`] ran.
    pub runs: [u64; PROGRAMS.len()],
    scratch: [u64; 4],
    more_scratch: [u32; 4],
    knows_ready: u32,
    late: u32,
}

// SAFETY: plain numbers without padding, any bits are valid.
unsafe impl Pod for CpuState {}

/// What it holds for a process; the layout of its `struct process`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct ProcessState {
    /// Sum of nanoseconds, by stage.
    pub sum_ns: [u64; STAGES],
    /// Reads that found data.
    pub found: u64,
    /// Reads that were late for want of an earlier packet.
    pub late: u64,
    /// The reading thread's name, ended by a zero.
    pub name: [u8; 16],
    /// Waits by stage and bucket; they wrap.
    pub buckets: [[u32; BUCKETS]; STAGES],
    pad: u32,
}

impl Default for ProcessState {
    fn default() -> Self {
        Self {
            sum_ns: [0; STAGES],
            found: 0,
            late: 0,
            name: [0; 16],
            buckets: [[0; BUCKETS]; STAGES],
            pad: 0,
        }
    }
}

// SAFETY: as above.
unsafe impl Pod for ProcessState {}

/// The layout of `struct process_key`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(C)]
pub struct Key {
    /// The process; 0 stands for all for which there was no room.
    pub tgid: u32,
    /// On which CPU it read.
    pub cpu: u32,
}

// SAFETY: as above.
unsafe impl Pod for Key {}

#[derive(Debug)]
pub struct Waits {
    pub object: Object,
}

impl Waits {
    /// Attaches what there is of these programs (of [`PROGRAMS`], but for [`COPIED`], which
    /// stands in where [`RECV`] is refused).
    ///
    /// # Errors
    /// See [`Object::load`]; or wake-ups, switches or reads cannot be seen.
    pub fn attach(possible: Vec<CpuId>, wanted: &[ProgramSpec]) -> Result<Self, Reading<()>> {
        let mut object = Object::load(NAME, BYTES, wanted, possible)?;
        if !object.runs(RECV.program) {
            object.add(&COPIED);
            if !object.runs(COPIED.program) {
                return Err(object.refused(COPIED.program));
            }
        }
        for program in [WAKING.program, SWITCH.program] {
            if !object.runs(program) {
                return Err(object.refused(program));
            }
        }
        let mut waits = Self { object };
        waits.tell().map_err(|e| Reading::absent(format!("{NAME}: {e}")))?;
        Ok(waits)
    }

    /// Says whether readable sockets are seen, and makes the place of those without one.
    fn tell(&mut self) -> io::Result<()> {
        let knows_ready = u32::from(self.object.runs(READY.program));
        let state = CpuState { knows_ready, ..CpuState::default() };
        let states = vec![state; self.object.possible().len()];
        let mut cpus: PerCpuArray<&mut MapData, CpuState> = self.object.map_mut("cpus")?;
        cpus.set(0, PerCpuValues::try_from(states)?, 0).map_err(io::Error::other)?;
        let mut all: HashMap<&mut MapData, Key, ProcessState> = self.object.map_mut("processes")?;
        all.insert(Key::default(), ProcessState::default(), 0).map_err(io::Error::other)
    }

    /// Detaches until [`Self::resume`]; what was counted stays.
    pub fn pause(&mut self) {
        self.object.pause(&PROGRAMS.map(|p| p.program));
    }

    /// Attaches again; a wait that began before is not counted.
    pub fn resume(&mut self) {
        let since: io::Result<Array<&mut MapData, u64>> = self.object.map_mut("attached_ns");
        // If this fails, at worst a wait of one thread includes the pause.
        let _ = since.map(|mut since| since.set(0, monotonic_ns(), 0));
        self.object.resume();
    }

    /// How often each program ran since it was attached, by CPU.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn cpus(&self) -> io::Result<Vec<(CpuId, CpuState)>> {
        self.object.of_cpus("cpus")
    }

    /// All counts since the programs were attached. A process that comes or goes meanwhile may
    /// be missing until the next time.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn processes(&self) -> io::Result<Vec<(Key, ProcessState)>> {
        let all: HashMap<&MapData, Key, ProcessState> = self.object.map("processes")?;
        let keys: Vec<Key> = all.keys().filter_map(Result::ok).collect();
        Ok(keys.into_iter().filter_map(|k| Some((k, all.get(&k, 0).ok()?))).collect())
    }

    pub fn forget(&mut self, keys: &[Key]) {
        let all: io::Result<HashMap<&mut MapData, Key, ProcessState>> =
            self.object.map_mut("processes");
        if let Ok(mut all) = all {
            // One that is gone already makes room as well.
            keys.iter().for_each(|k| drop(all.remove(k)));
        }
    }
}
