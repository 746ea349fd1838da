//! What a live root returned, stored in the layout of the host's own tree.
//!
//! Symbolic links are recorded as links and files at their real place, so that other tools
//! (`lstopo` with `HWLOC_FSROOT`) can read an unpacked recording too.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Mutex,
};

use model::snapshot::SampleTime;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::Op;
use crate::ReadError;

/// A recorded answer of [`super::Root::ask`].
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer<T> {
    Value(T),
    /// The value does not exist, and why.
    Absent(String),
    /// The read was not permitted, and why.
    Denied(String),
    /// The kernel answered with an error.
    Failed(String, i32),
    /// It was not understood.
    Unparsable(String, u32, String, String),
}

impl<T> Answer<T> {
    /// Back to what `ask` gave.
    ///
    /// # Errors
    /// The recorded one.
    pub fn into_result(self) -> Result<T, ReadError> {
        Err(match self {
            Self::Value(v) => return Ok(v),
            Self::Absent(path) => ReadError::Absent { path },
            Self::Denied(path) => ReadError::Denied { path },
            Self::Failed(path, errno) => ReadError::Failed { path, errno },
            Self::Unparsable(path, line, _, found) => ReadError::Unparsable {
                path,
                error: parse::ParseError { line, expected: "a known answer", found },
            },
        })
    }

    fn from_result(r: &Result<T, ReadError>) -> Answer<&T> {
        match r {
            Ok(v) => Answer::Value(v),
            Err(ReadError::Absent { path }) => Answer::Absent(path.clone()),
            Err(ReadError::Denied { path }) => Answer::Denied(path.clone()),
            Err(ReadError::Failed { path, errno }) => Answer::Failed(path.clone(), *errno),
            Err(ReadError::Unparsable { path, error }) => Answer::Unparsable(
                path.clone(),
                error.line,
                error.expected.to_owned(),
                error.found.clone(),
            ),
        }
    }
}

/// Where the answer to `key` is kept. A key may hold a NIC's name, and a NIC may be called
/// anything but `.`, `..` and names with `/`.
pub fn answer_place(key: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    let mut place = super::ANSWERS.to_owned();
    for part in key.split('/') {
        place.push('/');
        if matches!(part, "" | "." | "..") {
            place.push('%');
        }
        for c in part.chars() {
            if plain(c) {
                place.push(c);
            } else {
                place.push_str(&format!("%{:x}", c as u32));
            }
        }
    }
    place + ".json"
}

/// An answer from its stored form.
///
/// # Errors
/// The recorded one; unparsable where the stored form is not of this type.
pub fn answered<T: DeserializeOwned>(key: &str, bytes: &[u8]) -> Result<T, ReadError> {
    let stored: Answer<T> = model::json::read(bytes).map_err(|e| ReadError::Unparsable {
        path: key.to_owned(),
        error: parse::ParseError::new(1, "a recorded answer", e.to_string().as_bytes()),
    })?;
    stored.into_result()
}

/// Everything recorded so far.
#[derive(Debug, Default)]
pub struct Recording {
    /// Files by absolute path on the host (samples and answers under `/netwright`).
    pub files: BTreeMap<String, Vec<u8>>,
    /// Links by path, with their targets as written.
    pub links: BTreeMap<String, String>,
    /// What is there though nothing in it was read.
    pub dirs: BTreeSet<String>,
    pub listings: BTreeMap<String, Vec<String>>,
    /// Errors other than absence, by the manifest's key.
    pub errors: BTreeMap<String, i32>,
    /// When each sample was read.
    pub samples: Vec<SampleTime>,
}

#[derive(Debug, Default)]
struct Inner {
    recording: Recording,
    /// Every failure, absence too.
    failed: BTreeMap<(Op, String), i32>,
    /// Paths that are no links.
    plain: BTreeSet<String>,
}

/// Reads the live host and keeps the results; usable from any thread.
///
/// A repeated read returns the first result. So facts from the recording equal the facts collected
/// while recording, however often a counter was read.
#[derive(Debug, Default)]
pub struct Recorder {
    inner: Mutex<Inner>,
}

impl Recorder {
    /// Takes what was recorded, leaving nothing.
    pub fn take(&self) -> Recording {
        std::mem::take(&mut *self.lock()).recording
    }

