//! Network namespaces: their names, processes and links.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use model::{
    Reading,
    facts::NoAccess,
    netns::{Link, NetNamespace},
};
use parse::{
    rtnl_addr::AddressMessage,
    rtnl_link::{FLAG_UP, LinkMessage},
};

use crate::{
    ReadError, Root,
    ask::{
        netns::{self, Inside, NAMES},
        rtnl::{self, Answers, Handle, Numbers},
    },
    error::reading,
};

/// Other namespaces that are looked into at most. Each costs a thread and a few questions; a
/// host with more has its links counted elsewhere.
pub const MOST_ENTERED: usize = 256;

/// Pids that are kept of each namespace.
const MOST_PIDS: usize = 16;

/// All namespaces, ascending by inode, and what could not be seen of them.
pub fn read(root: &Root, links: &Answers) -> (Reading<Vec<NetNamespace>>, Vec<NoAccess>) {
    let own = match own_inode(root) {
        Ok(own) => own,
        Err(e) => return (e.into_reading(), vec![]),
    };
    let mut no_access = Unseen::default();
    let found = find(root, own, &mut no_access);
    let handles = handles(&found, own);
    let mut entered = 0;
    let namespaces: Vec<NetNamespace> = found
        .into_iter()
        .map(|(inode, seen)| {
            let links = if inode == own {
                own_links(root, links, own, &handles)
            } else if entered < MOST_ENTERED {
                entered += 1;
                links_of(root, inode, &handles, &mut no_access)
            } else {
                no_access.beyond += 1;
                Reading::Absent(format!("not looked into: {MOST_ENTERED} other namespaces were"))
            };
            NetNamespace {
                inode,
                name: seen.name.map_or_else(
                    || Reading::Absent(format!("no name under {NAMES}")),
                    Reading::Known,
                ),
                own: inode == own,
                container: container(root, &seen.pids),
                process_count: seen.count,
                pids: seen.pids,
                links,
            }
        })
        .collect();
    (Reading::Known(namespaces), no_access.lines(root))
}

/// The inode of the namespace that the reader lives in.
///
/// # Errors
/// Where `/proc/self/ns/net` cannot be read or is no namespace.
pub fn own_inode(root: &Root) -> Result<u64, ReadError> {
    const PATH: &str = "/proc/self/ns/net";
    let target = root.link(PATH)?;
    inode(&target).ok_or_else(|| ReadError::from_errno(PATH, libc::EINVAL))
}

/// The number in `net:[4026531840]`; `None` for another target.
pub(super) fn inode(target: &str) -> Option<u64> {
    target.strip_prefix("net:[")?.strip_suffix(']')?.parse().ok()
}

/// What was not seen, for people.
#[derive(Default)]
struct Unseen {
    /// The number of processes with an unreadable namespace, and the first one's path.
    hidden: Option<(usize, String)>,
    not_entered: Option<String>,
    beyond: usize,
}

impl Unseen {
    fn lines(self, root: &Root) -> Vec<NoAccess> {
        let mut lines = vec![];
        if let Some((count, path)) = self.hidden {
            // Root without more ado is refused only by a security module or a sandbox.
            let has = may_trace(root);
            lines.push(NoAccess {
                what: match count {
                    1 => "network namespace of 1 process".into(),
                    n => format!("network namespaces of {n} processes"),
                },
                why: format!(
                    "{path}: not permitted{}",
                    if has { ", though this reader has CAP_SYS_PTRACE" } else { "" }
                ),
                remedy: if has { "" } else { "CAP_SYS_PTRACE, or run as root" }.into(),
            });
        }
        if let Some(why) = self.not_entered {
            lines.push(NoAccess {
                what: "links of other network namespaces".into(),
                why,
                remedy: "CAP_SYS_ADMIN, or run as root".into(),
            });
        }
        if self.beyond > 0 {
            lines.push(NoAccess {
                what: format!("links of {} network namespaces", self.beyond),
                why: format!("more than {MOST_ENTERED}: the others were not looked into"),
                remedy: String::new(),
            });
        }
        lines
    }
}

/// Whether this reader has `CAP_SYS_PTRACE`.
fn may_trace(root: &Root) -> bool {
    const CAP_SYS_PTRACE: u32 = 19;
    root.read("/proc/self/status")
        .ok()
        .and_then(|text| {
            let mask = parse::proc_status::value(&text, "CapEff")?;
            u64::from_str_radix(mask.trim(), 16).ok()
        })
        .is_some_and(|mask| mask >> CAP_SYS_PTRACE & 1 == 1)
}

/// One namespace as `/proc` and the names show it.
#[derive(Default)]
struct ProcessNamespace {
    name: Option<String>,
    pids: Vec<u32>,
    count: u32,
}

fn find(root: &Root, own: u64, unseen: &mut Unseen) -> BTreeMap<u64, ProcessNamespace> {
    let mut found: BTreeMap<u64, ProcessNamespace> =
        BTreeMap::from([(own, ProcessNamespace::default())]);
    let mut pids: Vec<u32> = root
        .entries("/proc")
        .unwrap_or_default()
        .iter()
        .filter_map(|name| name.parse().ok())
        .collect();
    pids.sort_unstable();
    for pid in pids {
        match root.link(&format!("/proc/{pid}/ns/net")) {
            Ok(target) => {
                let Some(inode) = inode(&target) else { continue };
                let seen = found.entry(inode).or_default();
                seen.count += 1;
                if seen.pids.len() < MOST_PIDS {
                    seen.pids.push(pid);
                }
            }
            Err(ReadError::Denied { path }) => {
                unseen.hidden.get_or_insert((0, path)).0 += 1;
            }
            // It ended meanwhile.
            Err(_) => {}
        }
    }
    for named in netns::names(root).unwrap_or_default() {
        found.entry(named.inode).or_default().name.get_or_insert(named.name);
    }
    found
}

