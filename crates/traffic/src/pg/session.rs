//! One connection that waits for its answers: to find the server that answers, and for what is
//! asked around the measurement.

use std::{io::Read as _, net::SocketAddr, time::Duration};

use bytes::BytesMut;
use model::measure::{Common, End, Transport};
use postgres_protocol::message::frontend;
use socket2::{SockAddr, Socket};

use super::{
    address::{Address, Host},
    login::{Credentials, Login, Refused, Step},
    security::{self, Try},
    why,
    wire::{self, Frames, Next, ServerError},
};
use crate::{
    Doing, Error, Result,
    net::{
        target::resolve,
        tls::{
            Tls,
            conn::{Agreed, Received},
            fault::Fault,
        },
    },
    served::{
        dial::dial,
        link::{Link, Rooms},
    },
};

/// How long connecting may take where nothing was asked for.
const PATIENCE_S: u64 = 5;
/// How long an answer may take: making the tables of a large scale takes long.
const ANSWER: Duration = Duration::from_secs(3600);
/// Room for what is received at a time.
const ROOM: usize = 16 << 10;

/// Where a server is, and who we are there.
#[derive(Debug, Clone)]
pub struct Door {
    pub to: SockAddr,
    pub transport: Transport,
    /// As it is named to people.
    pub name: String,
    pub who: Credentials,
    /// How TLS is spoken there, where it is.
    pub tls: Option<Tls>,
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
    link: Link,
    rooms: Rooms,
    pub door: Door,
    /// This end's address.
    pub ours: String,
    /// `15.14 (Debian …)`.
    pub version: String,
    /// What TLS was agreed on, where it is spoken.
    pub agreed: Option<Agreed>,
    /// What to tell of how it came about.
    pub warnings: Vec<String>,
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
        let patience = address.timeout_s.unwrap_or(PATIENCE_S).clamp(1, 3600);
        let patience = Duration::from_secs(patience);
        for server in &address.hosts {
            let who = credentials(address, server.password.clone())?;
            for door in doors(&server.host, &who, common)? {
                match Self::at(door, &server.name, address, common, patience) {
                    Ok(session) => return Ok(session),
                    Err(Unopened::Nobody(e)) => last = e,
                    Err(Unopened::Perhaps(e) | Unopened::Never(e)) => return Err(e),
                }
            }
        }
        Err(last)
    }

    /// At one address, in the ways that `sslmode` allows; `name` is the server's.
    fn at(
        door: Door,
        name: &str,
        address: &Address,
        common: &Common,
        patience: Duration,
    ) -> Result<Self, Unopened> {
        let tries = address.security.tries(door.transport == Transport::Unix);
        let (mut first, mut tls) = (None::<Error>, None);
        for way in tries {
            if *way != Try::Plain && tls.is_none() {
                let ip = door.ip().map(|to| to.ip());
                tls = match (address.security.tls(name, ip), way) {
                    (Ok(tls), _) => Some(tls),
                    // As libpq where the root certificate cannot be read.
                    (Err(e), Try::Either) => {
                        first = Some(e);
                        continue;
                    }
                    (Err(e), _) => return Err(Unopened::Never(e)),
                };
            }
            let socket = dial(&door.to, door.transport, &door.name, common, patience)
                .map_err(Unopened::Nobody)?;
            let _ = socket.set_read_timeout(Some(patience));
            let _ = socket.set_write_timeout(Some(ANSWER));
            let tls = tls.clone().filter(|_| *way != Try::Plain);
            let begun = Self::begin(socket, Door { tls, ..door.clone() }, *way, patience);
            match (begun, first.take()) {
                (Err(Unopened::Perhaps(e)), None) => first = Some(e),
                (Err(Unopened::Perhaps(e)), Some(before)) => {
                    return Err(Unopened::Never(why::both(&door.name, &before, &e)));
                }
                (Ok(session), Some(before)) => return Ok(session.despite(&before, *way)),
                (other, _) => return other,
            }
        }
        Err(Unopened::Never(first.unwrap_or(Error::Environment(door.name))))
    }

    /// One that came about in the second way, as libpq would have it, but not without a word.
    fn despite(mut self, first: &Error, way: Try) -> Self {
        if way == Try::Plain {
            self.warnings.push(why::in_clear(first));
        }
        self
    }

    fn begin(socket: Socket, door: Door, way: Try, patience: Duration) -> Result<Self, Unopened> {
        let ours = socket.local_addr().ok().and_then(|a| a.as_socket());
        let mut session = Self {
            rooms: Rooms::new(ROOM, door.tls.is_some()),
            link: Link::new(socket),
            ours: ours.map_or_else(String::new, |a| a.ip().to_string()),
            door,
            version: String::new(),
            agreed: None,
            warnings: vec![],
            frames: Frames::default(),
            room: vec![],
            unread: 0..0,
        };
        let mut login = session.protect(way, patience)?;
        let who = session.door.who.clone();
        session.send(&who.startup).map_err(Unopened::Never)?;
        loop {
            let mut out = BytesMut::new();
            let (kind, body) = session.message().map_err(Unopened::Never)?;
            match login.take(kind, &body, &who, &mut out) {
                Ok(Step::Ready) => break,
                Ok(Step::More) => session.send(&out).map_err(Unopened::Never)?,
                Err(refused) => {
                    let error = why::refused(&refused, &session.door.name, &who);
                    // With TLS or without there may be another rule.
                    return Err(match refused {
                        Refused::Server(e) if e.code == "28000" => Unopened::Perhaps(error),
                        _ => Unopened::Never(error),
                    });
                }
            }
        }
        session.version = login.version.unwrap_or_default();
        if let Some(socket) = session.link.socket() {
            let _ = socket.set_read_timeout(Some(ANSWER));
        }
        Ok(session)
    }

    /// Asks for TLS, where it is wanted, and shakes hands.
    fn protect(&mut self, way: Try, patience: Duration) -> Result<Login, Unopened> {
        let Some(tls) = self.door.tls.clone() else { return Ok(Login::default()) };
        let name = self.door.name.clone();
        self.send(&wire::ASK_FOR_TLS).map_err(Unopened::Never)?;
        let mut answer = [0];
        let n = self.link.socket().map_or(Ok(0), |mut s| s.read(&mut answer));
        let n = n.doing(|| name.clone()).map_err(Unopened::Never)?;
        match (n, answer) {
            (1, [b'S']) => {}
            (1, [b'N']) if way == Try::Either => {
                self.door.tls = None;
                return Ok(Login::default());
            }
            (1, [b'N']) => {
                return Err(Unopened::Never(Error::Environment(format!(
                    "{name}: the server speaks no TLS; sslmode=prefer or disable measure without"
                ))));
            }
            _ => {
                return Err(Unopened::Perhaps(Error::Environment(format!(
                    "{name}: no answer to the request for TLS; is it PostgreSQL?"
                ))));
            }
        }
        let done = self.link.shake(&tls).and_then(|()| self.link.shaken(&mut self.rooms));
        match done {
            Ok(Some(agreed)) => {
                self.agreed = Some(agreed);
                Ok(Login::over_tls(self.link.tls().and_then(|tls| tls.end_point())))
            }
            Ok(None) => Err(Unopened::Perhaps(Error::Environment(format!(
                "{name}: no TLS handshake in {} s",
                patience.as_secs()
            )))),
            Err(Fault::Tls(why)) => Err(Unopened::Perhaps(security::told(&name, &why))),
            Err(Fault::Io(e)) => {
                let what = format!("{name}: within the TLS handshake");
                Err(Unopened::Perhaps(Error::io(what, &e)))
            }
        }
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
        match self.link.send(bytes) {
            Ok(n) if n == bytes.len() => Ok(()),
            Ok(_) => Err(Error::Environment(format!("{}: nothing can be sent", self.door.name))),
            Err(fault) => Err(talking(&self.door.name, fault)),
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
            let (received, bytes) = match self.link.receive(&mut self.rooms) {
                Ok(got) => got,
                Err(e) if e.is_would_block() => {
                    return Err(Error::Environment(format!(
                        "{}: no answer in time",
                        self.door.name
                    )));
                }
                Err(e) => return Err(talking(&self.door.name, e)),
            };
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

impl Drop for Session {
    fn drop(&mut self) {
        let mut out = BytesMut::new();
        frontend::terminate(&mut out);
        let _ = self.link.send(&out);
    }
}

/// Why there is no session.
enum Unopened {
    /// No server answers at this address.
    Nobody(Error),
    /// It may be that there is one with TLS, or without.
    Perhaps(Error),
    Never(Error),
}

fn talking(name: &str, fault: Fault) -> Error {
    match fault {
        Fault::Io(e) => Error::io(name, &e),
        Fault::Tls(why) => security::told(name, &why),
    }
}

fn credentials(address: &Address, password: Option<String>) -> Result<Credentials> {
    let mut startup = BytesMut::new();
    let own = [("user", &address.user), ("database", &address.database)];
    let more = address.parameters.iter().map(|(k, v)| (k.as_str(), v));
    let all = own.into_iter().chain(more).map(|(k, v)| (k, v.as_str()));
    frontend::startup_message(all, &mut startup)
        .map_err(|_| Error::Usage("the connection string holds a zero byte".into()))?;
    Ok(Credentials {
        user: address.user.clone(),
        password,
        startup: startup.to_vec(),
        binding: address.security.binding,
    })
}

/// A host's addresses.
fn doors(host: &Host, who: &Credentials, common: &Common) -> Result<Vec<Door>> {
    match host {
        Host::Unix(path) => {
            let to = SockAddr::unix(path).map_err(|_| {
                Error::Usage(format!("{}: too long a path for a socket", path.display()))
            })?;
            let name = path.display().to_string();
            Ok(vec![Door { to, transport: Transport::Unix, name, who: who.clone(), tls: None }])
        }
        Host::Tcp(host, port) => {
            let all = resolve(host, *port, common.family)?.into_iter();
            Ok(all
                .map(|to| Door {
                    to: to.into(),
                    transport: Transport::Tcp,
                    name: to.to_string(),
                    who: who.clone(),
                    tls: None,
                })
                .collect())
        }
    }
}
