//! The fast path for a small file: one open that resolves within the root, one read, one close. It
//! does not check before it opens, so it needs a tree in which no device can be opened. Everything
//! else takes the careful path.

use std::{
    fs::File,
    io::Read,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use rustix::{
    fs::{Mode, OFlags, ResolveFlags, StatVfsMountFlags, fstatvfs, openat2},
    io::Errno,
};

use super::{
    super::{MAX_LINK_HOPS, archive::is_magic},
    DirRoot, FOLDER, MAX_FILE_BYTES, SMALL, errno, read_rest, walk,
};

/// What is known of the tree's mounts.
#[derive(Debug)]
pub struct Quick {
    /// Whether mounts within the tree refuse devices too.
    everywhere: bool,
    /// Whether the root's file system ends a file with a short read; files of the kernel's own
    /// do not.
    plain: bool,
    /// A file was found on another mount within the tree.
    crossed: AtomicBool,
    /// [`BUSY`], opened when first asked for, where they are on the root's own mount.
    busy: [OnceLock<Option<OwnedFd>>; BUSY.len()],
}

/// Folders with thousands of files below: to start there spares the way from the root.
const BUSY: [&str; 2] = ["/proc/irq/", "/sys/devices/system/cpu/"];

const MOUNT_NO_SUID: u64 = 0x2;
const MOUNT_NO_DEVICES: u64 = 0x4;
const MOUNT_NO_EXEC: u64 = 0x8;
const MOUNT_READ_ONLY: u64 = 0x1;
const OPEN_TREE_CLONE: i32 = 1;
const WHOLE_TREE: i32 = 0x8000;

/// `struct mount_attr` of `linux/mount.h`.
#[repr(C)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

/// A private view of the folder and all mounts in it, in which the kernel opens no device. `None`
/// where this process may not make one (it needs `CAP_SYS_ADMIN` and Linux 5.12). It ends with its
/// descriptor.
fn private_view(folder: &OwnedFd) -> Option<OwnedFd> {
    let flags = OPEN_TREE_CLONE | libc::O_CLOEXEC | libc::AT_EMPTY_PATH | WHOLE_TREE;
    // SAFETY: the descriptor is open, an empty path with it names the folder itself.
    let fd = unsafe { libc::syscall(libc::SYS_open_tree, folder.as_raw_fd(), c"".as_ptr(), flags) };
    if fd < 0 {
        return None;
    }
    // SAFETY: the kernel just gave us this descriptor.
    let view = unsafe { OwnedFd::from_raw_fd(fd as i32) };
    let attributes = MountAttributes {
        set: MOUNT_NO_DEVICES | MOUNT_NO_SUID | MOUNT_NO_EXEC | MOUNT_READ_ONLY,
        clear: 0,
        propagation: 0,
        user_namespace: 0,
    };
    // SAFETY: descriptor and structure outlive the call; the size is that of the structure.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            view.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | WHOLE_TREE,
            &raw const attributes,
            size_of::<MountAttributes>(),
        )
    };
    (done == 0).then_some(view)
}

impl Quick {
    /// The folder to read from from now on, and whether the short way is open.
    pub fn prepare(folder: OwnedFd) -> (OwnedFd, Option<Self>) {
        let plain = is_plain(&folder);
        let quick = |everywhere| Self::new(everywhere, plain);
        if let Some(view) = private_view(&folder) {
            return (view, Some(quick(true)));
        }
        let refuses = mounted_without_devices(&folder);
        (folder, refuses.then(|| quick(false)))
    }

    /// For tests of trees without devices.
    #[cfg(test)]
    pub fn assumed(folder: &OwnedFd) -> Self {
        Self::new(false, is_plain(folder))
    }

    fn new(everywhere: bool, plain: bool) -> Self {
        Self { everywhere, plain, crossed: AtomicBool::new(false), busy: Default::default() }
    }
}

fn mounted_without_devices(folder: &OwnedFd) -> bool {
    fstatvfs(folder).is_ok_and(|stat| stat.f_flag.contains(StatVfsMountFlags::NODEV))
}

