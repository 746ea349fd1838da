//! Resolves a path component by component, as `openat2(RESOLVE_IN_ROOT)` does. It serves kernels
//! before 5.6. It also finds a path's real place without `/proc`, which may not be mounted where a
//! tree is read.

use std::{os::fd::OwnedFd, sync::Arc};

use super::{DirRoot, FOLDER, open_at};
use crate::root::{MAX_LINK_HOPS, archive::is_magic};

/// Where a path ended: the folders from the root down, and the last name (empty for a folder
/// that was stepped into by `..` or is the root).
pub struct End {
    dirs: Vec<(String, OwnedFd)>,
    pub name: String,
}

impl End {
    /// The folder that holds the last name.
    pub fn dir<'a>(&'a self, root: &'a OwnedFd) -> &'a OwnedFd {
        self.dirs.last().map_or(root, |d| &d.1)
    }

    /// The path from the root, without links.
    pub fn path(&self) -> String {
        let names = self.dirs.iter().map(|d| d.0.as_str()).chain(Some(self.name.as_str()));
        let path: String = names.filter(|n| !n.is_empty()).flat_map(|n| ["/", n]).collect();
        if path.is_empty() { "/".into() } else { path }
    }

    /// The end itself as a folder.
    ///
    /// # Errors
    /// An errno: `ENOTDIR` where it is no folder.
    pub fn folder(mut self, root: &Arc<OwnedFd>) -> Result<Arc<OwnedFd>, i32> {
        if self.name.is_empty() {
            return Ok(self.dirs.pop().map_or_else(|| root.clone(), |d| Arc::new(d.1)));
        }
        open_at(self.dir(root), &self.name, FOLDER).map(Arc::new)
    }
}

/// The target of a link; `EINVAL` where the name is not a link.
///
/// # Errors
/// An errno; `EILSEQ` where the target is no text.
pub fn target(dir: &OwnedFd, name: &str) -> Result<String, i32> {
    let target = rustix::fs::readlinkat(dir, name, Vec::new()).map_err(|e| e.raw_os_error())?;
    target.into_string().map_err(|_| libc::EILSEQ)
}

impl DirRoot {
    /// Follows `path` from the root; `last` says whether also the last component's link.
    pub(super) fn walk(&self, path: &str, last: bool) -> Result<End, i32> {
        if path.contains('\0') {
            return Err(libc::EINVAL);
        }
        let mut todo: Vec<String> = parts(path);
        let mut end = End { dirs: Vec::new(), name: String::new() };
        let mut hops = 0;
        while let Some(part) = todo.pop() {
            match part.as_str() {
                "." => continue,
                ".." => {
                    end.dirs.pop();
                    continue;
                }
                _ => {}
            }
            let dir = end.dir(&self.fd);
            if !todo.is_empty()
                && let Ok(fd) = open_at(dir, &part, FOLDER)
            {
                end.dirs.push((part, fd));
                continue;
            }
            match target(dir, &part) {
                Ok(link) if (last || !todo.is_empty()) && !is_magic(&link) => {
                    hops += 1;
                    if hops > MAX_LINK_HOPS {
                        return Err(libc::ELOOP);
                    }
                    if link.starts_with('/') {
                        end.dirs.clear();
                    }
                    todo.extend(parts(&link));
                }
                Ok(_) | Err(libc::EINVAL) if todo.is_empty() => end.name = part,
                Ok(_) => return Err(libc::ENOENT),
                Err(libc::EINVAL) => {
                    let fd = open_at(dir, &part, FOLDER)?;
                    end.dirs.push((part, fd));
                }
                Err(e) => return Err(e),
            }
        }
        Ok(end)
    }
}

fn parts(path: &str) -> Vec<String> {
    path.split('/').rev().filter(|c| !c.is_empty()).map(String::from).collect()
}
