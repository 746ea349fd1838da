//! Reads a tar stream as members, and checks every size before using it.
//!
//! It uses only the tar library's headers. The library's own iteration reads a long name or an
//! extended header of any size into memory, and accepts a stream that ends between two members.

use std::io::Read;

use super::Limits;

const BLOCK: usize = 512;
/// Linux's own `PATH_MAX`, in bytes.
const MAX_PATH: u64 = 4096;
/// The largest pax header: extended attributes may fill it, but no kernel file has so many.
const MAX_PAX: u64 = 64 << 10;

/// What a member is.
#[derive(Debug, PartialEq, Eq)]
pub enum MemberKind {
    /// A regular file with its bytes.
    File(Vec<u8>),
    /// A symbolic link with its target as written.
    Link(Vec<u8>),
    /// A second name of another member, by that member's path.
    HardLink(Vec<u8>),
    Dir,
    /// A device, FIFO or whatever else: never of use.
    Other,
}

#[derive(Debug, PartialEq, Eq)]
pub struct ArchiveMember {
    /// Its path as written.
    pub path: Vec<u8>,
    pub kind: MemberKind,
}

/// Reads members one by one.
pub struct Members<R> {
    from: Counted<R>,
    limits: Limits,
}

impl<R: Read> Members<R> {
    pub fn new(from: R, limits: &Limits) -> Self {
        // Headers and padding come on top of the bytes of the files.
        let most = limits.total_bytes.saturating_add(limits.entries as u64 * 2 * BLOCK as u64);
        Self { from: Counted { from, left: most }, limits: limits.clone() }
    }

    /// The next member; `None` at the archive's end mark.
    ///
    /// # Errors
    /// One line of why, for people.
    pub fn next(&mut self) -> Result<Option<ArchiveMember>, String> {
        let (mut long_path, mut long_target) = (None, None);
        // A name and a target, each as GNU's and pax's; more describe nothing.
        for _ in 0..8 {
            let Some(header) = self.header()? else {
                return match (long_path, long_target) {
                    (None, None) => Ok(None),
                    _ => Err("a long name without its member".into()),
                };
            };
            let size = header.entry_size().map_err(|e| one_line(&e))?;
            let kind = header.entry_type();
            if kind.is_gnu_longname() {
                long_path = Some(until_nul(self.content(size, MAX_PATH + 1, "a name")?));
            } else if kind.is_gnu_longlink() {
                long_target = Some(until_nul(self.content(size, MAX_PATH + 1, "a link")?));
            } else if kind.is_pax_local_extensions() {
                let records = self.content(size, MAX_PAX, "a pax header")?;
                pax(&records, &mut long_path, &mut long_target)?;
            } else if kind.is_pax_global_extensions() {
                self.content(size, MAX_PAX, "a pax header")?;
            } else {
                let path = long_path.unwrap_or_else(|| header.path_bytes().into_owned());
                let short = || header.link_name_bytes().unwrap_or_default().into_owned();
                let target = || long_target.unwrap_or_else(short);
                return self.member(path, kind, size, target).map(Some);
            }
        }
        Err("more headers than a member can have".into())
    }

    fn member(
        &mut self,
        path: Vec<u8>,
        kind: tar::EntryType,
        size: u64,
        target: impl FnOnce() -> Vec<u8>,
    ) -> Result<ArchiveMember, String> {
        if path.len() as u64 > MAX_PATH {
            return Err(format!("a path of {} bytes", path.len()));
        }
        let kind = if kind.is_file() || kind.is_contiguous() {
            MemberKind::File(self.content(size, self.limits.file_bytes, "a file")?)
        } else if kind.is_gnu_sparse() {
            return Err("it holds a sparse file; pack it without --sparse".into());
        } else {
            self.skip(size)?;
            match () {
                () if kind.is_dir() => MemberKind::Dir,
                () if kind.is_symlink() => MemberKind::Link(target()),
                () if kind.is_hard_link() => MemberKind::HardLink(target()),
                () => MemberKind::Other,
            }
        };
        Ok(ArchiveMember { path, kind })
    }

