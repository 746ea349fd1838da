//! One reading of every counter.

use std::collections::BTreeMap;

use model::{CpuId, CpuSet, IrqId, Reading, irq::IrqCount, napi::SoftnetRow, snapshot::SampleTime};
use parse::{proc_stat::CpuTicks, softirqs::Softirqs};

use super::{
    Counters, Options, Sockets, cgroups, neighbours, nics, pressure, printed_sockets,
    source::Source, threads,
};
pub use super::{
    cgroups::RawCgroup, neighbours::RawNeighbours, nics::RawNic, pressure::RawPressure,
    threads::RawThread,
};
use crate::{
    Root,
    ask::sock_diag::{self, Connection, Listening, UdpSocket},
    error::reading,
    facts::{self, cgroup_mounts::CgroupMounts},
};

/// The most open connections of [`Sockets::All`].
const MOST_CONNECTIONS: u64 = 10_000;

/// What the host's counters said at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Raw {
    /// When the reading began and ended.
    pub time: SampleTime,
    /// Unit of the tick counters.
    pub ticks_per_s: Reading<u64>,
    /// `/proc/stat`, online CPUs only.
    pub proc_stat: Reading<BTreeMap<CpuId, CpuTicks>>,
    /// Counts by vector and CPU. **Source**: `/proc/softirqs`.
    pub softirqs: Reading<Softirqs>,
    /// Counters by CPU. **Source**: `/proc/net/softnet_stat`.
    pub softnet: Reading<BTreeMap<CpuId, SoftnetRow>>,
    /// Counts by interrupt and CPU. **Source**: `/proc/interrupts`.
    pub irqs: Reading<RawIrqs>,
    /// `/proc/net/snmp`, `netstat` and `snmp6`, gauges among them.
    pub protocols: Reading<Counters>,
    /// `/proc/net/sockstat` and `sockstat6`: gauges.
    pub sockstat: Reading<Counters>,
    pub nics: Reading<BTreeMap<String, RawNic>>,
    /// By process and thread id.
    pub threads: BTreeMap<(u32, u32), RawThread>,
    /// Sums over all CPUs. **Source**: `/proc/net/stat/nf_conntrack`.
    pub conntrack: Reading<Counters>,
    /// Neighbour tables of IPv4 and IPv6.
    pub neighbours: Vec<RawNeighbours>,
    /// `/proc/vmstat`, gauges among them.
    pub vmstat: Reading<Counters>,
    /// Listening TCP sockets, by `sock_diag`.
    pub listeners: Reading<Vec<Listening>>,
    pub udp: Reading<Vec<UdpSocket>>,
    /// TCP connections by the kernel's number of the socket.
    pub connections: Reading<BTreeMap<u64, Connection>>,
    /// Cgroups with a CPU quota by path.
    pub cgroups: Reading<BTreeMap<String, RawCgroup>>,
    /// Pressure stalls of the host, then of the chosen processes' cgroups.
    pub pressure: Vec<RawPressure>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct RawIrqs {
    /// CPUs that have a column.
    pub cpus: Vec<CpuId>,
    /// Counts above zero by interrupt, ascending by CPU; a CPU with a column and no entry
    /// counts zero. `None`: the row was torn by a CPU coming or going.
    pub rows: BTreeMap<IrqId, Option<Vec<IrqCount>>>,
}

impl Raw {
    /// Reads everything through a root that stands at one sample.
    pub fn read(root: &Root, time: SampleTime, options: &Options) -> Self {
        let mounts = CgroupMounts::read(root);
        Self {
            time,
            ticks_per_s: facts::host::clock_ticks_per_s(root),
            irqs: irqs(root),
            sockstat: sockstat(root),
            nics: nics::read(root),
            threads: threads::read(root, &options.pids),
            cgroups: cgroups::read(root, &mounts, &options.pids),
            pressure: pressure::read(root, &mounts, &options.pids),
            conntrack: root
                .parsed("/proc/net/stat/nf_conntrack", parse::proc_net_stat::parse)
                .map(|t| t.counters),
            neighbours: neighbours::read(root),
            vmstat: root.parsed("/proc/vmstat", parse::vmstat::parse),
            listeners: reading(sock_diag::listeners(root)).map(|dump| dump.entries),
            udp: match options.sockets {
                Sockets::All => printed_sockets::udp(root)
                    .map_or_else(|| reading(sock_diag::udp(root)), Reading::Known),
                Sockets::None | Sockets::Tcp { .. } => not_asked(),
            },
            ..Self::counters(root)
        }
        .with_connections(root, options)
    }

