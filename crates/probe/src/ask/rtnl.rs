//! rtnetlink: links, addresses, queueing disciplines, numbers of other namespaces. All of this
//! is readable without any capability.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    os::fd::AsRawFd,
};

use parse::{
    netlink::{Request, attribute, i32_at},
    rtnl_addr::{self, AddressMessage},
    rtnl_link::{self, LinkMessage},
    rtnl_qdisc::{self, QdiscMessage},
    rtnl_stats::{self, LinkStats},
    tc_qdisc_text,
};
use serde::{Deserialize, Serialize};

use super::netlink::{self, Dump};
use crate::{ReadError, Root};

/// rtnetlink's answers about this namespace, asked once for all who need them.
pub struct Answers {
    pub links: Result<Dump<LinkMessage>, ReadError>,
    pub addresses: Result<Dump<AddressMessage>, ReadError>,
}

impl Answers {
    pub fn ask(root: &Root) -> Self {
        Self { links: links(root), addresses: addresses(root) }
    }
}

/// Every link of this network namespace. **Source**: `RTM_GETLINK`.
///
/// # Errors
/// As the kernel answered, or absent where the root has no such answer.
pub fn links(root: &Root) -> Result<Dump<LinkMessage>, ReadError> {
    root.ask("netlink/links", || live_links("netlink/links"))
}

/// Every IPv4 and IPv6 address of this network namespace. **Source**: `RTM_GETADDR`.
///
/// # Errors
/// As for [`links`].
pub fn addresses(root: &Root) -> Result<Dump<AddressMessage>, ReadError> {
    root.ask("netlink/addresses", || live_addresses("netlink/addresses"))
}

/// Every queueing discipline of this network namespace with its counters, ingress and the
/// children of `mq` included. **Source**: `RTM_GETQDISC`.
///
/// # Errors
/// As for [`links`].
pub fn qdiscs(root: &Root) -> Result<Dump<QdiscMessage>, ReadError> {
    const KEY: &str = "netlink/qdiscs";
    root.ask(KEY, || {
        let request = Request::dump(libc::RTM_GETQDISC, &[0; 20]);
        netlink::dump(libc::NETLINK_ROUTE, KEY, &request, |m| {
            (m.kind == libc::RTM_NEWQDISC).then(|| rtnl_qdisc::parse(m.payload)).flatten()
        })
    })
    .or_else(|missing| printed_qdiscs(root).ok_or(missing))
}

/// The same as `tc -s qdisc show` printed them into a support archive, of all interfaces or of each.
fn printed_qdiscs(root: &Root) -> Option<Dump<QdiscMessage>> {
    const ALL: [&str; 4] =
        ["tc -s qdisc show", "tc -s qdisc", "tc -s -d qdisc show", "tc -s -d qdisc"];
    const EACH: [&str; 2] = ["tc -s -d qdisc show dev", "tc -s qdisc show dev"];
    let of_nic = |nic: String| {
        let text = root.output(&EACH, &nic)?;
        Some(tc_qdisc_text::parse_of(&text, Some(&nic)))
    };
    let printed = match root.output(&ALL, "") {
        Some(text) => tc_qdisc_text::parse(&text),
        None => {
            let nics = root.entries("/sys/class/net").ok()?;
            let each: Vec<_> = nics.into_iter().filter_map(of_nic).collect();
            (!each.is_empty()).then(|| each.into_iter().flatten().collect())?
        }
    };
    let entries = printed.into_iter().filter_map(|(nic, q)| {
        let ifindex = root.number(&format!("/sys/class/net/{nic}/ifindex")).into_known()?;
        Some(QdiscMessage { ifindex, ..q })
    });
    Some(Dump { entries: entries.collect(), interrupted: false })
}

/// Every link's counters, by name, in one answer instead of two dozen files per link: for frequent
/// readings. `None` where the files must be read: the root is not the running host, its sources are
/// recorded, or the kernel refuses.
pub fn statistics(root: &Root) -> Option<BTreeMap<String, LinkStats>> {
    if !root.is_live() || root.is_recorded() {
        return None;
    }
    let all = netlink::dump(libc::NETLINK_ROUTE, "netlink/statistics", &all_links(), |m| {
        (m.kind == libc::RTM_NEWLINK).then(|| rtnl_stats::parse(m.payload)).flatten()
    });
    let all = all.ok()?.entries.into_iter();
    Some(all.map(|link| (link.name.clone(), link)).collect())
}

