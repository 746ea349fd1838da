//! A snapshot (`.tar.zst`, `.tar`) or a support archive (`.tar.xz`, `.tar.gz`), held in memory. The
//! input is hostile: sizes are limited, nothing is unpacked to disk, and links are followed only
//! within.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{BufReader, Read},
    ops::Bound,
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use flate2::read::MultiGzDecoder;
use lzma_rust2::XzReader;
use model::snapshot::Manifest;

use super::{MAX_FILE_BYTES, MAX_LINK_HOPS, MAX_MANIFEST_BYTES, Op, printed::is_known};

mod unpack;
use unpack::{MemberKind, Members, one_line};

/// What an archive may cost at most.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Unpacked bytes in all.
    pub total_bytes: u64,
    /// Unpacked bytes of one file.
    pub file_bytes: u64,
    /// Members, and the folders on their way.
    pub entries: usize,
    /// Bytes of all paths, those of the folders on the way included.
    pub path_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            total_bytes: 512 << 20,
            file_bytes: MAX_FILE_BYTES,
            entries: 500_000,
            path_bytes: 64 << 20,
        }
    }
}

/// What a block of an xz file may ask of memory, KiB: `xz -9` takes 65 MiB.
const XZ_MEMORY_KIB: u32 = 128 << 10;

/// Why a snapshot cannot be used; one line.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The file or folder cannot be opened.
    #[error("{path}: {why}")]
    Unreadable { path: String, why: String },
    /// It is no snapshot, or a damaged one.
    #[error("{path}: not a usable snapshot: {why}; take a new one with `netwright snapshot`")]
    Damaged { path: String, why: String },
}

impl ArchiveError {
    pub(super) fn unreadable(path: &Path, e: &std::io::Error) -> Self {
        Self::Unreadable { path: path.display().to_string(), why: one_line(e) }
    }

    pub(super) fn damaged(path: &Path, why: impl Into<String>) -> Self {
        Self::Damaged { path: path.display().to_string(), why: why.into() }
    }
}

/// The manifest of a snapshot from its bytes.
pub(super) fn manifest(bytes: &[u8]) -> Result<Manifest, String> {
    if bytes.len() as u64 > MAX_MANIFEST_BYTES {
        return Err(format!("its manifest has {} bytes", bytes.len()));
    }
    model::json::read(bytes).map_err(|e| format!("its manifest is unreadable ({e})"))
}

#[derive(Debug)]
enum Entry {
    File(Vec<u8>),
    Link(String),
    Dir,
}

#[derive(Debug)]
pub struct ArchiveRoot {
    /// By absolute path without a trailing slash; the root is `""`.
    entries: BTreeMap<String, Entry>,
    manifest: Option<Manifest>,
}

