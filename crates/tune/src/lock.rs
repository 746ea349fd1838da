//! The lock for changing a host: `flock` on a file next to the journal. The kernel releases it when
//! its holder ends.

use std::{
    fs::{File, OpenOptions},
    os::unix::fs::MetadataExt,
    path::Path,
};

use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};

use crate::{TuneError, owned_file};

#[derive(Debug)]
pub struct Lock {
    _file: Option<File>,
}

impl Lock {
    /// Holds no lock: for a watchdog that cannot get the lock in time.
    pub(crate) fn without() -> Self {
        Self { _file: None }
    }
}

#[derive(Debug)]
pub enum LockAttempt {
    Acquired(Lock),
    /// Another process has it; its PID, if the kernel shows it.
    Held(Option<u32>),
}

fn try_once(file: &File, how: FlockOperation) -> Result<bool, std::io::Error> {
    loop {
        match flock(file, how) {
            Ok(()) => return Ok(true),
            Err(Errno::WOULDBLOCK) => return Ok(false),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Tries to take the lock. Only this user, root, and processes that opened the file before it was
/// closed to others can hold it.
///
/// # Errors
/// The file cannot be created or locked, or is not ours: [`owned_file::open`].
pub fn try_lock(path: &Path) -> Result<LockAttempt, TuneError> {
    let failed = |e: std::io::Error| TuneError::io(&path.display().to_string(), &e);
    let mut create = OpenOptions::new();
    create.read(true).write(true).create(true).truncate(false);
    let file = match owned_file::open(path, &mut create) {
        // On a read-only file system the lock can still be held, which is enough for undoing.
        Err(e) => owned_file::open(path, OpenOptions::new().read(true)).map_err(|_| e)?,
        Ok(file) => file,
    };
    owned_file::tighten_file(path, &file)?;
    if !try_once(&file, FlockOperation::NonBlockingLockExclusive).map_err(failed)? {
        return Ok(LockAttempt::Held(holder(&file)));
    }
    Ok(LockAttempt::Acquired(Lock { _file: Some(file) }))
}

/// Whether the lock is held now; does not take it.
///
/// # Errors
/// The lock cannot be examined. A missing file means that it is free.
pub fn is_held(path: &Path) -> Result<bool, TuneError> {
    let file = match owned_file::open(path, OpenOptions::new().read(true)) {
        Err(TuneError::Absent(_)) => return Ok(false),
        opened => opened?,
    };
    let shared = try_once(&file, FlockOperation::NonBlockingLockShared);
    shared.map(|ours| !ours).map_err(|e| TuneError::io(&path.display().to_string(), &e))
}

/// The process that holds a file's lock, as far as the kernel shows it here.
///
/// **Source**: `/proc/locks`: `1: FLOCK  ADVISORY  WRITE 77 00:1f:5678 0 EOF`, device in hexadecimal.
fn holder(file: &File) -> Option<u32> {
    let found = file.metadata().ok()?;
    let text = probe::Root::live().read("/proc/locks").ok()?;
    holder_of(&String::from_utf8_lossy(&text), (found.dev(), found.ino()))
}

/// A file system of several devices shows another device here than `stat` does; the inode then
/// decides, if it is unique.
pub fn holder_of(locks: &str, (device, inode): (u64, u64)) -> Option<u32> {
    let one = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let ["FLOCK", _, _, pid, place] = words.get(1..6)? else { return None };
        let mut parts = place.split(':');
        let (major, minor) = (parts.next()?, parts.next()?);
        let number = |hex: &str| u32::from_str_radix(hex, 16).ok();
        let same_file = parts.next()?.parse() == Ok(inode);
        let at = libc::makedev(number(major)?, number(minor)?);
        same_file.then_some((pid.parse::<u32>().ok()?, at == device))
    };
    let all: Vec<(u32, bool)> = locks.lines().filter_map(one).collect();
    let exact = all.iter().find(|(_, exact)| *exact).map(|(pid, _)| *pid);
    match (exact, all.as_slice()) {
        (None, [(pid, _)]) => Some(*pid),
        (exact, _) => exact,
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;

    #[test]
    fn the_holder_that_is_named_is_the_one_that_the_kernel_knows() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let LockAttempt::Acquired(lock) = try_lock(&path).unwrap() else { panic!("nobody has it") };
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        // The file's content is ignored.
        fs::write(&path, "1\n").unwrap();
        let LockAttempt::Held(pid) = try_lock(&path).unwrap() else { panic!("it is held") };
        assert_eq!(pid, Some(std::process::id()));
        assert!(is_held(&path).unwrap());
        drop(lock);
        assert!(!is_held(&path).unwrap());
        assert!(!is_held(&folder.path().join("none")).unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"1\n", "a file that is locked is not written");
    }

    #[test]
    fn a_lock_that_others_could_open_is_closed_to_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(try_lock(&path).unwrap(), LockAttempt::Acquired(_)));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let other = folder.path().join("of-somebody");
        fs::write(&other, "kept").unwrap();
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(&other, &path).unwrap();
        try_lock(&path).unwrap_err();
        is_held(&path).unwrap_err();
        assert_eq!(fs::read(&other).unwrap(), b"kept");
    }

    #[test]
    fn locks_are_distinguished_by_device_and_by_file() {
        let locks = "1: POSIX  ADVISORY  WRITE 5 08:01:77 0 EOF\n\
                     2: FLOCK  ADVISORY  WRITE 6 08:02:77 0 EOF\n\
                     3: FLOCK  ADVISORY  READ 7 08:01:77 0 EOF\n\
                     3: -> FLOCK  ADVISORY  WRITE 8 08:01:77 0 EOF\n";
        assert_eq!(holder_of(locks, (libc::makedev(8, 1), 77)), Some(7));
        assert_eq!(holder_of(locks, (libc::makedev(8, 2), 77)), Some(6));
        assert_eq!(holder_of(locks, (libc::makedev(9, 9), 77)), None, "two files have that number");
        assert_eq!(holder_of(locks, (libc::makedev(8, 1), 78)), None);
    }
}
