//! The processes that hold a socket. One walk over `/proc/*/fd` answers for all sockets; only the
//! requested ones are kept, so that a snapshot does not record every descriptor of a host.

use std::collections::{BTreeMap, BTreeSet};

use model::Reading;
use serde::{Deserialize, Serialize};

use crate::{ReadError, Root};

/// The holders of the requested sockets.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Owners {
    /// By socket inode, ascending pids.
    pub pids: BTreeMap<u64, Vec<u32>>,
    /// The first process with descriptors hidden from this reader (`/proc/PID/fd`).
    pub denied: Option<String>,
    /// There are more descriptors than are looked through.
    pub gave_up: bool,
}

impl Owners {
    /// The processes that hold this socket, or why they are not known.
    pub fn of(&self, inode: u64) -> Reading<Vec<u32>> {
        match (self.pids.get(&inode), &self.denied) {
            (Some(pids), _) => Reading::Known(pids.clone()),
            (None, Some(path)) => ReadError::Denied { path: path.clone() }.into_reading(),
            (None, None) if self.gave_up => {
                Reading::absent("more descriptors than are looked through")
            }
            (None, None) => Reading::absent(
                "no process here holds it (the kernel's, or of another pid namespace)",
            ),
        }
    }
}

/// Descriptors looked through at most; half a million take about half a second.
const MOST_DESCRIPTORS: usize = 500_000;

/// The processes that hold the sockets. **Source**: `/proc/PID/fd` links `socket:[INODE]`.
/// Those of other users need `CAP_SYS_PTRACE`.
///
/// # Errors
/// Where `/proc` cannot be listed.
pub fn of(root: &Root, sockets: &BTreeSet<u64>) -> Result<Owners, ReadError> {
    asked(root, "proc/listener_owners", sockets)
}

/// The same under another key: a recording keeps one answer for each.
///
/// # Errors
/// Where `/proc` cannot be listed.
pub fn asked(root: &Root, key: &str, sockets: &BTreeSet<u64>) -> Result<Owners, ReadError> {
    match root.ask(key, || walk(&Root::live(), sockets)) {
        // A plain tree of files may hold the links themselves.
        Err(ReadError::Absent { .. }) if !root.is_live() => walk(root, sockets),
        answer => answer,
    }
}

fn walk(root: &Root, sockets: &BTreeSet<u64>) -> Result<Owners, ReadError> {
    let mut pids: Vec<u32> =
        root.entries("/proc")?.iter().filter_map(|name| name.parse().ok()).collect();
    pids.sort_unstable();
    let mut owners = Owners::default();
    let mut left = MOST_DESCRIPTORS;
    for pid in pids {
        let folder = format!("/proc/{pid}/fd");
        let descriptors = match root.entries(&folder) {
            Ok(names) => names,
            Err(ReadError::Denied { path }) => {
                owners.denied.get_or_insert(path);
                continue;
            }
            // It ended meanwhile.
            Err(_) => continue,
        };
        for descriptor in descriptors {
            if left == 0 {
                owners.gave_up = true;
                return Ok(owners);
            }
            left -= 1;
            let inode = match root.link(&format!("{folder}/{descriptor}")) {
                Ok(target) => socket_inode(&target),
                // Root may list what it may not follow (a protected init).
                Err(ReadError::Denied { .. }) => {
                    owners.denied.get_or_insert_with(|| folder.clone());
                    break;
                }
                // It was closed meanwhile.
                Err(_) => None,
            };
            if let Some(inode) = inode.filter(|i| sockets.contains(i)) {
                let holders = owners.pids.entry(inode).or_default();
                if holders.last() != Some(&pid) {
                    holders.push(pid);
                }
            }
        }
    }
    Ok(owners)
}

/// The number in `socket:[4711]`; `None` for another target.
fn socket_inode(target: &str) -> Option<u64> {
    target.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}
