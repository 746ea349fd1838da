//! A blocking connection: finds the server that answers, and runs queries before and after the
//! measurement.

mod opening;

use std::{net::SocketAddr, sync::atomic::AtomicBool, time::Duration};

use bytes::BytesMut;
use model::{
    Warning,
    measure::{End, Transport},
};
use postgres_protocol::message::frontend;
use socket2::SockAddr;
use traffic::{
    Error, Result,
    engine::{
        deadline::Deadline,
        dial::ended_early,
        link::{Link, Rooms},
    },
    net::tls::{
        Tls,
        conn::{Agreed, Received},
        fault::Fault,
    },
};

use super::{
    login::Credentials,
    security, why,
    wire::{self, Frames, Next, ServerError},
};

/// Limit of an answer in bytes; neither a login nor a query here has more.
const MOST_ANSWER: usize = 1 << 20;

/// A server, and the credentials for it.
#[derive(Debug, Clone)]
pub struct ServerLogin {
    pub to: SockAddr,
    pub transport: Transport,
    /// The server's name for messages.
    pub name: String,
    pub who: Credentials,
    /// TLS settings; `None` without TLS.
    pub tls: Option<Tls>,
}

impl ServerLogin {
    /// Its address; `None` for a Unix socket.
    pub fn ip(&self) -> Option<SocketAddr> {
        self.to.as_socket()
    }
}

#[derive(Debug)]
pub struct Session<'a> {
    link: Link,
    rooms: Rooms,
    pub door: ServerLogin,
    pub ours: String,
    /// Server version, such as `15.14 (Debian …)`.
    pub version: String,
    /// TLS parameters; `None` without TLS.
    pub agreed: Option<Agreed>,
    /// Warnings from opening the session.
    pub warnings: Vec<Warning>,
    frames: Frames,
    room: Vec<u8>,
    /// Range of received bytes that are not parsed yet.
    unread: std::ops::Range<usize>,
    /// Deadline of the current answer.
    deadline: Deadline<'a>,
    /// The query being answered, for messages.
    asked: String,
    /// Bytes of the answer so far.
    heard: usize,
}

/// A statement's error, or the end of the connection.
#[derive(Debug)]
pub enum Wrong {
    Server(ServerError),
    Gone(Error),
}

impl Wrong {
    /// Converts it to an error of the command.
    pub fn error(self, doing: &str) -> Error {
        match self {
            Self::Server(e) => why::statement_failed(&format!("{doing}: "), &e),
            Self::Gone(e) => e,
        }
    }
}

pub type Rows = Vec<Vec<Option<String>>>;

impl<'a> Session<'a> {
    /// Sets a time limit for the next answer: creating tables of a large scale takes long.
    pub fn allow(&mut self, limit: Duration, stop: &'a AtomicBool) {
        self.deadline = Deadline::after(limit, stop);
    }

    /// The server's name, version and address.
    pub fn server(&self) -> End {
        End {
            program: format!("PostgreSQL {}", self.version),
            address: self.door.name.clone(),
            ..End::default()
        }
    }

    /// Runs a statement without parameters and returns its rows.
    ///
    /// # Errors
    /// The server's error, or that of the connection.
    pub fn ask(&mut self, sql: &str) -> Result<Rows, Wrong> {
        let mut out = BytesMut::new();
        let zero = |_| Wrong::Gone(Error::Usage("a statement holds a zero byte".into()));
        frontend::query(sql, &mut out).map_err(zero)?;
        self.awaits(sql);
        self.send(&out).map_err(Wrong::Gone)?;
        self.answer()
    }

    /// Copies rows into a table: `more` fills a buffer until it adds nothing. If it returns false,
    /// nothing is copied. Each part sent and each answer may take `each`.
    ///
    /// # Errors
    /// The server's error, or that of the connection.
    pub fn copy(
        &mut self,
        sql: &str,
        each: Duration,
        stop: &'a AtomicBool,
        mut more: impl FnMut(&mut Vec<u8>) -> bool,
    ) -> Result<(), Wrong> {
        let mut out = BytesMut::new();
        let too_much = |e: std::io::Error| Wrong::Gone(Error::io("COPY", &e));
        frontend::query(sql, &mut out).map_err(too_much)?;
        self.awaits(sql);
        self.allow(each, stop);
        self.send(&out).map_err(Wrong::Gone)?;
        loop {
            match self.message().map_err(Wrong::Gone)? {
                (b'G', _) => break,
                (b'E', body) => {
                    let error = ServerError::read(&body);
                    self.answer()?;
                    return Err(Wrong::Server(error));
                }
                _ => {}
            }
        }
        let mut rows = vec![];
        loop {
            out.clear();
            rows.clear();
            let goes_on = more(&mut rows);
            if !goes_on {
                frontend::copy_fail("ended early", &mut out).map_err(too_much)?;
            } else if rows.is_empty() {
                frontend::copy_done(&mut out);
            } else {
                frontend::CopyData::new(&rows[..]).map_err(too_much)?.write(&mut out);
            }
            // An interruption must still reach the server.
            self.deadline = Deadline::after(each, if goes_on { stop } else { &NEVER });
            self.send(&out).map_err(Wrong::Gone)?;
            if !goes_on || rows.is_empty() {
                return self.answer().map(|_| ());
            }
        }
    }

