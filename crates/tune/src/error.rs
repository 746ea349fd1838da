//! Why something was not done, named by what the user can do about it.

use model::tune::{RefusedAs, Trouble};
use probe::ReadError;

/// Why a knob could not be read or written, or a command not be carried out. Each text is one
/// line that names the knob, path or call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TuneError {
    /// What was asked for makes no sense.
    #[error("{0}")]
    Usage(String),
    /// This process may not.
    #[error("{0}")]
    Denied(String),
    /// No such file, device, process or call.
    #[error("{0}")]
    Absent(String),
    /// The host said no.
    #[error("{0}")]
    Environment(String),
    /// The kernel said no to this, by this errno.
    #[error("{what}: {}", refusal(*errno))]
    Kernel { what: String, errno: i32 },
    /// No descriptors, no memory, an I/O error: what is there is not known.
    #[error("{0}")]
    Unread(String),
    /// Not what it was when the plan was made.
    #[error("{0}")]
    Changed(String),
    /// A journal makes no sense, or is a newer version's.
    #[error("{0}")]
    Journal(Box<Trouble>),
}

impl TuneError {
    /// What could not be read of the host.
    pub fn read(e: &ReadError) -> Self {
        match e {
            ReadError::Absent { .. } => Self::Absent(e.to_string()),
            ReadError::Denied { .. } => Self::Denied(e.to_string()),
            ReadError::Failed { errno, .. } if is_no_answer(*errno) => Self::Unread(e.to_string()),
            _ => Self::Environment(e.to_string()),
        }
    }

    /// What the kernel answered to a write.
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

    /// What only `grant` may do, a capability or a user.
    pub fn not_permitted(what: &str, grant: &str) -> Self {
        Self::Denied(format!("{what}: not permitted; {grant} is needed"))
    }

    /// A failed I/O call; one without an errno counts as `EIO`.
    pub fn io(what: &str, e: &std::io::Error) -> Self {
        Self::written(what, e.raw_os_error().unwrap_or(libc::EIO))
    }

    /// The same with what it is about before it: a document's name.
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

    /// The reason for not taking something into a plan.
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

/// What the kernel's refusal of a write means.
fn refusal(errno: i32) -> String {
    match errno {
        libc::EROFS => "the file system is read-only".into(),
        libc::ENOSPC => "no space left (ENOSPC)".into(),
        libc::EINVAL => "the kernel refuses it (EINVAL)".into(),
        errno => probe::error::errno_name(errno),
    }
}

/// Whether an error says nothing of what was asked for.
fn is_no_answer(errno: i32) -> bool {
    matches!(errno, libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::EIO)
}

/// The capability that a write needs.
fn grant(what: &str) -> &'static str {
    if what.starts_with("/proc/sys/net")
        || what.contains("/class/net/")
        || what.contains("ethtool")
        || what.starts_with("tc ")
    {
        "CAP_NET_ADMIN (or root)"
    } else {
        "root"
    }
}
