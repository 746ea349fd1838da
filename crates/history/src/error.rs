//! Why the history cannot be read or written, by what the user can do.

use std::{io, path::Path};

use rusqlite::ErrorCode;

/// Why a store refuses.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// There is no such file: nothing was recorded yet.
    #[error("{path}: no history there")]
    Absent { path: String },
    #[error("{path}: not permitted")]
    Denied { path: String },
    /// Another process held the store for longer than we wait.
    #[error("{path}: another process is using it")]
    Locked { path: String },
    #[error("{path}: no space left")]
    Full { path: String },
    /// Another program's file, or no SQLite file at all.
    #[error("{path}: is no history of netwright; name another file with --store")]
    NotOurs { path: String },
    /// A later netwright wrote it.
    #[error(
        "{path}: its schema {found} is newer than {known}, the newest that this netwright knows; \
         use the netwright that wrote it"
    )]
    Newer { path: String, found: i64, known: i64 },
    /// A record or the file is damaged.
    #[error("{path}: damaged: {why}")]
    Damaged { path: String, why: String },
    /// Any other refusal of the system.
    #[error("{path}: {why}")]
    Io { path: String, why: String },
}

impl HistoryError {
    /// A refusal of the file system.
    pub(crate) fn io(path: &Path, e: &io::Error) -> Self {
        let path = path.display().to_string();
        match e.kind() {
            io::ErrorKind::NotFound => Self::Absent { path },
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Self::Denied { path }
            }
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full { path },
            _ => Self::Io { path, why: e.to_string() },
        }
    }

    /// A refusal of SQLite.
    pub(crate) fn sqlite(path: &Path, e: &rusqlite::Error) -> Self {
        let path = path.display().to_string();
        let why = e.to_string();
        match e.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Locked { path },
            Some(ErrorCode::DiskFull) => Self::Full { path },
            Some(ErrorCode::NotADatabase) => Self::NotOurs { path },
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => Self::Denied { path },
            Some(ErrorCode::DatabaseCorrupt) => Self::Damaged { path, why },
            Some(_) => Self::Io { path, why },
            // A value of a type that our tables do not have.
            None => Self::Damaged { path, why },
        }
    }
}
