//! The measurement server: sends, receives and reports for authorized clients.
//!
//! `pending` is one thread for all connections without a request. A client with a request gets a
//! thread (`session`) that runs its tests (`peer`) on their own sockets (`endpoint`), within
//! [`Limits`].

mod cost;
pub(crate) mod endpoint;
mod failed_auths;
pub(crate) mod limits;
mod peer;
mod pending;
mod session;
mod watch;

use std::{
    net::SocketAddr,
    ops::RangeInclusive,
    path::PathBuf,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use model::{Nanos, measure::Pin};
use socket2::{Domain, SockAddr, Socket, Type};

use crate::{
    Error, ErrorContext, Result,
    control::secret::Secret,
    engine::assignments,
    net::{self, wake},
};
pub use limits::Limits;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listen {
    /// TCP; port 0 lets the kernel choose.
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// Options of the server.
#[derive(Debug, Clone)]
pub struct Options {
    pub listen: Vec<Listen>,
    /// Ports for data connections; `None` lets the kernel choose.
    pub data_ports: Option<RangeInclusive<u16>>,
    /// The secret that clients must prove, if any.
    pub secret: Option<Secret>,
    /// Limits on each client's resource use.
    pub limits: Limits,
    /// Service time: busy loop before each response.
    pub service_ns: Nanos,
    /// CPU assignment of the server's threads, unless the client requests another.
    pub pin: Pin,
}

/// An event for the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A connection was refused; the text gives the reason.
    TurnedAway(String),
    /// A client disconnected; its name and number of tests.
    Served(String, u32),
    /// A client's session failed; its name and the reason.
    Broken(String, String),
}

#[derive(Debug)]
pub struct Server {
    sockets: Vec<(Socket, Option<PathBuf>)>,
    options: Options,
}

impl Drop for Server {
    fn drop(&mut self) {
        for path in self.sockets.iter().filter_map(|(_, p)| p.as_ref()) {
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Server {
    /// Opens the listening sockets.
    ///
    /// # Errors
    /// The first address that cannot be bound, or a CPU that may not be used.
    pub fn bind(options: Options) -> Result<Self> {
        assignments::check(&options.pin)?;
        net::raise_descriptor_limit();
        wake::install();
        let mut this = Self { sockets: vec![], options };
        for listen in this.options.listen.clone() {
            let bound = match &listen {
                Listen::Tcp(address) => (bind_tcp(*address)?, None),
                Listen::Unix(path) => (bind_unix(path)?, Some(path.clone())),
            };
            this.sockets.push(bound);
        }
        Ok(this)
    }

    /// The listening addresses, with the ports that the kernel chose.
    pub fn listening(&self) -> Vec<Listen> {
        let of = |(socket, path): &(Socket, Option<PathBuf>)| match path {
            Some(path) => Some(Listen::Unix(path.clone())),
            None => socket.local_addr().ok()?.as_socket().map(Listen::Tcp),
        };
        self.sockets.iter().filter_map(of).collect()
    }

    /// Serves clients until `stop` is set.
    ///
    /// # Errors
    /// No descriptor is left at the start.
    pub fn run(&self, stop: &AtomicBool, on_event: &(dyn Fn(Event) + Sync)) -> Result<()> {
        let listeners = self.sockets.iter().map(|(s, p)| (s, p.clone())).collect();
        let mut pending = pending::PendingConnections::open(listeners, &self.options)?;
        let (active, taken) = (AtomicUsize::new(0), Mutex::new(vec![]));
        std::thread::scope(|threads| {
            while !stop.load(Ordering::Relaxed) {
                let (admitted, away) = pending.turn(Duration::from_millis(200));
                away.into_iter().for_each(|why| on_event(Event::TurnedAway(why)));
                for client in admitted {
                    if active.load(Ordering::Relaxed) >= self.options.limits.sessions {
                        let why =
                            format!("{} tests run here already", self.options.limits.sessions);
                        let refusal = crate::control::ToClient::Failed { why: why.clone() };
                        let _ = crate::control::frame::send(&mut &client.socket, &refusal);
                        on_event(Event::TurnedAway(why));
                        continue;
                    }
                    active.fetch_add(1, Ordering::Relaxed);
                    let session = session::Session {
                        socket: client.socket,
                        local: client.local,
                        same_host: client.same_host,
                        inbox: client.inbox,
                        options: &self.options,
                        stop,
                        taken: &taken,
                    };
                    let active = &active;
                    let serve = move || {
                        let who = session.local.to_string();
                        match session.run() {
                            Ok(tests) => on_event(Event::Served(who, tests)),
                            Err(e) => on_event(Event::Broken(who, e.to_string())),
                        }
                        active.fetch_sub(1, Ordering::Relaxed);
                    };
                    // No thread could be started: the client sees its connection close.
                    if std::thread::Builder::new().spawn_scoped(threads, serve).is_err() {
                        active.fetch_sub(1, Ordering::Relaxed);
                    }
                }
            }
        });
        Ok(())
    }
}

fn bind_tcp(address: SocketAddr) -> Result<Socket> {
    let what = || format!("cannot listen on {address}");
    let domain = if address.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
    let socket = Socket::new(domain, Type::STREAM, None).doing(what)?;
    let _ = socket.set_reuse_address(true);
    if address.is_ipv6() {
        // 0.0.0.0 and [::] are bound separately.
        let _ = socket.set_only_v6(true);
    }
    socket.bind(&address.into()).map_err(|e| match e.kind() {
        std::io::ErrorKind::AddrInUse => Error::Environment(format!(
            "cannot listen on {address}: the port is in use; choose another with --port"
        )),
        _ => Error::io(what(), &e),
    })?;
    socket.listen(4096).doing(what)?;
    Ok(socket)
}

fn bind_unix(path: &std::path::Path) -> Result<Socket> {
    let what = || format!("cannot listen at {}", path.display());
    endpoint::clear_stale(path)?;
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None).doing(what)?;
    socket.bind(&SockAddr::unix(path).doing(what)?).doing(what)?;
    socket.listen(4096).doing(what)?;
    Ok(socket)
}
