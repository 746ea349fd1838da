//! Opens the data connections of a test.

use std::{
    io::Write,
    net::SocketAddr,
    os::fd::AsRawFd,
    time::{Duration, Instant},
};

use model::measure::{Common, Transport};
use socket2::{Domain, SockAddr, Socket, Type};

use super::Peer;
use crate::{
    Error, ErrorContext, Result,
    control::{
        message::{DATA_MAGIC, Ready, Test},
        secret::unhex,
    },
    net::{self, options, summed, target::local_address},
};

/// Timeout for opening one data connection.
const PATIENCE: Duration = Duration::from_secs(5);
/// Interval between retransmissions of a UDP greeting.
const AGAIN: Duration = Duration::from_millis(100);

/// The server's address for flow `index`.
///
/// # Errors
/// The server named no port for it.
pub fn address(peer: &Peer, test: &Test, ready: &Ready, index: u32) -> Result<SockAddr> {
    if let Some(path) = &ready.path {
        return SockAddr::unix(path).doing(|| format!("cannot connect to {path}"));
    }
    let at = match test.transport {
        Transport::Udp => index as usize % test.threads.max(1) as usize,
        _ => 0,
    };
    let port = ready.ports.get(at).copied();
    match (port, peer.address) {
        (Some(port), Some(mut to)) => {
            to.set_port(port);
            Ok(to.into())
        }
        (Some(port), None) => Ok(SocketAddr::from(([127, 0, 0, 1], port)).into()),
        (None, _) => Err(Error::Environment(format!("{} names no data port", peer.name))),
    }
}

/// A data socket with its options set, not connected.
///
/// # Errors
/// The kernel refuses a requested option or the local address.
pub fn socket(common: &Common, test: &Test, to: &SockAddr) -> Result<Socket> {
    let kind = if test.transport == Transport::Udp { Type::DGRAM } else { Type::STREAM };
    let socket = Socket::new(to.domain(), kind, None).map_err(|e| match e.raw_os_error() {
        Some(libc::EMFILE) => Error::Environment(format!(
            "{} flows need more descriptors than this process may have (ulimit -n)",
            test.flows
        )),
        _ => Error::io("cannot open a data socket", &e),
    })?;
    options::apply(&socket, test.transport, &test.socket, test.nodelay())?;
    if let (Some(local), true) = (&common.bind, to.domain() != Domain::UNIX) {
        let local = local_address(local)?;
        let from = SocketAddr::new(local, 0);
        socket.bind(&from.into()).doing(|| format!("cannot send from {local}"))?;
    }
    Ok(socket)
}

/// Opens all data connections, in order of flow number.
///
/// # Errors
/// The first connection that fails.
pub fn open(peer: &Peer, common: &Common, test: &Test, ready: &Ready) -> Result<Vec<Socket>> {
    net::raise_descriptor_limit();
    let token = unhex(&ready.token).unwrap_or_default();
    (0..test.total_flows())
        .map(|index| {
            let mut greeting = DATA_MAGIC.to_vec();
            greeting.extend(&token);
            greeting.extend(index.to_be_bytes());
            let to = address(peer, test, ready, index)?;
            let socket = socket(common, test, &to)?;
            let what = || format!("{}: data connection {}", peer.name, index + 1);
            match test.transport {
                Transport::Udp => {
                    socket.connect(&to).doing(what)?;
                    greet(&socket, &greeting).map_err(|e| firewall(peer, &to, e))?;
                }
                Transport::Tcp => {
                    socket
                        .connect_timeout(&to, PATIENCE)
                        .map_err(|e| firewall(peer, &to, Error::io(what(), &e)))?;
                    (&socket).write_all(&greeting).doing(what)?;
                }
                Transport::Unix => {
                    socket.connect(&to).doing(what)?;
                    (&socket).write_all(&greeting).doing(what)?;
                }
            }
            Ok(socket)
        })
        .collect()
}

fn firewall(peer: &Peer, to: &SockAddr, e: Error) -> Error {
    let port = to.as_socket().map_or(0, |a| a.port());
    Error::Environment(format!(
        "{e}: port {port} of {} is not reachable though its control port is; is a firewall \
         between? (serve --data-ports fixes the ports)",
        peer.name
    ))
}

/// Sends the UDP greeting until the server returns it.
fn greet(socket: &Socket, greeting: &[u8]) -> Result<()> {
    let until = Instant::now() + PATIENCE;
    socket.set_read_timeout(Some(AGAIN)).doing(|| "data socket")?;
    let mut room = [std::mem::MaybeUninit::<u8>::uninit(); 64];
    while Instant::now() < until {
        let _ = summed::send(socket.as_raw_fd(), greeting);
        if socket.recv(&mut room).is_ok_and(|n| n == greeting.len()) {
            return socket.set_read_timeout(None).doing(|| "data socket");
        }
    }
    Err(Error::Environment("no UDP datagram comes back".into()))
}
