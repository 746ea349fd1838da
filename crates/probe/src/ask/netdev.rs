//! The `netdev` generic-netlink family. A kernel without the family or the operation answers
//! absent, with the version that has it.

use parse::{
    genl_netdev::{self, NapiMessage, QueueMessage, QueueStats},
    netlink::Request,
};

use super::{
    genl,
    netlink::{self, Dump},
};
use crate::{ReadError, Root};

const QUEUE_GET: u8 = 10;
const NAPI_GET: u8 = 11;
const QSTATS_GET: u8 = 12;

/// Every queue and the NAPI instance that polls it, of every device that is up. Needs no
/// capability. Since 6.8.
///
/// # Errors
/// As the kernel answered; absent on an older kernel or a root without this answer.
pub fn queues(root: &Root) -> Result<Dump<QueueMessage>, ReadError> {
    root.ask("netlink/queues", || {
        ask("netlink/queues", "6.8", QUEUE_GET, |r| r, genl_netdev::queue)
    })
}

/// Every NAPI instance of every device that is up. Needs no capability. Since 6.8.
///
/// # Errors
/// As for [`queues`].
pub fn napis(root: &Root) -> Result<Dump<NapiMessage>, ReadError> {
    root.ask("netlink/napis", || ask("netlink/napis", "6.8", NAPI_GET, |r| r, genl_netdev::napi))
}

/// Counters by queue, for devices with a driver that keeps them. Since 6.9.
///
/// # Errors
/// As for [`queues`].
pub fn qstats(root: &Root) -> Result<Dump<QueueStats>, ReadError> {
    const SCOPE: u16 = 4;
    const SCOPE_QUEUE: u32 = 1;
    root.ask("netlink/qstats", || {
        ask(
            "netlink/qstats",
            "6.9",
            QSTATS_GET,
            |r| r.with(SCOPE, &SCOPE_QUEUE.to_ne_bytes()),
            genl_netdev::qstats,
        )
    })
}

fn ask<T>(
    key: &str,
    since: &str,
    command: u8,
    with: impl FnOnce(Request) -> Request,
    parser: fn(&[u8]) -> Option<T>,
) -> Result<Dump<T>, ReadError> {
    let what = format!("{key} (netdev family, since Linux {since})");
    let family = genl::family("netdev", &what)?;
    let request = with(Request::dump(family, &[command, 1, 0, 0]));
    netlink::dump(libc::NETLINK_GENERIC, &what, &request, |m| {
        (m.kind == family).then(|| parser(m.payload)).flatten()
    })
    .map_err(|e| match e {
        // The family is older (6.3) than its operations.
        ReadError::Failed { errno: libc::EOPNOTSUPP, path } => ReadError::Absent { path },
        other => other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_that_is_not_there_is_absent_and_one_that_is_answers() {
        for answer in [
            queues(&Root::live()).map(|d| d.entries.len()),
            napis(&Root::live()).map(|d| d.entries.len()),
        ] {
            match answer {
                Ok(_) | Err(ReadError::Absent { .. }) => {}
                Err(other) => panic!("{other}"),
            }
        }
    }
}
