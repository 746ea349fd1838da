//! Accepts a test's data connections: on the test's own ports or path, and only with the session's
//! token.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    net::{IpAddr, SocketAddr},
    ops::RangeInclusive,
    os::{fd::AsRawFd, unix::fs::FileTypeExt},
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use model::measure::Transport;
use rustix::net::{RecvFlags, recvfrom};
use socket2::{Domain, SockAddr, Socket, Type};

use super::watch::Watch;
use crate::{
    Error, ErrorContext, Result,
    control::{
        message::{DATA_MAGIC, PREAMBLE, Test, TestKind},
        secret::{nonce, unhex},
    },
    net::{data_flow::DataFlow, options, summed, sys},
};

/// Timeout for all data connections to arrive.
const PATIENCE: Duration = Duration::from_secs(15);

/// Address of a control connection, where its data connections must arrive too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DataAddress {
    /// Our address, and the client's.
    Ip(IpAddr, IpAddr),
    /// Path of the Unix socket.
    Unix(PathBuf),
}

impl std::fmt::Display for DataAddress {
    /// Prints the client as the log names it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ip(_, theirs) => theirs.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// A test's sockets before the test starts.
#[derive(Debug)]
pub struct Endpoint {
    /// Session token, in hex.
    pub token: String,
    sockets: Vec<Socket>,
    /// The ports: one for TCP; for UDP one for each thread.
    pub ports: Vec<u16>,
    pub path: Option<PathBuf>,
    transport: Transport,
    client: Option<IpAddr>,
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Rotates the data port that is tried first.
static TURN: AtomicUsize = AtomicUsize::new(0);

/// A socket bound to a port of `ports`, or to a port that the kernel chooses.
fn bound(address: IpAddr, kind: Type, ports: Option<&RangeInclusive<u16>>) -> Result<Socket> {
    let domain = if address.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
    let any = 0..=0;
    let mut last = io::Error::from(io::ErrorKind::AddrInUse);
    // Each time from another port: connections of the last test in TIME_WAIT, at either end, must
    // not block the next test's ports.
    let ports_in_turn = ports.unwrap_or(&any);
    let count = usize::from(*ports_in_turn.end()) + 1 - usize::from(*ports_in_turn.start());
    let first = TURN.fetch_add(1, Ordering::Relaxed) % count;
    for port in ports_in_turn.clone().cycle().skip(first).take(count) {
        let socket = Socket::new(domain, kind, None).doing(|| "cannot open a data socket")?;
        if kind == Type::STREAM {
            // A port whose last connections are in TIME_WAIT can be used.
            let _ = socket.set_reuse_address(true);
        }
        match socket.bind(&SocketAddr::new(address, port).into()) {
            Ok(()) => return Ok(socket),
            Err(e) => last = e,
        }
    }
    match (ports, last.kind()) {
        (Some(p), io::ErrorKind::AddrInUse) => Err(Error::Environment(format!(
            "all data ports ({}-{}) are in use; try again or give more with --data-ports",
            p.start(),
            p.end()
        ))),
        _ => Err(Error::io("no data port", &last)),
    }
}

/// Whether the range has as many ports as the test needs.
fn enough_ports(test: &Test, ports: Option<&RangeInclusive<u16>>) -> Result<()> {
    let needs = if test.transport == Transport::Udp { test.threads as usize } else { 1 };
    match ports {
        Some(p) if test.transport != Transport::Unix && p.len() < needs => {
            Err(Error::Usage(format!(
                "the test needs {needs} data ports, one for each thread, and --data-ports {}-{} \
                 has {}",
                p.start(),
                p.end(),
                p.len()
            )))
        }
        _ => Ok(()),
    }
}

impl Endpoint {
    /// Opens the sockets of a test.
    ///
    /// # Errors
    /// No port is free, or the kernel refuses a requested option.
    pub fn open(
        local: &DataAddress,
        test: &Test,
        ports: Option<&RangeInclusive<u16>>,
    ) -> Result<Self> {
        enough_ports(test, ports)?;
        test.socket.congestion.as_deref().map_or(Ok(()), options::is_loaded)?;
        let token = nonce()?;
        let (address, client, path) = match local {
            DataAddress::Ip(ours, theirs) => (*ours, Some(*theirs), None),
            DataAddress::Unix(path) => (IpAddr::from([127, 0, 0, 1]), None, Some(path)),
        };
        let (transport, sockets) = (test.transport, vec![]);
        let mut this = Self { token, sockets, ports: vec![], path: None, transport, client };
        match (test.transport, path) {
            _ if test.kind == TestKind::Look => {}
            (Transport::Unix, Some(path)) => this.listen_unix(path, test)?,
            (Transport::Unix, None) => {
                return Err(Error::Usage("Unix sockets need a target unix:PATH".into()));
            }
            (Transport::Tcp, _) => {
                let socket = bound(address, Type::STREAM, ports)?;
                // Accepted sockets inherit these options; buffer sizes must be set before, to
                // affect the window.
                options::apply(&socket, test.transport, &test.socket, test.nodelay())?;
                socket.listen(backlog(test)).doing(|| "cannot listen for data")?;
                this.add(socket)?;
            }
            (Transport::Udp, _) => {
                for _ in 0..test.threads {
                    let socket = bound(address, Type::DGRAM, ports)?;
                    options::apply(&socket, test.transport, &test.socket, false)?;
                    this.add(socket)?;
                }
            }
        }
        Ok(this)
    }

