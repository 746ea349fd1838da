//! One connection that waits for its answers: to find the server that answers, and for what is
//! asked around the measurement.

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

/// More than this is no answer to the login, nor to anything that is asked here.
const MOST_ANSWER: usize = 1 << 20;

/// Where a server is, and who we are there.
#[derive(Debug, Clone)]
pub struct ServerLogin {
    pub to: SockAddr,
    pub transport: Transport,
    /// As it is named to people.
    pub name: String,
    pub who: Credentials,
    /// How TLS is spoken there, where it is.
    pub tls: Option<Tls>,
}

impl ServerLogin {
    /// Its address, where it has one.
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
    /// `15.14 (Debian …)`.
    pub version: String,
    /// What TLS was agreed on, where it is spoken.
    pub agreed: Option<Agreed>,
    /// What to tell of how it came about.
    pub warnings: Vec<Warning>,
    frames: Frames,
    room: Vec<u8>,
    /// Bytes of the room that are not read yet.
    unread: std::ops::Range<usize>,
    /// When the answer that is awaited is to be there.
    deadline: Deadline<'a>,
    /// What it is the answer to.
    asked: String,
    /// Bytes of it so far.
    heard: usize,
}

/// A statement that gave an error, or a connection that ended.
#[derive(Debug)]
pub enum Wrong {
    Server(ServerError),
    Gone(Error),
}

impl Wrong {
    /// As an error of the whole.
    pub fn error(self, doing: &str) -> Error {
        match self {
            Self::Server(e) => why::statement_failed(&format!("{doing}: "), &e),
            Self::Gone(e) => e,
        }
    }
}

pub type Rows = Vec<Vec<Option<String>>>;

impl<'a> Session<'a> {
    /// Gives the next answer its own time limit: making the tables of a large scale takes long.
    pub fn allow(&mut self, limit: Duration, stop: &'a AtomicBool) {
        self.deadline = Deadline::after(limit, stop);
    }

    /// The server, as it says of itself and as it was reached.
    pub fn server(&self) -> End {
        End {
            program: format!("PostgreSQL {}", self.version),
            address: self.door.name.clone(),
            ..End::default()
        }
    }

    /// What a statement without parameters gives.
    ///
    /// # Errors
    /// The server's, or what became of the connection.
    pub fn ask(&mut self, sql: &str) -> Result<Rows, Wrong> {
        let mut out = BytesMut::new();
        let zero = |_| Wrong::Gone(Error::Usage("a statement holds a zero byte".into()));
        frontend::query(sql, &mut out).map_err(zero)?;
        self.awaits(sql);
        self.send(&out).map_err(Wrong::Gone)?;
        self.answer()
    }

    /// Copies into a table what `more` puts into the buffer, until it puts nothing; where it says
    /// no, nothing is copied. Each part that is sent, and each answer, may take `each`.
    ///
    /// # Errors
    /// The server's, or what became of the connection.
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
            // That it is to end early is for the server to hear.
            self.deadline = Deadline::after(each, if goes_on { stop } else { &NEVER });
            self.send(&out).map_err(Wrong::Gone)?;
            if !goes_on || rows.is_empty() {
                return self.answer().map(|_| ());
            }
        }
    }

    /// The rest of the answer to a statement.
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

    /// What comes from here on is the answer to this.
    fn awaits(&mut self, asked: &str) {
        self.asked = format!("{:?}", asked.chars().take(60).collect::<String>());
        self.heard = 0;
    }

    fn send(&mut self, bytes: &[u8]) -> Result<()> {
        let sent = self.link.send_within(bytes, &self.deadline);
        sent.map_err(|fault| self.fault(fault))
    }

    /// Why it goes no further.
    fn fault(&self, fault: Fault) -> Error {
        let (name, asked, limit) = (&self.door.name, &self.asked, self.deadline.limit());
        match fault {
            Fault::Io(e) if Deadline::is_stopped(&e) => ended_early(name),
            Fault::Io(e) if Deadline::is_late(&e) => Error::Environment(match self.heard {
                0 => format!(
                    "{name}: the server is silent: no answer to {asked} in {limit}; is it \
                     PostgreSQL, and does it stand still?"
                ),
                _ => format!("{name}: the answer to {asked} was not over in {limit}"),
            }),
            Fault::Io(e) => Error::io(name, &e),
            Fault::Tls(why) => security::reported(name, &why),
        }
    }

    /// The next message of the server.
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
            // Also where more comes all the time.
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

/// For what is not ended early.
static NEVER: AtomicBool = AtomicBool::new(false);

impl Drop for Session<'_> {
    fn drop(&mut self) {
        let mut out = BytesMut::new();
        frontend::terminate(&mut out);
        let _ = self.link.send(&out);
    }
}
