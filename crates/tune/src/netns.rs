//! Other network namespaces: finding them by name, path, container or inode, and entering them.

use std::os::unix::net::UnixDatagram;
use std::{
    fs::{self, File},
    os::{
        fd::{AsFd, AsRawFd},
        unix::fs::MetadataExt,
    },
    path::{Path, PathBuf},
};

use model::{Reading, quote, tune::HostId};
use probe::{ReadError, Root, facts::process};
use rustix::{
    io::Errno,
    mount::{MountFlags, MountPropagationFlags, mount, mount_bind_recursive, mount_change},
    thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe},
};

use crate::TuneError;

/// Where `ip netns`, podman and CNI keep names.
const NAMES: &str = "/run/netns";

/// Reason given for a change whose namespace no longer exists.
pub const GONE: &str = model::tune::NAMESPACE_GONE;

/// A network namespace that the user named.
#[derive(Debug)]
pub struct Namespace {
    file: File,
    pub inode: u64,
    /// The name as the user gave it.
    pub name: String,
    /// How classic tools enter it.
    way: NamespaceEntry,
}

/// How classic tools enter a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NamespaceEntry {
    /// `ip netns exec NAME`.
    Name(String),
    /// `nsenter --net=PATH`; the path of a mounted namespace or of `/proc/PID/ns/net`.
    Path(String),
    /// `nsenter -t PID -n`.
    Process(u32),
}

impl NamespaceEntry {
    /// The command line that runs `command` in the namespace.
    pub fn line(&self, command: &str) -> String {
        let (enter, own_sys) = match self {
            Self::Name(name) => (format!("ip netns exec {}", quote::shell(name)), true),
            Self::Path(path) => (format!("nsenter --net={}", quote::shell(path)), false),
            Self::Process(pid) => (format!("nsenter -t {pid} -n"), false),
        };
        if command.contains('…') || command.contains("for each") {
            // For reading only: not a valid shell line.
            return format!("with `{enter}`: {command}");
        }
        // `nsenter` does not remount /sys, so /sys still shows this namespace's interfaces.
        if command.contains("/sys/class/net/") && !own_sys {
            let inner = format!("mount -t sysfs sysfs /sys && {command}");
            return format!("{enter} unshare -m sh -c {}", quote::shell(&inner));
        }
        match command.contains(['>', ';', '&', '|', '$']) {
            true => format!("{enter} sh -c {}", quote::shell(command)),
            false => format!("{enter} {command}"),
        }
    }
}

/// Result of a search for a namespace by inode.
#[derive(Debug)]
pub enum NamespaceSearch {
    There(Namespace),
    /// No process, mount or open file holds it any more.
    Gone,
    /// Not found, but some processes could not be inspected.
    Unknown,
}

fn open(path: &Path, name: &str, way: NamespaceEntry) -> Result<Namespace, TuneError> {
    let shown = path.display().to_string();
    let file = File::open(path).map_err(|e| TuneError::io(&shown, &e))?;
    let is_namespace = rustix::fs::fstatfs(&file).is_ok_and(|system| system.f_type == 0x6e73_6673);
    let inode = file.metadata().map_err(|e| TuneError::io(&shown, &e))?.ino();
    if is_namespace {
        return Ok(Namespace { file, inode, name: name.to_owned(), way });
    }
    Err(TuneError::Usage(format!("{shown}: is no network namespace")))
}

impl Namespace {
    /// Finds a namespace by its `ip netns` name, or by a path such as `/proc/4711/ns/net`.
    ///
    /// # Errors
    /// There is no such namespace.
    pub fn named(name: &str) -> Result<Self, TuneError> {
        if name.contains('/') {
            let path = std::path::absolute(name).unwrap_or_else(|_| PathBuf::from(name));
            let way = NamespaceEntry::Path(path.to_string_lossy().into_owned());
            return open(Path::new(name), name, way);
        }
        let path = Path::new(NAMES).join(name);
        if !path.exists() {
            return Err(TuneError::Absent(format!(
                "there is no network namespace {name:?} (ip netns list)"
            )));
        }
        open(&path, name, NamespaceEntry::Name(name.to_owned()))
    }

    /// The namespace of a process.
    ///
    /// # Errors
    /// The process ended, or may not be inspected.
    pub fn of_process(pid: u32, name: &str) -> Result<Self, TuneError> {
        open(Path::new(&format!("/proc/{pid}/ns/net")), name, NamespaceEntry::Process(pid))
    }

    /// How the classic tools get there.
    pub fn way(&self) -> &NamespaceEntry {
        &self.way
    }

    /// Whether this thread is in it.
    pub fn is_here(&self) -> bool {
        own().is_some_and(|own| own == label(self.inode))
    }

