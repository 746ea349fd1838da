//! Connections before their first test: one thread and one epoll for all. Input may be garbage,
//! slow, or missing; each connection costs a descriptor and a few hundred bytes until its timeout.

use std::{
    collections::HashMap,
    io::{self, Read},
    os::fd::{AsRawFd, RawFd},
    time::{Duration, Instant},
};

use model::measure::Wait;
use socket2::Socket;

use super::{Options, endpoint::DataAddress, failed_auths::FailedAuths};
use crate::{
    Error, ErrorContext, Result,
    control::{
        frame::{self, Inbox, SMALL},
        message::{PROTOCOL, ToClient, ToServer},
        secret::{EndRole, nonce},
    },
    host::{self, identity::of_this_host},
    net::{descriptor_limit, epoll::Epoll, now_ns},
};

/// Timeout for a connection's greeting.
const PATIENCE: Duration = Duration::from_secs(10);

/// One in this many descriptors is reserved for tests; pending connections may use the rest.
const SPARE_SHARE: u64 = 4;

/// A connection without a request.
struct Waiting {
    socket: Socket,
    local: DataAddress,
    nonce: String,
    inbox: Inbox,
    since: Instant,
    /// `None` before its greeting; then whether it runs on this host.
    admitted: Option<bool>,
}

/// A client that may request tests.
pub struct Admitted {
    pub socket: Socket,
    pub local: DataAddress,
    pub same_host: bool,
    pub inbox: Inbox,
}

pub struct PendingConnections<'a> {
    /// Sockets are registered under their descriptor numbers.
    epoll: Epoll,
    listeners: Vec<(&'a Socket, Option<std::path::PathBuf>)>,
    waiting: HashMap<RawFd, Waiting>,
    /// The most connections that may be pending at once.
    most: usize,
    options: &'a Options,
    last_sweep: Instant,
    failed_auths: FailedAuths,
}

impl<'a> PendingConnections<'a> {
    /// Opens the epoll on the listening sockets.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn open(
        listeners: Vec<(&'a Socket, Option<std::path::PathBuf>)>,
        options: &'a Options,
    ) -> Result<Self> {
        let epoll = Epoll::new().doing(|| "epoll")?;
        for (socket, _) in &listeners {
            socket.set_nonblocking(true).doing(|| "listening socket")?;
            let fd = socket.as_raw_fd();
            epoll.add(fd, fd as usize).doing(|| "epoll")?;
        }
        let limit = descriptor_limit();
        let room = usize::try_from(limit - limit / SPARE_SHARE).unwrap_or(usize::MAX);
        let (waiting, most) = (HashMap::new(), options.limits.waiting.min(room));
        let (last_sweep, failed_auths) = (Instant::now(), FailedAuths::default());
        Ok(Self { epoll, listeners, waiting, most, options, last_sweep, failed_auths })
    }

    /// Waits up to `most`; returns clients with a request, and a line for each connection refused.
    pub fn turn(&mut self, most: Duration) -> (Vec<Admitted>, Vec<String>) {
        let most = u64::try_from(most.as_nanos()).unwrap_or(u64::MAX);
        self.epoll.wait(Wait::Block, now_ns().saturating_add(most));
        let (mut admitted, mut away) = (vec![], vec![]);
        for ready in (0..).map_while(|n| self.epoll.nth(n)).collect::<Vec<_>>() {
            let fd = ready.key as RawFd;
            if let Some(at) = self.listeners.iter().position(|(s, _)| s.as_raw_fd() == fd) {
                self.accept(at);
                continue;
            }
            match self.hear(fd) {
                Ok(None) => {}
                Ok(Some(client)) => admitted.push(client),
                Err(why) => {
                    // Closing it also removes it from the epoll.
                    self.waiting.remove(&fd);
                    away.push(why.to_string());
                }
            }
        }
        self.sweep();
        (admitted, away)
    }

    fn accept(&mut self, at: usize) {
        // A bounded number in each turn, so that a flood does not starve other connections.
        for _ in 0..256 {
            let Some((listener, path)) = self.listeners.get(at) else { return };
            match listener.accept() {
                Ok((socket, from)) => {
                    let path = path.clone();
                    self.greet(socket, &from, path);
                }
                Err(e) if matches!(e.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) => {
                    // Out of descriptors: the oldest pending connection is closed.
                    if !self.drop_oldest() {
                        std::thread::sleep(Duration::from_millis(20));
                        return;
                    }
                }
                Err(_) => return,
            }
        }
    }

    fn greet(
        &mut self,
        socket: Socket,
        from: &socket2::SockAddr,
        path: Option<std::path::PathBuf>,
    ) {
        let local = match path {
            Some(path) => DataAddress::Unix(path),
            None => {
                let ours = socket.local_addr().ok().and_then(|a| a.as_socket());
                match (ours, from.as_socket()) {
                    (Some(ours), Some(theirs)) => DataAddress::Ip(ours.ip(), theirs.ip()),
                    _ => return,
                }
            }
        };
        let Ok(nonce) = nonce() else { return };
        let hello = ToClient::Hello {
            protocol: PROTOCOL,
            program: crate::PROGRAM.into(),
            nonce: nonce.clone(),
            secret: self.options.secret.is_some(),
        };
        let Ok(frame) = frame::encode(&hello) else { return };
        if socket.set_nonblocking(true).is_err() {
            return;
        }
        // A new connection has room for this; if not, it is not our client.
        if socket.send(&frame).ok() != Some(frame.len()) {
            return;
        }
        while self.waiting.len() >= self.most && self.drop_oldest() {}
        let fd = socket.as_raw_fd();
        if self.epoll.add(fd, fd as usize).is_ok() {
            let (inbox, since) = (Inbox::default(), Instant::now());
            let admitted = None;
            let new = Waiting { socket, local, nonce, inbox, since, admitted };
            self.waiting.insert(fd, new);
        }
    }

