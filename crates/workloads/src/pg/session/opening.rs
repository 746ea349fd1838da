//! Opens a session: the first server that answers, with TLS or without, and the login.

use std::{
    io::{self, Read as _},
    sync::atomic::AtomicBool,
    time::Duration,
};

use bytes::BytesMut;
use model::measure::{Common, Transport};
use postgres_protocol::message::frontend;
use socket2::{SockAddr, Socket};
use traffic::{
    Error, Result,
    engine::{
        deadline::Deadline,
        dial::{dial, ended_early},
        link::{Link, Rooms},
    },
    net::{target::resolve, tls::fault::Fault},
};

use super::{ServerLogin, Session};
use crate::pg::{
    address::{Address, Host},
    login::{Credentials, Login, Refused, Step},
    security::{self, Try},
    why,
    wire::{self, Frames},
};

/// Default timeout for connecting and login, in seconds.
const PATIENCE_S: u64 = 5;
/// Most servers that each add to the total timeout.
const MOST_SERVERS: u32 = 12;
/// Size of the receive buffer.
const ROOM: usize = 16 << 10;

impl<'a> Session<'a> {
    /// Opens a session at the first server that answers. Queries in the session share `timeout`;
    /// `stop` ends everything at once.
    ///
    /// # Errors
    /// The last server's error, or that of the first one that refuses the login.
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

    /// Opens a session at one address, in the ways that `sslmode` allows; `name` is the server's.
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
                    // As libpq if the root certificate cannot be read.
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

    /// Adds a warning to a session that was opened in the second way, which libpq does silently.
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
                    // The server may have another rule with or without TLS.
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

    /// A timeout at one server does not prevent trying the next.
    fn unopened(&self, e: Error) -> Unopened {
        match self.deadline.left() {
            Err(late) if Deadline::is_late(&late) => Unopened::Nobody(e),
            _ => Unopened::Never(e),
        }
    }

    /// Requests TLS if wanted, and completes the handshake.
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
                    "{name}: the server does not support TLS; sslmode=prefer or disable measure \
                     without"
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

    /// The next byte without TLS; `None` if the server has closed.
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
}

/// Why no session was opened.
enum Unopened {
    /// No server answers at this address.
    Nobody(Error),
    /// Another way, with or without TLS, may succeed.
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