    /// Moves this thread into it, and mounts a `/sys` that shows its interfaces. A single-threaded
    /// process stays there; another thread stays until it ends.
    ///
    /// # Errors
    /// Without `CAP_SYS_ADMIN`.
    pub fn enter(&self) -> Result<(), TuneError> {
        let failed = |what: &str, e: Errno| match e {
            Errno::PERM | Errno::ACCESS => TuneError::Denied(format!(
                "network namespace {}: {what}: not permitted; CAP_SYS_ADMIN (or root) is needed",
                self.name
            )),
            e => TuneError::io(&format!("network namespace {}: {what}", self.name), &e.into()),
        };
        // Moves only this thread.
        move_into_link_name_space(self.file.as_fd(), Some(LinkNameSpaceType::Network))
            .map_err(|e| failed("setns", e))?;
        // SAFETY: unsharing the mount namespace leaves the shared descriptors of the other threads
        // alone.
        unsafe { unshare_unsafe(UnshareFlags::NEWNS) }.map_err(|e| failed("unshare", e))?;
        // Mounts from outside still arrive; our mounts do not propagate out.
        mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::DOWNSTREAM)
            .map_err(|e| failed("mount", e))?;
        let groups = File::open("/sys/fs/cgroup");
        let safe = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        match mount("sysfs", "/sys", "sysfs", safe, None) {
            Ok(()) => {}
            // The same sysfs is mounted already: it belongs to this namespace.
            Err(Errno::BUSY) => return Ok(()),
            Err(e) => return Err(failed("mount /sys", e)),
        }
        // The new /sys hides the control groups, which belong to no network namespace.
        if let Ok(groups) = groups {
            let from = format!("/proc/self/fd/{}", groups.as_raw_fd());
            let _ = mount_bind_recursive(from, "/sys/fs/cgroup");
        }
        Ok(())
    }
}

/// A number unique to this namespace for the whole boot, unlike an inode; since kernel 5.14.
/// **Source**: `SO_NETNS_COOKIE` of a socket made here.
pub fn cookie() -> Option<u64> {
    const SO_NETNS_COOKIE: libc::c_int = 71;
    let socket = UnixDatagram::unbound().ok()?;
    let (mut value, mut length) = (0u64, 8);
    // SAFETY: the pointers are to our own values, of the length told.
    let done = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_NETNS_COOKIE,
            (&raw mut value).cast(),
            &raw mut length,
        )
    };
    (done == 0).then_some(value)
}

/// The kernel's label for a namespace inode.
fn label(inode: u64) -> String {
    format!("net:[{inode}]")
}

/// The kernel's label of this thread's namespace.
fn own() -> Option<String> {
    Root::live().link("/proc/thread-self/ns/net").ok()
}

/// Mount points whose mountinfo line contains `what`.
fn mounted(root: &Root, what: &str) -> Vec<String> {
    let mounts = root.read("/proc/self/mountinfo").unwrap_or_default();
    let mounts = String::from_utf8_lossy(&mounts);
    let lines = mounts.lines().filter(|l| l.contains(what));
    lines.filter_map(|l| Some(l.split(' ').nth(4)?.to_owned())).collect()
}

/// Finds a namespace by its inode: names, mounts, processes, threads and open files.
pub fn search(inode: u64) -> NamespaceSearch {
    let (root, label) = (Root::live(), label(inode));
    let try_open = |path: &str| {
        let way = NamespaceEntry::Path(path.to_owned());
        open(Path::new(path), &label, way).ok().filter(|n| n.inode == inode)
    };
    if let Some(found) = mounted(&root, &label).iter().find_map(|path| try_open(path)) {
        return NamespaceSearch::There(found);
    }
    let mut denied = false;
    let pids = process::pids(&root);
    let is_it = |link: &str| root.link(link).map(|l| l == label);
    for pid in &pids {
        let link = format!("/proc/{pid}/ns/net");
        match is_it(&link) {
            Ok(true) => {
                if let Some(found) = try_open(&link) {
                    return NamespaceSearch::There(found);
                }
            }
            // If process 1 may not be inspected, we are in a container with it, or next to it.
            Err(ReadError::Denied { .. }) => denied |= *pid != 1,
            _ => {}
        }
    }
    for pid in &pids {
        for (part, link) in [("fd", ""), ("task", "/ns/net")] {
            let folder = format!("/proc/{pid}/{part}");
            for entry in root.entries(&folder).unwrap_or_default() {
                let link = format!("{folder}/{entry}{link}");
                if is_it(&link).unwrap_or(false)
                    && let Some(found) = try_open(&link)
                {
                    return NamespaceSearch::There(found);
                }
            }
        }
    }
    if denied { NamespaceSearch::Unknown } else { NamespaceSearch::Gone }
}

