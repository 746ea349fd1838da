//! Errors, grouped by what the user can do about them.

use model::tune::{RefusedAs, Trouble};
use probe::ReadError;

/// Why a knob could not be read or written, or a command failed. Each text is one line that names
/// the knob, path or call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TuneError {
    /// The request is invalid.
    #[error("{0}")]
    Usage(String),
    /// This process lacks the permission.
    #[error("{0}")]
    Denied(String),
    /// The file, device, process or call does not exist.
    #[error("{0}")]
    Absent(String),
    /// The host refused the operation or lacks support for it.
    #[error("{0}")]
    Environment(String),
    /// The kernel refused with this errno.
    #[error("{what}: {}", refusal(*errno))]
    Kernel { what: String, errno: i32 },
    /// The value could not be read: no descriptors, no memory, or an I/O error.
    #[error("{0}")]
    Unread(String),
    /// The host changed since the plan was made.
    #[error("{0}")]
    Changed(String),
    /// A journal makes no sense, or is a newer version's.
    #[error("{0}")]
    Journal(Box<Trouble>),
}

impl TuneError {
    /// Converts an error of reading the host.
    pub fn read(e: &ReadError) -> Self {
        match e {
            ReadError::Absent { .. } => Self::Absent(e.to_string()),
            ReadError::Denied { .. } => Self::Denied(e.to_string()),
            ReadError::Failed { errno, .. } if is_no_answer(*errno) => Self::Unread(e.to_string()),
            _ => Self::Environment(e.to_string()),
        }
    }

    /// Converts the errno of a failed write.
    pub fn written(what: &str, errno: i32) -> Self {
        match errno {
            libc::EACCES | libc::EPERM => Self::not_permitted(what, grant(what)),
            libc::ENOENT | libc::ENODEV | libc::ENXIO | libc::ESRCH | libc::ENOTDIR => {
                Self::Absent(format!("{what}: not there"))
            }
            errno if is_no_answer(errno) => {
                Self::Unread(format!("{what}: {}", probe::error::errno_name(errno)))
            }
            errno => Self::Kernel { what: what.to_owned(), errno },
        }
    }

    /// An operation that needs `grant`, a capability or a user.
    pub fn not_permitted(what: &str, grant: &str) -> Self {
        Self::Denied(format!("{what}: not permitted; {grant} is needed"))
    }

    /// A failed I/O call; an error without an errno counts as `EIO`.
    pub fn io(what: &str, e: &std::io::Error) -> Self {
        Self::written(what, e.raw_os_error().unwrap_or(libc::EIO))
    }

    /// Prefixes the message with its subject, such as a document's name.
    pub fn of(self, what: &str) -> Self {
        match self {
            Self::Usage(why) => Self::Usage(format!("{what}: {why}")),
            Self::Denied(why) => Self::Denied(format!("{what}: {why}")),
            Self::Absent(why) => Self::Absent(format!("{what}: {why}")),
            Self::Environment(why) => Self::Environment(format!("{what}: {why}")),
            Self::Kernel { what: inner, errno } => {
                Self::Kernel { what: format!("{what}: {inner}"), errno }
            }
            Self::Unread(why) => Self::Unread(format!("{what}: {why}")),
            Self::Changed(why) => Self::Changed(format!("{what}: {why}")),
            Self::Journal(_) => self,
        }
    }

    /// The matching reason for refusing a change in a plan.
    pub fn kind(&self) -> RefusedAs {
        match self {
            Self::Usage(_) => RefusedAs::Usage,
            Self::Denied(_) => RefusedAs::Denied,
            Self::Absent(_)
            | Self::Environment(_)
            | Self::Kernel { .. }
            | Self::Unread(_)
            | Self::Changed(_)
            | Self::Journal(_) => RefusedAs::Environment,
        }
    }
}

/// Explains the errno of a refused write.
fn refusal(errno: i32) -> String {
    match errno {
        libc::EROFS => "the file system is read-only".into(),
        libc::ENOSPC => "no space left (ENOSPC)".into(),
        libc::EINVAL => "the kernel refuses it (EINVAL)".into(),
        errno => probe::error::errno_name(errno),
    }
}

/// Whether the errno leaves the value unknown.
fn is_no_answer(errno: i32) -> bool {
    matches!(errno, libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::EIO)
}

/// The capability that a write needs.
fn grant(what: &str) -> &'static str {
    if what.starts_with("/proc/sys/net")
        || what.contains("/class/net/")
        || what.contains("ethtool")
        || what.starts_with("tc ")
        || what.starts_with("ip ")
    {
        "CAP_NET_ADMIN (or root)"
    } else {
        "root"
    }
}