/// Whether this is one of the file systems that trees are kept on.
fn is_plain(folder: &OwnedFd) -> bool {
    const TMPFS: i64 = 0x0102_1994;
    const EXT: i64 = 0xef53;
    const XFS: i64 = 0x5846_5342;
    const BTRFS: i64 = 0x9123_683e;
    const OVERLAY: i64 = 0x794c_7630;
    rustix::fs::fstatfs(folder)
        .is_ok_and(|stat| [TMPFS, EXT, XFS, BTRFS, OVERLAY].contains(&stat.f_type))
}

impl DirRoot {
    /// The file, or what the careful way would say too; `None` where that must be asked.
    pub(super) fn read_quickly(&self, path: &str) -> Option<Result<Vec<u8>, i32>> {
        let quick = self.quick.as_ref()?;
        let mut same_mount = !quick.crossed.load(Ordering::Relaxed);
        if !same_mount && !quick.everywhere {
            return None;
        }
        let within = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        let mut opened = if same_mount {
            match self.open_directly(quick, path) {
                // A link is on the way.
                Err(libc::ELOOP) => open(&self.fd, path, FILE, within | ResolveFlags::NO_XDEV),
                other => other,
            }
        } else {
            open(&self.fd, path, FILE, within)
        };
        if matches!(opened, Err(libc::EXDEV)) && same_mount {
            quick.crossed.store(true, Ordering::Relaxed);
            if !quick.everywhere {
                return None;
            }
            same_mount = false;
            opened = open(&self.fd, path, FILE, within);
        }
        let file = match opened {
            Ok(fd) => File::from(fd),
            Err(e @ (libc::ENOENT | libc::ENOTDIR | libc::ELOOP)) => return Some(Err(e)),
            Err(_) => return None,
        };
        read_small(file, quick.plain && same_mount)
    }

    /// Without following any link, which is quicker: there is nothing to keep within the root
    /// then, but `..`, which therefore goes the other way.
    fn open_directly(&self, quick: &Quick, path: &str) -> Result<OwnedFd, i32> {
        // What stands in these folders is links.
        let linked = path.starts_with("/sys/class/") || path.starts_with("/sys/bus/");
        if linked || path.as_bytes().windows(2).any(|pair| pair == b"..") {
            return Err(libc::ELOOP);
        }
        for (prefix, cell) in BUSY.iter().zip(&quick.busy) {
            let Some(rest) = path.strip_prefix(prefix).map(|r| r.trim_start_matches('/')) else {
                continue;
            };
            let folder = || open(&self.fd, prefix.trim_matches('/'), FOLDER, NO_LINKS).ok();
            match cell.get_or_init(folder) {
                Some(fd) if !rest.is_empty() => return open(fd, rest, FILE, NO_LINKS),
                _ => break,
            }
        }
        match path.trim_start_matches('/') {
            "" => Err(libc::EISDIR),
            path => open(&self.fd, path, FILE, NO_LINKS),
        }
    }

    /// Whether [`DirRoot::resolve`] would find it, without following every component; `None`
    /// where that must be asked.
    pub(super) fn exists_quickly(&self, path: &str) -> Option<bool> {
        if !self.openat2 {
            return None;
        }
        let within = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        match open(&self.fd, path, OFlags::PATH | OFlags::CLOEXEC, within) {
            Ok(_) => Some(true),
            Err(libc::ENOENT | libc::ENOTDIR | libc::ELOOP) => Some(false),
            Err(_) => None,
        }
    }
}

