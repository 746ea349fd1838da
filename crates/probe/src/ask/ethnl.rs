//! The `ethtool` generic-netlink family, for what the ioctl cannot report: the coalescing
//! parameters that a driver has (the ioctl returns 0 for the others), and RSS contexts. One dump
//! covers all devices. [`super::ethtool`] queries everything else.

use parse::{
    genl_ethtool::{self, CoalesceMessage, RssMessage},
    netlink::Request,
};

use super::{
    genl,
    netlink::{self, Dump},
};
use crate::{ReadError, Root};

const COALESCE_GET: u8 = 19;
const RSS_GET: u8 = 38;

/// Coalescing parameters of every device that has any. Needs no capability. Since 5.7.
///
/// # Errors
/// As the kernel answered; absent on an older kernel or a root without this answer.
pub fn coalesce(root: &Root) -> Result<Dump<CoalesceMessage>, ReadError> {
    root.ask("netlink/coalesce", || {
        ask("netlink/coalesce", "5.7", COALESCE_GET, genl_ethtool::coalesce)
    })
}

/// Every RSS context of every device. Needs no capability. Since 6.11.
///
/// # Errors
/// As for [`coalesce`].
pub fn rss_contexts(root: &Root) -> Result<Dump<RssMessage>, ReadError> {
    root.ask("netlink/rss", || ask("netlink/rss", "6.11", RSS_GET, genl_ethtool::rss))
}

fn ask<T>(
    key: &str,
    since: &str,
    command: u8,
    parser: fn(&[u8]) -> Option<T>,
) -> Result<Dump<T>, ReadError> {
    /// Must be there, with nothing in it, for a dump of all devices.
    const HEADER: u16 = 1;
    const NESTED: u16 = 0x8000;
    let what = format!("{key} (ethtool family, since Linux {since})");
    let family = genl::family("ethtool", &what)?;
    let request = Request::dump(family, &[command, 1, 0, 0]).with(HEADER | NESTED, &[]);
    netlink::dump(libc::NETLINK_GENERIC, &what, &request, |m| {
        (m.kind == family).then(|| parser(m.payload)).flatten()
    })
    .map_err(|e| match e {
        // The family is older (5.6) than its operations.
        ReadError::Failed { errno: libc::EOPNOTSUPP, path } => ReadError::Absent { path },
        other => other,
    })
}
