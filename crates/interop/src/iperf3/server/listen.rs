//! The listening sockets: TCP and UDP on the same address and port.

use std::{
    io,
    net::{SocketAddr, TcpListener},
};

use socket2::{Protocol, Type};
use traffic::{Error, Result};

use super::udp::UdpPort;
use crate::iperf3::sock::bound;

/// Listen backlog; the kernel may use less.
const BACKLOG: i32 = 1024;
/// Tries to find a port that is free for both TCP and UDP.
const TRIES: usize = 16;

#[derive(Debug)]
pub struct Listeners {
    pub tcp: Vec<TcpListener>,
    pub udp: Vec<UdpPort>,
}

impl Listeners {
    /// Binds TCP and UDP at the same port of each address; port 0 takes one that is free for both.
    ///
    /// # Errors
    /// There is no address, or one cannot be bound: in use, not of this host, not permitted.
    pub fn bind(listen: &[SocketAddr]) -> Result<Self> {
        if listen.is_empty() {
            return Err(Error::Usage("no address to listen on".into()));
        }
        let v4_too = !listen.iter().any(SocketAddr::is_ipv4);
        let mut all = Self { tcp: Vec::new(), udp: Vec::new() };
        for address in listen {
            let (tcp, udp) = both(*address, v4_too)
                .map_err(|e| Error::io(format!("cannot listen on {address}"), &e))?;
            all.tcp.push(tcp);
            all.udp.push(udp);
        }
        Ok(all)
    }

    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.tcp.iter().filter_map(|l| l.local_addr().ok()).collect()
    }
}

fn both(address: SocketAddr, v4_too: bool) -> io::Result<(TcpListener, UdpPort)> {
    let mut tried = 0;
    loop {
        let tcp = bound(address, Type::STREAM, Protocol::TCP, v4_too)?;
        tcp.listen(BACKLOG)?;
        let tcp: TcpListener = tcp.into();
        let address = SocketAddr::new(address.ip(), tcp.local_addr()?.port());
        let udp = bound(address, Type::DGRAM, Protocol::UDP, v4_too);
        tried += 1;
        match udp.and_then(UdpPort::new) {
            Ok(udp) => return Ok((tcp, udp)),
            Err(e) if e.kind() == io::ErrorKind::AddrInUse && tried < TRIES => {}
            Err(e) => return Err(e),
        }
    }
}
