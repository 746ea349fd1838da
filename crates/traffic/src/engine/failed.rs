//! Why a request came to nothing.

use std::{collections::BTreeMap, io};

use model::Nanos;

use crate::net::{
    errno::errno_text,
    tls::fault::{Fault, named},
};

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

/// What a protocol calls things.
#[derive(Debug, Clone, Copy)]
pub struct Words {
    /// What was not there in time: `not connected`.
    pub unconnected: &'static str,
    /// `response`.
    pub answer: &'static str,
}

impl Failed {
    /// In words; what the kernel or the server said, with its name. `messages` has the server's, by
    /// code.
    pub fn text(&self, limit: Nanos, words: Words, messages: &BTreeMap<String, String>) -> String {
        let Words { unconnected, answer } = words;
        match self {
            Self::Connecting(errno) => format!("not connected: {}", errno_text(*errno)),
            Self::NoConnection => format!("{unconnected} in {limit}"),
            Self::Talking(errno) => errno_text(*errno),
            Self::NoAnswer => format!("no whole {answer} in {limit}"),
            Self::ClosedBefore => format!("closed by the server before its {answer}"),
            Self::ClosedWithin => format!("closed by the server within its {answer}"),
            Self::Bad(why) | Self::Tls(why) => (*why).into(),
            Self::Server(code) => {
                format!("{code}: {}", messages.get(code).map_or("", String::as_str))
            }
        }
    }
}
