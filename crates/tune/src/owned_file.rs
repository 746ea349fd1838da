//! Access control of the journals: directory and files belong to this user or to root, and nobody
//! else may write them. Undoing writes their content to the host, so files that others could write
//! are refused.

use std::{
    fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions},
    io::ErrorKind,
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::Path,
};

use crate::TuneError;

/// Mode of a directory made here: no access for others.
const FOLDER: u32 = 0o700;
const FILE: u32 = 0o600;
const OTHERS: u32 = 0o077;
const OTHERS_WRITE: u32 = 0o022;

/// Opens a file and checks its owner. Does not follow a symbolic link or wait for a pipe.
///
/// # Errors
/// As the kernel answers; [`TuneError::Environment`] if it is no plain file, belongs to another
/// user, or is writable by others.
pub fn open(path: &Path, options: &mut OpenOptions) -> Result<File, TuneError> {
    let name = path.display().to_string();
    options.mode(FILE).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let file = options.open(path).map_err(|e| match e.raw_os_error() {
        Some(libc::ELOOP) => TuneError::Environment(format!(
            "{name}: is a symbolic link, and none is followed here; look who made it, then remove it"
        )),
        _ => TuneError::io(&name, &e),
    })?;
    let found = file.metadata().map_err(|e| TuneError::io(&name, &e))?;
    if !found.is_file() {
        return Err(TuneError::Environment(format!("{name}: is no plain file; remove it")));
    }
    is_ours(path, &found)?;
    Ok(file)
}

/// Removes other users' access to a file that only we may open: whoever can open it can lock it.
///
/// # Errors
/// As the kernel answers.
pub fn tighten(path: &Path, file: &File, mode: u32) -> Result<(), TuneError> {
    let failed = |e: std::io::Error| TuneError::io(&path.display().to_string(), &e);
    let is = file.metadata().map_err(failed)?.mode();
    match is & OTHERS {
        0 => Ok(()),
        _ => match file.set_permissions(Permissions::from_mode(mode)) {
            // The file system is read-only; the lock can still be held.
            Err(e) if e.kind() == ErrorKind::ReadOnlyFilesystem => Ok(()),
            done => done.map_err(failed),
        },
    }
}

/// The same for a lock file.
///
/// # Errors
/// As of [`tighten`].
pub fn tighten_file(path: &Path, file: &File) -> Result<(), TuneError> {
    tighten(path, file, FILE)
}

/// Whether the directory exists and is ours.
///
/// # Errors
/// It cannot be examined, is no directory, or is writable by others.
pub fn folder(path: &Path) -> Result<bool, TuneError> {
    let name = path.display().to_string();
    let found = match fs::metadata(path) {
        Ok(found) => found,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(false),
        Err(e) if e.kind() == ErrorKind::NotADirectory => return Err(no_folder(&name)),
        Err(e) => return Err(cannot_read(&name, &e)),
    };
    if !found.is_dir() {
        return Err(no_folder(&name));
    }
    is_ours(path, &found)?;
    Ok(true)
}

fn no_folder(name: &str) -> TuneError {
    TuneError::Environment(format!(
        "{name}: is no folder; journals are kept in one (--state-dir, NETWRIGHT_STATE)"
    ))
}

/// Error for a journal directory that cannot be read; without permission it names who has it.
pub fn cannot_read(name: &str, e: &std::io::Error) -> TuneError {
    match e.kind() {
        ErrorKind::PermissionDenied => TuneError::Denied(format!(
            "{name}: not permitted; which changes were made here only root can read (or the user who \
             made them): run this with sudo"
        )),
        _ => TuneError::io(name, e),
    }
}

/// Creates a directory and its parents. An existing directory of ours is closed to others.
///
/// # Errors
/// As of [`folder`], and as the kernel answers.
pub fn make_folder(path: &Path) -> Result<bool, TuneError> {
    let failed = |e: std::io::Error| TuneError::io(&path.display().to_string(), &e);
    if folder(path)? {
        let file = File::open(path).map_err(failed)?;
        tighten(path, &file, FOLDER)?;
        return Ok(false);
    }
    DirBuilder::new().recursive(true).mode(FOLDER).create(path).map_err(failed)?;
    Ok(true)
}

