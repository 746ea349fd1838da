//! Connects sockets to a server.

use std::{
    fs, io,
    net::{IpAddr, SocketAddr, UdpSocket},
    os::{fd::AsRawFd, unix::fs::FileTypeExt},
    path::Path,
};

use model::measure::{Common, SocketOptions, Transport, Wait};
use socket2::{Domain, SockAddr, Socket, Type};

use super::deadline::Deadline;
use crate::{
    Error, ErrorContext, Result,
    net::{now_ns, options, target::local_address, unix::connect_within},
};

/// Most Unix sockets suggested in place of a missing one.
const MOST_NAMED: usize = 4;

/// Destination and options of connections.
#[derive(Debug)]
pub struct DialPath {
    pub to: SockAddr,
    pub transport: Transport,
    /// The local address to connect from; `None`: the kernel chooses.
    pub from: Option<IpAddr>,
    pub socket: SocketOptions,
    pub wait: Wait,
    /// Whether a connection serves one request: only requested options are set, each costs a call.
    pub once: bool,
}

impl DialPath {
    /// A path to this address with the requested options.
    ///
    /// # Errors
    /// The requested local address is invalid.
    pub fn new(to: SockAddr, transport: Transport, common: &Common, once: bool) -> Result<Self> {
        Ok(Self {
            to,
            transport,
            from: common.bind.as_deref().map(local_address).transpose()?,
            socket: common.socket.clone(),
            wait: common.wait,
            once,
        })
    }

    /// A connecting socket with its start time, or the errno of its failure, including shortage of
    /// descriptors or memory.
    ///
    /// # Errors
    /// The kernel refuses a requested option or address; retrying does not help.
    pub fn connect(&self) -> Result<std::result::Result<(Socket, u64), i32>> {
        let socket = match self.socket()? {
            Ok(socket) => socket,
            Err(errno) => return Ok(Err(errno)),
        };
        let begun = now_ns();
        Ok(match socket.connect(&self.to).map_err(|e| e.raw_os_error().unwrap_or(0)) {
            Ok(()) | Err(libc::EINPROGRESS) => Ok((socket, begun)),
            Err(errno) => Err(errno),
        })
    }

    fn socket(&self) -> Result<std::result::Result<Socket, i32>> {
        let domain = Domain::from(i32::from(self.to.family()));
        let socket = match Socket::new(domain, Type::STREAM.nonblocking(), None) {
            Ok(socket) => socket,
            Err(e) => return Ok(Err(e.raw_os_error().unwrap_or(0))),
        };
        if !self.once || self.socket != SocketOptions::default() {
            options::apply(&socket, self.transport, &self.socket, true)?;
        }
        if self.wait == Wait::BusyPoll {
            let _ = options::prepare(&socket, self.wait);
        }
        if let Some(from) = self.from.filter(|_| self.transport == Transport::Tcp) {
            let level = if from.is_ipv6() { libc::IPPROTO_IPV6 } else { libc::IPPROTO_IP };
            let _ = options::set(&socket, level, libc::IP_BIND_ADDRESS_NO_PORT, 1);
            socket
                .bind(&SocketAddr::new(from, 0).into())
                .map_err(|e: io::Error| Error::io(format!("cannot send from {from}"), &e))?;
        }
        Ok(Ok(socket))
    }
}

/// A connected non-blocking socket; the error line uses the server's `name`.
///
/// # Errors
/// The connection failed, in one line.
pub fn dial(
    to: &SockAddr,
    transport: Transport,
    name: &str,
    common: &Common,
    deadline: &Deadline<'_>,
) -> Result<Socket> {
    let what = || format!("cannot connect to {name}");
    let socket = Socket::new(Domain::from(i32::from(to.family())), Type::STREAM, None);
    let socket = socket.doing(what)?;
    if let (Some(local), Transport::Tcp) = (&common.bind, transport) {
        let local = local_address(local)?;
        let from = SocketAddr::new(local, 0);
        socket.bind(&from.into()).doing(|| format!("cannot send from {local}"))?;
    }
    let connected = match transport {
        Transport::Unix => at_socket(&socket, to, deadline),
        _ => at_address(&socket, to, deadline),
    };
    match connected.and_then(|()| socket.set_nonblocking(true)) {
        Ok(()) => Ok(socket),
        Err(e) if Deadline::is_stopped(&e) => Err(ended_early(name)),
        Err(e) => Err(match e.kind() {
            io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => {
                Error::Environment(format!("{name}: {}", nobody(to.as_pathname())))
            }
            io::ErrorKind::TimedOut if transport == Transport::Unix => Error::Environment(format!(
                "{name}: its queue is full, and no connection was accepted in {}; does the server \
                 hang?",
                deadline.limit()
            )),
            io::ErrorKind::TimedOut => Error::Environment(format!(
                "{name}: no answer in {}; is a firewall between?",
                deadline.limit()
            )),
            _ => Error::io(what(), &e),
        }),
    }
}

