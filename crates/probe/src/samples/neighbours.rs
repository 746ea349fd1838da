//! The neighbour tables of IPv4 and IPv6: one for all network namespaces, counted in the first one.

use model::Reading;
use parse::proc_net_stat::TableStat;

use crate::Root;

/// One family's table at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct RawNeighbours {
    pub family: &'static str,
    /// **Source**: `/proc/net/stat/arp_cache` or `ndisc_cache`.
    pub stat: Reading<TableStat>,
    /// The limit of entries. **Source**: `/proc/sys/net/{ipv4,ipv6}/neigh/default/gc_thresh3`.
    pub most: Reading<u64>,
}

const FAMILIES: [(&str, &str); 2] = [("ipv4", "arp_cache"), ("ipv6", "ndisc_cache")];

pub fn read(root: &Root) -> Vec<RawNeighbours> {
    let one = |(family, file): (&'static str, &str)| RawNeighbours {
        family,
        stat: root.parsed(&format!("/proc/net/stat/{file}"), parse::proc_net_stat::parse),
        most: root.number(&format!("/proc/sys/net/{family}/neigh/default/gc_thresh3")),
    };
    FAMILIES.into_iter().map(one).collect()
}
