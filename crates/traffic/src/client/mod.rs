//! The client of the control connection; also opens the data connections.

pub(crate) mod flows;
pub(crate) mod observer;

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use model::{
    Warning,
    measure::{Common, End},
};
use socket2::{Domain, SockAddr, Socket, Type};

use crate::{
    Error, ErrorContext, Result,
    control::{
        ToClient, ToServer,
        frame::{self, LARGE, SMALL},
        message::{Counters, PROTOCOL, PeerReport, Ready, Test},
        secret::{EndRole, Secret, nonce},
    },
    host::{self, identity::of_this_host},
    net::{
        options,
        target::{PORT, Target, local_address, resolve},
        unix::connect_within,
    },
};

/// Timeout for a connection and its greeting.
const PATIENCE: Duration = Duration::from_secs(5);
/// Timeout for an answer during a test: the server collects data connections meanwhile.
const LONG_PATIENCE: Duration = Duration::from_secs(25);
/// Timeout for a mark during a running test: a server that takes longer is stalled.
const LOOK_PATIENCE: Duration = Duration::from_secs(10);

/// A server that accepted our greeting.
#[derive(Debug)]
pub struct Peer {
    socket: Socket,
    /// Where it is; `None` for a Unix socket.
    pub address: Option<SocketAddr>,
    pub end: End,
    /// This end, with its address towards the server.
    pub local: End,
    /// Whether both ends run on one host.
    pub same_host: bool,
    /// The server's name as the user gave it.
    pub name: String,
}

impl Peer {
    /// Connects to the server and exchanges greetings.
    ///
    /// # Errors
    /// The name does not resolve, nothing or another program listens, or the secret is wrong.
    pub fn connect(common: &Common, secret: Option<&Secret>) -> Result<Self> {
        options::check(common)?;
        let from = From { family: common.family, bind: common.bind.clone() };
        Self::dial(&common.target, &from, secret)
    }

    /// The same, without a measurement's options.
    ///
    /// # Errors
    /// As [`Peer::connect`].
    fn dial(target: &str, from: &From, secret: Option<&Secret>) -> Result<Self> {
        let target: Target = target.parse()?;
        let (socket, address) = reach(&target, from)?;
        let timeouts = || {
            socket.set_read_timeout(Some(PATIENCE))?;
            socket.set_write_timeout(Some(PATIENCE))
        };
        timeouts().doing(|| "control connection")?;
        if address.is_some() {
            let _ = socket.set_tcp_nodelay(true);
        }
        let name = match address {
            Some(a) => a.to_string(),
            None => target.to_string(),
        };
        greet(socket, address, name, secret)
    }

    /// The connection of the session's control messages.
    pub(crate) fn control(&self) -> &Socket {
        &self.socket
    }

    fn send(&self, message: &ToServer) -> Result<()> {
        frame::send(&mut &self.socket, message).map_err(|e| named(&self.name, e))
    }

    fn receive(&self) -> Result<ToClient> {
        let said = frame::receive(&mut &self.socket, LARGE).map_err(|e| named(&self.name, e))?;
        match said {
            ToClient::Refused { why, kind } => {
                Err(kind.error(format!("{} refuses: {why}", self.name)))
            }
            ToClient::Failed { why } => {
                Err(Error::Environment(format!("{} gave up: {why}", self.name)))
            }
            other => Ok(other),
        }
    }

    /// Whether the server closed the control connection; does not wait.
    pub fn is_gone(&self) -> bool {
        let mut byte = [std::mem::MaybeUninit::<u8>::uninit()];
        let flags = libc::MSG_PEEK | libc::MSG_DONTWAIT;
        match self.socket.recv_with_flags(&mut byte, flags) {
            Ok(n) => n == 0,
            Err(e) => !matches!(
                e.kind(),
                std::io::ErrorKind::WouldBlock | std::io::ErrorKind::Interrupted
            ),
        }
    }

    fn odd<T>(&self) -> Result<T> {
        Err(Error::Environment(format!("{} answers out of turn", self.name)))
    }

