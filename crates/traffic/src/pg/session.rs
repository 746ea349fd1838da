//! One connection that waits for its answers: to find the server that answers, and for what is
//! asked around the measurement.

use std::{io, io::Read as _, net::SocketAddr, sync::atomic::AtomicBool, time::Duration};

use bytes::BytesMut;
use model::{
    Warning,
    measure::{Common, End, Transport},
};
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
    Error, Result,
    engine::{
        deadline::Deadline,
        dial::{dial, ended_early},
        link::{Link, Rooms},
    },
    net::{
        target::resolve,
        tls::{
            Tls,
            conn::{Agreed, Received},
            fault::Fault,
        },
    },
};

/// How long connecting and the login may take where nothing was asked for.
const PATIENCE_S: u64 = 5;
/// More servers than this do not add to the time for all of them.
const MOST_SERVERS: u32 = 12;
/// More than this is no answer to the login, nor to anything that is asked here.
const MOST_ANSWER: usize = 1 << 20;
/// Room for what is received at a time.
const ROOM: usize = 16 << 10;

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
    /// The first server that answers. What is asked in the session may take `timeout` in all;
    /// `stop` ends everything at once.
    ///
    /// # Errors
    /// Why the last one does not, or the first that lets nobody in.
    pub fn open(
        address: &Address,
        common: &Common,
        timeout: Duration,
        stop: &'a AtomicBool,
    ) -> Result<Self> {
        let mut last = Error::Environment("no server is named".into());
        let patience = address.timeout_s.unwrap_or(PATIENCE_S).clamp(1, 3600);
        let patience = Duration::from_secs(patience);
        let servers = u32::try_from(address.hosts.len()).unwrap_or(MOST_SERVERS);
        let whole = Deadline::after(patience * servers.min(MOST_SERVERS), stop);
        for server in &address.hosts {
            let who = credentials(address, server.password.clone())?;
            for door in doors(&server.host, &who, common)? {
                let deadline = whole.at_most(patience);
                match Self::at(door, &server.name, address, common, deadline) {
                    Ok(mut session) => {
                        session.deadline = Deadline::after(timeout, stop);
                        return Ok(session);
                    }
                    Err(Unopened::Nobody(e)) => last = e,
                    Err(Unopened::Perhaps(e) | Unopened::Never(e)) => return Err(e),
                }
            }
        }
        Err(last)
    }

    /// At one address, in the ways that `sslmode` allows; `name` is the server's.
    fn at(
        door: ServerLogin,
        name: &str,
        address: &Address,
        common: &Common,
        deadline: Deadline<'a>,
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
            let socket = dial(&door.to, door.transport, &door.name, common, &deadline)
                .map_err(Unopened::Nobody)?;
            let tls = tls.clone().filter(|_| *way != Try::Plain);
            let begun = Self::begin(socket, ServerLogin { tls, ..door.clone() }, *way, deadline);
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

    fn begin(
        socket: Socket,
        door: ServerLogin,
        way: Try,
        deadline: Deadline<'a>,
    ) -> Result<Self, Unopened> {
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
            deadline,
            asked: "the login".into(),
            heard: 0,
        };
        let mut login = session.protect(way)?;
        let who = session.door.who.clone();
        session.send(&who.startup).map_err(|e| session.unopened(e))?;
        loop {
            let mut out = BytesMut::new();
            let (kind, body) = session.message().map_err(|e| session.unopened(e))?;
            match login.take(kind, &body, &who, &mut out) {
                Ok(Step::Ready) => break,
                Ok(Step::More) => session.send(&out).map_err(|e| session.unopened(e))?,
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
        Ok(session)
    }

    /// One that is late may be followed by another that is not.
    fn unopened(&self, e: Error) -> Unopened {
        match self.deadline.left() {
            Err(late) if Deadline::is_late(&late) => Unopened::Nobody(e),
            _ => Unopened::Never(e),
        }
    }

    /// Gives the next answer its own time limit: making the tables of a large scale takes long.
    pub fn allow(&mut self, limit: Duration, stop: &'a AtomicBool) {
        self.deadline = Deadline::after(limit, stop);
    }

    /// Asks for TLS, where it is wanted, and shakes hands.
    fn protect(&mut self, way: Try) -> Result<Login, Unopened> {
        let Some(tls) = self.door.tls.clone() else { return Ok(Login::default()) };
        let name = self.door.name.clone();
        self.send(&wire::ASK_FOR_TLS).map_err(|e| self.unopened(e))?;
        match self.one_byte().map_err(|e| self.unopened(self.fault(Fault::Io(e))))? {
            Some(b'S') => {}
            Some(b'N') if way == Try::Either => {
                self.door.tls = None;
                return Ok(Login::default());
            }
            Some(b'N') => {
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
        match self.link.shake_within(&tls, &mut self.rooms, &self.deadline) {
            Ok(agreed) => {
                self.agreed = Some(agreed);
                Ok(Login::over_tls(self.link.tls().and_then(|tls| tls.end_point())))
            }
            Err(Fault::Tls(why)) => Err(Unopened::Perhaps(security::reported(&name, &why))),
            Err(Fault::Io(e)) if Deadline::is_stopped(&e) => {
                Err(Unopened::Never(ended_early(&name)))
            }
            Err(Fault::Io(e)) if Deadline::is_late(&e) => {
                Err(Unopened::Nobody(Error::Environment(format!(
                    "{name}: the TLS handshake was not over in {}",
                    self.deadline.limit()
                ))))
            }
            Err(Fault::Io(e)) => {
                let what = format!("{name}: within the TLS handshake");
                Err(Unopened::Perhaps(Error::io(what, &e)))
            }
        }
    }

    /// The next byte, without TLS; `None` where the server has closed.
    fn one_byte(&self) -> io::Result<Option<u8>> {
        let mut answer = [0];
        let Some(mut socket) = self.link.socket() else { return Ok(None) };
        loop {
            self.deadline.ready(self.link.fd(), libc::POLLIN)?;
            match socket.read(&mut answer) {
                Ok(0) => return Ok(None),
                Ok(_) => return Ok(Some(answer[0])),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
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

/// Why there is no session.
enum Unopened {
    /// No server answers at this address.
    Nobody(Error),
    /// It may be that there is one with TLS, or without.
    Perhaps(Error),
    Never(Error),
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

fn doors(host: &Host, who: &Credentials, common: &Common) -> Result<Vec<ServerLogin>> {
    match host {
        Host::Unix(path) => {
            let to = SockAddr::unix(path).map_err(|_| {
                Error::Usage(format!("{}: too long a path for a socket", path.display()))
            })?;
            let name = path.display().to_string();
            Ok(vec![ServerLogin {
                to,
                transport: Transport::Unix,
                name,
                who: who.clone(),
                tls: None,
            }])
        }
        Host::Tcp(host, port) => {
            let all = resolve(host, *port, common.family)?.into_iter();
            Ok(all
                .map(|to| ServerLogin {
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
