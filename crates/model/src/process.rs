//! The selected processes, and listening sockets.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Bytes, CpuId, CpuSet, NumaNode, Reading};

/// A process requested by pid, name, port, unit or container.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Process {
    pub pid: u32,
    /// Short name. **Source**: `/proc/PID/comm`.
    pub name: String,
    /// Command line. **Source**: `/proc/PID/cmdline`.
    pub arguments: Reading<Vec<String>>,
    /// The request that selected it: `pid 12`, `name nginx`, `port 5432`.
    pub chosen_by: String,
    /// All threads, ascending by tid.
    pub threads: Vec<Thread>,
    /// cgroup path (v2, or the cpuset controller's under v1). **Source**: `/proc/PID/cgroup`.
    pub cgroup: Reading<String>,
    /// systemd unit, from the cgroup path.
    pub unit: Reading<String>,
    /// Container id or name, from the cgroup path; `none` if none.
    pub container: Reading<String>,
    /// CPUs that its cpuset allows. **Source**: `cpuset.cpus.effective`.
    pub cpuset_cpus: Reading<CpuSet>,
    /// Nodes on which its cpuset allows memory. **Source**: `cpuset.mems.effective`.
    pub cpuset_mems: Reading<CpuSet>,
    /// Inode of its network namespace.
    pub net_namespace: Reading<u64>,
    /// Resident memory by node. **Source**: `/proc/PID/numa_maps` (kernel page sizes counted).
    pub memory_by_node: Reading<BTreeMap<NumaNode, Bytes>>,
    pub sockets: Reading<SocketSummary>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Thread {
    pub tid: u32,
    pub name: String,
    /// CPUs it may run on. **Source**: `/proc/PID/task/TID/status` Cpus_allowed_list.
    pub affinity: Reading<CpuSet>,
    /// CPU it last ran on. **Source**: field 39 of `/proc/PID/task/TID/stat`.
    pub last_cpu: Reading<CpuId>,
    /// Migrations between CPUs since its start. **Source**: `/proc/PID/task/TID/sched`
    /// `se.nr_migrations`, needs `CONFIG_SCHED_DEBUG`.
    pub migrations: Reading<u64>,
    /// CPU time used since its start, in clock ticks of `clock_ticks_per_s`.
    pub cpu_ticks: Reading<u64>,
}

/// Sockets of a process, by kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SocketSummary {
    /// Number of open socket descriptors.
    pub count: u32,
    /// Listening TCP ports, ascending.
    pub listening_ports: Vec<u16>,
    pub established: u32,
    pub udp: u32,
}

/// One listening TCP socket. **Source**: `sock_diag` (`INET_DIAG`), else `/proc/net/tcp{,6}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Listener {
    /// Address and port, `0.0.0.0:5432`, `[::]:80`.
    pub address: String,
    pub port: u16,
    /// Connections now waiting to be accepted.
    pub accept_queue: Reading<u32>,
    /// Maximum of waiting connections: min(application's backlog, somaxconn). Only sock_diag
    /// reports it.
    pub accept_queue_limit: Reading<u32>,
    /// Owning process ids, ascending, where readable.
    pub pids: Reading<Vec<u32>>,
}