    /// Requests a test.
    ///
    /// # Errors
    /// The server refuses it, or has gone.
    pub fn ask(&self, test: &Test) -> Result<Ready> {
        let _ = self.socket.set_read_timeout(Some(LONG_PATIENCE));
        self.send(&ToServer::Test(Box::new(test.clone())))?;
        match self.receive()? {
            ToClient::Ready(ready) => Ok(ready),
            _ => self.odd(),
        }
    }

    /// Waits until all data connections have arrived; returns warnings on settings that failed.
    ///
    /// # Errors
    /// They did not arrive in time, or the server has gone.
    pub fn await_connected(&self) -> Result<Vec<Warning>> {
        match self.receive()? {
            ToClient::Connected { warnings } => Ok(warnings),
            _ => self.odd(),
        }
    }

    /// Takes a mark at the server and waits for its counters.
    ///
    /// # Errors
    /// The server has gone.
    pub fn mark(&self) -> Result<Counters> {
        let _ = self.socket.set_read_timeout(Some(LOOK_PATIENCE));
        self.send(&ToServer::Mark)?;
        match self.receive()? {
            ToClient::Marked(counters) => Ok(*counters),
            _ => self.odd(),
        }
    }

    /// Stops the server's sending and reads its counters; later calls only read them. These reads
    /// do not lengthen the window.
    ///
    /// # Errors
    /// The server has gone.
    pub fn quiet(&self) -> Result<Counters> {
        self.send(&ToServer::Quiet)?;
        match self.receive()? {
            ToClient::Marked(counters) => Ok(*counters),
            _ => self.odd(),
        }
    }

    /// Ends the test and fetches the report.
    ///
    /// # Errors
    /// The server has gone.
    pub fn finish(&self) -> Result<PeerReport> {
        let _ = self.socket.set_read_timeout(Some(LONG_PATIENCE));
        self.send(&ToServer::Finish)?;
        match self.receive()? {
            ToClient::Report(report) => Ok(*report),
            _ => self.odd(),
        }
    }
}

fn named(name: &str, e: Error) -> Error {
    match e {
        Error::Usage(why) => Error::Usage(format!("{name}: {why}")),
        Error::Denied(why) => Error::Denied(format!("{name}: {why}")),
        Error::Environment(why) => Error::Environment(format!("{name}: {why}")),
        Error::Silent(why) => Error::Silent(format!("{name}: {why}")),
    }
}

/// Source address of a connection.
#[derive(Debug, Default)]
struct From {
    /// Address family to use, 4 or 6; `None` for either.
    family: Option<u8>,
    /// Local address to bind to.
    bind: Option<String>,
}

/// A connected control socket, to the first address that answers.
fn reach(target: &Target, common: &From) -> Result<(Socket, Option<SocketAddr>)> {
    match target {
        Target::Unix(path) => {
            let what = || format!("cannot connect to {}", path.display());
            let socket = Socket::new(Domain::UNIX, Type::STREAM, None).doing(what)?;
            let to = SockAddr::unix(path).doing(what)?;
            connect_within(&socket, &to, PATIENCE).map_err(|e| match e.kind() {
                std::io::ErrorKind::TimedOut => Error::Environment(format!(
                    "{}: its queue is full, and no connection was accepted in {} s; does the \
                     server hang?",
                    path.display(),
                    PATIENCE.as_secs()
                )),
                std::io::ErrorKind::NotFound | std::io::ErrorKind::ConnectionRefused => {
                    let run = format!("netwright serve --unix {}", path.display());
                    Error::Environment(format!(
                        "{}: no server listens there; start `{run}`",
                        path.display()
                    ))
                }
                _ => Error::io(what(), &e),
            })?;
            Ok((socket, None))
        }
        Target::Host(host, port) => {
            let mut last = None;
            for address in resolve(host, port.unwrap_or(PORT), common.family)? {
                match dial(address, common) {
                    Ok(socket) => return Ok((socket, Some(address))),
                    Err(e) => last = Some(e),
                }
            }
            Err(last.unwrap_or_else(|| Error::Environment(format!("{host} has no address"))))
        }
    }
}

