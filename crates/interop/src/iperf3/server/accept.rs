//! The accepting thread: identifies new connections as clients or streams by their first 37 bytes.

use std::{
    collections::VecDeque,
    io::{self, Read},
    net::{SocketAddr, TcpListener, TcpStream},
    os::fd::AsRawFd,
    sync::{
        PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, Scope},
    time::{Duration, Instant},
};

use traffic::{ErrorContext, Result, net::sys};

use super::{
    Event, Limits,
    listen::Listeners,
    opening,
    registry::{Arrival, Registry, Stray},
    udp,
};
use crate::iperf3::wire::{COOKIE, Control, Cookie, IperfState, UDP_HELLO, UDP_OLD_HELLO};

/// Interval of checking the stop flag and timeouts of new connections.
const TICK: Duration = Duration::from_millis(100);
/// Most connections or datagrams taken from one socket before the others are served.
const TURN: usize = 256;
/// Pause of accepting when no descriptor is left.
const REST: Duration = Duration::from_millis(50);

/// Shortest time between two log lines on unexpected datagrams.
const COMPLAINT: Duration = Duration::from_secs(1);

/// A connection that has not identified itself.
struct Stranger {
    socket: TcpStream,
    from: SocketAddr,
    order: u64,
    since: Instant,
    said: Vec<u8>,
}

/// State of the thread.
struct Acceptor<'s, 'e> {
    scope: &'s Scope<'s, 'e>,
    registry: &'e Registry<'e>,
    stop: &'e AtomicBool,
    on_event: &'e (dyn Fn(Event) + Sync),
    strangers: VecDeque<Stranger>,
    accepted: u64,
    complained: Option<Instant>,
}

/// Serves until `stop` is set: accepts connections and first datagrams, and starts a thread for
/// each test.
///
/// # Errors
/// The kernel's error of waiting. Errors of one client are events.
pub fn run(
    listeners: &Listeners,
    limits: &Limits,
    stop: &AtomicBool,
    on_event: &(dyn Fn(Event) + Sync),
) -> Result<()> {
    let registry = Registry::new(limits);
    let registry = &registry;
    thread::scope(|scope| {
        let strangers = VecDeque::new();
        let mut door =
            Acceptor { scope, registry, stop, on_event, strangers, accepted: 0, complained: None };
        let mut done = Ok(());
        while done.is_ok() && !stop.load(Ordering::Relaxed) {
            done = door.turn(listeners).doing(|| "cannot wait for connections");
        }
        // The sessions check the same flag and end by themselves.
        done
    })
}

impl Acceptor<'_, '_> {
    /// Waits for events and handles them.
    fn turn(&mut self, listeners: &Listeners) -> io::Result<()> {
        let interest = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let mut fds: Vec<_> = (listeners.tcp.iter().map(|l| l.as_raw_fd()))
            .chain(listeners.udp.iter().map(udp::UdpPort::fd))
            .chain(self.strangers.iter().map(|s| s.socket.as_raw_fd()))
            .map(interest)
            .collect();
        let strays = |r: &Registry| {
            std::mem::take(&mut *r.strays.lock().unwrap_or_else(PoisonError::into_inner))
        };
        let strays = strays(self.registry);
        let time = if strays.is_empty() { TICK.as_millis() as i32 } else { 0 };
        strays.iter().for_each(|s| self.datagram(s));
        if let Err(e) = sys::poll(&mut fds, time) {
            return if e.kind() == io::ErrorKind::Interrupted { Ok(()) } else { Err(e) };
        }
        let mut ready = fds.iter().map(|f| f.revents != 0);
        let tcp: Vec<bool> = ready.by_ref().take(listeners.tcp.len()).collect();
        let udp: Vec<bool> = ready.by_ref().take(listeners.udp.len()).collect();
        let strangers: Vec<bool> = ready.collect();
        self.hear_strangers(&strangers);
        for (port, _) in listeners.udp.iter().zip(udp).filter(|p| p.1) {
            for stray in (0..TURN).map_while(|_| port.receive()) {
                self.datagram(&stray);
            }
        }
        for (listener, _) in listeners.tcp.iter().zip(tcp).filter(|l| l.1) {
            self.accept(listener);
        }
        Ok(())
    }

    fn accept(&mut self, listener: &TcpListener) {
        for _ in 0..TURN {
            let (socket, from) = match listener.accept() {
                Ok(new) => new,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
                Err(e) if matches!(e.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) => {
                    return self.make_room(&e);
                }
                // The connection ended before it was accepted.
                Err(_) => continue,
            };
            self.accepted += 1;
            if self.strangers.len() >= self.registry.limits.strangers {
                self.strangers.pop_front();
            }
            if socket.set_nonblocking(true).is_ok() {
                let said = Vec::with_capacity(COOKIE);
                let (order, since) = (self.accepted, Instant::now());
                self.strangers.push_back(Stranger { socket, from, order, since, said });
            }
        }
    }