    /// Reads the connections too, where they are asked for and not too many.
    fn with_connections(mut self, root: &Root, options: &Options) -> Self {
        let open = self.protocols.known().and_then(|p| p.get("Tcp.CurrEstab").copied());
        let most = match options.sockets {
            Sockets::None => 0,
            Sockets::Tcp { most } => most,
            Sockets::All => MOST_CONNECTIONS,
        };
        let printed = || printed_sockets::connections(root).filter(|all| all.len() as u64 <= most);
        self.connections = if most == 0 {
            not_asked()
        } else if let Some(all) = printed() {
            Reading::Known(all)
        } else if !root.is_live() || root.is_recorded() {
            Reading::absent(
                "neither a snapshot nor a text of `ss -tinme` holds the host's connections",
            )
        } else if open.is_some_and(|n| n > most) {
            let open = open.unwrap_or_default();
            Reading::Absent(format!(
                "{open} connections are open, more than the {most} that are looked at"
            ))
        } else {
            let by_cookie =
                |all: Vec<Connection>| all.into_iter().map(|c| (c.socket.cookie, c)).collect();
            reading(sock_diag::connections()).map(by_cookie)
        };
        self
    }

    /// The host-wide counters that are one small file each; everything else absent.
    pub(super) fn counters(from: &impl Source) -> Self {
        let proc_stat = from.through("/proc/stat", parse::proc_stat::parse);
        // Before 5.10 the rows do not name their CPU: the n-th is the n-th online one.
        let online = proc_stat.known().map(|cpus| cpus.keys().copied().collect::<CpuSet>());
        let softnet = from
            .through("/proc/net/softnet_stat", |b| parse::softnet_stat::parse(b, online.as_ref()))
            .map(|rows| rows.into_iter().map(|r| (r.cpu, r)).collect());
        Self {
            time: SampleTime { start_ns: 0, end_ns: 0 },
            proc_stat,
            softirqs: from.through("/proc/softirqs", parse::softirqs::parse),
            softnet,
            protocols: protocols(from),
            ticks_per_s: not_asked(),
            irqs: not_asked(),
            sockstat: not_asked(),
            nics: not_asked(),
            threads: BTreeMap::new(),
            conntrack: not_asked(),
            neighbours: vec![],
            vmstat: not_asked(),
            listeners: not_asked(),
            udp: not_asked(),
            connections: not_asked(),
            cgroups: not_asked(),
            pressure: vec![],
        }
    }
}

fn not_asked<T>() -> Reading<T> {
    Reading::absent("not asked for")
}

fn irqs(root: &Root) -> Reading<RawIrqs> {
    reading(facts::irq::interrupts(root)).map(|table| RawIrqs {
        cpus: table.cpus,
        rows: table.irqs.into_iter().map(|row| (row.irq, row.counts)).collect(),
    })
}

/// All three files; without IPv6, or with one file unreadable, what the others say.
fn protocols(from: &impl Source) -> Reading<Counters> {
    let v4 = from.through("/proc/net/snmp", parse::net_snmp::parse);
    let extended = from.through("/proc/net/netstat", parse::net_snmp::parse);
    let v6 = from.through("/proc/net/snmp6", parse::net_snmp6::parse);
    merged([v4, extended, v6])
}

fn sockstat(root: &Root) -> Reading<Counters> {
    merged([
        root.parsed("/proc/net/sockstat", parse::sockstat::parse),
        root.parsed("/proc/net/sockstat6", parse::sockstat::parse),
    ])
}

/// The union of the known ones; the first one's reason where none is known.
fn merged<const N: usize>(parts: [Reading<Counters>; N]) -> Reading<Counters> {
    let mut parts = parts.into_iter();
    let first = parts.next().unwrap_or_else(|| Reading::absent("nothing to read"));
    parts.fold(first, |all, part| match (all, part) {
        (Reading::Known(mut all), Reading::Known(part)) => {
            all.extend(part);
            Reading::Known(all)
        }
        (Reading::Known(one), _) | (_, Reading::Known(one)) => Reading::Known(one),
        (first, _) => first,
    })
}