/// All other network namespaces that a name, a mount or a process holds, each once. Also whether
/// some processes could not be inspected.
pub fn others() -> (Vec<Namespace>, bool) {
    let mut all: Vec<Namespace> = Vec::new();
    let (root, own) = (Root::live(), own());
    let mut add = |found: Result<Namespace, TuneError>| {
        if let Ok(found) = found
            && own.as_ref().is_none_or(|own| *own != label(found.inode))
            && !all.iter().any(|n| n.inode == found.inode)
        {
            all.push(found);
        }
    };
    for entry in fs::read_dir(NAMES).into_iter().flatten().flatten() {
        add(Namespace::named(&entry.file_name().to_string_lossy()));
    }
    for path in mounted(&root, "net:[") {
        add(Namespace::named(&path));
    }
    let mut seen = std::collections::BTreeSet::new();
    let mut denied = false;
    for pid in process::pids(&root) {
        match root.link(&format!("/proc/{pid}/ns/net")) {
            Ok(link) if seen.insert(link.clone()) => {
                add(Namespace::of_process(pid, &format!("of process {pid}")));
            }
            // As in `search`.
            Err(ReadError::Denied { .. }) => denied |= pid != 1,
            _ => {}
        }
    }
    (all, denied)
}

/// As [`search`], and also compares the cookie, since inodes are reused.
pub fn again(inode: u64, then: Option<u64>) -> NamespaceSearch {
    match (search(inode), then) {
        (NamespaceSearch::There(found), Some(then)) => {
            let now = within(&found, cookie);
            match now {
                Ok(Some(now)) if now != then => NamespaceSearch::Gone,
                _ => NamespaceSearch::There(found),
            }
        }
        (found, _) => found,
    }
}

/// Label of a namespace: its `ip netns` name, else `net:[INODE]`.
pub fn called(inode: u64) -> String {
    let is_it = |e: &fs::DirEntry| fs::metadata(e.path()).is_ok_and(|m| m.ino() == inode);
    let named = fs::read_dir(NAMES).into_iter().flatten().flatten().find(is_it);
    named.map_or_else(|| format!("net:[{inode}]"), |e| e.file_name().to_string_lossy().into_owned())
}

/// Whether both hosts are in one namespace; an unknown namespace counts as the same.
pub fn same(a: &HostId, b: &HostId) -> bool {
    let differ = |a: &Reading<u64>, b: &Reading<u64>| matches!((a.known(), b.known()), (Some(a), Some(b)) if a != b);
    !differ(&a.net_namespace, &b.net_namespace) && !differ(&a.net_cookie, &b.net_cookie)
}

/// Runs a function in a namespace, in a separate thread that ends with it.
///
/// # Errors
/// The namespace cannot be entered.
pub fn within<T: Send>(
    namespace: &Namespace,
    work: impl FnOnce() -> T + Send,
) -> Result<T, TuneError> {
    std::thread::scope(|scope| {
        let work = || {
            namespace.enter()?;
            Ok(work())
        };
        let thread = std::thread::Builder::new().spawn_scoped(scope, work);
        let thread = thread.map_err(|e| TuneError::io("starting a thread", &e))?;
        let lost = || TuneError::Environment("a thread ended in the middle".into());
        thread.join().map_err(|_| lost())?
    })
}

/// Whether this is the machine's first network namespace, seen from its first PID namespace.
/// Host-wide settings are changed only there.
///
/// **Source**: `/proc/self/ns/pid`, whose first one has the fixed inode `PROC_PID_INIT_INO`
/// (include/linux/proc_ns.h), and `/proc/1/ns/net` beside our own. What cannot be read is no
/// sign of it.
pub fn is_first(root: &probe::Root) -> bool {
    let own = |name: &str| root.link(&format!("/proc/self/ns/{name}")).ok();
    let net = own("net");
    own("pid").as_deref() == Some("pid:[4026531836]")
        && net.is_some()
        && net == root.link("/proc/1/ns/net").ok()
}

/// Whether a knob belongs to a network namespace and not to the whole host.
pub fn is_of_namespace(knob: &str) -> bool {
    ["nic.", "route.", "sysctl.net.", "sysctl.net/"].iter().any(|kind| knob.starts_with(kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_to_get_there() {
        let (echo, mtu) = ("echo 5 > /sys/class/net/v0/threaded", "ip link set v0 mtu 1400");
        let quoted = "sysctl -w net.ipv4.tcp_rmem=\"1 2 3\"";
        for (way, command, line) in [
            (NamespaceEntry::Name("blue".into()), mtu, format!("ip netns exec blue {mtu}")),
            (NamespaceEntry::Name("blue".into()), quoted, format!("ip netns exec blue {quoted}")),
            (
                NamespaceEntry::Name("blue".into()),
                echo,
                format!("ip netns exec blue sh -c '{echo}'"),
            ),
            (NamespaceEntry::Process(7), mtu, format!("nsenter -t 7 -n {mtu}")),
            (
                NamespaceEntry::Path("/run/a b".into()),
                echo,
                format!(
                    "nsenter --net='/run/a b' unshare -m sh -c 'mount -t sysfs sysfs /sys && {echo}'"
                ),
            ),
            (
                NamespaceEntry::Process(7),
                "ethtool -X v0 … (queues in order: 0 1)",
                "with `nsenter -t 7 -n`: ethtool -X v0 … (queues in order: 0 1)".into(),
            ),
        ] {
            assert_eq!(way.line(command), line);
        }
    }
}
