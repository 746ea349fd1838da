//! Dropped packets by reason.
//!
//! | counts | unit |
//! |---|---|
//! | packets that the kernel freed as dropped, by reason, place in the kernel, protocol and interface | number |
//!
//! **Source**: `kfree_skb`, with the reason since Linux 5.17. Packets that were used up are not among
//! them (`consume_skb`). Of all network namespaces. Needs BTF.

use std::io;

use aya::Pod;
use model::{CpuId, Reading};

use super::{
    Object, ProgramSpec,
    double_buffer::{DrainedTable, Own, TablePair},
};

pub(super) static BYTES: &[u8] =
    aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/drops.bpf.o"));

pub const NAME: &str = "drops";

/// The program: runs for every packet that is dropped.
pub const PROGRAM: &str = "kfree_skb";

/// The same, as what it gives.
pub const WANTED: [ProgramSpec; 1] =
    [ProgramSpec { program: PROGRAM, gives: "dropped packets by reason" }];

/// The reason of every drop on kernels before 5.17, which report none.
const NO_REASON: u32 = u32::MAX;

/// A kind of drop; the layout of `struct drop`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Key {
    /// Address in the kernel from which the packet was freed.
    pub location: u64,
    reason: u32,
    protocol: u16,
    pad: u16,
    netns: u32,
    pad2: u32,
    nic: [u8; 16],
}

// SAFETY: plain numbers without padding, any bits are valid.
unsafe impl Pod for Key {}

impl Key {
    /// Value of `enum skb_drop_reason`; `None` where the kernel gives none.
    pub fn reason(&self) -> Option<u32> {
        (self.reason != NO_REASON).then_some(self.reason)
    }

    /// The EtherType of the packet, in host byte order.
    pub fn protocol(&self) -> u16 {
        u16::from_be(self.protocol)
    }

    /// Inode of the network namespace; `None` where neither interface nor socket has it.
    pub fn net_namespace(&self) -> Option<u64> {
        (self.netns != 0).then_some(u64::from(self.netns))
    }

    /// Name of the interface; `None` where the packet has none any more.
    pub fn nic(&self) -> Option<&str> {
        let name = self.nic.split(|b| *b == 0).next().unwrap_or_default();
        let name = std::str::from_utf8(name).ok()?;
        (!name.is_empty() && name.chars().all(|c| c.is_ascii_graphic())).then_some(name)
    }
}

#[derive(Debug)]
pub struct Drops {
    pub object: Object,
    tables: TablePair<Key, u64>,
}

impl Drops {
    /// Attaches.
    ///
    /// # Errors
    /// See [`Object::load`]; or the program is refused.
    pub fn attach(possible: Vec<CpuId>) -> Result<Self, Reading<()>> {
        let mut object = Object::load(NAME, BYTES, &WANTED, possible)?;
        object.needs(&[PROGRAM])?;
        let tables = TablePair::open(&mut object, "drops");
        let tables = tables.map_err(|e| Reading::absent(format!("{NAME}: {e}")))?;
        Ok(Self { object, tables })
    }

    /// How often the program ran since it was loaded, by CPU.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn cpus(&self) -> io::Result<Vec<(CpuId, Vec<u64>)>> {
        let own = self.object.of_cpus::<Own>("own")?;
        Ok(own.into_iter().map(|(cpu, own)| (cpu, own.runs[..1].to_vec())).collect())
    }

    /// Drops since the last time.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn take(&mut self) -> io::Result<DrainedTable<Key, u64>> {
        self.tables.take(&mut self.object)
    }
}
