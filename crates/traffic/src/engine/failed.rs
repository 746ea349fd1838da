//! Why a request came to nothing.

use std::io;

use crate::net::tls::fault::{Fault, named};

/// Why a request, or a transaction, failed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Failed {
    /// The kernel said so, before a connection was established.
    Connecting(i32),
    /// No connection, or no session, in time.
    NoConnection,
    /// The kernel said so, afterwards.
    Talking(i32),
    /// No whole answer in time.
    NoAnswer,
    /// The server closed before the answer's first byte.
    ClosedBefore,
    /// The server closed within the answer.
    ClosedWithin,
    /// The answer is none of this protocol's.
    Bad(&'static str),
    Tls(&'static str),
    /// The server said so: its code.
    Server(String),
}

impl From<&Fault> for Failed {
    fn from(fault: &Fault) -> Self {
        match fault {
            Fault::Tls(why) => Self::Tls(named(why)),
            Fault::Io(e) if e.kind() == io::ErrorKind::UnexpectedEof => Self::ClosedBefore,
            Fault::Io(e) => match e.raw_os_error() {
                // After a reset the kernel says this of a write.
                Some(libc::EPIPE) | None => Self::Talking(libc::ECONNRESET),
                Some(errno) => Self::Talking(errno),
            },
        }
    }
}
