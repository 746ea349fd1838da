//! A directory laid out as a host's root: `proc/`, `sys/`, `etc/`, and an unpacked snapshot's
//! `netwright/`.
//!
//! No link leads outside: absolute targets count from the directory, `..` stops at it. Devices
//! and FIFOs are never opened.

use std::{
    ffi::CString,
    fs::File,
    io::Read,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use model::snapshot::Manifest;

use super::{ArchiveError, MAX_FILE_BYTES, Op, archive};

mod walk;

pub struct DirRoot {
    fd: Arc<OwnedFd>,
    manifest: Option<Manifest>,
    /// Whether the kernel resolves within the root by itself (`openat2`, since 5.6; container
    /// engines of that time refuse it).
    openat2: bool,
    /// Folders asked last, most recent first: facts read many files of few folders.
    recent: Mutex<Vec<(String, Arc<OwnedFd>)>>,
}

const RECENT: usize = 32;
/// Names of one folder; `/proc` and a CPU's folders have some ten thousand at most.
const MAX_NAMES: usize = 4 << 20;
const RESOLVE_IN_ROOT: u64 = 0x10;
const RESOLVE_NO_MAGICLINKS: u64 = 0x02;
const FOLDER: i32 = libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC;

fn errno(e: &std::io::Error) -> i32 {
    e.raw_os_error().unwrap_or(libc::EIO)
}

fn last_errno() -> i32 {
    errno(&std::io::Error::last_os_error())
}

/// `openat` of one name, never through a link.
fn open_at(dir: &OwnedFd, name: &str, flags: i32) -> Result<OwnedFd, i32> {
    let name = CString::new(name).map_err(|_| libc::EINVAL)?;
    // SAFETY: the descriptor is open and the name ends with NUL.
    let fd = unsafe {
        libc::openat(dir.as_raw_fd(), name.as_ptr(), flags | libc::O_CLOEXEC | libc::O_NOFOLLOW)
    };
    if fd < 0 {
        return Err(last_errno());
    }
    // SAFETY: the kernel just gave us this descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// What a name is (`S_IFMT` bits), links not followed.
fn kind_at(dir: &OwnedFd, name: &str) -> Result<libc::mode_t, i32> {
    let name = CString::new(name).map_err(|_| libc::EINVAL)?;
    // SAFETY: an all-zero `stat` is valid; the kernel fills it.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: descriptor, name and buffer outlive the call.
    let r = unsafe {
        libc::fstatat(dir.as_raw_fd(), name.as_ptr(), &raw mut stat, libc::AT_SYMLINK_NOFOLLOW)
    };
    if r < 0 { Err(last_errno()) } else { Ok(stat.st_mode & libc::S_IFMT) }
}

/// Folder and last name; `None` where the last name is no name (`/`, `..`).
fn split(path: &str) -> Option<(&str, &str)> {
    let (folder, name) = path.trim_end_matches('/').rsplit_once('/')?;
    (!matches!(name, "" | "." | "..")).then_some((folder, name))
}

impl DirRoot {
    pub fn open(path: &Path) -> Result<Self, ArchiveError> {
        Self::open_with(path, true)
    }

    fn open_with(path: &Path, openat2: bool) -> Result<Self, ArchiveError> {
        let dir = File::open(path).map_err(|e| ArchiveError::unreadable(path, &e))?;
        let fd = Arc::new(OwnedFd::from(dir));
        let mut root = Self { fd, manifest: None, openat2, recent: Mutex::default() };
        root.openat2 &= root.open_by_kernel("/").is_ok();
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
        let c = CString::new(path).map_err(|_| libc::EINVAL)?;
        // SAFETY: an all-zero `open_how` is valid; the kernel only reads it.
        let mut how: libc::open_how = unsafe { std::mem::zeroed() };
        how.flags = FOLDER as u64;
        how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
        // SAFETY: `c` and `how` outlive the call; the size is that of `how`.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_openat2,
                self.fd.as_raw_fd(),
                c.as_ptr(),
                &raw const how,
                size_of::<libc::open_how>(),
            )
        };
        if fd < 0 {
            return Err(last_errno());
        }
        // SAFETY: the kernel just gave us this descriptor.
        Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
    }

    /// A folder, links followed within the root, as an `O_PATH` descriptor.
    fn folder(&self, path: &str) -> Result<Arc<OwnedFd>, i32> {
        let path = path.trim_end_matches('/');
        if path.is_empty() {
            return Ok(self.fd.clone());
        }
        {
            let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(at) = recent.iter().position(|(p, _)| p == path) {
                recent.get_mut(..=at).unwrap_or_default().rotate_right(1);
                if let Some((_, fd)) = recent.first() {
                    return Ok(fd.clone());
                }
            }
        }
        let fd = if self.openat2 {
            Arc::new(self.open_by_kernel(path)?)
        } else {
            self.walk(path, true)?.folder(&self.fd)?
        };
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.truncate(RECENT - 1);
        recent.insert(0, (path.to_owned(), fd.clone()));
        Ok(fd)
    }

    /// A regular file, open, with its length as the file system says.
    fn open_file(&self, path: &str) -> Result<(File, u64), i32> {
        let (folder, name) = split(path).ok_or(libc::EISDIR)?;
        let dir = self.folder(folder)?;
        match kind_at(&dir, name)? {
            libc::S_IFREG => Self::open_regular(&dir, name),
            libc::S_IFDIR => Err(libc::EISDIR),
            libc::S_IFLNK => {
                let end = self.walk(path, true)?;
                if end.name.is_empty() {
                    return Err(libc::EISDIR);
                }
                match kind_at(end.dir(&self.fd), &end.name)? {
                    libc::S_IFREG => Self::open_regular(end.dir(&self.fd), &end.name),
                    libc::S_IFDIR => Err(libc::EISDIR),
                    _ => Err(libc::EINVAL),
                }
            }
            _ => Err(libc::EINVAL), // to open a device may already do something
        }
    }

    fn open_regular(dir: &OwnedFd, name: &str) -> Result<(File, u64), i32> {
        // O_NONBLOCK: should it have become a FIFO meanwhile, nobody waits.
        let file = File::from(open_at(dir, name, libc::O_RDONLY | libc::O_NONBLOCK)?);
        let meta = file.metadata().map_err(|e| errno(&e))?;
        if !meta.is_file() {
            return Err(libc::EINVAL);
        }
        Ok((file, meta.len()))
    }

    pub fn pieces(&self, path: &str, piece: &mut dyn FnMut(&[u8])) -> Result<(), i32> {
        Op::Read.recorded(self.manifest.as_ref(), path)?;
        super::live::drain(self.open_file(path)?.0, piece)
    }

    pub fn read(&self, path: &str) -> Result<Vec<u8>, i32> {
        Op::Read.recorded(self.manifest.as_ref(), path)?;
        let (file, length) = self.open_file(path)?;
        if length > MAX_FILE_BYTES {
            return Err(libc::EFBIG);
        }
        // The length is a hint: files of a live `/sys` say 4096 and hold three bytes.
        let mut bytes = Vec::with_capacity(length as usize + 1);
        file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(|e| errno(&e))?;
        if bytes.len() as u64 > MAX_FILE_BYTES {
            return Err(libc::EFBIG);
        }
        Ok(bytes)
    }

    pub fn entries(&self, path: &str) -> Result<Vec<String>, i32> {
        Op::List.recorded(self.manifest.as_ref(), path)?;
        if let Some(names) = self.manifest.as_ref().and_then(|m| m.listings.get(path)) {
            return Ok(names.clone());
        }
        let fd = open_at(&*self.folder(path)?, ".", libc::O_RDONLY | libc::O_DIRECTORY)?;
        names(fd)
    }

    pub fn link(&self, path: &str) -> Result<String, i32> {
        Op::Link.recorded(self.manifest.as_ref(), path)?;
        let (folder, name) = split(path).ok_or(libc::EINVAL)?;
        let dir = self.folder(folder)?;
        walk::target(&dir, name)
    }

    pub fn resolve(&self, path: &str) -> Result<String, i32> {
        Op::Resolve.recorded(self.manifest.as_ref(), path)?;
        Ok(self.walk(path, true)?.path())
    }
}

