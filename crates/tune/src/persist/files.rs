//! Files written by netwright: marked by a line with a checksum, and written atomically.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{ErrorKind, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::{Component, Path, PathBuf},
};

use sha2::{Digest, Sha256};

use crate::TuneError;

const NOTE: &str =
    "# Written by `netwright tune persist`; `netwright tune persist --remove` removes it.";
const SUM: &str = "# Not to be edited; netwright-sha256: ";

/// State of the file at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileOnDisk {
    Absent,
    /// Our file, unchanged since; its text.
    Ours(String),
    /// Our file, edited since.
    Changed,
    Foreign,
}

fn failed(path: &Path) -> impl Fn(std::io::Error) -> TuneError {
    let name = path.display().to_string();
    move |e| TuneError::io(&name, &e)
}

fn sum(lines: &[&str]) -> String {
    let mut digest = Sha256::new();
    for line in lines.iter().filter(|l| !l.starts_with(SUM)) {
        digest.update(line.as_bytes());
        digest.update(b"\n");
    }
    digest.finalize().iter().map(|b| format!("{b:02x}")).collect()
}

/// A body with our checksum line; after the first line if that names an interpreter.
pub fn dressed(body: &str) -> String {
    let mut lines: Vec<&str> = body.lines().collect();
    let at = usize::from(body.starts_with("#!"));
    lines.insert(at, NOTE);
    let sum = format!("{SUM}{}", sum(&lines));
    lines.insert(at + 1, &sum);
    lines.join("\n") + "\n"
}

/// Checks a text against its checksum line.
fn judge(text: String) -> FileOnDisk {
    let lines: Vec<&str> = text.lines().collect();
    let Some(claimed) = lines.iter().find_map(|l| l.strip_prefix(SUM)) else {
        return FileOnDisk::Foreign;
    };
    if claimed == sum(&lines) && text.ends_with('\n') {
        FileOnDisk::Ours(text)
    } else {
        FileOnDisk::Changed
    }
}

/// The real path; refuses a symlink that leads out of `base`.
///
/// # Errors
/// The path leads out of `base`.
pub fn inside(base: &Path, path: &str) -> Result<PathBuf, TuneError> {
    let relative = Path::new(path.trim_start_matches('/'));
    let plain = relative.components().all(|c| matches!(c, Component::Normal(_)));
    let whole = base.join(relative);
    let mut there = whole.parent();
    while let Some(folder) = there.filter(|f| !f.exists()) {
        there = folder.parent();
    }
    let base_real = base.canonicalize().map_err(failed(base))?;
    let real = there.unwrap_or(base).canonicalize().map_err(failed(&whole))?;
    if plain && real.starts_with(&base_real) {
        return Ok(whole);
    }
    Err(TuneError::Denied(format!("{path}: leads out of {}", base.display())))
}

/// State of the file at a path below `base`.
///
/// # Errors
/// The file cannot be read.
pub fn look(base: &Path, path: &str) -> Result<FileOnDisk, TuneError> {
    let path = inside(base, path)?;
    match fs::symlink_metadata(&path) {
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(FileOnDisk::Absent);
        }
        Err(e) => return Err(failed(&path)(e)),
        Ok(m) if !m.is_file() => return Ok(FileOnDisk::Foreign),
        Ok(_) => {}
    }
    let bytes = fs::read(&path).map_err(failed(&path))?;
    Ok(String::from_utf8(bytes).map_or(FileOnDisk::Foreign, judge))
}

/// Name of the temporary file. The readers of these directories ignore names with this leading dot
/// and suffix.
fn temporary(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.netwright-tmp"))
}

fn sync_folder(path: &Path) -> Result<(), TuneError> {
    File::open(path).and_then(|f| f.sync_all()).map_err(failed(path))
}

