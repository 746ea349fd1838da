//! The limits of local ports: the number of connections to one remote address and port, and how
//! long a closed one holds its port.

use model::{CpuId, Nanos, Reading};

use crate::Root;

const RANGE: &str = "/proc/sys/net/ipv4/ip_local_port_range";
const RESERVED: &str = "/proc/sys/net/ipv4/ip_local_reserved_ports";
const TW_REUSE: &str = "/proc/sys/net/ipv4/tcp_tw_reuse";
const TW_REUSE_DELAY: &str = "/proc/sys/net/ipv4/tcp_tw_reuse_delay";
const TIMESTAMPS: &str = "/proc/sys/net/ipv4/tcp_timestamps";
const SOCKSTAT: &str = "/proc/net/sockstat";

/// `TCP_TIMEWAIT_LEN`, fixed in the kernel (`include/net/tcp.h`).
const TIME_WAIT: Nanos = Nanos(60_000_000_000);
/// When a port in TIME_WAIT may be taken again where `tcp_tw_reuse` applies: the delay when the
/// kernel does not name it.
const REUSED_AFTER: Nanos = Nanos(1_000_000_000);

/// Local ports of this network namespace, for IPv4 and IPv6 alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalPorts {
    /// The first of `net.ipv4.ip_local_port_range`.
    pub first: u16,
    pub last: u16,
    /// How many of them the kernel may choose: without those reserved in
    /// `net.ipv4.ip_local_reserved_ports`.
    pub usable: u64,
    /// How long a closed connection keeps its port towards another host.
    pub kept: Nanos,
    /// And towards this host itself.
    pub kept_loopback: Nanos,
}

/// Reads them.
///
/// **Source**: `net.ipv4.ip_local_port_range`, `ip_local_reserved_ports`, `tcp_tw_reuse` (1
/// everywhere, 2 on loopback alone; needs `tcp_timestamps`), `tcp_tw_reuse_delay` (since 6.14).
pub fn read(root: &Root) -> Reading<LocalPorts> {
    let range = root.word(RANGE).and_then(|text| {
        let mut ports = text.split_ascii_whitespace().map(str::parse::<u16>);
        match (ports.next(), ports.next()) {
            (Some(Ok(first)), Some(Ok(last))) if first <= last => Reading::Known((first, last)),
            _ => Reading::Absent(format!("{RANGE}: {text:?} is no range of ports")),
        }
    });
    // A list of ports has the shape of a list of CPUs.
    let reserved = root.list(RESERVED).into_known().unwrap_or_default();
    let stamped = root.number::<u8>(TIMESTAMPS).into_known() != Some(0);
    let reuse = root.number::<u8>(TW_REUSE).into_known().filter(|_| stamped).unwrap_or(0);
    let delay = root.number::<u64>(TW_REUSE_DELAY).into_known();
    let soon = delay.map_or(REUSED_AFTER, |ms| Nanos(ms.saturating_mul(1_000_000)));
    range.map(|(first, last)| LocalPorts {
        first,
        last,
        usable: (first..=last).filter(|p| !reserved.contains(CpuId(u32::from(*p)))).count() as u64,
        kept: if reuse == 1 { soon } else { TIME_WAIT },
        kept_loopback: if reuse == 1 || reuse == 2 { soon } else { TIME_WAIT },
    })
}

/// Connections in TIME_WAIT in this network namespace, towards anybody. **Source**:
/// `/proc/net/sockstat`, `TCP.tw`.
pub fn time_wait(root: &Root) -> Reading<u64> {
    root.parsed(SOCKSTAT, parse::sockstat::parse).and_then(|all| match all.get("TCP.tw") {
        Some(n) => Reading::Known(*n),
        None => Reading::absent("/proc/net/sockstat: no TCP line"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path.trim_start_matches('/'));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let root = Root::open(folder.path()).unwrap();
        (folder, root)
    }

    #[test]
    fn reserved_ports_are_not_usable_and_a_port_is_kept_for_a_minute() {
        let (_folder, root) = host(&[
            (RANGE, "40000\t40059\n"),
            (RESERVED, "80,40000-40009,40059,50000\n"),
            (TW_REUSE, "0\n"),
            (TIMESTAMPS, "1\n"),
            (SOCKSTAT, "TCP: inuse 5 orphan 0 tw 17 alloc 6 mem 312\n"),
        ]);
        let ports = read(&root).into_known().unwrap();
        assert_eq!((ports.first, ports.last, ports.usable), (40_000, 40_059, 49));
        assert_eq!((ports.kept, ports.kept_loopback), (TIME_WAIT, TIME_WAIT));
        assert_eq!(time_wait(&root).into_known(), Some(17));
    }

    #[test]
    fn reuse_frees_ports_early_where_it_applies() {
        let with = |reuse: &str, stamps: &str| {
            let (_folder, root) =
                host(&[(RANGE, "1 9\n"), (TW_REUSE, reuse), (TIMESTAMPS, stamps)]);
            let ports = read(&root).into_known().unwrap();
            assert_eq!(ports.usable, 9);
            (ports.kept, ports.kept_loopback)
        };
        assert_eq!(with("1", "1"), (REUSED_AFTER, REUSED_AFTER));
        assert_eq!(with("2", "1"), (TIME_WAIT, REUSED_AFTER));
        assert_eq!(with("2", "0"), (TIME_WAIT, TIME_WAIT));
    }

    #[test]
    fn what_is_no_range_is_absent() {
        let (_folder, root) = host(&[(RANGE, "9 1\n")]);
        assert!(read(&root).into_known().is_none());
        assert!(time_wait(&root).into_known().is_none());
    }
}