/// Names in an open folder, without `.` and `..` and those that are no text.
fn names(fd: OwnedFd) -> Result<Vec<String>, i32> {
    use std::os::fd::IntoRawFd;
    let raw = fd.into_raw_fd();
    // SAFETY: the descriptor is open and ours; on success the stream owns it.
    let stream = unsafe { libc::fdopendir(raw) };
    if stream.is_null() {
        let e = last_errno();
        // SAFETY: the stream was not made, so the descriptor is still ours.
        drop(unsafe { OwnedFd::from_raw_fd(raw) });
        return Err(e);
    }
    let mut names = Vec::new();
    let result = loop {
        // SAFETY: errno is this thread's own. Only it tells an error from the end.
        unsafe { *libc::__errno_location() = 0 };
        // SAFETY: the stream is open.
        let entry = unsafe { libc::readdir(stream) };
        if entry.is_null() {
            break match last_errno() {
                0 => Ok(()),
                e => Err(e),
            };
        }
        // SAFETY: the entry holds a name that ends with NUL, valid until the next call.
        let name = unsafe { std::ffi::CStr::from_ptr((*entry).d_name.as_ptr()) };
        match name.to_str() {
            Ok("." | "..") | Err(_) => {}
            Ok(_) if names.len() >= MAX_NAMES => break Err(libc::EFBIG),
            Ok(name) => names.push(name.to_owned()),
        }
    };
    // SAFETY: the stream is open and not used again.
    unsafe { libc::closedir(stream) };
    result.map(|()| names)
}

#[cfg(test)]
mod tests;
