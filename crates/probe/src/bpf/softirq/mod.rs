//! Softirq time by CPU, vector and context.
//!
//! | counts | unit |
//! |---|---|
//! | time between `softirq_entry` and `softirq_exit`, by context and vector | ns |
//! | softirqs, likewise | number |
//! | ends without a beginning | number |
//!
//! Contexts: a task's own system call, an interrupt upon some task, idle, ksoftirqd. The first
//! two are told apart by whether an interrupt ended less than 700 ns before.

use std::io;

use aya::{
    Pod,
    maps::{MapData, PerCpuArray, PerCpuValues},
};
use model::{CpuId, Reading};

use super::{Object, Wanted};

const BYTES: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/softirq.bpf.o"));

/// The object's name.
pub const NAME: &str = "softirq";

/// Contexts, in the order of [`CpuState`].
pub const CONTEXTS: usize = 4;

/// Names of the vectors, in the kernel's order.
pub const VECTORS: [&str; 10] =
    ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

const IRQ: &str = "softirqs of interrupts apart from those of system calls";

/// The programs.
pub const WANTED: [Wanted; 9] = [
    Wanted { program: "softirq_entry", gives: "softirq time" },
    Wanted { program: "softirq_exit", gives: "softirq time" },
    Wanted { program: "irq_handler_exit", gives: IRQ },
    Wanted { program: "local_timer_exit", gives: IRQ },
    Wanted { program: "reschedule_exit", gives: IRQ },
    Wanted { program: "call_function_exit", gives: IRQ },
    Wanted { program: "call_function_single_exit", gives: IRQ },
    Wanted { program: "irq_work_exit", gives: IRQ },
    Wanted { program: "ipi_exit", gives: IRQ },
];

/// What the program holds for each CPU; the layout of its `struct cpu_state`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct CpuState {
    /// Nanoseconds by context and vector.
    pub ns: [[u64; VECTORS.len()]; CONTEXTS],
    /// Softirqs likewise.
    pub count: [[u64; VECTORS.len()]; CONTEXTS],
    /// Ends without a beginning.
    pub torn: u64,
    scratch: [u64; 4],
    ksoftirqd: u32,
    pad: u32,
}

impl CpuState {
    /// What was added since then.
    pub fn since(&self, before: &Self) -> Self {
        let less = |now: &[[u64; VECTORS.len()]; CONTEXTS],
                    then: &[[u64; VECTORS.len()]; CONTEXTS]| {
            let mut grown = *now;
            let pairs = grown.iter_mut().flatten().zip(then.iter().flatten());
            pairs.for_each(|(now, then)| *now = now.wrapping_sub(*then));
            grown
        };
        Self {
            ns: less(&self.ns, &before.ns),
            count: less(&self.count, &before.count),
            torn: self.torn.wrapping_sub(before.torn),
            ..*self
        }
    }

    /// How many softirqs.
    pub fn softirqs(&self) -> u64 {
        self.count.iter().flatten().sum()
    }
}

// SAFETY: plain numbers without padding, any bits are valid.
unsafe impl Pod for CpuState {}

/// The attached programs.
#[derive(Debug)]
pub struct Softirq {
    /// Maps and programs.
    pub object: Object,
}

impl Softirq {
    /// Attaches; `ksoftirqd` are those threads' numbers by CPU.
    ///
    /// # Errors
    /// See [`Object::load`]; or neither beginning nor end of a softirq can be seen.
    pub fn attach(possible: Vec<CpuId>, ksoftirqd: &[(CpuId, u32)]) -> Result<Self, Reading<()>> {
        let mut object = Object::load(NAME, BYTES, &WANTED, possible)?;
        for program in ["softirq_entry", "softirq_exit"] {
            if !object.runs(program) {
                return Err(object.refused(program));
            }
        }
        let told = tell(&mut object, ksoftirqd);
        told.map_err(|e| Reading::absent(format!("softirq: {e}")))?;
        Ok(Self { object })
    }

    /// All counts since the programs were attached, by CPU.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn read(&self) -> io::Result<Vec<(CpuId, CpuState)>> {
        self.object.of_cpus("cpus")
    }
}

/// Writes each CPU's thread into its state, before which nothing of that thread is recognised.
fn tell(object: &mut Object, ksoftirqd: &[(CpuId, u32)]) -> io::Result<()> {
    let of = |cpu: &CpuId| ksoftirqd.iter().find(|(c, _)| c == cpu).map_or(0, |(_, tid)| *tid);
    let states: Vec<_> = object
        .possible()
        .iter()
        .map(|cpu| CpuState { ksoftirqd: of(cpu), ..CpuState::default() })
        .collect();
    let values = PerCpuValues::try_from(states)?;
    let mut map: PerCpuArray<&mut MapData, CpuState> = object.map_mut("cpus")?;
    map.set(0, values, 0).map_err(io::Error::other)
}
