//! The fill of accept queues. A queue is full for moments only, so the fullest of several readings
//! counts.

use std::{collections::BTreeMap, net::SocketAddr};

use model::{Reading, samples::ListenerSample};

use crate::samples::raw::Raw;

/// The sockets of every reading that has them; the first reason where none has.
pub(super) fn all(readings: &[Raw]) -> Reading<Vec<ListenerSample>> {
    if let Some(missing) =
        readings.first().filter(|_| !readings.iter().any(|r| r.listeners.is_known()))
    {
        return missing.listeners.as_ref().map(|_| vec![]);
    }
    let mut by_address: BTreeMap<SocketAddr, ListenerSample> = BTreeMap::new();
    for reading in readings {
        for (address, (waiting, limit)) in fullest(reading) {
            let full = u32::from(waiting >= limit && limit > 0);
            by_address
                .entry(address)
                .and_modify(|s| {
                    s.full_readings += full;
                    if waiting >= s.fullest_accept_queue {
                        s.fullest_accept_queue = waiting;
                        s.accept_queue_limit = limit;
                    }
                })
                .or_insert_with(|| ListenerSample {
                    address: address.to_string(),
                    fullest_accept_queue: waiting,
                    accept_queue_limit: limit,
                    full_readings: full,
                });
        }
    }
    Reading::Known(by_address.into_values().collect())
}

/// Of each address the fullest socket at one reading: waiting, and how many may.
fn fullest(reading: &Raw) -> BTreeMap<SocketAddr, (u32, u32)> {
    let mut found: BTreeMap<SocketAddr, (u32, u32)> = BTreeMap::new();
    for l in reading.listeners.known().into_iter().flatten() {
        let now = (l.waiting, l.limit);
        found.entry(l.address).and_modify(|most| *most = now.max(*most)).or_insert(now);
    }
    found
}
