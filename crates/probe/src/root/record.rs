//! What a live root gave, kept in the shape of the host's own tree.
//!
//! Symbolic links on the way are recorded as links and files at their real place, so that an
//! unpacked recording is a tree that other tools (`lstopo` with `HWLOC_FSROOT`) read too.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Mutex,
};

use model::snapshot::SampleTime;
use serde::{Deserialize, Serialize};

use crate::ReadError;

/// A recorded answer of [`super::Root::ask`].
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer<T> {
    /// The value.
    Value(T),
    /// There was none.
    Absent(String),
    /// Not permitted.
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

/// Everything recorded so far.
#[derive(Debug, Default)]
pub struct Recording {
    /// Files by absolute path on the host (samples and answers under `/netwright`).
    pub files: BTreeMap<String, Vec<u8>>,
    /// Links by path, with their targets as written.
    pub links: BTreeMap<String, String>,
    /// Folders that exist though nothing in them was read.
    pub dirs: BTreeSet<String>,
    /// Folder listings.
    pub listings: BTreeMap<String, Vec<String>>,
    /// Errors other than absence.
    pub errors: BTreeMap<String, i32>,
    /// When each sample was read.
    pub samples: Vec<SampleTime>,
}

/// Collects from any thread.
#[derive(Debug, Default)]
pub struct Recorder {
    inner: Mutex<Recording>,
}

impl Recorder {
    /// Takes what was recorded, leaving nothing.
    pub fn take(&self) -> Recording {
        std::mem::take(&mut self.lock())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Recording> {
        self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Records the links on the way to `path` and gives its real place. Within a sample
    /// (`place` differs from `path`) files stand where they were asked for.
    fn real_place(&self, place: &str, path: &str) -> String {
        if place != path {
            return place.to_owned();
        }
        self.walk(path)
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
            let here = format!("/{}", done.join("/"));
            let known = self.lock().links.get(&here).cloned();
            let Some(target) = known.or_else(|| super::live::link(&here).ok()) else { continue };
            self.lock().links.insert(here, target.clone());
            hops += 1;
            if hops > 40 || !target.contains('/') && target.contains(":[") {
                break; // a loop, or a magic link such as net:[4026531840]
            }
            done.pop();
            if target.starts_with('/') {
                done.clear();
            }
            todo.extend(target.split('/').rev().filter(|c| !c.is_empty()).map(String::from));
        }
        format!("/{}", done.join("/"))
    }

    pub(super) fn sample_taken(&self, time: SampleTime) {
        self.lock().samples.push(time);
    }

    pub(super) fn file(&self, place: &str, path: &str, result: &Result<Vec<u8>, ReadError>) {
        let real = self.real_place(place, path);
        match result {
            Ok(bytes) => {
                self.lock().files.insert(real, bytes.clone());
            }
            Err(e) => self.error(place, e),
        }
    }

    fn error(&self, place: &str, e: &ReadError) {
        let errno = match e {
            ReadError::Denied { .. } => libc::EACCES,
            ReadError::Failed { errno, .. } => *errno,
            ReadError::Absent { .. } | ReadError::Unparsable { .. } => return,
        };
        self.lock().errors.insert(place.to_owned(), errno);
    }

    pub(super) fn listing(&self, place: &str, result: &Result<Vec<String>, ReadError>) {
        match result {
            Ok(names) => {
                self.lock().listings.insert(place.to_owned(), names.clone());
            }
            Err(e) => self.error(place, e),
        }
    }

    pub(super) fn link(&self, place: &str, path: &str, result: &Result<String, ReadError>) {
        match result {
            Ok(target) => {
                let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
                let real = if place == path {
                    format!("{}/{name}", self.walk(folder).trim_end_matches('/'))
                } else {
                    place.to_owned()
                };
                self.lock().links.insert(real, target.clone());
            }
            Err(e) => self.error(place, e),
        }
    }

    pub(super) fn resolved(&self, path: &str, result: &Result<String, ReadError>) {
        if result.is_ok() {
            let real = self.walk(path);
            let mut inner = self.lock();
            if !inner.files.contains_key(&real) {
                inner.dirs.insert(real);
            }
        }
    }

    pub(super) fn answer<T: Serialize>(&self, place: &str, result: &Result<T, ReadError>) {
        if let Ok(bytes) = serde_json::to_vec(&Answer::from_result(result)) {
            self.lock().files.insert(place.to_owned(), bytes);
        }
    }
}