/// How each namespace can be opened, the own one first: most links of others point to it.
fn handles(found: &BTreeMap<u64, ProcessNamespace>, own: u64) -> Vec<Handle> {
    let mut handles: Vec<Handle> = found
        .iter()
        .map(|(&inode, seen)| {
            let own_path = (inode == own).then(|| "/proc/self/ns/net".to_owned());
            let named = seen.name.iter().map(|n| format!("{NAMES}/{n}"));
            let pids = seen.pids.iter().map(|pid| format!("/proc/{pid}/ns/net"));
            Handle { inode, paths: own_path.into_iter().chain(named).chain(pids).collect() }
        })
        .collect();
    handles.sort_by_key(|h| h.inode != own);
    handles
}

/// The links of this namespace, as the other end of others' links needs them.
fn own_links(root: &Root, answers: &Answers, own: u64, handles: &[Handle]) -> Reading<Vec<Link>> {
    reading(answers.links.clone()).map(|links| {
        let wanted: BTreeSet<i32> = links.entries.iter().filter_map(|l| l.link_netnsid).collect();
        let others: Vec<Handle> = handles.iter().filter(|h| h.inode != own).cloned().collect();
        let numbers = rtnl::numbers(root, &wanted, &others).unwrap_or_default();
        let addresses = answers.addresses.as_ref().map(|a| a.entries.as_slice());
        links_from(links.entries, addresses.unwrap_or_default(), &numbers)
    })
}

fn links_of(
    root: &Root,
    inode: u64,
    handles: &[Handle],
    unseen: &mut Unseen,
) -> Reading<Vec<Link>> {
    let Some(handle) = handles.iter().find(|h| h.inode == inode) else {
        return Reading::Absent(format!("network namespace {inode}: not there"));
    };
    let links = netns::inside(root, handle, handles);
    if let Err(e @ ReadError::Denied { .. }) = &links {
        unseen.not_entered.get_or_insert_with(|| e.to_string());
    }
    reading(links).map(|Inside { links, addresses, numbers }| {
        links_from(links.entries, &addresses.entries, &numbers)
    })
}

/// Ascending by index. An interrupted dump may name a link twice: the later is the newer.
fn links_from(
    links: Vec<LinkMessage>,
    addresses: &[AddressMessage],
    numbers: &Numbers,
) -> Vec<Link> {
    let mut by_link: HashMap<u32, Vec<&AddressMessage>> = HashMap::new();
    for a in addresses {
        by_link.entry(a.ifindex).or_default().push(a);
    }
    let by_index: BTreeMap<u32, LinkMessage> = links.into_iter().map(|l| (l.ifindex, l)).collect();
    by_index
        .into_values()
        // Every kernel reports the MTU; a message without it is skipped.
        .filter_map(|l| Some((l.mtu?, l)))
        .map(|(mtu, l)| Link {
            addresses: texts(by_link.get(&l.ifindex).into_iter().flatten().copied()),
            ifindex: l.ifindex,
            name: l.name.clone(),
            kind: kind(&l),
            lower_ifindex: l.link.map_or_else(
                || Reading::Absent(format!("{} points to no other link", l.name)),
                Reading::Known,
            ),
            lower_namespace: lower_namespace(&l, numbers),
            master_ifindex: l.master.map_or_else(
                || Reading::Absent(format!("{} has no master", l.name)),
                Reading::Known,
            ),
            mtu,
            up: l.flags & FLAG_UP != 0,
            mac: l.mac.map_or_else(
                || Reading::Absent(format!("{} has no hardware address", l.name)),
                Reading::Known,
            ),
        })
        .collect()
}

/// `tun` and `tap` are one kind to rtnetlink and two to a person.
pub(super) fn kind(l: &LinkMessage) -> String {
    match &l.data {
        parse::rtnl_link::LinkData::Tun { mode: Some(mode), .. } => mode.clone(),
        _ => l.kind.clone().unwrap_or_default(),
    }
}

fn lower_namespace(l: &LinkMessage, numbers: &Numbers) -> Reading<u64> {
    match l.link_netnsid {
        None => Reading::Absent("in this namespace".into()),
        Some(number) => numbers.get(&number).map_or_else(
            || Reading::Absent(format!("namespace number {number}: not among those found")),
            |&inode| Reading::Known(inode),
        ),
    }
}

/// Addresses as text, each once, IPv4 before IPv6, ascending.
pub(super) fn texts<'a>(addresses: impl Iterator<Item = &'a AddressMessage>) -> Vec<String> {
    let sorted: BTreeSet<_> = addresses.map(|a| (a.address, a.prefix)).collect();
    sorted.into_iter().map(|(address, prefix)| format!("{address}/{prefix}")).collect()
}

/// The container of the first process that still lives; `none` if it is in none.
fn container(root: &Root, pids: &[u32]) -> Reading<String> {
    let mut why = Reading::absent("no process that this reader sees is in it");
    for pid in pids {
        let path = format!("/proc/{pid}/cgroup");
        let cgroups = root.parsed(&path, parse::cgroup::parse);
        match cgroups {
            Reading::Known(c) => {
                return Reading::Known(c.container().map_or_else(|| "none".into(), |c| c.id));
            }
            other => why = other.and_then(|_| Reading::absent(path)),
        }
    }
    why
}