fn dial(address: SocketAddr, common: &From) -> Result<Socket> {
    let domain = if address.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
    let what = || format!("cannot connect to {address}");
    let socket = Socket::new(domain, Type::STREAM, None).doing(what)?;
    if let Some(local) = &common.bind {
        let local = local_address(local)?;
        let from = SocketAddr::new(local, 0);
        socket.bind(&from.into()).doing(|| format!("cannot send from {local}"))?;
    }
    socket.connect_timeout(&address.into(), PATIENCE).map_err(|e| match e.kind() {
        std::io::ErrorKind::ConnectionRefused => Error::Environment(format!(
            "{address}: connection refused; start `netwright serve` there (or --port)"
        )),
        std::io::ErrorKind::TimedOut => Error::Environment(format!(
            "{address}: no answer in {} s; is a firewall between?",
            PATIENCE.as_secs()
        )),
        _ => Error::io(what(), &e),
    })?;
    Ok(socket)
}

fn greet(
    socket: Socket,
    address: Option<SocketAddr>,
    name: String,
    secret: Option<&Secret>,
) -> Result<Peer> {
    let until = Instant::now() + PATIENCE;
    let receive = || -> Result<ToClient> {
        let left = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(10));
        let _ = socket.set_read_timeout(Some(left));
        frame::receive(&mut &socket, SMALL).map_err(|e| named(&name, e))
    };
    let ToClient::Hello { protocol, program, nonce: theirs, secret: demanded } = receive()? else {
        return Err(Error::Environment(format!("{name}: answers out of turn")));
    };
    if protocol != PROTOCOL {
        let ours = crate::PROGRAM;
        return Err(Error::Environment(format!(
            "{name}: {program} speaks protocol {protocol}, {ours} speaks {PROTOCOL}; run the same \
             version at both ends"
        )));
    }
    if demanded && secret.is_none() {
        return Err(Error::Denied(format!(
            "{name} demands a secret; give it with --secret-file FILE or NETWRIGHT_SECRET"
        )));
    }
    // An impostor could skip the proof and would then be trusted.
    if !demanded && secret.is_some() {
        return Err(Error::Denied(format!(
            "{name} demands no secret, so it does not prove that it knows the one given; start \
             `netwright serve` there with it, or leave out --secret-file and NETWRIGHT_SECRET"
        )));
    }
    let me = of_this_host();
    let ours = nonce()?;
    let hello = ToServer::Hello {
        protocol: PROTOCOL,
        program: crate::PROGRAM.into(),
        nonce: ours.clone(),
        proof: secret.map(|s| s.proof(EndRole::Client, &theirs, &ours)),
        boot_id: me.boot_id.clone(),
    };
    frame::send(&mut &socket, &hello).map_err(|e| named(&name, e))?;
    match receive()? {
        ToClient::Welcome { proof, end, boot_id } => {
            let real = secret.is_none_or(|s| {
                s.accepts(EndRole::Server, &theirs, &ours, proof.as_deref().unwrap_or_default())
            });
            if !real {
                return Err(Error::Denied(format!("{name} does not know the secret itself")));
            }
            let same_host = host::same_host(&boot_id, &me.boot_id);
            let here = socket.local_addr().ok().and_then(|a| a.as_socket());
            // For a Unix socket both ends have the same path.
            let here = here.map_or_else(|| end.address.clone(), |a| a.ip().to_string());
            let local = End { address: here, ..me.end };
            Ok(Peer { socket, address, end, local, same_host, name })
        }
        ToClient::Denied { why } => Err(Error::Denied(format!("{name}: {why}"))),
        ToClient::Failed { why } => Err(Error::Environment(format!("{name}: {why}"))),
        _ => Err(Error::Environment(format!("{name}: answers out of turn"))),
    }
}
