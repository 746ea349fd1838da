//! One client thread of `measure connect`: keeps a number of connections in progress on one epoll.
//! Each costs `socket`, `connect`, one registration, and its data.

use std::{
    collections::{BTreeSet, VecDeque},
    io,
    net::{IpAddr, SocketAddr},
    os::fd::AsRawFd,
};

use model::measure::{Close, SocketOptions, Transport, Wait};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use super::{
    ConnectShape,
    recorder::{Failed, Recorder},
    slot::{ConnectionEnd, Slot},
};
use crate::{
    Error,
    engine::{
        rx_cpu_samples::RxCpuSamples,
        schedule::Schedule,
        window::Window,
        worker_pool::{Worker, WorkerPool},
    },
    net::{
        epoll::{Epoll, Ready},
        now_ns, options,
    },
};

/// Reads the receiving CPU once per this many connections.
const LOOK_EVERY: u64 = 256;
/// Most connections begun before those under way are served again.
const BEGIN_AT_ONCE: usize = 64;
/// How long a flow rests after a failed attempt, to avoid flooding a server that refuses.
const REST_NS: u64 = 10_000_000;
/// Retry interval while the queue of a Unix socket is full.
const QUEUE_REST_NS: u64 = 200_000;
/// How long a thread pauses without a free local port: each search makes the kernel walk all ports.
const PORTS_REST_NS: u64 = 100_000_000;
/// How long the last connections may take to end after the run.
const DRAIN_NS: u64 = 1_000_000_000;
/// Size of the send and receive buffer.
const ROOM: usize = 64 << 10;

/// Target and local addresses of the connections.
#[derive(Debug, Clone)]
pub struct ConnectPath {
    pub to: SockAddr,
    /// Local addresses, used in turn; if empty, the kernel chooses.
    pub from: Vec<IpAddr>,
    pub socket: SocketOptions,
}

pub struct ConnectClient<'a> {
    pub shape: &'a ConnectShape,
    pub way: &'a ConnectPath,
    pub window: &'a Window,
    pub pool: &'a WorkerPool,
    pub worker: &'a Worker,
    pub schedule: Option<Schedule>,
}

struct ConnectLoop<'r> {
    slots: Vec<Slot>,
    /// Flows that may begin a connection.
    idle: VecDeque<usize>,
    /// Resting flows, by the time when they resume.
    resting: BTreeSet<(u64, usize)>,
    /// No new connections before this time: no local port is free.
    no_ports_until: u64,
    epoll: Epoll,
    room: Vec<u8>,
    recorder: &'r mut Recorder,
    rx_cpus: RxCpuSamples,
    done: u64,
    /// Number of attempts begun: selects the local address and the schedule's time.
    next: u64,
}