    /// Bytes of a file that was recorded.
    pub fn size(&self, path: &str) -> Option<u64> {
        let real = self.walk(path);
        self.lock().recording.files.get(&real).map(|b| b.len() as u64)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Where `path` really is. Within a sample (`place` differs from `path`) files stand where
    /// they were asked for.
    fn real_place(&self, place: &str, path: &str) -> String {
        if place == path { self.walk(path) } else { place.to_owned() }
    }

    /// Follows links component by component, recording each.
    fn walk(&self, path: &str) -> String {
        let mut todo: Vec<String> =
            path.split('/').rev().filter(|c| !c.is_empty()).map(Into::into).collect();
        let mut done: Vec<String> = Vec::new();
        let mut hops = 0;
        while let Some(part) = todo.pop() {
            match part.as_str() {
                "." => continue,
                ".." => {
                    done.pop();
                    continue;
                }
                _ => done.push(part),
            }
            let Some(target) = self.link_at(&format!("/{}", done.join("/"))) else { continue };
            hops += 1;
            if hops > super::MAX_LINK_HOPS || super::archive::is_magic(&target) {
                break;
            }
            done.pop();
            if target.starts_with('/') {
                done.clear();
            }
            todo.extend(target.split('/').rev().filter(|c| !c.is_empty()).map(String::from));
        }
        format!("/{}", done.join("/"))
    }

    /// The recorded link at a real place; `None` where there is none.
    fn link_at(&self, place: &str) -> Option<String> {
        {
            let inner = self.lock();
            if let Some(target) = inner.recording.links.get(place) {
                return Some(target.clone());
            }
            if inner.plain.contains(place) {
                return None;
            }
        }
        let target = super::live::link(place);
        let mut inner = self.lock();
        match target {
            Ok(target) => {
                Some(inner.recording.links.entry(place.to_owned()).or_insert(target).clone())
            }
            Err(errno) => {
                if errno == libc::EINVAL {
                    inner.plain.insert(place.to_owned());
                }
                None
            }
        }
    }

    /// What failed before fails again.
    fn failed(&self, op: Op, place: &str) -> Result<(), i32> {
        let inner = self.lock();
        if inner.failed.is_empty() {
            return Ok(());
        }
        inner.failed.get(&(op, place.to_owned())).map_or(Ok(()), |&errno| Err(errno))
    }

    fn fail(&self, op: Op, place: &str, errno: i32) -> i32 {
        let mut inner = self.lock();
        inner.failed.insert((op, place.to_owned()), errno);
        // What the recording lacks is missing by itself, and no link is no link.
        let by_itself = match op {
            Op::Link => matches!(errno, libc::ENOENT | libc::ENOTDIR | libc::EINVAL),
            Op::Read | Op::List | Op::Resolve => matches!(errno, libc::ENOENT | libc::ENOTDIR),
        };
        if !by_itself {
            inner.recording.errors.insert(op.key(place), errno);
        }
        errno
    }

    pub(super) fn read(
        &self,
        place: &str,
        path: &str,
        live: impl FnOnce(&str) -> Result<Vec<u8>, i32>,
    ) -> Result<Vec<u8>, i32> {
        self.failed(Op::Read, place)?;
        let real = self.real_place(place, path);
        if let Some(bytes) = self.lock().recording.files.get(&real) {
            return Ok(bytes.clone());
        }
        let bytes = live(path).map_err(|e| self.fail(Op::Read, place, e))?;
        Ok(self.lock().recording.files.entry(real).or_insert(bytes).clone())
    }

    pub(super) fn forget(&self, place: &str, path: &str) {
        let real = self.real_place(place, path);
        let mut inner = self.lock();
        inner.recording.files.remove(&real);
        inner.recording.errors.remove(&Op::Read.key(place));
        inner.failed.remove(&(Op::Read, place.to_owned()));
    }

    pub(super) fn entries(
        &self,
        place: &str,
        live: impl FnOnce() -> Result<Vec<String>, i32>,
    ) -> Result<Vec<String>, i32> {
        self.failed(Op::List, place)?;
        if let Some(names) = self.lock().recording.listings.get(place) {
            return Ok(names.clone());
        }
        let names = live().map_err(|e| self.fail(Op::List, place, e))?;
        let mut inner = self.lock();
        Ok(inner.recording.listings.entry(place.to_owned()).or_insert(names).clone())
    }

    pub(super) fn link(&self, place: &str, path: &str) -> Result<String, i32> {
        self.failed(Op::Link, place)?;
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let real = if place == path {
            format!("{}/{name}", self.walk(folder).trim_end_matches('/'))
        } else {
            place.to_owned()
        };
        if let Some(target) = self.lock().recording.links.get(&real) {
            return Ok(target.clone());
        }
        let target = super::live::link(path).map_err(|e| self.fail(Op::Link, place, e))?;
        Ok(self.lock().recording.links.entry(real).or_insert(target).clone())
    }

    pub(super) fn resolve(&self, path: &str) -> Result<String, i32> {
        self.failed(Op::Resolve, path)?;
        super::live::resolve(path).map_err(|e| self.fail(Op::Resolve, path, e))?;
        // The recorded links' own end: what a reader of the recording will find.
        let real = self.walk(path);
        self.lock().recording.dirs.insert(real.clone());
        Ok(real)
    }

    /// The stored form of an answer, asked for only once. `None` where it cannot be stored.
    pub(super) fn answer<T: Serialize>(
        &self,
        place: &str,
        ask: impl FnOnce() -> Result<T, ReadError>,
    ) -> Result<Option<Vec<u8>>, ReadError> {
        if let Some(bytes) = self.lock().recording.files.get(place) {
            return Ok(Some(bytes.clone()));
        }
        let Ok(bytes) = serde_json::to_vec(&Answer::from_result(&ask())) else { return Ok(None) };
        Ok(Some(self.lock().recording.files.entry(place.to_owned()).or_insert(bytes).clone()))
    }

    pub(super) fn sample_taken(&self, time: SampleTime) {
        self.lock().recording.samples.push(time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_becomes_one_place_within_the_answers() {
        assert_eq!(
            answer_place("ethtool/eth0/stats"),
            "/netwright/answers/ethtool/eth0/stats.json"
        );
        assert_eq!(answer_place("a/eth 0:ü"), "/netwright/answers/a/eth%200%3a%fc.json");
        assert_eq!(answer_place(".././/x"), "/netwright/answers/%../%./%/x.json");
    }
}
