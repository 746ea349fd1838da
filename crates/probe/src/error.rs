//! Why a value could not be read, by what the user can do about it.

use model::Reading;
use parse::ParseError;

/// Why a path or call gave no value. The text is made from path and errno alone, so that a snapshot
/// gives the same text as the live host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// No such file, entry, device or call.
    #[error("{path}: not there")]
    Absent { path: String },
    /// This process may not.
    #[error("{path}: not permitted{}", grant(path))]
    Denied { path: String },
    /// The kernel answered with an error (`EINVAL` of a `speed` while the link is down).
    #[error("{path}: {}", errno_name(*errno))]
    Failed {
        path: String,
        /// The kernel's error number.
        errno: i32,
    },
    /// It was read and makes no sense.
    #[error("{path}: {error}")]
    Unparsable { path: String, error: ParseError },
}

impl ReadError {
    /// Sorts an errno into what the user can do about it.
    pub fn from_errno(path: &str, errno: i32) -> Self {
        let path = path.to_owned();
        match errno {
            libc::ENOENT | libc::ENOTDIR | libc::ENXIO | libc::ENODEV | libc::ESRCH => {
                Self::Absent { path }
            }
            libc::EACCES | libc::EPERM => Self::Denied { path },
            errno => Self::Failed { path, errno },
        }
    }

    /// From an I/O error; one without an errno counts as `EIO`.
    pub fn from_io(path: &str, e: &std::io::Error) -> Self {
        Self::from_errno(path, e.raw_os_error().unwrap_or(libc::EIO))
    }

    /// The reading that this error is.
    pub fn into_reading<T>(self) -> Reading<T> {
        match self {
            Self::Denied { .. } => Reading::Denied(self.to_string()),
            // The thing is there; this read of it failed.
            Self::Failed {
                errno: libc::EIO | libc::EMFILE | libc::ENFILE | libc::ENOMEM, ..
            } => Reading::Denied(self.to_string()),
            _ => Reading::Absent(self.to_string()),
        }
    }
}

/// A result as a reading.
pub fn reading<T>(r: Result<T, ReadError>) -> Reading<T> {
    match r {
        Ok(v) => Reading::Known(v),
        Err(e) => e.into_reading(),
    }
}

/// What would grant a denied read.
fn grant(path: &str) -> &'static str {
    if path.contains("/environ")
        || path.contains("/numa_maps")
        || path.contains("/ns/")
        || path.contains("/fd")
    {
        "; CAP_SYS_PTRACE (or root) would show it"
    } else if path.starts_with("/sys/kernel/debug") {
        "; root would show it"
    } else if path.starts_with("netlink/netns/") || path.starts_with("unshare") {
        "; CAP_SYS_ADMIN (or root) would show it"
    } else if path.starts_with("ethtool") || path.starts_with("netlink") {
        "; CAP_NET_ADMIN would show it"
    } else {
        "; root would show it"
    }
}

/// The name a person knows an errno by.
pub fn errno_name(errno: i32) -> String {
    let name = match errno {
        libc::EINVAL => "EINVAL",
        libc::EIO => "EIO",
        libc::EOPNOTSUPP => "not supported (EOPNOTSUPP)",
        libc::EBUSY => "EBUSY",
        libc::ENODATA => "ENODATA",
        libc::ELOOP => "too many symbolic links (ELOOP)",
        libc::EXDEV => "leads outside the root (EXDEV)",
        libc::EFBIG => "larger than any kernel file (EFBIG)",
        libc::EISDIR => "is a directory",
        libc::ENOSYS => "this kernel has no such call (ENOSYS)",
        libc::ENETDOWN => "ENETDOWN",
        libc::EAGAIN => "EAGAIN",
        libc::ENOMEM => "ENOMEM",
        libc::EMFILE => "no descriptors left for this process (EMFILE)",
        libc::ENFILE => "no descriptors left on this host (ENFILE)",
        libc::E2BIG => "too many to count (E2BIG)",
        n => return format!("errno {n}"),
    };
    name.to_owned()
}
