//! Reasons why a request failed.

use std::{collections::BTreeMap, io};

use model::Nanos;

use crate::net::{
    errno::errno_text,
    tls::fault::{Fault, named},
};

/// Why a request or a transaction failed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Failed {
    /// The kernel's errno before the connection was established.
    Connecting(i32),
    /// No connection or session in time.
    NoConnection,
    /// The kernel's errno after that.
    Talking(i32),
    /// No complete answer in time.
    NoAnswer,
    /// The server closed before the first byte of the answer.
    ClosedBefore,
    /// The server closed within the answer.
    ClosedWithin,
    /// The answer violates the protocol; the text says how.
    Bad(&'static str),
    Tls(&'static str),
    /// The server's error code.
    Server(String),
}

impl From<&Fault> for Failed {
    fn from(fault: &Fault) -> Self {
        match fault {
            Fault::Tls(why) => Self::Tls(named(why)),
            Fault::Io(e) if e.kind() == io::ErrorKind::UnexpectedEof => Self::ClosedBefore,
            Fault::Io(e) => match e.raw_os_error() {
                // A write after a reset gets this error.
                Some(libc::EPIPE) | None => Self::Talking(libc::ECONNRESET),
                Some(errno) => Self::Talking(errno),
            },
        }
    }
}

/// A protocol's words for messages.
#[derive(Debug, Clone, Copy)]
pub struct Words {
    /// Text for a missing connection, such as `not connected`.
    pub unconnected: &'static str,
    /// Word for an answer, such as `response`.
    pub answer: &'static str,
}

impl Failed {
    /// Text of the failure; an errno or a server code with its name. `messages` maps server codes
    /// to texts.
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
