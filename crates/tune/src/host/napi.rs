//! The NAPI instances of an interface, and their settings.

use model::napi::names;
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