impl DirRoot {
    /// A folder, open for listing; `None` where the careful way must be asked.
    pub(super) fn open_folder_quickly(&self, path: &str) -> Option<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let within = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        self.openat2.then(|| open(&self.fd, path, flags, within).ok())?
    }

    /// The real path, asking once for each link instead of once for each component; `None`
    /// where the careful way must be asked.
    pub(super) fn resolve_quickly(&self, path: &str) -> Option<Result<String, i32>> {
        let mut path = if self.openat2 { plain(path)? } else { return None };
        for _ in 0..MAX_LINK_HOPS {
            let below = path.trim_start_matches('/');
            match open(&self.fd, below, OFlags::PATH | OFlags::CLOEXEC, ResolveFlags::NO_SYMLINKS) {
                Ok(_) => return Some(Ok(path)),
                Err(libc::ELOOP) => {}
                Err(e @ (libc::ENOENT | libc::ENOTDIR)) => return Some(Err(e)),
                Err(_) => return None,
            }
            let (folder, name) = path.rsplit_once('/').filter(|(f, _)| !f.is_empty())?;
            match open(&self.fd, folder.trim_start_matches('/'), FOLDER, ResolveFlags::NO_SYMLINKS)
            {
                // Only the last is a link, so what it climbs from has no link either.
                Ok(fd) => path = joined(folder, &walk::target(&fd, name).ok()?)?,
                Err(libc::ELOOP) => match self.resolve_quickly(folder)? {
                    Ok(real) => path = format!("{real}/{name}"),
                    Err(e) => return Some(Err(e)),
                },
                Err(_) => return None,
            }
        }
        None
    }
}

/// An absolute path that says nothing twice; `None` for one with `.` or `..` in it.
fn plain(path: &str) -> Option<String> {
    let whole = path.starts_with('/') && path.len() > 1;
    let parts = || path.split('/').skip(1);
    (whole && parts().all(|p| !matches!(p, "" | "." | ".."))).then(|| path.to_owned())
}

/// Where a link in a folder leads. It may climb first (`../../devices/x`), but not later: what
/// it went through by then might be a link.
fn joined(folder: &str, link: &str) -> Option<String> {
    if is_magic(link) {
        return None;
    }
    if link.starts_with('/') {
        return plain(link);
    }
    let (mut folder, mut link) = (folder, link);
    while let Some(rest) = link.strip_prefix("../") {
        link = rest;
        folder = folder.rsplit_once('/').map_or("", |(up, _)| up);
    }
    if link == ".." {
        let up = folder.rsplit_once('/').map_or("", |(up, _)| up);
        return plain(up);
    }
    plain(&format!("{folder}/{link}"))
}

const NO_LINKS: ResolveFlags = ResolveFlags::NO_SYMLINKS.union(ResolveFlags::NO_XDEV);
const FILE: OFlags =
    OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// A path longer than any of a kernel's is `ENAMETOOLONG`.
fn open(
    folder: &OwnedFd,
    path: &str,
    flags: OFlags,
    resolve: ResolveFlags,
) -> Result<OwnedFd, i32> {
    if path.len() >= 256 {
        return Err(libc::ENAMETOOLONG);
    }
    openat2(folder, path, flags, Mode::empty(), resolve).map_err(Errno::raw_os_error)
}

/// `short_is_end`: a read of less than was asked for is the last.
fn read_small(mut file: File, short_is_end: bool) -> Option<Result<Vec<u8>, i32>> {
    let mut buffer = [0u8; SMALL];
    let n = match file.read(&mut buffer) {
        Ok(n) => n,
        Err(e) if errno(&e) == libc::EISDIR => return Some(Err(libc::EISDIR)),
        // A pipe with a writer says EAGAIN.
        Err(e) if matches!(errno(&e), libc::EAGAIN | libc::EINTR) => return None,
        Err(e) => return Some(Err(errno(&e))),
    };
    let head = buffer.get(..n)?;
    if short_is_end && 0 < n && n < SMALL {
        return Some(Ok(head.to_vec()));
    }
    // Empty, long, or a pipe.
    let meta = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
    if meta.len() > MAX_FILE_BYTES {
        return Some(Err(libc::EFBIG));
    }
    let mut bytes = Vec::new();
    if n == SMALL {
        bytes.reserve_exact(usize::try_from(meta.len()).ok()?.clamp(n, 1 << 20) + 1);
    }
    bytes.extend_from_slice(head);
    if n == 0 {
        return Some(Ok(bytes));
    }
    Some(read_rest(file, bytes))
}
