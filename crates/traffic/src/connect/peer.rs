//! One server thread: accepts, answers and closes connections. The number and the lifetime of a
//! client's connections are bounded.

use std::{
    io,
    net::IpAddr,
    os::fd::{AsRawFd, RawFd},
    time::Duration,
};

use model::{Warning, measure::Close};
use socket2::Socket;

use super::ConnectShape;
use crate::{
    control::message::Test,
    engine::{
        ran_on::{RanOn, current_cpu},
        rx_cpu_samples::RxCpuSamples,
        service_time::serve_for,
        worker_pool::{Worker, WorkerPool},
    },
    net::{epoll::Epoll, now_ns, options, sys},
};

const LISTENER: usize = usize::MAX;
const LOOK_EVERY: u64 = 256;
/// Most connections accepted before the open ones are served again.
const ACCEPT_AT_ONCE: usize = 64;
/// A connection idle for this long is closed.
const IDLE_NS: u64 = 10_000_000_000;
const PATROL_NS: u64 = 1_000_000_000;
/// How long after the end connections in transit are still accepted.
const LATE_NS: u64 = 20_000_000;
/// Pause of accepting when descriptors or memory run short.
const SHORT: Duration = Duration::from_millis(2);
/// Size of the receive and send buffer.
pub const ROOM: usize = 64 << 10;
/// Connections that a thread may hold beyond the client's concurrent ones: they are closing.
const SPARE: usize = 1024;

/// Most connections open at once on each thread of a test.
pub fn most_open(test: &Test) -> usize {
    (test.flows as usize).div_ceil(test.threads.max(1) as usize) + SPARE
}

/// State shared by the threads of one test.
#[derive(Debug)]
pub struct SharedTest {
    pub listener: Socket,
    /// Client addresses to accept; `None` for a Unix socket, which has file permissions.
    pub from: Option<Vec<IpAddr>>,
    /// Most connections open at once on each thread.
    pub most: usize,
}

#[derive(Debug)]
struct Conn {
    socket: Socket,
    awaited: u64,
    unsent: u64,
    since: u64,
}

/// Result of serving a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ServedConnection {
    Waits,
    Over,
}

struct AcceptLoop<'a> {
    shape: &'a ConnectShape,
    pool: &'a WorkerPool,
    door: &'a SharedTest,
    epoll: Epoll,
    open: Vec<Option<Conn>>,
    free: Vec<usize>,
    /// Whether the listener is not watched, because enough connections are open.
    shut: bool,
    room: Vec<u8>,
    response: Vec<u8>,
    accepted: u64,
    ran_on: RanOn,
    rx_cpus: RxCpuSamples,
    /// Errno if accepting failed for lack of descriptors or memory.
    short: Option<i32>,
}

/// Serves until the pool ends.
pub fn run(door: &SharedTest, shape: &ConnectShape, pool: &WorkerPool, worker: &Worker) {
    let Ok(epoll) = Epoll::new() else { return };
    if let Some(why) = options::prepare(&door.listener, shape.wait) {
        worker.see(|seen| seen.warnings.push(why));
    }
    worker.see(|seen| seen.warnings.extend(epoll.busy_poll(shape.wait)));
    let mut state = AcceptLoop {
        shape,
        pool,
        door,
        epoll,
        open: vec![],
        free: vec![],
        shut: true,
        room: vec![0; ROOM],
        response: vec![0; shape.response_bytes.min(ROOM as u64) as usize],
        accepted: 0,
        ran_on: RanOn::default(),
        rx_cpus: RxCpuSamples::new(-1),
        short: None,
    };
    state.watch();
    let mut patrol = now_ns() + PATROL_NS;
    while !pool.stopping() {
        state.turn(patrol);
        worker.handled(state.accepted);
        let now = now_ns();
        if now >= patrol {
            state.forget_idle(now);
            patrol = now + PATROL_NS;
        }
    }
    state.accept_late();
    worker.handled(state.accepted);
    worker.see(|seen| {
        if let Some(errno) = state.short {
            let why = io::Error::from_raw_os_error(errno).to_string();
            seen.warnings.push(Warning::AcceptDelayed { why });
        }
        state.rx_cpus.add_to(seen);
        state.ran_on.tell(seen);
    });
}

