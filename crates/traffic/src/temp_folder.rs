//! A private temporary directory for the duration of a command: for a child's socket or a program's
//! output.
//!
//! A killed command cannot remove its directory. So each directory has a lock file that the kernel
//! unlocks when the process ends, and the next command removes unlocked ones. A PID in the name
//! would not suffice: another container that shares the place has its own PIDs.

use std::{
    fs::{self, DirBuilder, File, TryLockError},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

/// Prefix of every name, followed by the purpose.
const OURS: &str = "netwright-";
/// Number of names to try.
const TRIES: u32 = 100;

/// A directory, removed with its content when dropped.
#[derive(Debug)]
pub struct TempFolder {
    path: PathBuf,
    /// The held lock: it shows others that the directory is in use.
    _lock: File,
}

impl TempFolder {
    /// Creates one in `TMPDIR` (else `/tmp`), named after its purpose `for_what` and this process.
    /// Removes those of the same purpose that killed commands left.
    ///
    /// # Errors
    /// No directory could be created.
    pub fn new(for_what: &str) -> io::Result<Self> {
        Self::within(&std::env::temp_dir(), for_what)
    }

    fn within(place: &Path, for_what: &str) -> io::Result<Self> {
        sweep(place, &format!("{OURS}{for_what}-"));
        let mut last = None;
        for n in 0..TRIES {
            let path = place.join(format!("{OURS}{for_what}-{}-{n}", std::process::id()));
            // An existing directory belongs to another command.
            if let Err(e) = DirBuilder::new().mode(0o700).create(&path) {
                last = Some(e);
                continue;
            }
            let Some(lock) = opened(&path)? else { continue };
            // The lock holder sweeps, and removes the lock file. On a file system without locks, no
            // sweep gets the lock either.
            let in_use = matches!(lock.try_lock(), Err(TryLockError::WouldBlock));
            if !in_use && is_at(&lock, &path) {
                return Ok(Self { path, _lock: lock });
            }
        }
        Err(last.unwrap_or_else(|| io::ErrorKind::AlreadyExists.into()))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Opens a directory without following links; `None` if it is gone.
fn opened(path: &Path) -> io::Result<Option<File>> {
    let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
    match File::options().read(true).custom_flags(flags).open(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}

/// Whether the opened directory is still the one at this path.
fn is_at(opened: &File, path: &Path) -> bool {
    let which = |about: fs::Metadata| (about.dev(), about.ino());
    let now = fs::symlink_metadata(path).ok().map(which);
    now.is_some() && now == opened.metadata().ok().map(which)
}

/// Removes this user's directories with this prefix that nobody has locked.
fn sweep(place: &Path, prefix: &str) {
    let user = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let named = entry.file_name().to_str().is_some_and(|name| name.starts_with(prefix));
        // Of the entry itself: links are not followed.
        let own = || entry.metadata().is_ok_and(|about| about.is_dir() && about.uid() == user);
        if named
            && own()
            && let Ok(Some(lock)) = opened(&entry.path())
            && lock.try_lock().is_ok()
            && is_at(&lock, &entry.path())
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_holds_is_removed_and_what_is_in_use_stays() {
        let place = tempfile::tempdir().unwrap();
        let (at, names) = (place.path(), |n: u32| format!("netwright-test-{n}"));
        let used = TempFolder::within(at, "test").unwrap();
        fs::write(used.path().join("socket"), "").unwrap();
        fs::create_dir_all(at.join(names(1)).join("deep")).unwrap();
        fs::create_dir(at.join("netwright-other-1")).unwrap();
        fs::write(at.join(names(2)), "a file").unwrap();
        std::os::unix::fs::symlink(at.join("netwright-other-1"), at.join(names(3))).unwrap();
        let next = TempFolder::within(at, "test").unwrap();
        assert_ne!(next.path(), used.path());
        assert!(used.path().join("socket").exists(), "it is in use");
        assert!(!at.join(names(1)).exists(), "nobody holds it");
        let kept = ["netwright-other-1", &names(2), &names(3)];
        assert!(kept.iter().all(|name| fs::symlink_metadata(at.join(name)).is_ok()));
        let paths = [used.path().to_owned(), next.path().to_owned()];
        drop((used, next));
        assert!(!paths.iter().any(|p| p.exists()));
    }
}
