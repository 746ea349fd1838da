//! Writes the archive under another name in the same folder, and renames it when complete.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{self, BufWriter, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use model::snapshot::Manifest;
use rustix::{
    fs::{CWD, RenameFlags, renameat_with},
    io::Errno,
};

use super::{SnapshotError, Summary};
use crate::root::{Limits, record::Recording};

const MANIFEST: &str = "netwright/manifest.json";
/// Fast, and `/proc` and `/sys` already shrink to a tenth.
const LEVEL: i32 = 3;

/// A file that is being written; gone if it is not finished.
pub struct Pending {
    out: PathBuf,
    temporary: PathBuf,
    file: Option<File>,
    overwrite: bool,
}

impl Pending {
    /// Begins a file that only its owner may read.
    ///
    /// # Errors
    /// The file exists and is not to be replaced, the path names no file, or its folder cannot be
    /// written.
    pub fn create(out: &Path, overwrite: bool) -> Result<Self, SnapshotError> {
        refuse_existing(out, overwrite)?;
        let name = out.file_name().ok_or_else(|| not_written(out, "is no file name"))?;
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}.part", std::process::id()));
        let temporary = out.with_file_name(hidden);
        let file = File::options()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&temporary)
            .map_err(|e| failed(out, &e))?;
        Ok(Self { out: out.to_owned(), temporary, file: Some(file), overwrite })
    }

    /// Writes everything and gives the file its name.
    ///
    /// # Errors
    /// The sources are more than a reader accepts, or the file cannot be written. No partial file
    /// remains.
    pub fn write(
        mut self,
        recording: &Recording,
        manifest: &Manifest,
    ) -> Result<Summary, SnapshotError> {
        let bytes: u64 = recording.files.values().map(|b| b.len() as u64).sum();
        let most = Limits::default().total_bytes;
        if bytes > most {
            // No archive is better than one that cannot be opened.
            let why =
                format!("would hold {bytes} bytes, and a reader takes {most}; take fewer samples");
            return Err(not_written(&self.out, &why));
        }
        let file = self.file.take().ok_or_else(|| not_written(&self.out, "was written before"))?;
        let whole = archive(file, recording, manifest)
            .and_then(|file| {
                file.sync_all()?;
                Ok(file.metadata()?.len())
            })
            .map_err(|e| failed(&self.out, &e))?;
        self.rename()?;
        Ok(Summary {
            path: self.out.clone(),
            files: recording.files.len(),
            bytes,
            archive_bytes: whole,
            samples: manifest.samples.len(),
            errors: manifest.errors.iter().map(|(p, e)| (p.clone(), *e)).collect(),
        })
    }

    fn rename(&self) -> Result<(), SnapshotError> {
        refuse_existing(&self.out, self.overwrite)?;
        let result = if self.overwrite {
            fs::rename(&self.temporary, &self.out)
        } else {
            rename_new(&self.temporary, &self.out)
        };
        match result {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                Err(SnapshotError::Exists { path: self.out.clone() })
            }
            Err(e) => Err(failed(&self.out, &e)),
            Ok(()) => Ok(()),
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        // After the rename there is nothing under this name.
        let _ = fs::remove_file(&self.temporary);
    }
}

/// Renames only onto a free name. Some network file systems cannot promise that; there, the
/// look just before must do.
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS) => fs::rename(from, to),
        done => Ok(done?),
    }
}

fn refuse_existing(out: &Path, overwrite: bool) -> Result<(), SnapshotError> {
    match fs::symlink_metadata(out) {
        Err(_) => Ok(()),
        Ok(_) if !overwrite => Err(SnapshotError::Exists { path: out.to_owned() }),
        // Renaming onto a device would replace the device.
        Ok(meta) if !meta.is_file() => Err(not_written(out, "is there and is no file")),
        Ok(_) => Ok(()),
    }
}

fn not_written(out: &Path, why: &str) -> SnapshotError {
    SnapshotError::NotWritten { path: out.to_owned(), why: why.to_owned() }
}

fn failed(out: &Path, e: &io::Error) -> SnapshotError {
    not_written(out, &format!("cannot be written: {e}"))
}

/// The manifest, then folders, files and links in the order of their paths.
fn archive(file: File, recording: &Recording, manifest: &Manifest) -> io::Result<File> {
    let zstd = zstd::Encoder::new(BufWriter::with_capacity(1 << 18, file), LEVEL)?;
    let mut tar = Tar { to: tar::Builder::new(zstd), mtime: manifest.taken_at_unix_s };
    let manifest = serde_json::to_vec(manifest)?;
    let mut folders: BTreeSet<&str> = BTreeSet::new();
    let places = recording.files.keys().chain(recording.links.keys()).chain(&recording.dirs);
    for place in places {
        folders
            .extend(place.match_indices('/').filter(|m| m.0 > 0).filter_map(|m| place.get(..m.0)));
    }
    let bare = |d: &&String| {
        d.len() > 1 && !recording.files.contains_key(*d) && !recording.links.contains_key(*d)
    };
    folders.extend(recording.dirs.iter().filter(bare).map(String::as_str));
    folders.insert("/netwright");
    for folder in &folders {
        tar.folder(folder)?;
    }
    tar.file(MANIFEST, &manifest)?;
    for (place, bytes) in &recording.files {
        // What turned from a file into a folder while it was recorded is a folder.
        if !folders.contains(place.as_str()) {
            tar.file(place, bytes)?;
        }
    }
    for (place, target) in &recording.links {
        if !folders.contains(place.as_str()) && !recording.files.contains_key(place) {
            tar.link(place, target)?;
        }
    }
    let mut buffered = tar.to.into_inner()?.finish()?;
    buffered.flush()?;
    buffered.into_inner().map_err(io::IntoInnerError::into_error)
}

struct Tar<W: Write> {
    to: tar::Builder<W>,
    mtime: u64,
}

impl<W: Write> Tar<W> {
    fn header(&self, kind: tar::EntryType, size: u64, mode: u32) -> tar::Header {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(size);
        header.set_mode(mode);
        header.set_mtime(self.mtime);
        header.set_uid(0);
        header.set_gid(0);
        header
    }

    fn folder(&mut self, place: &str) -> io::Result<()> {
        let mut header = self.header(tar::EntryType::Directory, 0, 0o755);
        self.to.append_data(&mut header, relative(place), io::empty())
    }

    fn file(&mut self, place: &str, bytes: &[u8]) -> io::Result<()> {
        let mut header = self.header(tar::EntryType::Regular, bytes.len() as u64, 0o644);
        self.to.append_data(&mut header, relative(place), bytes)
    }

    fn link(&mut self, place: &str, target: &str) -> io::Result<()> {
        let mut header = self.header(tar::EntryType::Symlink, 0, 0o777);
        self.to.append_link(&mut header, relative(place), target)
    }
}

fn relative(place: &str) -> &str {
    place.trim_start_matches('/')
}