impl ConnectClient<'_> {
    /// Runs until the pool ends, then until the connections under way have ended.
    pub fn run(&self, flows: usize, recorder: &mut Recorder) {
        if let Err(why) = self.go(flows, recorder) {
            self.pool.break_off(why);
        }
    }

    fn go(&self, flows: usize, recorder: &mut Recorder) -> Result<(), Error> {
        let mut state = ConnectLoop {
            slots: (0..flows).map(|_| Slot::default()).collect(),
            idle: (0..flows).collect(),
            resting: BTreeSet::new(),
            no_ports_until: 0,
            epoll: Epoll::new().map_err(|e| Error::io("epoll", &e))?,
            room: vec![0; ROOM],
            recorder,
            rx_cpus: RxCpuSamples::new(-1),
            done: 0,
            next: 0,
        };
        let warning = state.epoll.busy_poll(self.shape.wait);
        self.worker.see(|seen| seen.warnings.extend(warning));
        let patrol_every = (self.shape.timeout_ns / 8).clamp(1_000_000, 100_000_000);
        let mut patrol = now_ns() + patrol_every;
        while !self.pool.stopping() {
            let until = self.begin_due(&mut state)?.min(patrol);
            self.turn(&mut state, until);
            if now_ns() >= patrol {
                self.give_up(&mut state);
                patrol = now_ns() + patrol_every;
            }
        }
        self.drain(&mut state);
        self.worker.see(|seen| state.rx_cpus.add_to(seen));
        Ok(())
    }

    /// Handles socket events until a time.
    fn turn(&self, state: &mut ConnectLoop<'_>, until: u64) {
        state.epoll.wait(self.shape.wait, until);
        let (mut n, mut now) = (0, 0);
        while let Some(ready) = state.epoll.nth(n) {
            // All of these were ready when epoll returned: one timestamp for all.
            if n == 0 {
                now = now_ns();
            }
            n += 1;
            self.hear(state, ready, now);
        }
    }

    /// Begins due connections; returns when the next is due.
    fn begin_due(&self, state: &mut ConnectLoop<'_>) -> Result<u64, Error> {
        let now = now_ns();
        while let Some(&(until, key)) = state.resting.first() {
            if until > now {
                break;
            }
            state.resting.pop_first();
            state.idle.push_back(key);
        }
        for _ in 0..BEGIN_AT_ONCE {
            let now = now_ns();
            let rested = state.resting.first().map_or(u64::MAX, |(until, _)| *until);
            if state.no_ports_until > now {
                return Ok(state.no_ports_until);
            }
            let Some(&key) = state.idle.front() else { return Ok(rested) };
            let Some(slot) = state.slots.get_mut(key) else { return Ok(rested) };
            // A retried connection keeps its time.
            if slot.begun_ns == 0 {
                let due = match &self.schedule {
                    Some(schedule) => schedule.due(state.next),
                    None => now,
                };
                if due > now {
                    return Ok(due.min(rested));
                }
                slot.due_ns = due;
                state.next += 1;
            }
            state.idle.pop_front();
            self.begin(state, key)?;
        }
        Ok(0)
    }

    fn begin(&self, state: &mut ConnectLoop<'_>, key: usize) -> Result<(), Error> {
        let socket = match self.socket(state.next)? {
            Ok(socket) => socket,
            Err(errno) => {
                self.failed(state, key, Failed::Connecting(errno), now_ns());
                return Ok(());
            }
        };
        let Some(slot) = state.slots.get_mut(key) else { return Ok(()) };
        let begun = now_ns();
        if slot.begun_ns == 0 {
            slot.begun_ns = begun;
            if self.schedule.is_none() {
                slot.due_ns = begun;
            }
        }
        let connected = socket.connect(&self.way.to);
        let fd = socket.as_raw_fd();
        let errno = connected.as_ref().err().map(|e| e.raw_os_error().unwrap_or(0));
        match errno {
            None => {
                slot.take(socket, self.shape);
                let came = slot.connected(self.shape, now_ns(), &mut state.room);
                state.recorder.established += 1;
                if matches!(came, ConnectionEnd::Waits)
                    && let Err(e) = state.epoll.add_once(fd, key)
                {
                    return Err(Error::io("epoll", &e));
                }
                self.became(state, key, came, now_ns());
            }
            Some(libc::EINPROGRESS) => {
                slot.take(socket, self.shape);
                state.epoll.add_once(fd, key).map_err(|e| Error::io("epoll", &e))?;
            }
            Some(libc::EAGAIN) if self.shape.transport == Transport::Unix => {
                self.queue_full(state, key, begun);
            }
            Some(errno) => self.failed(state, key, Failed::Connecting(errno), now_ns()),
        }
        Ok(())
    }

    /// The listener's queue is full; a Unix socket cannot wait for room in it.
    fn queue_full(&self, state: &mut ConnectLoop<'_>, key: usize, now: u64) {
        let begun = state.slots.get(key).map_or(0, |s| s.begun_ns);
        if now.saturating_sub(begun) >= self.shape.timeout_ns {
            self.failed(state, key, Failed::NoConnection, now);
        } else {
            state.resting.insert((now + QUEUE_REST_NS, key));
        }
    }

    /// A socket ready for `connect`, or the errno of a shortage: descriptors, memory.
    ///
    /// # Errors
    /// The kernel refuses a requested option or address; retrying does not help.
    fn socket(&self, number: u64) -> Result<Result<Socket, i32>, Error> {
        let domain = self.way.to.domain();
        let protocol = (domain != Domain::UNIX).then_some(Protocol::TCP);
        let socket = match Socket::new(domain, Type::STREAM.nonblocking(), protocol) {
            Ok(socket) => socket,
            Err(e) => return Ok(Err(e.raw_os_error().unwrap_or(0))),
        };
        // Only requested options are set: each costs a system call.
        if self.way.socket != SocketOptions::default() {
            options::apply(&socket, self.shape.transport, &self.way.socket, true)?;
        }
        if self.shape.wait == Wait::BusyPoll {
            let _ = options::prepare(&socket, self.shape.wait);
        }
        if !self.way.from.is_empty() {
            let at = (number % self.way.from.len() as u64) as usize;
            if let Some(from) = self.way.from.get(at) {
                // `connect` chooses the port, since it knows the destination: since 4.2.
                let six = from.is_ipv6();
                let level = if six { libc::IPPROTO_IPV6 } else { libc::IPPROTO_IP };
                let _ = options::set(&socket, level, libc::IP_BIND_ADDRESS_NO_PORT, 1);
                socket
                    .bind(&SocketAddr::new(*from, 0).into())
                    .map_err(|e: io::Error| Error::io(format!("cannot send from {from}"), &e))?;
            }
        }
        Ok(Ok(socket))
    }

    fn hear(&self, state: &mut ConnectLoop<'_>, ready: Ready, now: u64) {
        let Some(slot) = state.slots.get_mut(ready.key).filter(|s| s.is_busy()) else { return };
        let was = slot.is_connected();
        let came = slot.changed(self.shape, ready, now, &mut state.room);
        if !was && slot.is_connected() {
            state.recorder.established += 1;
        }
        self.became(state, ready.key, came, now);
    }

    fn became(&self, state: &mut ConnectLoop<'_>, key: usize, came: ConnectionEnd, now: u64) {
        match came {
            ConnectionEnd::Waits => {}
            ConnectionEnd::Failed(why) => self.failed(state, key, why, now),
            ConnectionEnd::Made(made) => {
                let Some(slot) = state.slots.get_mut(key) else { return };
                state.done += 1;
                if state.done.is_multiple_of(LOOK_EVERY) {
                    state.rx_cpus.turn_to(slot.fd().unwrap_or(-1));
                    state.rx_cpus.sample();
                }
                slot.end(self.shape.close);
                state.recorder.record(self.window, &made);
                self.worker.handled(state.done);
                state.idle.push_back(key);
            }
        }
    }

    /// Counts a failed attempt; the flow rests before it retries.
    #[cold]
    fn failed(&self, state: &mut ConnectLoop<'_>, key: usize, why: Failed, now: u64) {
        let Some(slot) = state.slots.get_mut(key) else { return };
        let due = slot.due_ns;
        slot.end(Close::Reset);
        state.recorder.fail(self.window, due, now, why);
        match why {
            Failed::Connecting(libc::EADDRNOTAVAIL) => {
                state.no_ports_until = now + PORTS_REST_NS;
                state.idle.push_back(key);
            }
            _ => {
                state.resting.insert((now + REST_NS, key));
            }
        }
    }

    /// Fails attempts that exceeded the timeout.
    fn give_up(&self, state: &mut ConnectLoop<'_>) {
        let now = now_ns();
        for key in 0..state.slots.len() {
            let Some(slot) = state.slots.get(key).filter(|s| s.is_busy()) else { continue };
            if now.saturating_sub(slot.begun_ns) < self.shape.timeout_ns {
                continue;
            }
            let connected = slot.is_connected();
            let why = if connected { Failed::NoAnswer } else { Failed::NoConnection };
            self.failed(state, key, why, now);
        }
    }

    /// Waits for connections under way to end, so that both ends count the same ones.
    fn drain(&self, state: &mut ConnectLoop<'_>) {
        self.count_never_begun(state);
        let until = now_ns() + DRAIN_NS;
        while self.pool.broken().is_none() && now_ns() < until {
            if !state.slots.iter().any(Slot::is_busy) {
                break;
            }
            self.turn(state, until);
        }
        state.recorder.unfinished = state.slots.iter().filter(|s| s.is_busy()).count() as u64;
    }

    fn count_never_begun(&self, state: &mut ConnectLoop<'_>) {
        let Some(schedule) = &self.schedule else { return };
        let until = self.window.end_ns().min(now_ns());
        let first = schedule.number_at(self.window.start_ns()).max(state.next);
        state.recorder.never_begun = schedule.number_at(until).saturating_sub(first);
    }
}
