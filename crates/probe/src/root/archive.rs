//! A snapshot archive (`.tar.zst`, `.tar`), held in memory. Hostile input: sizes are bounded,
//! nothing is unpacked to disk, links are followed only within.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{BufReader, Read},
    path::Path,
};

use model::snapshot::Manifest;

/// What an archive may cost at most.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Unpacked bytes in all.
    pub total_bytes: u64,
    /// Entries.
    pub entries: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { total_bytes: 512 << 20, entries: 500_000 }
    }
}

/// Why a snapshot cannot be used; one line.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The file or folder cannot be opened.
    #[error("{path}: {why}")]
    Unreadable {
        /// Path.
        path: String,
        /// The system's word.
        why: String,
    },
    /// It is no snapshot, or a damaged one.
    #[error("{path}: not a usable snapshot: {why}; take a new one with `netwright snapshot`")]
    Damaged {
        /// Path.
        path: String,
        /// What is wrong.
        why: String,
    },
}

impl ArchiveError {
    pub(super) fn unreadable(path: &Path, e: &std::io::Error) -> Self {
        Self::Unreadable { path: path.display().to_string(), why: e.to_string() }
    }

    pub(super) fn manifest(path: &Path, e: &serde_json::Error) -> Self {
        Self::damaged(path, format!("its manifest is unreadable ({e})"))
    }

    pub(super) fn damaged(path: &Path, why: impl Into<String>) -> Self {
        Self::Damaged { path: path.display().to_string(), why: why.into() }
    }
}

enum Entry {
    File(Vec<u8>),
    Link(String),
    Dir,
}

pub struct ArchiveRoot {
    /// By absolute path without a trailing slash; the root is `""`.
    entries: BTreeMap<String, Entry>,
    manifest: Option<Manifest>,
}

impl ArchiveRoot {
    pub fn open(path: &Path, limits: &Limits) -> Result<Self, ArchiveError> {
        let file = File::open(path).map_err(|e| ArchiveError::unreadable(path, &e))?;
        let mut reader = BufReader::with_capacity(1 << 16, file);
        let mut magic = [0u8; 4];
        let n =
            reader.get_mut().read(&mut magic).map_err(|e| ArchiveError::unreadable(path, &e))?;
        let head = std::io::Cursor::new(magic.get(..n).unwrap_or(&[]).to_vec());
        let whole = head.chain(reader);
        if magic == [0x28, 0xb5, 0x2f, 0xfd] {
            let mut z = zstd::Decoder::new(whole)
                .map_err(|e| ArchiveError::damaged(path, e.to_string()))?;
            z.window_log_max(27).map_err(|e| ArchiveError::damaged(path, e.to_string()))?;
            Self::read_tar(z, path, limits)
        } else {
            Self::read_tar(whole, path, limits)
        }
    }

    fn read_tar(reader: impl Read, path: &Path, limits: &Limits) -> Result<Self, ArchiveError> {
        let damaged = |why: String| ArchiveError::damaged(path, why);
        let mut entries = BTreeMap::new();
        let mut total = 0u64;
        let mut tar = tar::Archive::new(reader.take(limits.total_bytes + (64 << 20)));
        for entry in tar.entries().map_err(|e| damaged(e.to_string()))? {
            let mut entry = entry.map_err(|e| damaged(e.to_string()))?;
            if entries.len() >= limits.entries {
                return Err(damaged(format!("more than {} entries", limits.entries)));
            }
            let name = entry.path_bytes().into_owned();
            let Some(name) = normal(&name) else {
                return Err(damaged(format!(
                    "an unsafe path {:?}",
                    String::from_utf8_lossy(&name)
                )));
            };
            let kind = entry.header().entry_type();
            let value = if kind.is_dir() {
                Entry::Dir
            } else if kind.is_symlink() {
                let target = entry.link_name_bytes().map(|t| t.into_owned()).unwrap_or_default();
                Entry::Link(
                    String::from_utf8(target)
                        .map_err(|_| damaged("a link that is no text".into()))?,
                )
            } else if kind.is_file() {
                total = total.saturating_add(entry.size());
                if total > limits.total_bytes {
                    return Err(damaged(format!(
                        "unpacks to more than {} bytes",
                        limits.total_bytes
                    )));
                }
                let mut bytes = Vec::new();
                entry.read_to_end(&mut bytes).map_err(|e| damaged(e.to_string()))?;
                Entry::File(bytes)
            } else {
                continue;
            };
            // Folders on the way exist even where the archive does not name them.
            let mut at = 0;
            while let Some(i) = name.get(at + 1..).and_then(|rest| rest.find('/')) {
                at += 1 + i;
                if let Some(parent) = name.get(..at) {
                    entries.entry(parent.to_owned()).or_insert(Entry::Dir);
                }
            }
            if matches!(value, Entry::Dir) {
                entries.entry(name).or_insert(value);
            } else {
                entries.insert(name, value);
            }
        }
        if entries.is_empty() {
            return Err(damaged("it holds nothing".into()));
        }
        let mut root = Self { entries, manifest: None };
        if let Ok(bytes) = root.read("/netwright/manifest.json") {
            root.manifest =
                Some(serde_json::from_slice(bytes).map_err(|e| ArchiveError::manifest(path, &e))?);
        }
        Ok(root)
    }

