//! A directory laid out as a host's root: `proc/`, `sys/`, `etc/`, and an unpacked snapshot's
//! `netwright/`.
//!
//! No link leads outside: absolute targets count from the directory, `..` stops at it. Devices
//! and FIFOs are never opened.

use std::{
    fs::File,
    io::Read,
    os::fd::OwnedFd,
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use model::snapshot::Manifest;
use rustix::{
    fs::{AtFlags, Dir, Mode, OFlags, ResolveFlags, openat, openat2, statat},
    io::Errno,
};

use super::{ArchiveError, MAX_FILE_BYTES, Op, archive};

mod quick;
mod walk;

pub struct DirRoot {
    fd: Arc<OwnedFd>,
    manifest: Option<Manifest>,
    /// Whether the kernel resolves within the root by itself (`openat2`, since 5.6; container
    /// engines of that time refuse it).
    openat2: bool,
    /// Set where nothing in the tree can be a device to the kernel.
    quick: Option<quick::Quick>,
    /// The most recently used folders first: facts read several files of one folder before the
    /// next. Each thread mostly has its own list, so that none waits.
    recent: Box<[Mutex<Recent>; SHARDS]>,
}

type Recent = Vec<(String, Arc<OwnedFd>)>;

const SHARDS: usize = 16;
/// Folders remembered in each list.
const RECENT: usize = 4;
/// Nearly all files are smaller, CPU masks of 1,024 CPUs among them.
const SMALL: usize = 512;
/// Names of one folder; `/proc` and a CPU's folders have some ten thousand at most.
const MAX_NAMES: usize = 4 << 20;
const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

fn errno(e: &std::io::Error) -> i32 {
    e.raw_os_error().unwrap_or(libc::EIO)
}

/// `openat` of one name, never through a link.
fn open_at(dir: &OwnedFd, name: &str, flags: OFlags) -> Result<OwnedFd, i32> {
    let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    openat(dir, name, flags, Mode::empty()).map_err(Errno::raw_os_error)
}

/// What a name is (`S_IFMT` bits) and its length, links not followed.
fn kind_at(dir: &OwnedFd, name: &str) -> Result<(libc::mode_t, u64), i32> {
    let stat = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).map_err(Errno::raw_os_error)?;
    Ok((stat.st_mode & libc::S_IFMT, u64::try_from(stat.st_size).unwrap_or(0)))
}

/// This thread's list of recent folders.
fn shard() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static MINE: usize = NEXT.fetch_add(1, Ordering::Relaxed) % SHARDS);
    MINE.with(|mine| *mine)
}

/// A file that the file system says is `length` long. Kernel files say 0 or 4096 whatever they
/// hold, so only a read of exactly `length` bytes is known to be all.
fn read_all(mut file: File, length: u64) -> Result<Vec<u8>, i32> {
    if length > MAX_FILE_BYTES {
        return Err(libc::EFBIG);
    }
    let mut bytes = Vec::new();
    if (length as usize) < SMALL {
        let mut buffer = [0u8; SMALL];
        let n = loop {
            match file.read(&mut buffer) {
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                other => break other.map_err(|e| errno(&e))?,
            }
        };
        bytes.extend_from_slice(buffer.get(..n).unwrap_or_default());
        if n == 0 || n as u64 == length {
            return Ok(bytes);
        }
    } else {
        bytes.reserve_exact(length as usize + 1);
    }
    read_rest(file, bytes)
}

/// The rest of a file of which `bytes` were read.
fn read_rest(file: File, mut bytes: Vec<u8>) -> Result<Vec<u8>, i32> {
    let room = MAX_FILE_BYTES + 1 - bytes.len() as u64;
    file.take(room).read_to_end(&mut bytes).map_err(|e| errno(&e))?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(libc::EFBIG);
    }
    Ok(bytes)
}

/// Folder and last name; `None` where the last name is no name (`/`, `..`).
fn split(path: &str) -> Option<(&str, &str)> {
    let (folder, name) = path.trim_end_matches('/').rsplit_once('/')?;
    (!matches!(name, "" | "." | "..")).then_some((folder, name))
}

