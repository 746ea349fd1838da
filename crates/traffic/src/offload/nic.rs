//! The offloads of the interface that carries a connection.

use std::net::{IpAddr, SocketAddr};

use model::{Reading, measure::OffloadNic};
use probe::{Root, ask::ethtool::Ethtool};

use crate::host::route;

/// Features that a probe can tell something about, by the kernel's names.
const TOLD: [&str; 14] = [
    "tx-checksum-ipv4",
    "tx-checksum-ipv6",
    "tx-checksum-ip-generic",
    "rx-checksum",
    "tx-scatter-gather",
    "tx-generic-segmentation",
    "tx-tcp-segmentation",
    "tx-tcp6-segmentation",
    "tx-udp-segmentation",
    "rx-gro",
    "rx-gro-hw",
    "rx-lro",
    "rx-gro-list",
    "rx-udp-gro-forwarding",
];

/// The interface towards an address.
pub fn towards(peer: SocketAddr) -> Reading<OffloadNic> {
    of(route::interface_to(peer))
}

/// The interface with an address.
pub fn with(address: IpAddr) -> Reading<OffloadNic> {
    if address.is_loopback() {
        return of(Some("lo".into()));
    }
    of(route::interface_of(address))
}

fn of(name: Option<String>) -> Reading<OffloadNic> {
    let Some(name) = name else { return Reading::absent("no interface has the address") };
    let root = Root::live();
    match Ethtool::new(&root).features(&name) {
        Ok(all) => {
            let told = all.into_iter().filter(|f| TOLD.contains(&f.name.as_str()));
            let features = told.map(|f| (f.name, f.active)).collect();
            Reading::Known(OffloadNic { name, features })
        }
        Err(e) => Reading::absent(format!("ethtool -k {name}: {e}")),
    }
}
