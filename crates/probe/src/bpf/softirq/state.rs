//! The layout of the programs' data (`state.h`).

use std::ffi::CStr;

use aya::Pod;

use super::VECTORS;

/// Contexts, in the order of [`CpuState::sums`].
pub const CONTEXTS: usize = 4;

/// Programs that count their runs, in the order of [`CpuState::runs`].
pub const COUNTED: [&str; 8] = [
    "irq_handler_entry",
    "irq_handler_exit",
    "local_timer_exit",
    "reschedule_exit",
    "call_function_exit",
    "call_function_single_exit",
    "irq_work_exit",
    "ipi_exit",
];

/// The number of threads with sums on each CPU.
pub const INTERRUPTED_TASKS: usize = 64;

pub const NAPIS: usize = 16;

/// A short name, ended by a zero.
pub type Name = [u8; 16];

/// A short name as text.
pub fn text(name: &Name) -> String {
    let name = CStr::from_bytes_until_nul(name).unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Softirqs of one context and vector.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Sum {
    /// Their time, from entry to exit.
    pub ns: u64,
    /// How many there were.
    pub count: u64,
}

/// What packets cost a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct InterruptedTaskSums {
    /// On a CPU: the process in the upper half, the thread in the lower; 0 is an empty slot. In the
    /// common map: when the element was made, by the kernel's clock.
    pub thread: u64,
    /// Time that softirqs of interrupts took from it, ns.
    pub preempted_ns: u64,
    /// Time that interrupt handlers took from it, ns.
    pub preempted_by_irq_ns: u64,
    /// Time of its own softirqs, ns.
    pub own_ns: u64,
    pub softirqs: u64,
    pub name: Name,
}

/// Polls of a NAPI instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct NapiSums {
    /// On a CPU: its address; 0 is an empty slot. In the common map: when the element was made, by
    /// the kernel's clock.
    pub napi: u64,
    /// The kernel's number, 0 for none.
    pub id: u32,
    /// The thread that polled it last outside a softirq, 0 for none.
    pub poller: u32,
    pub polls: u64,
    pub packets: u64,
    /// Polls that used up their budget.
    pub full: u64,
    /// Polls outside a softirq.
    pub outside: u64,
    /// Time of those within one, ns.
    pub ns: u64,
    /// Its device, 0 for none: a CPU's backlog.
    pub ifindex: u32,
    /// The device's network namespace (inode).
    pub netns: u32,
    /// 1 + the interrupt after which it was polled last, 0 for none.
    pub irq: u32,
    pad: u32,
    pub nic: Name,
}

/// The key of a NAPI instance on one CPU in the map for all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(C)]
pub struct NapiKey {
    pub napi: u64,
    pub id: u32,
    pub cpu: u32,
}

/// What is held for each CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct CpuState {
    /// By context and vector.
    pub sums: [[Sum; VECTORS.len()]; CONTEXTS],
    /// Runs of the programs of [`COUNTED`].
    pub runs: [u64; COUNTED.len()],
    /// Ends without a beginning.
    pub torn: u64,
    /// Polls of all NAPI instances.
    pub polls: u64,
    scratch: [u64; 12],
    scratch_32: [u32; 6],
    ksoftirqd: u32,
    irq: u32,
    /// Threads that ran here.
    pub interrupted_tasks: [InterruptedTaskSums; INTERRUPTED_TASKS],
    /// NAPI instances that were polled here.
    pub napis: [NapiSums; NAPIS],
}

// SAFETY: plain numbers without padding, any bits are valid.
unsafe impl Pod for CpuState {}
// SAFETY: the same.
unsafe impl Pod for InterruptedTaskSums {}
// SAFETY: the same.
unsafe impl Pod for NapiSums {}
// SAFETY: the same.
unsafe impl Pod for NapiKey {}

impl Default for CpuState {
    fn default() -> Self {
        // SAFETY: plain numbers; zeros are valid.
        unsafe { std::mem::zeroed() }
    }
}

impl CpuState {
    /// A CPU's state at the beginning; `ksoftirqd` is its thread, 0 where it is not known.
    pub fn new(ksoftirqd: u32) -> Self {
        Self { ksoftirqd, ..Self::default() }
    }

    pub fn softirqs(&self) -> u64 {
        self.sums.iter().flatten().map(|s| s.count).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_has_no_padding() {
        assert_eq!((size_of::<InterruptedTaskSums>(), size_of::<NapiSums>()), (56, 88));
        let words = 2 * CONTEXTS * VECTORS.len() + COUNTED.len() + 2 + 12 + 4;
        assert_eq!(size_of::<CpuState>(), 8 * words + 56 * INTERRUPTED_TASKS + 88 * NAPIS);
    }

    #[test]
    fn a_name_ends_at_its_zero() {
        assert_eq!(text(b"iperf3\0ksoftirqd"), "iperf3");
        assert_eq!(text(b"0123456789abcdef"), "");
    }
}
