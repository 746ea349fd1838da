//! Sends one change over rtnetlink, and waits for the kernel's answer.

use parse::netlink::{Message, Request};
use probe::{ReadError, ask::netlink};

use super::Host;
use crate::TuneError;

impl Host {
    /// Sends one change over rtnetlink.
    ///
    /// # Errors
    /// As the kernel answered.
    pub(super) fn request(&self, what: &str, request: &Request) -> Result<(), TuneError> {
        let nothing = &mut |_: &Message<'_>| std::ops::ControlFlow::Continue(());
        match netlink::exchange(libc::NETLINK_ROUTE, what, request, nothing) {
            Ok(_) => Ok(()),
            Err(ReadError::Failed { errno, .. }) => Err(TuneError::written(what, errno)),
            Err(ReadError::Denied { .. }) => Err(TuneError::written(what, libc::EPERM)),
            Err(e) => Err(TuneError::read(&e)),
        }
    }
}
