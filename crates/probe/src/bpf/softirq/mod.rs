//! Softirq time by CPU, vector and context, what it costs which thread, NAPI polls.
//!
//! | counts | unit |
//! |---|---|
//! | time between `softirq_entry` and `softirq_exit`, by context and vector | ns |
//! | softirqs, likewise | number |
//! | ends without a beginning | number |
//! | by thread: softirqs and interrupt handlers upon it, softirqs of its own | ns |
//! | by NAPI instance and CPU: polls, packets, full polls, polls outside a softirq | number |
//! | the same: time of its polls within softirqs | ns |
//!
//! Contexts: a task's own system call, an interrupt upon some task, idle, ksoftirqd. The first
//! two are told apart by where on the stack the softirq begins, where that has been learned and is
//! one of the two; else by whether an interrupt ended less than 1,000 ns before.
//!
//! A softirq that polls one NAPI instance is that one's time as a whole. One that polls several
//! is split by a timestamp after each poll; stamps begin with the second such softirq, and end
//! 64 polls after the last.
//!
//! Each CPU holds the sums of 64 threads and 16 instances; one that needs another's place moves
//! that one's sums to a map for all, of 16,384 at most, of which the longest unused give way.

mod state;

use std::{io, time::Duration};

use aya::{
    Pod,
    maps::{HashMap, MapData, MapError, PerCpuArray, PerCpuValues},
};
use model::{CpuId, Reading};

pub use state::{
    CONTEXTS, COUNTED, CpuState, InterruptedTaskSums, Name, NapiKey, NapiSums, Sum, text,
};

use super::{Object, ProgramSpec, table};

pub(super) static BYTES: &[u8] =
    aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/softirq.bpf.o"));

pub const NAME: &str = "softirq";

/// Names of the vectors, in the kernel's order.
pub const VECTORS: [&str; 10] =
    ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

const ENTRY: &str = "softirq_entry";
const EXIT: &str = "softirq_exit";

/// The program that sees polls.
pub const NAPI_POLL: &str = "napi_poll";

const TIME: &str = "softirq time, and what it costs threads";
const IRQ: &str = "softirqs of interrupts apart from those of system calls";

/// The programs that this processor's kernels can run. Interrupts outside the irq table have a
/// tracepoint each on x86, and on others one for those between processors.
pub const WANTED: &[ProgramSpec] = &[
    ProgramSpec { program: ENTRY, gives: TIME },
    ProgramSpec { program: EXIT, gives: TIME },
    ProgramSpec { program: NAPI_POLL, gives: "polls of each NIC's queues, threaded NAPI" },
    ProgramSpec { program: "irq_handler_entry", gives: "interrupt handlers' time upon threads" },
    ProgramSpec { program: "irq_handler_exit", gives: IRQ },
    #[cfg(target_arch = "x86_64")]
    ProgramSpec { program: "local_timer_exit", gives: IRQ },
    #[cfg(target_arch = "x86_64")]
    ProgramSpec { program: "reschedule_exit", gives: IRQ },
    #[cfg(target_arch = "x86_64")]
    ProgramSpec { program: "call_function_exit", gives: IRQ },
    #[cfg(target_arch = "x86_64")]
    ProgramSpec { program: "call_function_single_exit", gives: IRQ },
    #[cfg(target_arch = "x86_64")]
    ProgramSpec { program: "irq_work_exit", gives: IRQ },
    #[cfg(not(target_arch = "x86_64"))]
    ProgramSpec { program: "ipi_exit", gives: IRQ },
];

/// Softirqs take no longer but for exceptions: the kernel hands what is left after 2 ms to its
/// thread.
const LONGEST: Duration = Duration::from_millis(3);

/// Elements of a map for all.
const MOST: usize = 16_384;

#[derive(Debug)]
pub struct Softirq {
    pub object: Object,
    /// Softirqs are not seen either while polls are not.
    spares_all: bool,
}

/// All that was added up since the programs were attached.
#[derive(Debug)]
pub struct Sums {
    pub cpus: Vec<(CpuId, CpuState)>,
    /// Of threads that no CPU has a place for, by thread.
    pub interrupted_tasks: Vec<(u64, InterruptedTaskSums)>,
    /// Of NAPI instances that no CPU has a place for.
    pub napis: Vec<(NapiKey, NapiSums)>,
}