/// Every link, without what of it IPv4 and IPv6 count.
fn all_links() -> Request {
    const EXT_MASK: u16 = 29;
    const SKIP_STATS: u32 = 1 << 3;
    Request::dump(libc::RTM_GETLINK, &[0; 16]).with(EXT_MASK, &SKIP_STATS.to_ne_bytes())
}

/// A namespace and files that stand for it: `/proc/PID/ns/net`, `/run/netns/NAME`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handle {
    pub inode: u64,
    /// Tried in order; a process may be gone, and its number given to another.
    pub paths: Vec<String>,
}

/// Numbers that this namespace gave others (`link-netnsid` of `ip link`), with their inodes.
pub type Numbers = BTreeMap<i32, u64>;

/// Inodes behind the numbers in `wanted`, as far as `among` holds them. **Source**:
/// `RTM_GETNSID`; since 3.20.
///
/// # Errors
/// As for [`links`].
pub fn numbers(
    root: &Root,
    wanted: &BTreeSet<i32>,
    among: &[Handle],
) -> Result<Numbers, ReadError> {
    #[derive(Serialize, Deserialize)]
    struct Answer {
        numbers: Numbers,
    }
    root.ask("netlink/nsids", || Ok(Answer { numbers: live_numbers(wanted, among) }))
        .map(|a| a.numbers)
}

pub(super) fn live_links(what: &str) -> Result<Dump<LinkMessage>, ReadError> {
    netlink::dump(libc::NETLINK_ROUTE, what, &all_links(), |m| {
        (m.kind == libc::RTM_NEWLINK).then(|| rtnl_link::parse(m.payload)).flatten()
    })
}

pub(super) fn live_addresses(what: &str) -> Result<Dump<AddressMessage>, ReadError> {
    let request = Request::dump(libc::RTM_GETADDR, &[0; 8]);
    netlink::dump(libc::NETLINK_ROUTE, what, &request, |m| {
        (m.kind == libc::RTM_NEWADDR).then(|| rtnl_addr::parse(m.payload)).flatten()
    })
}

/// Asks for one candidate after the other until every number is known: a container's only
/// foreign namespace is nearly always the first candidate, the host's.
pub(super) fn live_numbers(wanted: &BTreeSet<i32>, among: &[Handle]) -> Numbers {
    let mut found = Numbers::new();
    for handle in among {
        if wanted.iter().all(|n| found.contains_key(n)) {
            break;
        }
        if let Some(number) = number_of(handle).filter(|n| wanted.contains(n)) {
            found.insert(number, handle.inode);
        }
    }
    found
}

/// The number of a namespace here; `None` if it has none.
fn number_of(handle: &Handle) -> Option<i32> {
    const NSID: u16 = 1;
    const FD: u16 = 3;
    let file = open(handle).ok()?;
    let request =
        Request::one(libc::RTM_GETNSID, &[0; 4]).with(FD, &(file.as_raw_fd() as u32).to_ne_bytes());
    netlink::one(libc::NETLINK_ROUTE, "netlink/nsids", &request, |m| {
        (m.kind == libc::RTM_NEWNSID)
            .then(|| attribute(m.payload, 4, NSID))
            .flatten()
            .and_then(|a| i32_at(a.bytes, 0))
    })
    .ok()
    .filter(|&n| n >= 0)
}

/// Opens a namespace by the first of its paths that still is that namespace.
pub(super) fn open(handle: &Handle) -> Result<File, ReadError> {
    use std::os::unix::fs::MetadataExt;
    let mut error = ReadError::Absent { path: format!("network namespace {}", handle.inode) };
    for path in &handle.paths {
        match File::open(path).and_then(|f| Ok((f.metadata()?.ino(), f))) {
            Ok((inode, file)) if inode == handle.inode => return Ok(file),
            Ok(_) => {}
            Err(e) => error = ReadError::from_io(path, &e),
        }
    }
    Err(error)
}
