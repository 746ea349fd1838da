//! A directory laid out as a host's root: `proc/`, `sys/`, `etc/`, and an unpacked snapshot's
//! `netwright/`.
//!
//! No link leads outside: absolute targets count from the directory, `..` stops at it. The
//! kernel does that itself through `openat2(RESOLVE_IN_ROOT)`.

use std::{
    fs::File,
    io::Read,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    path::Path,
};

use model::snapshot::Manifest;

use super::{ArchiveError, MAX_FILE_BYTES};

pub struct DirRoot {
    fd: OwnedFd,
    manifest: Option<Manifest>,
}

const RESOLVE_IN_ROOT: u64 = 0x10;
const RESOLVE_NO_MAGICLINKS: u64 = 0x02;

fn errno(e: &std::io::Error) -> i32 {
    e.raw_os_error().unwrap_or(libc::EIO)
}

impl DirRoot {
    pub fn open(path: &Path) -> Result<Self, ArchiveError> {
        let dir = File::open(path).map_err(|e| ArchiveError::unreadable(path, &e))?;
        let mut root = Self { fd: dir.into(), manifest: None };
        if let Ok(bytes) = root.read("/netwright/manifest.json") {
            root.manifest =
                Some(serde_json::from_slice(&bytes).map_err(|e| ArchiveError::manifest(path, &e))?);
        }
        Ok(root)
    }

    pub fn manifest(&self) -> Option<&Manifest> {
        self.manifest.as_ref()
    }

    fn open_in(&self, path: &str, flags: i32) -> Result<OwnedFd, i32> {
        let c = std::ffi::CString::new(path).map_err(|_| libc::EINVAL)?;
        // SAFETY: an all-zero `open_how` is valid; the kernel only reads it.
        let mut how: libc::open_how = unsafe { std::mem::zeroed() };
        // A FIFO must not make us wait; `openat2` refuses O_NONBLOCK beside O_PATH.
        let wait = if flags & libc::O_PATH == 0 { libc::O_NONBLOCK } else { 0 };
        how.flags = (flags | libc::O_CLOEXEC | wait) as u64;
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
            return Err(errno(&std::io::Error::last_os_error()));
        }
        // SAFETY: the kernel just gave us this descriptor.
        Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
    }

    fn recorded_error(&self, path: &str) -> Option<i32> {
        self.manifest.as_ref()?.errors.get(path).copied()
    }

    /// A regular file, open, with its length.
    fn open_file(&self, path: &str) -> Result<(File, u64), i32> {
        if let Some(e) = self.recorded_error(path) {
            return Err(e);
        }
        let file = File::from(self.open_in(path, libc::O_RDONLY)?);
        let meta = file.metadata().map_err(|e| errno(&e))?;
        if meta.is_dir() {
            return Err(libc::EISDIR);
        }
        if !meta.is_file() {
            return Err(libc::EINVAL);
        }
        Ok((file, meta.len()))
    }

    pub fn pieces(&self, path: &str, piece: &mut dyn FnMut(&[u8])) -> Result<(), i32> {
        super::live::drain(self.open_file(path)?.0, piece)
    }

    pub fn read(&self, path: &str) -> Result<Vec<u8>, i32> {
        let (file, length) = self.open_file(path)?;
        let mut bytes = Vec::with_capacity(length.min(MAX_FILE_BYTES) as usize + 1);
        file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(|e| errno(&e))?;
        if bytes.len() as u64 > MAX_FILE_BYTES {
            return Err(libc::EFBIG);
        }
        Ok(bytes)
    }

    pub fn entries(&self, path: &str) -> Result<Vec<String>, i32> {
        if let Some(e) = self.recorded_error(path) {
            return Err(e);
        }
        if let Some(names) = self.manifest.as_ref().and_then(|m| m.listings.get(path)) {
            return Ok(names.clone());
        }
        let fd = self.open_in(path, libc::O_RDONLY | libc::O_DIRECTORY)?;
        let by_fd = format!("/proc/self/fd/{}", fd.as_raw_fd());
        super::live::entries(&by_fd)
    }

    pub fn link(&self, path: &str) -> Result<String, i32> {
        let fd = self.open_in(path, libc::O_PATH | libc::O_NOFOLLOW)?;
        let mut buffer = vec![0u8; 4096];
        // SAFETY: an empty path with a descriptor names the link itself; the buffer's length is
        // given.
        let n = unsafe {
            libc::readlinkat(fd.as_raw_fd(), c"".as_ptr(), buffer.as_mut_ptr().cast(), buffer.len())
        };
        if n < 0 {
            // The kernel says ENOENT for "no link" here.
            return Err(libc::EINVAL);
        }
        buffer.truncate(n as usize);
        String::from_utf8(buffer).map_err(|_| libc::EILSEQ)
    }

    pub fn resolve(&self, path: &str) -> Result<String, i32> {
        let fd = self.open_in(path, libc::O_PATH)?;
        let full = super::live::link(&format!("/proc/self/fd/{}", fd.as_raw_fd()))?;
        let base = super::live::link(&format!("/proc/self/fd/{}", self.fd.as_raw_fd()))?;
        let inside = full.strip_prefix(&base).ok_or(libc::EXDEV)?;
        Ok(if inside.is_empty() { "/".into() } else { inside.to_owned() })
    }
}
