//! The owners of sockets that rules may name. They are looked up once, after the window, as this
//! walks every process's descriptors.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    Reading, Samples,
    samples::{ConnectionSample, Owner},
};

use super::printed_sockets;
use crate::{
    ReadError, Root,
    ask::owners::{self, Owners},
    error::reading,
};

/// The most senders whose processes are looked up.
const SENDERS: usize = 1_000;

/// Samples with the owners of their sockets.
pub(super) fn named(root: &Root, mut samples: Samples) -> Samples {
    let udp = samples.udp_sockets.known().into_iter().flatten().map(|s| s.inode);
    let connections = samples.connections.known().map(Vec::as_slice).unwrap_or_default();
    let reported = connections.iter().filter(|c| is_reported(c)).map(|c| c.inode);
    let mut wanted: BTreeSet<u64> = udp.chain(reported).chain(senders(connections)).collect();
    wanted.remove(&0);
    if wanted.is_empty() {
        return samples;
    }
    let mut names = Names::look(root, &wanted);
    let printed = printed_sockets::owners(root);
    let mut of = |inode: u64| match printed.get(&inode) {
        Some(owners) => Reading::Known(owners.clone()),
        None => names.of(inode),
    };
    if let Reading::Known(sockets) = &mut samples.udp_sockets {
        sockets.iter_mut().for_each(|s| s.owners = of(s.inode));
    }
    if let Reading::Known(all) = &mut samples.connections {
        let wanted = all.iter_mut().filter(|c| wanted.contains(&c.inode));
        wanted.for_each(|c| c.owners = of(c.inode));
    }
    samples
}

/// The connections that sent most.
fn senders(all: &[ConnectionSample]) -> impl Iterator<Item = u64> {
    let bytes = |c: &ConnectionSample| c.bytes_acked.get().filter(|n| *n > 0);
    let mut senders: Vec<(u64, u64)> =
        all.iter().filter_map(|c| Some((bytes(c)?, c.inode))).collect();
    senders.sort_unstable_by(|a, b| b.cmp(a));
    senders.into_iter().take(SENDERS).map(|(_, inode)| inode)
}

/// Whether a rule may have something to say of the connection.
fn is_reported(c: &ConnectionSample) -> bool {
    [&c.retransmits, &c.rwnd_limited_ns, &c.sndbuf_limited_ns]
        .iter()
        .any(|d| d.get().is_some_and(|n| n > 0))
}

/// The processes that hold the sockets of one walk over all descriptors.
pub struct Names<'a> {
    root: &'a Root,
    found: Result<Owners, ReadError>,
    known: BTreeMap<u32, String>,
}

impl<'a> Names<'a> {
    /// Walks over the descriptors of all processes.
    pub fn look(root: &'a Root, inodes: &BTreeSet<u64>) -> Self {
        let found = owners::asked(root, "proc/socket_owners", inodes);
        Self { root, found, known: BTreeMap::new() }
    }

    /// Those that hold this socket, one of those looked for.
    pub fn of(&mut self, inode: u64) -> Reading<Vec<Owner>> {
        let pids = reading(self.found.clone()).and_then(|owners| owners.of(inode));
        pids.map(|pids| pids.into_iter().map(|pid| self.owner(pid)).collect())
    }

    fn owner(&mut self, pid: u32) -> Owner {
        let root = self.root;
        let name = || root.word(&format!("/proc/{pid}/comm")).into_known().unwrap_or_default();
        Owner { pid, name: self.known.entry(pid).or_insert_with(name).clone() }
    }
}