    fn drop_oldest(&mut self) -> bool {
        let oldest = self.waiting.iter().min_by_key(|(_, w)| w.since).map(|(fd, _)| *fd);
        oldest.and_then(|fd| self.waiting.remove(&fd)).is_some()
    }

    /// Reads and handles a connection's input.
    fn hear(&mut self, fd: RawFd) -> Result<Option<Admitted>> {
        let Some(waiting) = self.waiting.get_mut(&fd) else { return Ok(None) };
        if waiting.admitted.is_some() {
            // It requests a test: from now on it has its own thread.
            return Ok(self.hand_over(fd));
        }
        let mut chunk = [0u8; 1024];
        let n = match (&waiting.socket).read(&mut chunk) {
            Ok(0) => return Err(Error::Environment("went away without a word".into())),
            Ok(n) => n,
            Err(e)
                if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) =>
            {
                return Ok(None);
            }
            Err(e) => return Err(Error::io("broke off", &e)),
        };
        waiting.inbox.push(chunk.get(..n).unwrap_or_default());
        let Some(hello) = waiting.inbox.next::<ToServer>(SMALL)? else { return Ok(None) };
        self.admit(fd, &hello)?;
        // Its request may have arrived with the greeting.
        let more = self.waiting.get(&fd).is_some_and(|w| !w.inbox.is_empty());
        Ok(if more { self.hand_over(fd) } else { None })
    }

    /// Admits a client. It stays pending until it requests a test: a greeting alone takes no thread
    /// and no test slot.
    fn admit(&mut self, fd: RawFd, hello: &ToServer) -> Result<()> {
        let gone = || Error::Environment("went away".into());
        let waiting = self.waiting.get(&fd).ok_or_else(gone)?;
        let deny = |why: &str| {
            let frame = frame::encode(&ToClient::Denied { why: why.into() });
            let _ = frame.map(|f| waiting.socket.send(&f));
            Error::Denied(why.into())
        };
        let ToServer::Hello { protocol, nonce, proof, boot_id, program } = hello else {
            return Err(deny("a greeting comes first"));
        };
        if *protocol != PROTOCOL {
            let ours = crate::PROGRAM;
            return Err(deny(&format!(
                "{program} speaks protocol {protocol}, {ours} speaks {PROTOCOL}; run the same \
                 version at both ends"
            )));
        }
        let mut ours = None;
        if let Some(secret) = &self.options.secret {
            if self.failed_auths.too_many(&waiting.local) {
                return Err(deny("too many wrong secrets came from this address: wait a minute"));
            }
            let theirs = proof.as_deref().unwrap_or_default();
            if !secret.accepts(EndRole::Client, &waiting.nonce, nonce, theirs) {
                if proof.is_some() {
                    self.failed_auths.count(&waiting.local);
                }
                return Err(deny(match proof {
                    None => "a secret is demanded: --secret-file FILE or NETWRIGHT_SECRET",
                    Some(_) => "the secret is not the one that this server knows",
                }));
            }
            ours = Some(secret.proof(EndRole::Server, &waiting.nonce, nonce));
        }
        let me = of_this_host();
        let same_host = host::same_host(boot_id, &me.boot_id);
        let mut end = me.end;
        end.address = match &waiting.local {
            DataAddress::Ip(ours, _) => ours.to_string(),
            DataAddress::Unix(path) => path.display().to_string(),
        };
        let boot_id = me.boot_id;
        let welcome = frame::encode(&ToClient::Welcome { proof: ours, end, boot_id })?;
        waiting.socket.send(&welcome).map_err(|e| Error::io("broke off", &e))?;
        if let Some(waiting) = self.waiting.get_mut(&fd) {
            (waiting.admitted, waiting.since) = (Some(same_host), Instant::now());
        }
        Ok(())
    }

    fn hand_over(&mut self, fd: RawFd) -> Option<Admitted> {
        let w = self.waiting.remove(&fd)?;
        // The session keeps the socket.
        let _ = self.epoll.remove(fd);
        let same_host = w.admitted.unwrap_or(false);
        let Waiting { socket, local, inbox, .. } = w;
        Some(Admitted { socket, local, same_host, inbox })
    }

    /// Closes connections past their timeout, once a second.
    fn sweep(&mut self) {
        if self.last_sweep.elapsed() >= Duration::from_secs(1) {
            self.last_sweep = Instant::now();
            let idle = self.options.limits.idle;
            self.waiting.retain(|_, w| {
                let most = if w.admitted.is_some() { idle } else { PATIENCE };
                let stays = w.since.elapsed() < most;
                if !stays && w.admitted.is_some() {
                    let why = "nothing was asked for too long".to_owned();
                    let _ = frame::encode(&ToClient::Failed { why }).map(|f| w.socket.send(&f));
                }
                stays
            });
        }
    }
}