    pub fn manifest(&self) -> Option<&Manifest> {
        self.manifest.as_ref()
    }

    /// Follows links; `last` says whether also the last component's.
    fn find(&self, path: &str, last: bool) -> Result<(String, Option<&Entry>), i32> {
        let mut todo: Vec<&str> = path.split('/').rev().filter(|c| !c.is_empty()).collect();
        let mut here = String::new();
        let mut hops = 0;
        while let Some(part) = todo.pop() {
            match part {
                "." => continue,
                ".." => {
                    here.truncate(here.rfind('/').unwrap_or(0));
                    continue;
                }
                _ => {
                    here.push('/');
                    here.push_str(part);
                }
            }
            match self.entries.get(&here) {
                Some(Entry::Link(target)) if last || !todo.is_empty() => {
                    hops += 1;
                    if hops > 40 {
                        return Err(libc::ELOOP);
                    }
                    if target.starts_with('/') {
                        here.clear();
                    } else {
                        here.truncate(here.rfind('/').unwrap_or(0));
                    }
                    todo.extend(target.split('/').rev().filter(|c| !c.is_empty()));
                }
                Some(Entry::File(_)) if !todo.is_empty() => return Err(libc::ENOTDIR),
                Some(_) => {}
                None => return Err(libc::ENOENT),
            }
        }
        let entry = self.entries.get(&here);
        Ok((here, entry))
    }

    fn recorded_error(&self, path: &str) -> Option<i32> {
        self.manifest.as_ref()?.errors.get(path).copied()
    }

    pub fn read(&self, path: &str) -> Result<&[u8], i32> {
        if let Some(e) = self.recorded_error(path) {
            return Err(e);
        }
        match self.find(path, true)?.1 {
            Some(Entry::File(bytes)) => Ok(bytes),
            Some(Entry::Dir) | None => Err(libc::EISDIR),
            Some(Entry::Link(_)) => Err(libc::ELOOP),
        }
    }

    pub fn entries(&self, path: &str) -> Result<Vec<String>, i32> {
        if let Some(e) = self.recorded_error(path) {
            return Err(e);
        }
        if let Some(names) = self.manifest.as_ref().and_then(|m| m.listings.get(path)) {
            return Ok(names.clone());
        }
        let (real, entry) = self.find(path, true)?;
        if matches!(entry, Some(Entry::File(_))) {
            return Err(libc::ENOTDIR);
        }
        let prefix = format!("{real}/");
        Ok(self
            .entries
            .range(prefix.clone()..)
            .map_while(|(k, _)| k.strip_prefix(&prefix))
            .filter(|rest| !rest.contains('/'))
            .map(Into::into)
            .collect())
    }

    pub fn link(&self, path: &str) -> Result<String, i32> {
        match self.find(path, false)?.1 {
            Some(Entry::Link(target)) => Ok(target.clone()),
            _ => Err(libc::EINVAL),
        }
    }

    pub fn resolve(&self, path: &str) -> Result<String, i32> {
        let (real, _) = self.find(path, true)?;
        Ok(if real.is_empty() { "/".into() } else { real })
    }
}

/// An archive's name as an absolute path; `None` where it would climb out.
fn normal(name: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(name).ok()?;
    let mut path = String::new();
    for part in text.split('/').filter(|c| !c.is_empty() && *c != ".") {
        if part == ".." || part.contains('\0') {
            return None;
        }
        path.push('/');
        path.push_str(part);
    }
    Some(path)
}