    fn add(&mut self, socket: Socket) -> Result<()> {
        let address = socket.local_addr().doing(|| "cannot tell a data port")?;
        self.ports.extend(address.as_socket().map(|a| a.port()));
        self.sockets.push(socket);
        Ok(())
    }

    fn listen_unix(&mut self, beside: &Path, test: &Test) -> Result<()> {
        let mut path = beside.as_os_str().to_owned();
        path.push(format!(".{}", self.token.get(..8).unwrap_or_default()));
        let path = PathBuf::from(path);
        let socket =
            Socket::new(Domain::UNIX, Type::STREAM, None).doing(|| "cannot open a data socket")?;
        options::apply(&socket, test.transport, &test.socket, false)?;
        let what = || format!("cannot listen at {}", path.display());
        let address = SockAddr::unix(&path).doing(what)?;
        socket.bind(&address).doing(what)?;
        self.path = Some(path.clone());
        socket.listen(backlog(test)).doing(what)?;
        self.sockets.push(socket);
        Ok(())
    }

    /// The listening socket of a test without tokens (`connect`).
    pub fn listener(&self) -> Option<&Socket> {
        self.sockets.first()
    }

    /// Waits for every data connection and assigns them to flows.
    ///
    /// # Errors
    /// Not all arrived in time, or the client disconnected.
    pub fn gather(&mut self, test: &Test, watch: &Watch<'_>) -> Result<Vec<DataFlow>> {
        let token = unhex(&self.token).unwrap_or_default();
        let until = Instant::now() + PATIENCE;
        match self.transport {
            Transport::Udp => self.gather_datagrams(test, &token, until, watch),
            _ => self.gather_connections(test.total_flows(), &token, until, watch),
        }
    }

    fn gather_connections(
        &self,
        flows: u32,
        token: &[u8],
        until: Instant,
        watch: &Watch<'_>,
    ) -> Result<Vec<DataFlow>> {
        let Some(listener) = self.sockets.first() else { return Ok(vec![]) };
        listener.set_nonblocking(true).doing(|| "data socket")?;
        let (mut all, mut silent) = (BTreeMap::new(), VecDeque::new());
        while all.len() < flows as usize {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Error::Environment(format!(
                    "{} of {flows} data connections came in {} s",
                    all.len(),
                    PATIENCE.as_secs()
                )));
            }
            let mut fds = vec![listener.as_raw_fd()];
            fds.extend(silent.iter().map(|s: &Silent| s.socket.as_raw_fd()));
            watch.wait(&fds, left)?;
            // A bounded number, so that time and client are checked during a flood too.
            for _ in 0..MOST_SILENT {
                match listener.accept() {
                    Ok((socket, _)) => {
                        silent.push_back(Silent { socket, said: [0; PREAMBLE], got: 0 });
                    }
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                    Err(_) => {
                        // Probably out of descriptors: avoids a busy loop.
                        std::thread::sleep(Duration::from_millis(5));
                        break;
                    }
                }
            }
            // A connection without the token is not our client's, and is not waited for.
            for mut one in std::mem::take(&mut silent) {
                match one.hear() {
                    Heard::Less => silent.push_back(one),
                    Heard::Gone => {}
                    Heard::All => {
                        if let Some(index) = greeting(&one.said, token).filter(|i| *i < flows) {
                            all.insert(index, one.socket);
                        }
                    }
                }
            }
            let more = silent.len().saturating_sub(MOST_SILENT);
            silent.drain(..more);
        }
        Ok(all
            .into_iter()
            .map(|(index, socket)| DataFlow { socket, index, peers: BTreeMap::new() })
            .collect())
    }

