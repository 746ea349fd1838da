//! Threads that change their CPU.
//!
//! | counts | unit |
//! |---|---|
//! | moves by thread, from CPU, to CPU | number |
//! | the thread's process, and its name as it last moved so in the interval | |
//!
//! **Source**: `sched_migrate_task`, where the kernel counts `nr_migrations` itself: also a
//! wake-up that chooses another CPU is a move; a choice of the same CPU is none. Needs BTF.

use std::io;

use aya::Pod;
use model::{CpuId, Reading};

use super::{
    Object, ProgramSpec,
    double_buffer::{DrainedTable, Sums, TablePair},
};

pub(super) static BYTES: &[u8] =
    aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/migrated_threads.bpf.o"));

pub const NAME: &str = "migrated_threads";

/// The programs, in the order of their own run counts.
pub const WANTED: [ProgramSpec; 1] =
    [ProgramSpec { program: "sched_migrate_task", gives: "moves of threads between CPUs" }];

/// From where to where a thread moved; the layout of `struct way`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(C)]
pub struct Key {
    pub tid: u32,
    pub from: u16,
    pub to: u16,
}

// SAFETY: plain numbers without padding, any bits are valid.
unsafe impl Pod for Key {}

/// How often; the layout of `struct moves`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Moves {
    pub count: u64,
    pub pid: u32,
    pad: u32,
    /// Its short name, ended by a zero byte.
    pub name: [u8; 16],
}

// SAFETY: plain numbers without padding, any bits are valid.
unsafe impl Pod for Moves {}

impl Sums for Moves {
    fn add(&mut self, more: &Self) {
        self.count += more.count;
    }

    fn since(&self, before: &Self) -> Self {
        Self { count: self.count.wrapping_sub(before.count), ..*self }
    }
}

#[derive(Debug)]
pub struct MigratedThreads {
    pub object: Object,
    tables: TablePair<Key, Moves>,
}

impl MigratedThreads {
    /// Attaches.
    ///
    /// # Errors
    /// See [`Object::load`]; or the program is refused.
    pub fn attach(possible: Vec<CpuId>) -> Result<Self, Reading<()>> {
        let mut object = Object::load(NAME, BYTES, &WANTED, possible)?;
        object.needs(&["sched_migrate_task"])?;
        let tables = TablePair::open(&mut object, "moves");
        let tables = tables.map_err(|e| Reading::absent(format!("{NAME}: {e}")))?;
        Ok(Self { object, tables })
    }

    /// What was counted since the last time.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn take(&mut self) -> io::Result<DrainedTable<Key, Moves>> {
        self.tables.take(&mut self.object)
    }
}
