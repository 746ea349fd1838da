//! Other network namespaces: their names and contents.

use parse::{rtnl_addr::AddressMessage, rtnl_link::LinkMessage};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde::{Deserialize, Serialize};

use super::{
    netlink::Dump,
    rtnl::{self, Handle, Numbers},
};
use crate::{ReadError, Root};

/// A namespace that has a name, with or without processes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    /// File name under [`NAMES`].
    pub name: String,
    pub inode: u64,
}

/// Where `ip netns`, podman and CNI keep names.
pub const NAMES: &str = "/run/netns";

/// Every named network namespace, in ascending order.
///
/// **Source**: the files under `/run/netns` with a mounted namespace; a leftover plain file does
/// not count.
///
/// # Errors
/// Absent where no name was ever given.
pub fn names(root: &Root) -> Result<Vec<Named>, ReadError> {
    root.ask("netns/names", || {
        let mut named: Vec<Named> = std::fs::read_dir(NAMES)
            .map_err(|e| ReadError::from_io(NAMES, &e))?
            .filter_map(|entry| {
                let entry = entry.ok()?;
                let inode = namespace_inode(&entry.path())?;
                Some(Named { name: entry.file_name().into_string().ok()?, inode })
            })
            .collect();
        named.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(named)
    })
}

/// The inode of a file, if it is a namespace.
fn namespace_inode(path: &std::path::Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    const NSFS_MAGIC: i64 = 0x6e73_6673;
    let file = std::fs::File::open(path).ok()?;
    let fs = rustix::fs::fstatfs(&file).ok()?;
    #[allow(clippy::unnecessary_cast, reason = "its width differs by architecture")]
    (fs.f_type as i64 == NSFS_MAGIC).then_some(())?;
    Some(file.metadata().ok()?.ino())
}

/// Whether this network namespace belongs to this process's user namespace or to one below it: only
/// then do its capabilities count there. **Source**: `NS_GET_USERNS`, which is refused for an owner
/// outside of what the asker may see; since 4.9.
///
/// # Errors
/// As the kernel answered, or absent where the root has no such answer.
pub fn is_own(root: &Root) -> Result<bool, ReadError> {
    use std::os::fd::AsRawFd;
    const NS_GET_USERNS: libc::c_ulong = 0xb701;
    const NET: &str = "/proc/thread-self/ns/net";
    root.ask("netns/own", || {
        let net = std::fs::File::open(NET).map_err(|e| ReadError::from_io(NET, &e))?;
        // SAFETY: the descriptor is open, and the call takes no argument.
        let owner = unsafe { libc::ioctl(net.as_raw_fd(), NS_GET_USERNS as _) };
        if owner >= 0 {
            // SAFETY: the kernel just gave us this descriptor.
            unsafe { libc::close(owner) };
            return Ok(true);
        }
        match std::io::Error::last_os_error() {
            e if e.raw_os_error() == Some(libc::EPERM) => Ok(false),
            e => Err(ReadError::from_io(NET, &e)),
        }
    })
}

/// What is inside another namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inside {
    pub links: Dump<LinkMessage>,
    pub addresses: Dump<AddressMessage>,
    /// The namespaces that its links point to.
    pub numbers: Numbers,
}

/// Reads another namespace in a temporary thread; the caller stays in its namespace. Needs
/// `CAP_SYS_ADMIN`. `among` are the namespaces that its links may point to, the likeliest first.
///
/// # Errors
/// Denied without the capability; absent when the namespace is gone or the root has no such answer.
pub fn inside(root: &Root, handle: &Handle, among: &[Handle]) -> Result<Inside, ReadError> {
    let key = format!("netlink/netns/{}", handle.inode);
    root.ask(&key, || {
        within(&key, handle, || {
            let links = rtnl::live_links(&key)?;
            let addresses = rtnl::live_addresses(&key)?;
            let wanted = links.entries.iter().filter_map(|l| l.link_netnsid).collect();
            let numbers = rtnl::live_numbers(&wanted, among);
            Ok(Inside { links, addresses, numbers })
        })
    })
}

/// Runs `look` in a thread that has entered the namespace.
fn within<T: Send>(
    what: &str,
    handle: &Handle,
    look: impl FnOnce() -> Result<T, ReadError> + Send,
) -> Result<T, ReadError> {
    use std::os::fd::AsFd;
    let failed = |errno| ReadError::from_errno(what, errno);
    let file = rtnl::open(handle)?;
    std::thread::scope(|scope| {
        let entered = || {
            // Moves this thread alone, which ends after `look`.
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))
                .map_err(|e| failed(e.raw_os_error()))?;
            look()
        };
        std::thread::Builder::new()
            .name("netns".into())
            .spawn_scoped(scope, entered)
            .map_err(|e| ReadError::from_io(what, &e))?
            .join()
            .map_err(|_| failed(libc::EFAULT))?
    })
}