    fn gather_datagrams(
        &mut self,
        test: &Test,
        token: &[u8],
        until: Instant,
        watch: &Watch<'_>,
    ) -> Result<Vec<DataFlow>> {
        let flows = test.total_flows();
        let fds: Vec<_> = self.sockets.iter().map(AsRawFd::as_raw_fd).collect();
        let mut peers: Vec<BTreeMap<SocketAddr, u32>> = vec![BTreeMap::new(); fds.len()];
        let count = |p: &Vec<BTreeMap<_, _>>| p.iter().map(BTreeMap::len).sum::<usize>();
        while count(&peers) < flows as usize {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Error::Environment(format!(
                    "{} of {flows} flows were heard on the data ports in {} s; does a firewall \
                     drop UDP? (serve --data-ports fixes the ports)",
                    count(&peers),
                    PATIENCE.as_secs()
                )));
            }
            watch.wait(&fds, left)?;
            for (socket, peers) in self.sockets.iter().zip(&mut peers) {
                socket.set_nonblocking(true).doing(|| "data socket")?;
                hear(socket, token, flows, self.client, peers);
            }
        }
        let sockets = std::mem::take(&mut self.sockets);
        let mut out = vec![];
        for (socket, peers) in sockets.into_iter().zip(peers) {
            socket.set_nonblocking(false).doing(|| "data socket")?;
            let Some((only, index)) = peers.iter().next().map(|(a, i)| (*a, *i)) else { continue };
            if peers.len() == 1 {
                socket.connect(&only.into()).doing(|| "cannot connect a data socket")?;
                out.push(DataFlow { socket, index, peers: BTreeMap::new() });
            } else {
                out.push(DataFlow { socket, index, peers });
            }
        }
        Ok(out)
    }
}

/// Backlog of the listening socket; the kernel caps it at `net.core.somaxconn`.
fn backlog(test: &Test) -> i32 {
    match &test.kind {
        TestKind::Connect { .. } => 65_535,
        _ => 4096,
    }
}

/// Answers greetings on a UDP socket and records their senders. Only the client's own address is
/// answered: source addresses can be forged, and answers would go there.
fn hear(
    socket: &Socket,
    token: &[u8],
    flows: u32,
    client: Option<IpAddr>,
    peers: &mut BTreeMap<SocketAddr, u32>,
) {
    let mut buffer = [0; 2048];
    for _ in 0..MOST_SILENT {
        let Ok((n, _, from)) = recvfrom(socket, buffer.as_mut_slice(), RecvFlags::empty()) else {
            return;
        };
        let bytes = buffer.get(..n).unwrap_or_default();
        let Some(index) = greeting(bytes, token).filter(|i| *i < flows) else { continue };
        let from_client = |a: &SocketAddr| client.is_none_or(|ip| ip == a.ip());
        let from = from.and_then(|a| SocketAddr::try_from(a).ok());
        if let Some(address) = from.filter(from_client) {
            peers.insert(address, index);
            let _ = summed::send_to(socket, bytes, &address.into());
        }
    }
}

/// The flow number from a greeting with the right token.
pub fn greeting(bytes: &[u8], token: &[u8]) -> Option<u32> {
    let rest = bytes.strip_prefix(DATA_MAGIC.as_slice())?.strip_prefix(token)?;
    Some(u32::from_be_bytes(rest.try_into().ok()?))
}

/// Most connections that have not sent their whole greeting.
const MOST_SILENT: usize = 1024;

/// A data connection that has not sent its greeting.
struct Silent {
    socket: Socket,
    said: [u8; PREAMBLE],
    got: usize,
}

enum Heard {
    Less,
    All,
    Gone,
}

impl Silent {
    fn hear(&mut self) -> Heard {
        let room = self.said.get_mut(self.got..).unwrap_or_default();
        match sys::recv(self.socket.as_raw_fd(), room, libc::MSG_DONTWAIT) {
            Ok(0) => Heard::Gone,
            Ok(n) => {
                self.got += n;
                if self.got == PREAMBLE { Heard::All } else { Heard::Less }
            }
            Err(_) => match io::Error::last_os_error().kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Heard::Less,
                _ => Heard::Gone,
            },
        }
    }
}

/// Removes a stale Unix socket of a killed run, if nothing listens on it.
///
/// # Errors
/// Another kind of file is there, or a process listens.
pub fn clear_stale(path: &Path) -> Result<()> {
    let Ok(kind) = std::fs::symlink_metadata(path) else { return Ok(()) };
    if !kind.file_type().is_socket() {
        return Err(Error::Environment(format!("{}: a file is there already", path.display())));
    }
    match std::os::unix::net::UnixStream::connect(path) {
        Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path).doing(|| format!("cannot remove {}", path.display()))
        }
        _ => Err(Error::Environment(format!(
            "{}: another process listens there already",
            path.display()
        ))),
    }
}