impl DirRoot {
    /// The host whose `/proc` and `/sys` are in this folder. No path leads out of it, whatever its
    /// links say.
    ///
    /// # Errors
    /// The folder cannot be opened, or the manifest in it is damaged.
    pub fn open(path: &Path) -> Result<Self, ArchiveError> {
        Self::open_with(path, true)
    }

    fn open_with(path: &Path, openat2: bool) -> Result<Self, ArchiveError> {
        let dir = File::open(path).map_err(|e| ArchiveError::unreadable(path, &e))?;
        let (fd, quick) = if openat2 {
            quick::Quick::prepare(OwnedFd::from(dir))
        } else {
            (OwnedFd::from(dir), None)
        };
        let fd = Arc::new(fd);
        let mut root = Self { fd, manifest: None, openat2, quick, recent: Default::default() };
        root.openat2 &= root.open_by_kernel("/").is_ok();
        root.quick = root.quick.filter(|_| root.openat2);
        if let Ok(bytes) = root.read("/netwright/manifest.json") {
            root.manifest =
                Some(archive::manifest(&bytes).map_err(|why| ArchiveError::damaged(path, why))?);
        }
        Ok(root)
    }

    pub fn manifest(&self) -> Option<&Manifest> {
        self.manifest.as_ref()
    }

    fn open_by_kernel(&self, path: &str) -> Result<OwnedFd, i32> {
        let within = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        openat2(&self.fd, path, FOLDER, Mode::empty(), within).map_err(Errno::raw_os_error)
    }

    /// A folder, links followed within the root, as an `O_PATH` descriptor.
    fn folder(&self, path: &str) -> Result<Arc<OwnedFd>, i32> {
        let path = path.trim_end_matches('/');
        if path.is_empty() {
            return Ok(self.fd.clone());
        }
        let lock = || {
            let mine = self.recent.get(shard()).unwrap_or(&self.recent[0]);
            mine.lock().unwrap_or_else(PoisonError::into_inner)
        };
        {
            let mut recent = lock();
            if let Some(at) = recent.iter().position(|(p, _)| p == path) {
                recent.get_mut(..=at).unwrap_or_default().rotate_right(1);
                if let Some((_, fd)) = recent.first() {
                    return Ok(fd.clone());
                }
            }
        }
        let by_kernel = self.openat2.then(|| self.open_by_kernel(path));
        let fd = match by_kernel {
            // The kernel cannot vouch for a link that climbs while anything on the host is
            // renamed or mounted; our own way can.
            None | Some(Err(libc::EAGAIN)) => self.walk(path, true)?.folder(&self.fd)?,
            Some(opened) => Arc::new(opened?),
        };
        let entry = (path.to_owned(), fd.clone());
        let mut recent = lock();
        let oldest = (recent.len() >= RECENT).then(|| recent.pop());
        recent.insert(0, entry);
        drop(recent);
        drop(oldest); // closes it, outside the lock
        Ok(fd)
    }

    /// Opens a regular file; returns it with its length. It is checked before: opening a device may
    /// already have an effect.
    fn open_file(&self, path: &str) -> Result<(File, u64), i32> {
        let (folder, name) = split(path).ok_or(libc::EISDIR)?;
        let dir = self.folder(folder)?;
        let (kind, length) = kind_at(&dir, name)?;
        if kind != libc::S_IFLNK {
            return Self::open_regular(&dir, name, kind, length);
        }
        let end = self.walk(path, true)?;
        if end.name.is_empty() {
            return Err(libc::EISDIR);
        }
        let dir = end.dir(&self.fd);
        let (kind, length) = kind_at(dir, &end.name)?;
        Self::open_regular(dir, &end.name, kind, length)
    }

    fn open_regular(
        dir: &OwnedFd,
        name: &str,
        kind: libc::mode_t,
        length: u64,
    ) -> Result<(File, u64), i32> {
        match kind {
            // O_NONBLOCK: if it has become a FIFO meanwhile, the open does not block.
            libc::S_IFREG => {
                let fd = open_at(dir, name, OFlags::RDONLY | OFlags::NONBLOCK)?;
                Ok((File::from(fd), length))
            }
            libc::S_IFDIR => Err(libc::EISDIR),
            _ => Err(libc::EINVAL),
        }
    }