/// Writes a file atomically: to a temporary file, synced, then renamed.
///
/// # Errors
/// The write failed; the earlier file is unchanged.
pub fn put(path: &Path, content: &str, mode: u32) -> Result<(), TuneError> {
    let folder = path.parent().unwrap_or(path);
    if !folder.is_dir() {
        DirBuilder::new().recursive(true).mode(0o755).create(folder).map_err(failed(folder))?;
    }
    let beside = temporary(path);
    remove(&beside)?;
    let write = || {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&beside)?;
        file.write_all(content.as_bytes())?;
        // Independent of the umask.
        file.set_permissions(fs::Permissions::from_mode(mode))?;
        file.sync_all()?;
        fs::rename(&beside, path)
    };
    write().map_err(|e| {
        let _ = fs::remove_file(&beside);
        failed(path)(e)
    })?;
    sync_folder(folder)
}

/// Removes a file and its temporary file; missing files are no error.
///
/// # Errors
/// A file cannot be removed.
pub fn remove(path: &Path) -> Result<(), TuneError> {
    remove_temporary(path)?;
    match fs::remove_file(path) {
        Ok(()) => path.parent().map_or(Ok(()), sync_folder),
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(()),
        Err(e) => Err(failed(path)(e)),
    }
}

/// Removes the temporary file of an interrupted write.
///
/// # Errors
/// The file cannot be removed.
pub fn remove_temporary(path: &Path) -> Result<(), TuneError> {
    let beside = temporary(path);
    match fs::remove_file(&beside) {
        Ok(()) => Ok(()),
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(()),
        Err(e) => Err(failed(&beside)(e)),
    }
}

/// Directories that a file still needs, innermost first.
pub fn missing_folders(base: &Path, path: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut folder = Path::new(path).parent();
    while let Some(f) = folder.filter(|f| *f != Path::new("/") && !f.as_os_str().is_empty()) {
        if base.join(f.strip_prefix("/").unwrap_or(f)).exists() {
            break;
        }
        all.push(f.display().to_string());
        folder = f.parent();
    }
    all
}

/// Removes a directory if empty; returns whether it was removed.
pub fn remove_folder(path: &Path) -> bool {
    fs::remove_dir(path).is_ok() || !path.exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_ours_until_a_byte_of_it_changes() {
        for body in ["a = 1\nb = 2\n", "#!/bin/sh\necho x\n", ""] {
            let text = dressed(body);
            assert_eq!(text.starts_with("#!"), body.starts_with("#!"));
            assert_eq!(judge(text.clone()), FileOnDisk::Ours(text.clone()));
            for i in 0..text.len() {
                let mut bytes = text.clone().into_bytes();
                bytes[i] ^= 1;
                let Ok(changed) = String::from_utf8(bytes) else { continue };
                assert!(!matches!(judge(changed), FileOnDisk::Ours(_)), "byte {i} of {text:?}");
            }
            assert_eq!(judge(format!("{text}more\n")), FileOnDisk::Changed);
        }
        assert_eq!(judge("net.core.somaxconn = 1\n".into()), FileOnDisk::Foreign);
    }

    #[test]
    fn nothing_leads_out_of_the_folder() {
        let base = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/tmp", base.path().join("etc")).unwrap();
        assert!(matches!(look(base.path(), "/etc/x"), Err(TuneError::Denied(_))));
        assert!(matches!(look(base.path(), "/../x"), Err(TuneError::Denied(_))));
        assert_eq!(look(base.path(), "/var/x").unwrap(), FileOnDisk::Absent);
        assert_eq!(missing_folders(base.path(), "/var/lib/x"), ["/var/lib", "/var"]);
    }

    #[test]
    fn writing_leaves_nothing_beside() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("a/b.conf");
        put(&path, "x\n", 0o755).unwrap();
        put(&path, "y\n", 0o644).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "y\n");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o644);
        assert_eq!(fs::read_dir(base.path().join("a")).unwrap().count(), 1);
        remove(&path).unwrap();
        remove(&path).unwrap();
        assert!(remove_folder(&base.path().join("a")));
    }
}
