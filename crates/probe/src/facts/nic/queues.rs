//! The queues of a NIC, and packet steering to and from them.

use model::{QueueId, Reading, nic::Queue};

use crate::Root;

/// Every queue of `/sys/class/net/X/queues`, rx first, in ascending order; empty if none is
/// visible. It opens only two files per queue, as a host may have thousands of queues.
pub fn read(root: &Root, nic: &str) -> Vec<Queue> {
    let folder = format!("/sys/class/net/{nic}/queues");
    let names = root.entries(&folder).unwrap_or_default();
    let mut ids: Vec<QueueId> = names.iter().filter_map(|n| id(n)).collect();
    ids.sort_unstable();
    ids.dedup();
    ids.into_iter().map(|id| queue(root, &format!("{folder}/{id}"), id)).collect()
}

/// The queue of a folder's name: `rx-3` or `tx-0`.
fn id(name: &str) -> Option<QueueId> {
    let index = |t: &str| t.bytes().all(|b| b.is_ascii_digit()).then(|| t.parse().ok()).flatten();
    match name.split_once('-')? {
        ("rx", n) => index(n).map(QueueId::rx),
        ("tx", n) => index(n).map(QueueId::tx),
        _ => None,
    }
}

/// The steering of one queue; what belongs to the other direction is absent.
fn queue(root: &Root, dir: &str, id: QueueId) -> Queue {
    let rx = id.direction == model::ids::Direction::Rx;
    // A reason that needs no path: it would be repeated for every queue.
    fn other<T>(is: &str) -> Reading<T> {
        Reading::absent(format!("only of {is} queues"))
    }
    Queue {
        id,
        napi_id: Reading::absent("not read"),
        irq: Reading::absent("not read"),
        rps_cpus: if rx { root.mask(&format!("{dir}/rps_cpus")) } else { other("rx") },
        rfs_flows: if rx { root.number(&format!("{dir}/rps_flow_cnt")) } else { other("rx") },
        xps_cpus: if rx { other("tx") } else { root.mask(&format!("{dir}/xps_cpus")) },
        xps_rxqs: if rx { other("tx") } else { root.mask(&format!("{dir}/xps_rxqs")) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_queue_folders_are_queues() {
        assert_eq!(id("rx-0"), Some(QueueId::rx(0)));
        assert_eq!(id("tx-63"), Some(QueueId::tx(63)));
        for other in ["rx-", "rx-+1", "tx--1", "rx-99999999999", "by-0", "rx0", ""] {
            assert_eq!(id(other), None, "{other:?}");
        }
    }
}