    /// The next header; `None` at the end mark, a block of zeros.
    fn header(&mut self) -> Result<Option<tar::Header>, String> {
        let mut block = [0u8; BLOCK];
        self.from.read_exact(&mut block).map_err(|e| one_line(&e))?;
        if block.iter().all(|&b| b == 0) {
            return Ok(None);
        }
        let header = tar::Header::from_byte_slice(&block).clone();
        let sum: u32 = block
            .iter()
            .enumerate()
            .map(|(i, &b)| if (148..156).contains(&i) { u32::from(b' ') } else { u32::from(b) })
            .sum();
        match header.cksum() {
            Ok(said) if said == sum => Ok(Some(header)),
            _ => Err("it is no tar, or damaged (a header's checksum is wrong)".into()),
        }
    }

    /// A member's bytes. Memory grows with the data that arrives, not with the header's size.
    fn content(&mut self, size: u64, most: u64, what: &str) -> Result<Vec<u8>, String> {
        if size > most {
            return Err(format!("{what} of {size} bytes (at most {most})"));
        }
        let mut bytes = Vec::with_capacity(size.min(64 << 10) as usize);
        (&mut self.from).take(size).read_to_end(&mut bytes).map_err(|e| one_line(&e))?;
        if (bytes.len() as u64) < size {
            return Err("it is truncated".into());
        }
        self.skip_exact(padding(size))?;
        Ok(bytes)
    }

    fn skip(&mut self, size: u64) -> Result<(), String> {
        self.skip_exact(size.saturating_add(padding(size)))
    }

    fn skip_exact(&mut self, size: u64) -> Result<(), String> {
        let skipped = std::io::copy(&mut (&mut self.from).take(size), &mut std::io::sink())
            .map_err(|e| one_line(&e))?;
        if skipped < size { Err("it is truncated".into()) } else { Ok(()) }
    }
}

fn padding(size: u64) -> u64 {
    size.wrapping_neg() % BLOCK as u64
}

fn until_nul(mut bytes: Vec<u8>) -> Vec<u8> {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    bytes.truncate(end);
    bytes
}

/// Records `LENGTH KEY=VALUE\n`, of which only names matter. A size or sparse map that says
/// otherwise than the header would make two readers see two archives.
fn pax(
    mut records: &[u8],
    path: &mut Option<Vec<u8>>,
    target: &mut Option<Vec<u8>>,
) -> Result<(), String> {
    let bad = || "a pax header that makes no sense".to_owned();
    while !records.is_empty() {
        let blank = records.iter().position(|&b| b == b' ').ok_or_else(bad)?;
        let digits = std::str::from_utf8(records.get(..blank).ok_or_else(bad)?).ok();
        let length: usize = digits.and_then(|d| d.parse().ok()).ok_or_else(bad)?;
        let record = records.get(blank + 1..length).ok_or_else(bad)?;
        let record = record.strip_suffix(b"\n").ok_or_else(bad)?;
        let equals = record.iter().position(|&b| b == b'=').ok_or_else(bad)?;
        let (key, value) = record.split_at(equals);
        let value = value.get(1..).unwrap_or_default().to_vec();
        match key {
            b"path" => *path = Some(value),
            b"linkpath" => *target = Some(value),
            b"size" => return Err("a file of 8 GiB or more".into()),
            k if k.starts_with(b"GNU.sparse.") => {
                return Err("it holds a sparse file; pack it without --sparse".into());
            }
            _ => {}
        }
        records = records.get(length..).unwrap_or_default();
    }
    Ok(())
}

/// Ends with an error, not with an end of file, once more was unpacked than is allowed.
struct Counted<R> {
    from: R,
    left: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.left == 0 {
            return Err(std::io::Error::other("it unpacks to more than is allowed"));
        }
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let n = self.from.read(buffer.get_mut(..most).unwrap_or_default())?;
        self.left -= n as u64;
        Ok(n)
    }
}

/// An error of the libraries below as part of a line.
pub fn one_line(e: &std::io::Error) -> String {
    if e.kind() == std::io::ErrorKind::UnexpectedEof {
        return "it is truncated".into();
    }
    e.to_string().chars().map(|c| if c.is_control() { ' ' } else { c }).take(120).collect()
}
