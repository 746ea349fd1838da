//! Access checks of files, without opening them.

use std::os::unix::fs::PermissionsExt;

use rustix::fs::{Access, AtFlags, CWD, accessat};

use super::key_part;
use crate::{ReadError, Root};

fn key(what: &str, path: &str) -> String {
    let parts: Vec<String> = path.split('/').filter(|p| !p.is_empty()).map(key_part).collect();
    format!("{what}/{}", parts.join("/"))
}

/// A file's permission bits. **Source**: `stat(2)`.
///
/// # Errors
/// As the kernel answered.
pub fn mode(root: &Root, path: &str) -> Result<u32, ReadError> {
    root.ask(&key("mode", path), || {
        let data = std::fs::metadata(path).map_err(|e| ReadError::from_io(path, &e))?;
        Ok(data.permissions().mode() & 0o7777)
    })
}

/// Whether this process, with its present identity and capabilities, may open a file for writing.
///
/// **Source**: `faccessat(2)` with `AT_EACCESS`, which asks the file system as `open(2)` does:
/// `/proc/sys` has its own rules.
///
/// # Errors
/// Denied; absent; `EROFS` where the file system is read-only.
pub fn may_write(root: &Root, path: &str) -> Result<(), ReadError> {
    root.ask(&key("may-write", path), || {
        accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS)
            .map_err(|e| ReadError::from_io(path, &e.into()))
    })
}
