//! rtnetlink: queueing disciplines.

use parse::{
    netlink::Request,
    rtnl_qdisc::{self, QdiscMessage},
};

use super::netlink::{self, Dump};
use crate::{ReadError, Root};

/// Every queueing discipline of this network namespace with its counters, ingress and the
/// children of `mq` included. **Source**: `RTM_GETQDISC`; needs no capability.
///
/// # Errors
/// As the kernel answered, or absent where the root has no such answer.
pub fn qdiscs(root: &Root) -> Result<Dump<QdiscMessage>, ReadError> {
    const KEY: &str = "netlink/qdiscs";
    root.ask(KEY, || {
        let request = Request::dump(libc::RTM_GETQDISC, &[0; 20]);
        netlink::dump(libc::NETLINK_ROUTE, KEY, &request, |m| {
            (m.kind == libc::RTM_NEWQDISC).then(|| rtnl_qdisc::parse(m.payload)).flatten()
        })
    })
}