    /// Reads the rest of a statement's answer.
    fn answer(&mut self) -> Result<Rows, Wrong> {
        let (mut rows, mut error) = (vec![], None);
        loop {
            let (kind, body) = self.message().map_err(Wrong::Gone)?;
            match kind {
                b'D' => rows.extend(wire::values(&body)),
                b'E' if error.is_none() => error = Some(ServerError::read(&body)),
                b'Z' => break,
                _ => {}
            }
        }
        match error {
            Some(error) => Err(Wrong::Server(error)),
            None => Ok(rows),
        }
    }

    /// Begins waiting for the answer to a query.
    fn awaits(&mut self, asked: &str) {
        self.asked = format!("{:?}", asked.chars().take(60).collect::<String>());
        self.heard = 0;
    }

    fn send(&mut self, bytes: &[u8]) -> Result<()> {
        let sent = self.link.send_within(bytes, &self.deadline);
        sent.map_err(|fault| self.fault(fault))
    }

    /// The error of the connection.
    fn fault(&self, fault: Fault) -> Error {
        let (name, asked, limit) = (&self.door.name, &self.asked, self.deadline.limit());
        match fault {
            Fault::Io(e) if Deadline::is_stopped(&e) => ended_early(name),
            Fault::Io(e) if Deadline::is_late(&e) => Error::Environment(match self.heard {
                0 => format!(
                    "{name}: the server is silent: no answer to {asked} in {limit}; is it \
                     PostgreSQL, and does it hang?"
                ),
                _ => format!("{name}: the answer to {asked} was not over in {limit}"),
            }),
            Fault::Io(e) => Error::io(name, &e),
            Fault::Tls(why) => security::reported(name, &why),
        }
    }

    /// The next server message.
    fn message(&mut self) -> Result<(u8, Vec<u8>)> {
        loop {
            let all = self.room.get(self.unread.clone()).unwrap_or_default();
            let mut rest = all;
            let next = self.frames.next(&mut rest, |_| true);
            let message = match next {
                Next::Whole(kind, body) => Some((kind, body.to_vec())),
                Next::Kept(kind) | Next::Passed(kind) => Some((kind, self.frames.kept().to_vec())),
                Next::More => None,
                Next::Bad(why) => {
                    return Err(Error::Environment(format!("{}: {why}", self.door.name)));
                }
            };
            self.unread.start = self.unread.end - rest.len();
            if let Some(message) = message {
                return Ok(message);
            }
            // Checked even if data keeps arriving.
            self.deadline.left().map_err(|e| self.fault(Fault::Io(e)))?;
            let (received, bytes) = match self.link.receive(&mut self.rooms) {
                Ok(got) => got,
                Err(e) if e.is_would_block() => {
                    let ready = self.deadline.ready(self.link.fd(), libc::POLLIN);
                    ready.map_err(|e| self.fault(Fault::Io(e)))?;
                    continue;
                }
                Err(e) => return Err(self.fault(e)),
            };
            self.heard += bytes.len();
            if self.heard > MOST_ANSWER {
                return Err(Error::Environment(format!(
                    "{}: more than {} MiB in answer to {}; is it PostgreSQL?",
                    self.door.name,
                    MOST_ANSWER >> 20,
                    self.asked
                )));
            }
            if let Received::End { .. } = received {
                return Err(Error::Environment(format!(
                    "{}: the server closed the connection",
                    self.door.name
                )));
            }
            self.room.clear();
            self.room.extend_from_slice(bytes);
            self.unread = 0..bytes.len();
        }
    }
}

/// For waits that the user cannot interrupt.
static NEVER: AtomicBool = AtomicBool::new(false);

impl Drop for Session<'_> {
    fn drop(&mut self) {
        let mut out = BytesMut::new();
        frontend::terminate(&mut out);
        let _ = self.link.send(&out);
    }
}