impl AcceptLoop<'_> {
    fn turn(&mut self, until: u64) {
        self.epoll.wait(self.shape.wait, until);
        let mut n = 0;
        while let Some(ready) = self.epoll.nth(n) {
            n += 1;
            match ready.key {
                LISTENER => {
                    self.accept();
                }
                key => self.hear(key),
            }
        }
    }

    fn watch(&mut self) {
        let watched = self.epoll.add_shared(self.door.listener.as_raw_fd(), LISTENER);
        self.shut = watched.is_err();
    }

    fn unwatch(&mut self) {
        let _ = self.epoll.remove(self.door.listener.as_raw_fd());
        self.shut = true;
    }

    fn count(&self) -> usize {
        self.open.len() - self.free.len()
    }

    /// Accepts waiting connections; returns their number.
    fn accept(&mut self) -> usize {
        for n in 0..ACCEPT_AT_ONCE {
            if self.count() >= self.door.most {
                self.unwatch();
                return n;
            }
            match self.door.listener.accept() {
                Ok((socket, from)) => {
                    let from = from.as_socket().map(|a| a.ip());
                    let known = self.door.from.as_ref();
                    if known.is_none_or(|all| from.is_some_and(|ip| all.contains(&ip))) {
                        self.accepted += 1;
                        self.begin(socket);
                    }
                }
                Err(e) => {
                    let errno = e.raw_os_error().unwrap_or(0);
                    if let libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM = errno {
                        self.short = Some(errno);
                        std::thread::sleep(SHORT);
                    }
                    return n;
                }
            }
        }
        ACCEPT_AT_ONCE
    }

    fn begin(&mut self, socket: Socket) {
        self.ran_on.on(current_cpu());
        if self.accepted.is_multiple_of(LOOK_EVERY) {
            self.rx_cpus.turn_to(socket.as_raw_fd());
            self.rx_cpus.sample();
        }
        let (awaited, unsent) = (self.shape.request_bytes, 0);
        let mut conn = Conn { socket, awaited, unsent, since: now_ns() };
        if awaited == 0 {
            self.respond(&mut conn);
        }
        // The request has often arrived with the connection.
        if self.go_on(&mut conn) == ServedConnection::Over {
            return;
        }
        let key = self.free.pop().unwrap_or_else(|| {
            self.open.push(None);
            self.open.len() - 1
        });
        let watched = self.epoll.add_once(conn.socket.as_raw_fd(), key).is_ok();
        match self.open.get_mut(key) {
            Some(place) if watched => *place = Some(conn),
            _ => self.free.push(key),
        }
    }

    fn respond(&mut self, conn: &mut Conn) {
        conn.unsent = self.shape.response_bytes;
        if self.shape.request_bytes > 0 || self.shape.response_bytes > 0 {
            serve_for(self.shape.service_ns, self.pool);
        }
    }

    fn hear(&mut self, key: usize) {
        let Some(mut conn) = self.open.get_mut(key).and_then(Option::take) else { return };
        let came = self.go_on(&mut conn);
        match (came, self.open.get_mut(key)) {
            (ServedConnection::Waits, Some(place)) => *place = Some(conn),
            _ => {
                drop(conn);
                self.closed(key);
            }
        }
    }

    fn closed(&mut self, key: usize) {
        self.free.push(key);
        if self.shut && self.count() < self.door.most * 3 / 4 + 1 {
            self.watch();
        }
    }

    /// Reads, answers and closes, as far as possible without blocking.
    fn go_on(&mut self, conn: &mut Conn) -> ServedConnection {
        let fd = conn.socket.as_raw_fd();
        if self.send(fd, conn) == ServedConnection::Over {
            return ServedConnection::Over;
        }
        loop {
            if conn.awaited == 0 && conn.unsent == 0 && self.shape.close == Close::Peer {
                return ServedConnection::Over;
            }
            match sys::recv(fd, &mut self.room, libc::MSG_DONTWAIT).map(|n| n as u64) {
                // More bytes than announced: not our client.
                Ok(n) if n == 0 || n > conn.awaited => return ServedConnection::Over,
                Ok(n) => {
                    conn.awaited -= n;
                    conn.since = now_ns();
                    if conn.awaited == 0 {
                        self.respond(conn);
                        if self.send(fd, conn) == ServedConnection::Over {
                            return ServedConnection::Over;
                        }
                    }
                }
                Err(_) => match io::Error::last_os_error().raw_os_error() {
                    Some(libc::EAGAIN) => return ServedConnection::Waits,
                    Some(libc::EINTR) => {}
                    _ => return ServedConnection::Over,
                },
            }
        }
    }

    /// Sends pending bytes while the socket has room.
    fn send(&mut self, fd: RawFd, conn: &mut Conn) -> ServedConnection {
        while conn.unsent > 0 {
            let bytes = &self.response;
            let length = usize::try_from(conn.unsent).unwrap_or(usize::MAX).min(bytes.len());
            match sys::send(fd, bytes.get(..length).unwrap_or(bytes), libc::MSG_DONTWAIT) {
                Ok(n) => {
                    conn.unsent -= (n as u64).min(conn.unsent);
                    conn.since = now_ns();
                }
                Err(e) => match e.raw_os_error() {
                    Some(libc::EAGAIN) => return ServedConnection::Waits,
                    Some(libc::EINTR) => {}
                    _ => return ServedConnection::Over,
                },
            }
        }
        ServedConnection::Waits
    }

    /// Closes idle connections: their client vanished, or is deliberately slow.
    fn forget_idle(&mut self, now: u64) {
        for key in 0..self.open.len() {
            let Some(place) = self.open.get_mut(key) else { continue };
            if place.as_ref().is_some_and(|c| now.saturating_sub(c.since) > IDLE_NS) {
                *place = None;
                self.closed(key);
            }
        }
    }

    /// Accepts and counts connections that were in transit when the test ended.
    fn accept_late(&mut self) {
        let mut until = now_ns() + LATE_NS;
        let last = until + 10 * LATE_NS;
        while now_ns() < until.min(last) {
            if self.accept() > 0 {
                until = now_ns() + LATE_NS;
            } else {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
}