impl ArchiveRoot {
    /// Reads an archive into memory: a tar file, plain or compressed by zstd, xz or gzip.
    ///
    /// # Errors
    /// The file cannot be read, is no regular file, or is damaged, not of a known format, or larger
    /// than `limits`.
    pub fn open(path: &Path, limits: &Limits) -> Result<Self, ArchiveError> {
        // O_NONBLOCK: a FIFO must not make us wait for a writer.
        let file = File::options()
            .read(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
            .open(path)
            .map_err(|e| ArchiveError::unreadable(path, &e))?;
        let meta = file.metadata().map_err(|e| ArchiveError::unreadable(path, &e))?;
        if !meta.is_file() {
            return Err(ArchiveError::damaged(path, "it is neither a file nor a folder"));
        }
        Self::read(BufReader::with_capacity(1 << 16, file), limits)
            .map_err(|why| ArchiveError::damaged(path, why))
    }

    /// Reads an archive from a stream, compressed or not. The error is one line.
    ///
    /// # Errors
    /// The stream cannot be read, is empty or damaged, not of a known format, or larger than
    /// `limits`.
    pub fn read(mut from: impl Read, limits: &Limits) -> Result<Self, String> {
        let mut head = Vec::new();
        (&mut from).take(6).read_to_end(&mut head).map_err(|e| one_line(&e))?;
        let whole = std::io::Cursor::new(head.clone()).chain(from);
        match head.as_slice() {
            [] => Err("it is empty".into()),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => {
                let mut z = zstd::Decoder::new(whole).map_err(|e| one_line(&e))?;
                // The window is memory: 128 MiB is what `zstd --ultra` asks for at most.
                z.window_log_max(27).map_err(|e| one_line(&e))?;
                Self::unpack(z, limits)
            }
            [0xfd, b'7', b'z', b'X', b'Z', 0] => {
                Self::unpack(XzReader::new_mem_limit(whole, true, XZ_MEMORY_KIB), limits)
            }
            [0x1f, 0x8b, ..] => Self::unpack(MultiGzDecoder::new(whole), limits),
            [b'B', b'Z', b'h', ..] => {
                Err("it is bzip2; unpack it, and give the folder or the .tar".into())
            }
            _ => Self::unpack(whole, limits),
        }
    }

    fn unpack(from: impl Read, limits: &Limits) -> Result<Self, String> {
        let mut entries = BTreeMap::new();
        let (mut total, mut path_bytes) = (0u64, 0usize);
        let mut members = Members::new(from, limits);
        while let Some(member) = members.next()? {
            // A name that is not UTF-8 cannot be requested, as in a live folder.
            let Ok(name) = String::from_utf8(member.path) else { continue };
            let name = normal(&name).ok_or_else(|| format!("an unsafe path {name:?}"))?;
            let value = match member.kind {
                MemberKind::File(bytes) => {
                    total = total.saturating_add(bytes.len() as u64);
                    if total > limits.total_bytes {
                        return Err(format!("unpacks to more than {} bytes", limits.total_bytes));
                    }
                    Entry::File(bytes)
                }
                MemberKind::Link(target) => match String::from_utf8(target) {
                    Ok(target) => Entry::Link(target),
                    Err(_) => continue,
                },
                // Its other name is in the same archive, so a link within it does as well.
                MemberKind::HardLink(target) => {
                    let target = String::from_utf8_lossy(&target).into_owned();
                    let safe = normal(&target).filter(|t| *t != name);
                    Entry::Link(safe.ok_or_else(|| format!("an unsafe hard link {target:?}"))?)
                }
                MemberKind::Dir => Entry::Dir,
                MemberKind::Other => continue,
            };
            path_bytes = path_bytes.saturating_add(insert(&mut entries, name, value));
            if entries.len() > limits.entries {
                return Err(format!("more than {} entries", limits.entries));
            }
            if path_bytes > limits.path_bytes {
                return Err(format!("paths of more than {} bytes", limits.path_bytes));
            }
        }
        if entries.is_empty() {
            return Err("it holds nothing".into());
        }
        let mut root = Self { entries: without_top(entries), manifest: None };
        if let Ok(bytes) = root.file("/netwright/manifest.json") {
            root.manifest = Some(manifest(bytes)?);
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
                Some(Entry::Link(target)) if (last || !todo.is_empty()) && !is_magic(target) => {
                    hops += 1;
                    if hops > MAX_LINK_HOPS {
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

    fn recorded_error(&self, op: Op, path: &str) -> Result<(), i32> {
        op.recorded(self.manifest.as_ref(), path)
    }

    fn file(&self, path: &str) -> Result<&[u8], i32> {
        match self.find(path, true)?.1 {
            Some(Entry::File(bytes)) => Ok(bytes),
            Some(Entry::Dir) | None => Err(libc::EISDIR),
            Some(Entry::Link(_)) => Err(libc::ELOOP),
        }
    }

    /// The whole file, through links.
    ///
    /// # Errors
    /// An errno: the one that the recorded host gave for this path, else `ENOENT`, `EISDIR`, or
    /// `ELOOP` for a link of the kernel.
    pub fn read_file(&self, path: &str) -> Result<&[u8], i32> {
        self.recorded_error(Op::Read, path)?;
        self.file(path)
    }

    /// Names in a folder: as the recorded host listed them where the manifest has that, else those
    /// in the archive.
    ///
    /// # Errors
    /// An errno: the one that the recorded host gave for this path, else `ENOENT` or `ENOTDIR`.
    pub fn entries(&self, path: &str) -> Result<Vec<String>, i32> {
        self.recorded_error(Op::List, path)?;
        if let Some(names) = self.manifest.as_ref().and_then(|m| m.listings.get(path)) {
            return Ok(names.clone());
        }
        let (real, entry) = self.find(path, true)?;
        if matches!(entry, Some(Entry::File(_))) {
            return Err(libc::ENOTDIR);
        }
        let prefix = format!("{real}/");
        let mut names = Vec::new();
        let mut from = Bound::Included(prefix.clone());
        // Every folder is an entry, so whatever lies deeper is jumped over.
        while let Some((key, _)) = self.entries.range((from, Bound::Unbounded)).next() {
            let Some(rest) = key.strip_prefix(&prefix) else { break };
            from = match rest.split_once('/') {
                None => {
                    names.push(rest.to_owned());
                    Bound::Excluded(key.clone())
                }
                // '0' follows '/'.
                Some((child, _)) => Bound::Included(format!("{prefix}{child}0")),
            };
        }
        Ok(names)
    }

    /// The target of a link.
    ///
    /// # Errors
    /// An errno: the one that the recorded host gave for this path, else `ENOENT`, or `EINVAL` for
    /// what is no link.
    pub fn link(&self, path: &str) -> Result<String, i32> {
        self.recorded_error(Op::Link, path)?;
        match self.find(path, false)?.1 {
            Some(Entry::Link(target)) => Ok(target.clone()),
            _ => Err(libc::EINVAL),
        }
    }

    /// The path without links, from the root of the archive.
    ///
    /// # Errors
    /// An errno: the one that the recorded host gave for this path, else `ENOENT`, or `ELOOP` for
    /// links in a circle.
    pub fn resolve(&self, path: &str) -> Result<String, i32> {
        self.recorded_error(Op::Resolve, path)?;
        let (real, _) = self.find(path, true)?;
        Ok(if real.is_empty() { "/".into() } else { real })
    }
}

/// A link such as `net:[4026531840]` or `socket:[77]`: an identity of the kernel, no path.
pub(crate) fn is_magic(target: &str) -> bool {
    !target.contains('/') && target.contains(":[")
}

/// Adds an entry and the folders on its way, named by the archive or not. Gives the bytes of
/// the paths that are new.
fn insert(entries: &mut BTreeMap<String, Entry>, name: String, value: Entry) -> usize {
    let mut added = 0;
    for (at, _) in name.match_indices('/').skip(1) {
        if let Some(parent) = name.get(..at).filter(|p| !entries.contains_key(*p)) {
            added += parent.len();
            entries.insert(parent.to_owned(), Entry::Dir);
        }
    }
    added += name.len();
    if matches!(value, Entry::Dir) {
        entries.entry(name).or_insert(value);
    } else {
        entries.insert(name, value); // the last one of a name counts, as when unpacking
    }
    added
}

/// Paths that identify a host's tree.
pub(super) const HOSTS_OWN: [&str; 3] = ["proc", "sys", "sos_commands"];

/// The same without the one folder that holds all of it, as in a support archive.
fn without_top(entries: BTreeMap<String, Entry>) -> BTreeMap<String, Entry> {
    let mut tops = entries.keys().filter(|k| !k.is_empty() && k.rfind('/') == Some(0));
    let (Some(top), None) = (tops.next().cloned(), tops.next()) else { return entries };
    let prefix = format!("{top}/");
    let mut names = entries.keys().filter_map(|path| path.strip_prefix(&prefix));
    if !names.any(|name| HOSTS_OWN.contains(&name) || !name.contains('/') && is_known(name)) {
        return entries;
    }
    let below = |path: String| path.strip_prefix(&top).map(str::to_owned);
    entries.into_iter().filter_map(|(path, entry)| Some((below(path)?, entry))).collect()
}

/// An archive's name as an absolute path; `None` where it would climb out.
fn normal(name: &str) -> Option<String> {
    let mut path = String::new();
    for part in name.split('/').filter(|c| !c.is_empty() && *c != ".") {
        if part == ".." || part.contains('\0') {
            return None;
        }
        path.push('/');
        path.push_str(part);
    }
    Some(path)
}

#[cfg(test)]
mod tests;
