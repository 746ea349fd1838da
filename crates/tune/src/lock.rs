//! One at a time: `flock` on a file beside the journal. The kernel lets go of it when its
//! holder ends, however it ends.

use std::{
    fs::{File, OpenOptions},
    io::{ErrorKind, Read, Seek, SeekFrom, Write},
    os::fd::AsRawFd,
    path::Path,
};

use crate::TuneError;

/// Held until dropped.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// What trying gave.
#[derive(Debug)]
pub enum Tried {
    /// It is ours.
    Ours(Lock),
    /// Somebody else has it: their process, as they wrote it down.
    Theirs(Option<u32>),
}

fn try_once(file: &File) -> Result<bool, std::io::Error> {
    loop {
        // SAFETY: the descriptor is open.
        if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0 {
            return Ok(true);
        }
        let error = std::io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EWOULDBLOCK) => return Ok(false),
            Some(libc::EINTR) => {}
            _ => return Err(error),
        }
    }
}

/// Tries to take it.
///
/// # Errors
/// When the file cannot be made or locked.
pub fn try_lock(path: &Path) -> Result<Tried, TuneError> {
    let failed = |e: std::io::Error| TuneError::io(&path.display().to_string(), &e);
    let mut file =
        match OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path) {
            // It can be held all the same, and undoing needs no more.
            Err(e) if e.kind() == ErrorKind::ReadOnlyFilesystem => File::open(path),
            opened => opened,
        }
        .map_err(failed)?;
    if !try_once(&file).map_err(failed)? {
        let mut holder = String::new();
        let _ = (&mut file).take(32).read_to_string(&mut holder);
        return Ok(Tried::Theirs(holder.trim().parse().ok()));
    }
    // For people who wait; the lock itself does not rest on it, so a full or read-only disk is no error.
    let _ = file.set_len(0);
    let _ = file.seek(SeekFrom::Start(0));
    let _ = file.write_all(format!("{}\n", std::process::id()).as_bytes());
    Ok(Tried::Ours(Lock { _file: file }))
}

/// Whether somebody has it now; looks without taking it.
pub fn is_held(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    // SAFETY: the descriptor is open.
    let shared = unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_SH | libc::LOCK_NB) };
    shared != 0
}