    /// Reads a file piece by piece.
    ///
    /// # Errors
    /// An errno: the one that the recorded host gave for this path, else that of opening or
    /// reading; `EFBIG` beyond the size limit.
    pub fn pieces(&self, path: &str, piece: &mut dyn FnMut(&[u8])) -> Result<(), i32> {
        Op::Read.recorded(self.manifest.as_ref(), path)?;
        super::live::drain(self.open_file(path)?.0, piece)
    }

    /// Reads a whole file.
    ///
    /// # Errors
    /// As [`DirRoot::pieces`].
    pub fn read(&self, path: &str) -> Result<Vec<u8>, i32> {
        Op::Read.recorded(self.manifest.as_ref(), path)?;
        if let Some(settled) = self.read_quickly(path) {
            return settled;
        }
        let (file, length) = self.open_file(path)?;
        read_all(file, length)
    }

    /// Whether [`DirRoot::resolve`] would find it, without following every component.
    pub fn exists(&self, path: &str) -> bool {
        if Op::Resolve.recorded(self.manifest.as_ref(), path).is_err() {
            return false;
        }
        if let Some(there) = self.exists_quickly(path) {
            return there;
        }
        let Some((folder, name)) = split(path) else { return self.walk(path, true).is_ok() };
        match self.folder(folder).and_then(|dir| kind_at(&dir, name)) {
            Ok((libc::S_IFLNK, _)) => self.walk(path, true).is_ok(),
            other => other.is_ok(),
        }
    }

    /// Names in a folder: as the recorded host listed them where the manifest has that, else those
    /// on disk.
    ///
    /// # Errors
    /// An errno: the one that the recorded host gave for this path, else that of opening or
    /// listing; `EFBIG` for too many names.
    pub fn entries(&self, path: &str) -> Result<Vec<String>, i32> {
        Op::List.recorded(self.manifest.as_ref(), path)?;
        if let Some(names) = self.manifest.as_ref().and_then(|m| m.listings.get(path)) {
            return Ok(names.clone());
        }
        let fd = match self.open_folder_quickly(path) {
            Some(fd) => fd,
            None => open_at(&*self.folder(path)?, ".", OFlags::RDONLY | OFlags::DIRECTORY)?,
        };
        names(fd)
    }

    /// The target of a link, as it stands there.
    ///
    /// # Errors
    /// An errno: the one that the recorded host gave for this path, `EINVAL` for what is no link,
    /// `EILSEQ` for a target that is no text.
    pub fn link(&self, path: &str) -> Result<String, i32> {
        Op::Link.recorded(self.manifest.as_ref(), path)?;
        let (folder, name) = split(path).ok_or(libc::EINVAL)?;
        let dir = self.folder(folder)?;
        walk::target(&dir, name)
    }

    /// The path without links, from the folder as root.
    ///
    /// # Errors
    /// An errno: the one that the recorded host gave for this path, else `ENOENT`, or `ELOOP` for
    /// links in a circle.
    pub fn resolve(&self, path: &str) -> Result<String, i32> {
        Op::Resolve.recorded(self.manifest.as_ref(), path)?;
        if let Some(settled) = self.resolve_quickly(path) {
            return settled;
        }
        Ok(self.walk(path, true)?.path())
    }
}

/// Names in an open folder, without `.` and `..` and those that are no text.
fn names(fd: OwnedFd) -> Result<Vec<String>, i32> {
    let mut names = Vec::new();
    for entry in Dir::new(fd).map_err(Errno::raw_os_error)? {
        match entry.map_err(Errno::raw_os_error)?.file_name().to_str() {
            Ok("." | "..") | Err(_) => {}
            Ok(_) if names.len() >= MAX_NAMES => return Err(libc::EFBIG),
            Ok(name) => names.push(name.to_owned()),
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests;
