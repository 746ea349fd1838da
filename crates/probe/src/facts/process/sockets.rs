//! Sockets of a process: its descriptors, identified by the tables of its network namespace.

use std::collections::{BTreeSet, HashMap};

use model::{Reading, process::SocketSummary};
use parse::proc_net_tcp::{self, Socket};

use crate::{ReadError, Root, error::reading};

/// States as `/proc/net/tcp` numbers them.
const ESTABLISHED: u8 = 1;
const LISTEN: u8 = 10;

/// What a socket is, by inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SocketKind {
    Listening(u16),
    Established,
    OtherTcp,
    Udp,
}

/// The socket tables of namespaces, each read once.
#[derive(Default)]
pub struct Tables {
    by_namespace: HashMap<u64, Reading<HashMap<u64, SocketKind>>>,
}

impl Tables {
    /// The sockets of a process.
    pub fn summary(
        &mut self,
        root: &Root,
        pid: u32,
        namespace: &Reading<u64>,
    ) -> Reading<SocketSummary> {
        let inodes = match inodes(root, pid) {
            Ok(inodes) => inodes,
            Err(e) => return e.into_reading(),
        };
        // Without the namespace's identity the process's own tables are read for it alone.
        let table = match namespace {
            Reading::Known(ns) => self
                .by_namespace
                .entry(*ns)
                .or_insert_with(|| table(root, pid))
                .as_ref()
                .map(Clone::clone),
            _ => table(root, pid),
        };
        table.map(|kinds| summary(&inodes, &kinds))
    }
}

fn summary(inodes: &BTreeSet<u64>, kinds: &HashMap<u64, SocketKind>) -> SocketSummary {
    let mine = || inodes.iter().filter_map(|i| kinds.get(i));
    let count = |kind: SocketKind| mine().filter(|&&k| k == kind).count() as u32;
    let ports: BTreeSet<u16> = mine()
        .filter_map(|k| match k {
            SocketKind::Listening(port) => Some(*port),
            _ => None,
        })
        .collect();
    SocketSummary {
        count: u32::try_from(inodes.len()).unwrap_or(u32::MAX),
        listening_ports: ports.into_iter().collect(),
        established: count(SocketKind::Established),
        udp: count(SocketKind::Udp),
    }
}

/// The inodes of a process's socket descriptors; one closed meanwhile is left out.
///
/// # Errors
/// The process has ended, or is of another user.
pub fn inodes(root: &Root, pid: u32) -> Result<BTreeSet<u64>, ReadError> {
    let folder = format!("/proc/{pid}/fd");
    let names = root.entries(&folder)?;
    Ok(names
        .iter()
        .filter_map(|fd| {
            let target = root.link(&format!("{folder}/{fd}")).ok()?;
            target.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
        })
        .collect())
}

/// Which inodes hold `port` in the namespace of `pid`: listening TCP, or bound UDP.
pub fn holders_of_port(root: &Root, pid: u32, port: u16) -> BTreeSet<u64> {
    let tcp = rows(root, pid, ["tcp", "tcp6"]).into_iter().filter(|s| s.state == LISTEN);
    let udp = rows(root, pid, ["udp", "udp6"]).into_iter();
    tcp.chain(udp).filter(|s| s.local.port() == port && s.inode != 0).map(|s| s.inode).collect()
}

pub(super) fn rows(root: &Root, pid: u32, files: [&str; 2]) -> Vec<Socket> {
    files
        .iter()
        .filter_map(|f| root.read(&format!("/proc/{pid}/net/{f}")).ok())
        .flat_map(|bytes| proc_net_tcp::parse(&bytes).sockets)
        .collect()
}

fn table(root: &Root, pid: u32) -> Reading<HashMap<u64, SocketKind>> {
    // IPv6 may be off; without IPv4's table nothing is known.
    let probe = reading(root.read(&format!("/proc/{pid}/net/tcp")));
    probe.map(|_| {
        let tcp = rows(root, pid, ["tcp", "tcp6"]).into_iter().map(|s| {
            let kind = match s.state {
                LISTEN => SocketKind::Listening(s.local.port()),
                ESTABLISHED => SocketKind::Established,
                _ => SocketKind::OtherTcp,
            };
            (s.inode, kind)
        });
        let udp = rows(root, pid, ["udp", "udp6"]).into_iter().map(|s| (s.inode, SocketKind::Udp));
        tcp.chain(udp).filter(|(inode, _)| *inode != 0).collect()
    })
}