    /// No descriptor is left: closes the oldest unidentified connection, if there is one.
    fn make_room(&mut self, e: &io::Error) {
        if self.strangers.pop_front().is_none() {
            (self.on_event)(Event::Trouble { what: format!("cannot accept connections: {e}") });
            thread::sleep(REST);
        }
    }

    /// Reads from ready connections; closes those past their timeout.
    fn hear_strangers(&mut self, ready: &[bool]) {
        let before = std::mem::take(&mut self.strangers);
        for (n, mut stranger) in before.into_iter().enumerate() {
            let heard = match ready.get(n) {
                Some(true) => stranger.hear(),
                _ => Ok(None),
            };
            match heard {
                Ok(Some(cookie)) => self.introduced(stranger, cookie),
                Ok(None) if stranger.since.elapsed() < self.registry.limits.step => {
                    self.strangers.push_back(stranger);
                }
                Ok(None) => self.turned_away(stranger.from, "it did not say in time what it wants"),
                Err(why) => self.turned_away(stranger.from, why),
            }
        }
    }

    fn turned_away(&self, client: SocketAddr, why: impl Into<String>) {
        (self.on_event)(Event::TurnedAway { client, why: why.into() });
    }

    /// Passes a stream to its session, or starts a session for a new client.
    fn introduced(&self, stranger: Stranger, cookie: Cookie) {
        if let Some(session) = self.registry.by_cookie(&cookie) {
            let Stranger { socket, order, .. } = stranger;
            if socket.set_nonblocking(false).is_ok() {
                // A session with all its streams does not take it, which closes the connection.
                let _ = session.send(Arrival::Tcp(order, socket.into()));
            }
            return;
        }
        let Stranger { socket, from, .. } = stranger;
        let Ok(control) = Control::new(socket) else { return };
        let Some(place) = self.registry.client() else {
            let _ = control.say(IperfState::AccessDenied);
            return self.turned_away(from, "refused until later: too many clients already");
        };
        let (registry, stop, on_event) = (self.registry, self.stop, self.on_event);
        let session = move || {
            let _place = place;
            opening::run(control, from, cookie, registry, stop, on_event);
        };
        let name = thread::Builder::new().name("iperf3-control".into());
        if let Err(e) = name.spawn_scoped(self.scope, session) {
            self.turned_away(from, format!("no thread for it: {e}"));
        }
    }

    /// Handles the first datagram of a stream. Others are dropped: late data of ended tests.
    fn datagram(&mut self, stray: &Stray) {
        if stray.text != UDP_HELLO && stray.text != UDP_OLD_HELLO {
            return;
        }
        let Some(session) = self.registry.by_host(stray.from.ip()) else {
            // Any sender could cause many of these: logs at most one line a second.
            if self.complained.is_none_or(|at| at.elapsed() > COMPLAINT) {
                self.complained = Some(Instant::now());
                self.turned_away(stray.from, "a datagram that no test of this host awaits");
            }
            return;
        };
        match udp::connected(stray) {
            Ok((socket, others)) => {
                let _ = session.send(Arrival::Udp(socket, stray.text));
                let strays = self.registry.strays.lock();
                strays.unwrap_or_else(PoisonError::into_inner).extend(others);
            }
            Err(e) => self.turned_away(stray.from, format!("no socket for its stream: {e}")),
        }
    }
}

impl Stranger {
    /// The cookie, once it is complete. Never reads beyond it.
    fn hear(&mut self) -> Result<Option<Cookie>, String> {
        let mut into = [0u8; COOKIE];
        let missing = COOKIE.saturating_sub(self.said.len());
        match self.socket.read(into.get_mut(..missing).unwrap_or_default()) {
            Ok(0) => return Err("it closed the connection before it said what it wants".into()),
            Ok(n) => self.said.extend(into.iter().take(n)),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(format!("its connection broke: {e}")),
        }
        // Invalid data is detected at its first wrong byte.
        let text = self.said.get(..self.said.len().min(COOKIE - 1)).unwrap_or_default();
        if !text.iter().all(u8::is_ascii_alphanumeric) {
            return Err("it does not speak iperf3's protocol: that is no cookie".into());
        }
        match Cookie::try_from(self.said.as_slice()) {
            Ok(cookie) if cookie.last() == Some(&0) => Ok(Some(cookie)),
            Ok(_) => Err("it does not speak iperf3's protocol: that is no cookie".into()),
            Err(_) => Ok(None),
        }
    }
}
