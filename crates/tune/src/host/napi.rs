//! The NAPI instances of an interface, and their settings.

use model::{QueueId, ids::Direction};
use parse::{
    genl_netdev::NapiMessage,
    netlink::{Message, Request},
};
use probe::{
    ReadError,
    ask::{genl, netdev, netlink},
};

use super::Host;
use crate::TuneError;

const NAPI_SET: u8 = 14;
const NAPI_ID: u16 = 2;

impl Host {
    /// The NAPI instances of an interface with their names; empty while the interface is down.
    ///
    /// # Errors
    /// As the kernel answered; absent before Linux 6.8.
    pub fn napis(&self, nic: &str) -> Result<Vec<(String, NapiMessage)>, TuneError> {
        let ifindex = self.ifindex(nic)?;
        let napis = netdev::napis(&self.root).map_err(|e| TuneError::read(&e))?;
        let queues = netdev::queues(&self.root).map_err(|e| TuneError::read(&e))?;
        if napis.interrupted || queues.interrupted {
            return Err(TuneError::Environment(format!("{nic}: its NAPIs change all the time")));
        }
        let polled = |id: u32| {
            let own = queues.entries.iter().filter(|q| q.ifindex == ifindex);
            own.filter(|q| q.napi_id == Some(id)).map(|q| q.id).collect()
        };
        let all: Vec<_> = napis.entries.into_iter().filter(|n| n.ifindex == ifindex).collect();
        let names = names(all.iter().map(|n| (n.id, polled(n.id))).collect());
        Ok(all.into_iter().filter_map(|n| Some((names.get(&n.id)?.clone(), n))).collect())
    }

    /// Sets one attribute of a NAPI instance. Since Linux 6.13.
    ///
    /// # Errors
    /// As the kernel answered; a directory tree has none.
    pub fn set_napi(&self, id: u32, attribute: u16, value: u32) -> Result<(), TuneError> {
        let what = format!("napi-set of NAPI {id} (netdev family)");
        if !self.is_live() {
            return Err(TuneError::Environment(format!("{what}: a folder has no NAPIs")));
        }
        let family = genl::family("netdev", &what).map_err(|e| TuneError::read(&e))?;
        let request = Request::change(family, 0, &[NAPI_SET, 1, 0, 0])
            .with(NAPI_ID, &id.to_ne_bytes())
            .with(attribute, &value.to_ne_bytes());
        let nothing = &mut |_: &Message<'_>| std::ops::ControlFlow::Continue(());
        match netlink::exchange(libc::NETLINK_GENERIC, &what, &request, nothing) {
            Ok(_) => Ok(()),
            Err(ReadError::Failed { errno, .. }) => Err(TuneError::written(&what, errno)),
            Err(ReadError::Denied { .. }) => Err(TuneError::written(&what, libc::EPERM)),
            Err(e) => Err(TuneError::read(&e)),
        }
    }
}

/// Names of one interface's NAPI instances, by id. An instance is named after the first queue that
/// it polls (`rx-0`): a driver that recreates its instances gives the new one the same queue. Most
/// virtual drivers report no queues; their instances are numbered in the order of their ids, which
/// is the order of creation.
pub fn names(napis: Vec<(u32, Vec<QueueId>)>) -> std::collections::BTreeMap<u32, String> {
    let mut napis = napis;
    napis.sort_unstable();
    let mut count = 0..;
    let mut name = |queues: Vec<QueueId>| {
        let first =
            |side: Direction| queues.iter().filter(|q| q.direction == side).map(|q| q.index).min();
        match (first(Direction::Rx), first(Direction::Tx)) {
            (Some(n), _) => format!("rx-{n}"),
            (None, Some(n)) => format!("tx-{n}"),
            (None, None) => count.next().unwrap_or(0).to_string(),
        }
    };
    napis.into_iter().map(|(id, queues)| (id, name(queues))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_napi_goes_by_its_queue_and_without_one_by_its_turn() {
        let all = names(vec![
            (261, vec![]),
            (300, vec![QueueId::tx(0), QueueId::rx(1)]),
            (301, vec![QueueId::tx(3)]),
            (260, vec![]),
        ]);
        let all: Vec<&str> = all.values().map(String::as_str).collect();
        assert_eq!(all, ["0", "1", "rx-1", "tx-3"]);
    }
}