/// Error for Ctrl-C before there was anything to report.
pub fn ended_early(name: &str) -> Error {
    Error::Environment(format!("{name}: ended before the measurement began"))
}

fn at_address(socket: &Socket, to: &SockAddr, deadline: &Deadline<'_>) -> io::Result<()> {
    socket.set_nonblocking(true)?;
    match socket.connect(to) {
        Err(e) if e.raw_os_error() == Some(libc::EINPROGRESS) => {}
        other => return other,
    }
    deadline.ready(socket.as_raw_fd(), libc::POLLOUT)?;
    socket.take_error()?.map_or(Ok(()), Err)
}

/// A non-blocking Unix socket reports a full queue at once, so this retries in steps.
fn at_socket(socket: &Socket, to: &SockAddr, deadline: &Deadline<'_>) -> io::Result<()> {
    loop {
        match connect_within(socket, to, deadline.step()?) {
            Err(e) if e.kind() == io::ErrorKind::TimedOut => {}
            other => return other,
        }
    }
}

/// Explains a refused connection to an address or a Unix socket's path, with a hint.
fn nobody(path: Option<&Path>) -> String {
    let Some(path) = path else {
        return "connection refused; no server listens there: is it started, and are address and port \
                right?"
            .into();
    };
    let is_socket = |kind: fs::FileType| kind.is_socket();
    match fs::metadata(path).map(|about| is_socket(about.file_type())) {
        Ok(true) => "connection refused; no server listens there any more: is it started?".into(),
        Ok(false) => "this is no socket; is the path right?".into(),
        Err(_) => match path.parent().map(fs::read_dir) {
            Some(Err(e)) if e.kind() == io::ErrorKind::NotFound => {
                let folder = path.parent().unwrap_or(path).display();
                format!(
                    "no server listens there, for there is no folder {folder}; is the path right?"
                )
            }
            Some(Ok(entries)) => {
                let all = entries.flatten().filter(|e| e.file_type().is_ok_and(is_socket));
                let mut names: Vec<String> =
                    all.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
                names.sort();
                names.truncate(MOST_NAMED);
                let there = match names.is_empty() {
                    true => "none is in this folder".to_owned(),
                    false => format!("in this folder there is {}", names.join(", ")),
                };
                format!(
                    "no server listens there, for there is no such socket, and {there}; is it started, \
                     and the path right?"
                )
            }
            _ => "no server listens there; is it started, and the path right?".into(),
        },
    }
}

/// Whether an address is local to this network namespace; only local addresses can be bound.
pub fn is_here(to: SocketAddr) -> bool {
    to.ip().is_loopback() || UdpSocket::bind(SocketAddr::new(to.ip(), 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_does_not_listen_is_looked_for_where_it_was_to_be() {
        assert!(nobody(None).contains("address and port"));
        let folder = std::env::temp_dir().join(format!("netwright-dial-{}", std::process::id()));
        let at = folder.join(".s.PGSQL.5432");
        let said = nobody(Some(&at));
        assert!(said.contains("there is no folder") && said.contains("netwright-dial"), "{said}");
        fs::create_dir(&folder).unwrap();
        let none = nobody(Some(&at));
        let other = std::os::unix::net::UnixListener::bind(folder.join(".s.PGSQL.5433")).unwrap();
        let (one, file) = (nobody(Some(&at)), nobody(Some(&folder)));
        drop(other);
        let gone = nobody(Some(&folder.join(".s.PGSQL.5433")));
        fs::remove_dir_all(&folder).unwrap();
        assert!(none.contains("none is in this folder"), "{none}");
        assert!(one.contains("there is .s.PGSQL.5433; "), "{one}");
        assert!(file.contains("no socket"), "{file}");
        assert!(gone.contains("any more"), "{gone}");
    }
}
