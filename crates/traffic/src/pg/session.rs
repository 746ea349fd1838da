//! One connection that waits for its answers: to find the server that answers, and for what is
//! asked around the measurement.

use std::{
    io::{Read as _, Write as _},
    net::SocketAddr,
    time::Duration,
};

use bytes::BytesMut;
use model::measure::{Common, Transport};
use postgres_protocol::message::frontend;
use socket2::{SockAddr, Socket};

use super::{
    address::{Address, Host},
    login::{Credentials, Login, Refused, Step},
    why,
    wire::{self, Frames, Next, ServerError},
};
use crate::{Doing, Error, Result, net::target::resolve, served::dial::dial};

/// How long connecting may take where nothing was asked for.
const PATIENCE_S: u64 = 5;
/// How long an answer may take: making the tables of a large scale takes long.
const ANSWER: Duration = Duration::from_secs(3600);

/// Where a server is, and who we are there.
#[derive(Debug, Clone)]
pub struct Door {
    pub to: SockAddr,
    pub transport: Transport,
    /// As it is named to people.
    pub name: String,
    pub who: Credentials,
}

impl Door {
    /// Its address, where it has one.
    pub fn ip(&self) -> Option<SocketAddr> {
        self.to.as_socket()
    }
}

/// A session.
#[derive(Debug)]
pub struct Session {
    socket: Socket,
    pub door: Door,
    /// This end's address.
    pub ours: String,
    /// `15.14 (Debian …)`.
    pub version: String,
    frames: Frames,
    room: Vec<u8>,
    /// Bytes of the room that are not read yet.
    unread: std::ops::Range<usize>,
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

/// Rows of text.
pub type Rows = Vec<Vec<Option<String>>>;

impl Session {
    /// The first server that answers.
    ///
    /// # Errors
    /// Why the last one does not, or the first that lets nobody in.
    pub fn open(address: &Address, common: &Common) -> Result<Self> {
        let mut last = Error::Environment("no server is named".into());
        for (host, password) in &address.hosts {
            let who = credentials(address, password.clone())?;
            for door in doors(host, &who, common)? {
                let patience = address.timeout_s.unwrap_or(PATIENCE_S).clamp(1, 3600);
                let patience = Duration::from_secs(patience);
                match dial(&door.to, door.transport, &door.name, common, patience) {
                    Ok(socket) => return Self::begin(socket, door, patience),
                    Err(e) => last = e,
                }
            }
        }
        Err(last)
    }

    fn begin(socket: Socket, door: Door, patience: Duration) -> Result<Self> {
        let _ = socket.set_read_timeout(Some(patience));
        let _ = socket.set_write_timeout(Some(ANSWER));
        let ours = socket.local_addr().ok().and_then(|a| a.as_socket());
        let mut session = Self {
            socket,
            ours: ours.map_or_else(String::new, |a| a.ip().to_string()),
            door,
            version: String::new(),
            frames: Frames::default(),
            room: vec![0; 16 << 10],
            unread: 0..0,
        };
        let (who, mut login) = (session.door.who.clone(), Login::default());
        session.send(&who.startup)?;
        loop {
            let mut out = BytesMut::new();
            let (kind, body) = session.message()?;
            match login.take(kind, &body, &who, &mut out) {
                Ok(Step::Ready) => break,
                Ok(Step::More) => session.send(&out)?,
                Err(refused) => return Err(session.refused(&refused, &who)),
            }
        }
        session.version = login.version.unwrap_or_default();
        let _ = session.socket.set_read_timeout(Some(ANSWER));
        Ok(session)
    }

    fn refused(&self, refused: &Refused, who: &Credentials) -> Error {
        why::refused(refused, &self.door.name, who)
    }

    /// What a statement without parameters gives.
    ///
    /// # Errors
    /// The server's, or what became of the connection.
    pub fn ask(&mut self, sql: &str) -> Result<Rows, Wrong> {
        let mut out = BytesMut::new();
        let zero = |_| Wrong::Gone(Error::Usage("a statement holds a zero byte".into()));
        frontend::query(sql, &mut out).map_err(zero)?;
        self.send(&out).map_err(Wrong::Gone)?;
        self.answer()
    }

    /// Copies into a table what `more` puts into the buffer, until it puts nothing; where it says
    /// no, nothing is copied.
    ///
    /// # Errors
    /// The server's, or what became of the connection.
    pub fn copy(
        &mut self,
        sql: &str,
        mut more: impl FnMut(&mut Vec<u8>) -> bool,
    ) -> Result<(), Wrong> {
        let mut out = BytesMut::new();
        let too_much = |e: std::io::Error| Wrong::Gone(Error::io("COPY", &e));
        frontend::query(sql, &mut out).map_err(too_much)?;
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

    fn send(&mut self, bytes: &[u8]) -> Result<()> {
        (&self.socket).write_all(bytes).doing(|| self.door.name.clone())
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
            let n = loop {
                match (&self.socket).read(&mut self.room) {
                    Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                    Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {
                        return Err(Error::Environment(format!(
                            "{}: no answer in time",
                            self.door.name
                        )));
                    }
                    other => break other.doing(|| self.door.name.clone())?,
                }
            };
            if n == 0 {
                return Err(Error::Environment(format!(
                    "{}: the server closed the connection",
                    self.door.name
                )));
            }
            self.unread = 0..n;
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let mut out = BytesMut::new();
        frontend::terminate(&mut out);
        let _ = (&self.socket).write_all(&out);
    }
}

fn credentials(address: &Address, password: Option<String>) -> Result<Credentials> {
    let mut startup = BytesMut::new();
    let own = [("user", &address.user), ("database", &address.database)];
    let more = address.parameters.iter().map(|(k, v)| (k.as_str(), v));
    let all = own.into_iter().chain(more).map(|(k, v)| (k, v.as_str()));
    frontend::startup_message(all, &mut startup)
        .map_err(|_| Error::Usage("the connection string holds a zero byte".into()))?;
    Ok(Credentials { user: address.user.clone(), password, startup: startup.to_vec() })
}

/// A host's addresses.
fn doors(host: &Host, who: &Credentials, common: &Common) -> Result<Vec<Door>> {
    match host {
        Host::Unix(path) => {
            let to = SockAddr::unix(path).map_err(|_| {
                Error::Usage(format!("{}: too long a path for a socket", path.display()))
            })?;
            let name = path.display().to_string();
            Ok(vec![Door { to, transport: Transport::Unix, name, who: who.clone() }])
        }
        Host::Tcp(host, port) => {
            let all = resolve(host, *port, common.family)?.into_iter();
            Ok(all
                .map(|to| Door {
                    to: to.into(),
                    transport: Transport::Tcp,
                    name: to.to_string(),
                    who: who.clone(),
                })
                .collect())
        }
    }
}