impl Softirq {
    /// Attaches; `ksoftirqd` are those threads' numbers by CPU. `polls`: NAPI instances, too.
    /// `spares_all`: [`Self::pause`] is for softirqs, too, not for polls alone.
    ///
    /// # Errors
    /// See [`Object::load`]; or neither beginning nor end of a softirq can be seen.
    pub fn attach(
        possible: Vec<CpuId>,
        ksoftirqd: &[(CpuId, u32)],
        polls: bool,
        spares_all: bool,
    ) -> Result<Self, Reading<()>> {
        let (wanted, not): (Vec<ProgramSpec>, Vec<ProgramSpec>) =
            WANTED.iter().partition(|w| polls || w.program != NAPI_POLL);
        let mut object = Object::load(NAME, BYTES, &wanted, possible)?;
        for wanted in &not {
            object.leave_out(wanted, Reading::absent("polls were not asked for"));
        }
        for program in [ENTRY, EXIT] {
            if !object.runs(program) {
                return Err(object.refused(program));
            }
        }
        let reported = tell(&mut object, ksoftirqd);
        reported.map_err(|e| Reading::absent(format!("softirq: {e}")))?;
        Ok(Self { object, spares_all })
    }

    /// All sums since the programs were attached. What moves from a CPU to the map for all
    /// while this reads is missing once, never counted twice.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn read(&self) -> io::Result<Sums> {
        let interrupted_tasks = table::read(&self.object, "lost_time")?.into_iter().collect();
        let napis = self.all("napis")?;
        Ok(Sums { cpus: self.object.of_cpus("cpus")?, interrupted_tasks, napis })
    }

    /// How often each program of [`Self::paused`] ran since they were attached, by CPU.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn runs(&self) -> io::Result<Vec<(CpuId, Vec<u64>)>> {
        let cpus = self.object.of_cpus::<CpuState>("cpus")?;
        let all = |state: &CpuState| match self.spares_all {
            true => vec![state.softirqs(), state.softirqs(), state.polls],
            false => vec![state.polls],
        };
        Ok(cpus.iter().map(|(cpu, state)| (*cpu, all(state))).collect())
    }

    /// Those that are detached for a while.
    pub fn paused(&self) -> &'static [&'static str] {
        if self.spares_all { &[ENTRY, EXIT, NAPI_POLL] } else { &[NAPI_POLL] }
    }

    /// Detaches the programs. A poll after a missed softirq entry would count as one outside of
    /// softirqs. A softirq with a missed exit would end with the first one after [`Self::resume`].
    pub fn pause(&mut self) {
        self.object.pause(&[NAPI_POLL]);
        if self.spares_all {
            self.object.pause(&[ENTRY]);
            std::thread::sleep(LONGEST);
            self.object.pause(&[EXIT]);
        }
    }

    /// Attaches them again: those of beginnings first.
    pub fn resume(&mut self) {
        self.object.resume();
    }

    /// Drops elements of the map for all threads. One that stays is dropped another time.
    pub fn forget_interrupted_tasks(&mut self, threads: &[u64]) {
        self.forget::<u64, InterruptedTaskSums>("lost_time", threads);
    }

    /// The same of NAPI instances.
    pub fn forget_napis(&mut self, keys: &[NapiKey]) {
        self.forget::<NapiKey, NapiSums>("napis", keys);
    }

    fn all<K: Pod, V: Pod>(&self, name: &str) -> io::Result<Vec<(K, V)>> {
        let map: HashMap<&MapData, K, V> = self.object.map(name)?;
        let mut all = Vec::new();
        // A key that gives way while it is stepped from begins the walk again.
        for key in map.keys().take(2 * MOST) {
            let key = key.map_err(io::Error::other)?;
            match map.get(&key, 0) {
                Ok(value) => all.push((key, value)),
                // It gave way meanwhile.
                Err(MapError::KeyNotFound) => {}
                Err(e) => return Err(io::Error::other(e)),
            }
        }
        Ok(all)
    }

    fn forget<K: Pod, V: Pod>(&mut self, name: &str, keys: &[K]) {
        if keys.is_empty() {
            return;
        }
        let map: io::Result<HashMap<&mut MapData, K, V>> = self.object.map_mut(name);
        if let Ok(mut map) = map {
            keys.iter().for_each(|key| drop(map.remove(key)));
        }
    }
}

/// Writes each CPU's thread into its state, before which nothing of that thread is recognised.
fn tell(object: &mut Object, ksoftirqd: &[(CpuId, u32)]) -> io::Result<()> {
    let of = |cpu: &CpuId| ksoftirqd.iter().find(|(c, _)| c == cpu).map_or(0, |(_, tid)| *tid);
    let states: Vec<_> = object.possible().iter().map(|cpu| CpuState::new(of(cpu))).collect();
    let values = PerCpuValues::try_from(states)?;
    let mut map: PerCpuArray<&mut MapData, CpuState> = object.map_mut("cpus")?;
    map.set(0, values, 0).map_err(io::Error::other)
}