/// Closes an existing directory to others if it holds nothing but `own`. A shared directory (the
/// user named `/var/lib`) stays open, and only our entries in it are closed.
///
/// # Errors
/// As of [`folder`], and as the kernel answers.
pub fn close_own(path: &Path, own: &[&str]) -> Result<(), TuneError> {
    if !folder(path)? {
        return Ok(());
    }
    let failed = |e: std::io::Error| TuneError::io(&path.display().to_string(), &e);
    for entry in fs::read_dir(path).map_err(failed)? {
        if !entry.map_err(failed)?.file_name().to_str().is_some_and(|name| own.contains(&name)) {
            return Ok(());
        }
    }
    tighten(path, &File::open(path).map_err(failed)?, FOLDER)
}

fn is_ours(path: &Path, found: &Metadata) -> Result<(), TuneError> {
    let name = path.display();
    let own = rustix::process::geteuid().as_raw();
    if found.uid() != own && found.uid() != 0 {
        return Err(TuneError::Environment(format!(
            "{name}: belongs to user {}, who could have written what would be put back, not to root or \
             to this user ({own}); look at it, then move it away",
            found.uid()
        )));
    }
    if found.mode() & OTHERS_WRITE != 0 {
        return Err(TuneError::Environment(format!(
            "{name}: others may write to it (mode {:04o}) and say what would be put back; look at it, \
             then `chmod go-w {name}`",
            found.mode() & 0o7777
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{chown, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    fn set(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    fn read(path: &Path) -> Result<File, TuneError> {
        open(path, OpenOptions::new().read(true))
    }

    #[test]
    fn what_others_own_or_may_write_is_refused_and_a_link_is_not_followed() {
        let all = tempfile::tempdir().unwrap();
        let (file, link, pipe) = (all.path().join("a"), all.path().join("b"), all.path().join("c"));
        fs::write(&file, "kept").unwrap();
        set(&file, 0o644);
        read(&file).unwrap();
        symlink(&file, &link).unwrap();
        let why = open(&link, OpenOptions::new().write(true).create(true)).unwrap_err().to_string();
        assert!(why.contains("symbolic link"), "{why}");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert!(read(&pipe).unwrap_err().to_string().contains("no plain file"));
        for bits in [0o622, 0o660, 0o666] {
            set(&file, bits);
            let why = read(&file).unwrap_err().to_string();
            assert!(why.contains("others may write") && why.contains("chmod go-w"), "{why}");
        }
        set(&file, 0o600);
        assert_eq!(
            rustix::process::geteuid().as_raw(),
            0,
            "this test gives a file away: root is needed"
        );
        chown(&file, Some(65534), None).unwrap();
        let why = read(&file).unwrap_err().to_string();
        assert!(why.contains("belongs to user 65534"), "{why}");
        assert_eq!(fs::read(&file).unwrap(), b"kept");
    }

    #[test]
    fn a_folder_is_made_for_its_owner_alone_and_one_that_was_open_is_closed() {
        let all = tempfile::tempdir().unwrap();
        let folder = all.path().join("state/journal");
        assert!(make_folder(&folder).unwrap());
        assert_eq!((mode(&folder), mode(folder.parent().unwrap())), (0o700, 0o700));
        set(&folder, 0o755);
        assert!(!make_folder(&folder).unwrap());
        assert_eq!(mode(&folder), 0o700);
        let state = folder.parent().unwrap();
        set(state, 0o755);
        fs::write(state.join("other"), "").unwrap();
        close_own(state, &["journal"]).unwrap();
        assert_eq!(mode(state), 0o755, "others keep things there");
        fs::remove_file(state.join("other")).unwrap();
        close_own(state, &["journal"]).unwrap();
        assert_eq!(mode(state), 0o700);
        set(&folder, 0o777);
        let why = make_folder(&folder).unwrap_err().to_string();
        assert!(why.contains("others may write"), "{why}");
    }
}
