//! Network namespaces and their processes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Reading;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NetNamespace {
    /// The namespace's inode, its identity. **Source**: `/proc/PID/ns/net`.
    pub inode: u64,
    /// Name under `/run/netns`, if it has one.
    pub name: Reading<String>,
    /// Whether it is the namespace of this process.
    pub own: bool,
    /// Processes in it: the lowest pids, at most 16.
    pub pids: Vec<u32>,
    /// Number of processes in it.
    pub process_count: u32,
    /// The container its lowest process belongs to, by cgroup path; `none` if none.
    /// **Source**: `/proc/PID/cgroup`.
    pub container: Reading<String>,
    /// Its links, ascending by index; `nics` has the full data of those in this process's own
    /// namespace.
    pub links: Reading<Vec<Link>>,
}

/// A link as rtnetlink reports it; enough to draw the path between namespaces.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Link {
    /// Index in its namespace.
    pub ifindex: u32,
    pub name: String,
    /// `veth`, `bridge`, …; empty for physical devices and loopback.
    pub kind: String,
    /// `IFLA_LINK`: the other end's or the lower device's index.
    pub lower_ifindex: Reading<u32>,
    /// Inode of the namespace that `lower_ifindex` belongs to, if not this one.
    pub lower_namespace: Reading<u64>,
    /// Index of the bridge, bond or VRF that it belongs to.
    pub master_ifindex: Reading<u32>,
    /// Largest packet in bytes, without the link header.
    pub mtu: u32,
    pub up: bool,
    pub mac: Reading<String>,
    /// Addresses with prefix length.
    pub addresses: Vec<String>,
}
