//! Files with counters: read and parsed at once, or kept and parsed later.

use std::{borrow::Cow, collections::BTreeMap};

use model::Reading;
use parse::ParseError;

use crate::{ReadError, Root, error::reading};

/// Gives files by their path.
pub(super) trait Source {
    fn bytes(&self, path: &str) -> Result<Cow<'_, [u8]>, ReadError>;

    /// A file through a parser.
    fn through<T>(
        &self,
        path: &str,
        parser: impl FnOnce(&[u8]) -> Result<T, ParseError>,
    ) -> Reading<T> {
        reading(self.bytes(path).and_then(|b| {
            parser(&b).map_err(|error| ReadError::Unparsable { path: path.to_owned(), error })
        }))
    }
}

impl Source for Root {
    fn bytes(&self, path: &str) -> Result<Cow<'_, [u8]>, ReadError> {
        self.read(path).map(Cow::Owned)
    }
}

/// Files as they were at one moment.
#[derive(Debug, Clone, Default)]
pub(super) struct FrozenFiles(BTreeMap<String, Result<Vec<u8>, ReadError>>);

impl FrozenFiles {
    /// Reads a file and keeps what came.
    pub fn keep(&mut self, root: &Root, path: String) {
        let bytes = root.read(&path);
        self.0.insert(path, bytes);
    }
}

impl Source for FrozenFiles {
    fn bytes(&self, path: &str) -> Result<Cow<'_, [u8]>, ReadError> {
        match self.0.get(path) {
            Some(Ok(bytes)) => Ok(Cow::Borrowed(bytes)),
            Some(Err(e)) => Err(e.clone()),
            None => Err(ReadError::Absent { path: path.to_owned() }),
        }
    }
}
