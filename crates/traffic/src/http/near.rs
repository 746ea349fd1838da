//! One thread: its connections on one epoll, a `send` and a `recv` for each request.

use std::{
    collections::{BTreeSet, VecDeque},
    io,
    net::{IpAddr, SocketAddr},
};

use model::measure::{SocketOptions, Transport, Wait};
use socket2::{Domain, Protocol, Socket, Type};

use super::{
    conn::{Asked, Conn, Phase},
    recorder::{Failed, Recorder},
};
use crate::{
    Error,
    net::{
        epoll::{Epoll, Ready},
        incoming::Looks,
        now_ns, options,
    },
    rtt::{many::Schedule, recorder::Window},
    team::{Member, Team},
};

/// Looks at the receiving CPU once in so many responses.
const LOOK_EVERY: u64 = 1024;
/// Requests begun without a look at those under way.
const BEGIN_AT_ONCE: usize = 64;
/// How long a connection rests after it failed without a response: whoever refuses shall not be
/// flooded.
const REST_NS: u64 = 10_000_000;
/// How often a thread that must not begin yet looks whether it may.
const GATE_NS: u64 = 100_000;
/// How long a server that said it closes is waited for.
const LINGER_NS: u64 = 20_000_000;
/// How long the last requests may take to end after the run.
const DRAIN_NS: u64 = 1_000_000_000;
/// Room for what is received at a time.
const ROOM: usize = 64 << 10;

/// What is asked, and how.
#[derive(Debug)]
pub struct Shape {
    pub to: SocketAddr,
    pub from: Option<IpAddr>,
    pub socket: SocketOptions,
    pub requests: Vec<Vec<u8>>,
    pub is_head: bool,
    pub pipeline: u32,
    pub new_connections: bool,
    pub wait: Wait,
    pub timeout_ns: u64,
}

/// One thread's work.
pub struct Near<'a> {
    pub shape: &'a Shape,
    pub window: &'a Window,
    pub team: &'a Team,
    pub member: &'a Member,
    pub schedule: Option<Schedule>,
    /// So many requests, which begin with the window: so does the schedule, whose times are then
    /// counted from there.
    pub quota: Option<u64>,
}

struct State<'r> {
    conns: Vec<Conn>,
    /// Those that may be asked.
    idle: VecDeque<usize>,
    /// Those that rest, by the time until when.
    resting: BTreeSet<(u64, usize)>,
    epoll: Epoll,
    room: Vec<u8>,
    recorder: &'r mut Recorder,
    looks: Looks,
    done: u64,
    /// Requests begun: which time of the schedule is next, which of the requests.
    next: u64,
    /// Requests that are over, well or not.
    settled: u64,
    /// Nothing more is begun.
    draining: bool,
}

impl Near<'_> {
    /// Runs until the team ends or the quota is fulfilled.
    pub fn run(&self, conns: usize, recorder: &mut Recorder) {
        if let Err(why) = self.go(conns, recorder) {
            self.team.break_off(why);
        }
    }

    fn go(&self, conns: usize, recorder: &mut Recorder) -> Result<(), Error> {
        let shape = self.shape;
        let mut state = State {
            conns: (0..conns).map(|_| Conn::new(shape.pipeline, shape.is_head)).collect(),
            idle: VecDeque::with_capacity(conns),
            resting: BTreeSet::new(),
            epoll: Epoll::new().map_err(|e| Error::io("epoll", &e))?,
            room: vec![0; ROOM],
            recorder,
            looks: Looks::new(-1),
            done: 0,
            next: 0,
            settled: 0,
            draining: false,
        };
        (0..conns).try_for_each(|key| self.offer(&mut state, key))?;
        let patrol_every = (shape.timeout_ns / 8).clamp(1_000_000, 100_000_000);
        let mut patrol = now_ns() + patrol_every;
        while !self.team.stopping() && self.quota.is_none_or(|q| state.settled < q) {
            let until = self.begin_due(&mut state)?.min(patrol);
            self.turn(&mut state, until)?;
            if now_ns() >= patrol {
                self.give_up(&mut state)?;
                patrol = now_ns() + patrol_every;
            }
        }
        self.drain(&mut state)?;
        self.member.see(|seen| state.looks.tell(seen));
        state.recorder.server = state.conns.iter_mut().find_map(|c| c.parser.server.take());
        Ok(())
    }

    /// Hears what changed until a time.
    fn turn(&self, state: &mut State<'_>, until: u64) -> Result<(), Error> {
        state.epoll.wait(self.shape.wait, until);
        let mut n = 0;
        while let Some(ready) = state.epoll.nth(n) {
            n += 1;
            self.ready(state, ready)?;
        }
        Ok(())
    }

    /// A place without a connection may be used: it is asked when its turn comes, or connects
    /// first.
    fn offer(&self, state: &mut State<'_>, key: usize) -> Result<(), Error> {
        let Some(conn) = state.conns.get(key) else { return Ok(()) };
        let waits = !conn.asked.is_empty();
        match self.shape.new_connections && !waits {
            true => self.queue(state, key),
            false if state.draining && !waits => {}
            false => self.connect(state, key)?,
        }
        Ok(())
    }

    fn queue(&self, state: &mut State<'_>, key: usize) {
        if let Some(conn) = state.conns.get_mut(key).filter(|c| !c.queued) {
            conn.queued = true;
            state.idle.push_back(key);
        }
    }

    /// Begins what may begin, and says when there is more to do.
    fn begin_due(&self, state: &mut State<'_>) -> Result<u64, Error> {
        let now = now_ns();
        while let Some(&(until, key)) = state.resting.first() {
            if until > now {
                break;
            }
            state.resting.pop_first();
            self.offer(state, key)?;
        }
        let rested = state.resting.first().map_or(u64::MAX, |(until, _)| *until);
        for _ in 0..BEGIN_AT_ONCE {
            let Some(&key) = state.idle.front() else { return Ok(rested) };
            let now = now_ns();
            match self.due(state, now) {
                Due::At(due) if due > now => return Ok(due.min(rested)),
                Due::At(_) => {}
                Due::Never => return Ok(rested),
            }
            state.idle.pop_front();
            if let Some(conn) = state.conns.get_mut(key) {
                conn.queued = false;
            }
            self.refill(state, key, now)?;
        }
        Ok(0)
    }

    /// When the next request may begin.
    #[inline]
    fn due(&self, state: &State<'_>, now: u64) -> Due {
        if let Some(quota) = self.quota {
            if state.next >= quota {
                return Due::Never;
            }
            let begins = self.window.start_ns();
            if begins == u64::MAX {
                return Due::At(now + GATE_NS);
            }
            let due = self.schedule.as_ref().map_or(now, |s| begins + s.due(state.next));
            return if state.draining { Due::Never } else { Due::At(due) };
        }
        if state.draining {
            return Due::Never;
        }
        Due::At(self.schedule.as_ref().map_or(now, |s| s.due(state.next)))
    }

    /// Asks on a connection as much as may be: in open loop one request, for others may be free.
    fn refill(&self, state: &mut State<'_>, key: usize, now: u64) -> Result<(), Error> {
        let shape = self.shape;
        let mut begun = false;
        loop {
            let full = |c: &Conn| c.asked.len() >= shape.pipeline as usize;
            if state.conns.get(key).is_none_or(full) {
                break;
            }
            let due = self.due(state, now);
            let Some(conn) = state.conns.get_mut(key) else { return Ok(()) };
            let open_loop_has_one = begun && self.schedule.is_some();
            match due {
                Due::At(due_ns) if due_ns <= now && !open_loop_has_one => {
                    let which = (state.next % shape.requests.len().max(1) as u64) as usize;
                    conn.asked.push_back(Asked { due_ns, sent_ns: now, first_ns: 0, which });
                    state.next += 1;
                    begun = true;
                }
                _ => {
                    self.queue(state, key);
                    break;
                }
            }
        }
        match begun {
            true if shape.new_connections => self.connect(state, key),
            true => self.push(state, key),
            false => Ok(()),
        }
    }

    fn push(&self, state: &mut State<'_>, key: usize) -> Result<(), Error> {
        let Some(conn) = state.conns.get_mut(key) else { return Ok(()) };
        match conn.push(&self.shape.requests) {
            Ok(()) => Ok(()),
            // It may have answered before it hung up.
            Err(e) => self.hear(state, key, true, Some(e)),
        }
    }

    fn connect(&self, state: &mut State<'_>, key: usize) -> Result<(), Error> {
        let socket = match self.socket()? {
            Ok(socket) => socket,
            Err(errno) => return self.unconnected(state, key, Failed::Connecting(errno)),
        };
        let begun = now_ns();
        let errno = match socket.connect(&self.shape.to.into()) {
            Ok(()) => None,
            Err(e) => Some(e.raw_os_error().unwrap_or(0)),
        };
        let Some(conn) = state.conns.get_mut(key) else { return Ok(()) };
        match errno {
            None | Some(libc::EINPROGRESS) => {
                conn.take(socket, begun);
                // One that is established already is told of, too.
                state.epoll.add_once(conn.fd(), key).map_err(|e| Error::io("epoll", &e))
            }
            Some(errno) => self.unconnected(state, key, Failed::Connecting(errno)),
        }
    }

    /// A socket ready for `connect`, or the errno of what it lacks: descriptors, memory.
    ///
    /// # Errors
    /// An option or address that was asked for is refused: that will not get better.
    fn socket(&self) -> Result<Result<Socket, i32>, Error> {
        let shape = self.shape;
        let domain = Domain::for_address(shape.to);
        let socket = match Socket::new(domain, Type::STREAM.nonblocking(), Some(Protocol::TCP)) {
            Ok(socket) => socket,
            Err(e) => return Ok(Err(e.raw_os_error().unwrap_or(0))),
        };
        // A connection for one request needs no option that was not asked for: each is a call.
        if !shape.new_connections || shape.socket != SocketOptions::default() {
            options::apply(&socket, Transport::Tcp, &shape.socket, true)?;
        }
        if shape.wait == Wait::BusyPoll {
            let _ = options::prepare(&socket, shape.wait);
        }
        if let Some(from) = shape.from {
            let six = from.is_ipv6();
            let level = if six { libc::IPPROTO_IPV6 } else { libc::IPPROTO_IP };
            let _ = options::set(&socket, level, libc::IP_BIND_ADDRESS_NO_PORT, 1);
            socket
                .bind(&SocketAddr::new(from, 0).into())
                .map_err(|e: io::Error| Error::io(format!("cannot send from {from}"), &e))?;
        }
        Ok(Ok(socket))
    }

    #[inline]
    fn ready(&self, state: &mut State<'_>, ready: Ready) -> Result<(), Error> {
        let key = ready.key;
        let Some(conn) = state.conns.get_mut(key) else { return Ok(()) };
        match conn.phase {
            Phase::Closed => return Ok(()),
            Phase::Lingering if ready.ended => return self.closed(state, key),
            Phase::Lingering => return Ok(()),
            Phase::Connecting => match if ready.broken { conn.outcome() } else { Ok(()) } {
                Ok(()) if ready.writable || ready.readable => {
                    let now = now_ns();
                    conn.phase = Phase::Open;
                    let took = now.saturating_sub(conn.begun_ns);
                    if !self.shape.new_connections || self.window.holds(now) {
                        state.recorder.connect.record(took);
                    }
                    conn.asked.iter_mut().for_each(|a| a.sent_ns = now);
                    match conn.asked.is_empty() {
                        true => self.queue(state, key),
                        false => self.push(state, key)?,
                    }
                }
                Ok(()) => return Ok(()),
                Err(errno) => return self.unconnected(state, key, Failed::Connecting(errno)),
            },
            Phase::Open if ready.writable => self.push(state, key)?,
            Phase::Open => {}
        }
        match ready.readable {
            true => self.hear(state, key, ready.ended, None),
            false => Ok(()),
        }
    }

    /// Takes what came, `to_the_end` where the server sends no more.
    fn hear(
        &self,
        state: &mut State<'_>,
        key: usize,
        to_the_end: bool,
        unsent: Option<io::Error>,
    ) -> Result<(), Error> {
        let (mut answers, mut now) = (0u64, 0);
        let end = loop {
            let State { conns, room, recorder, .. } = state;
            let Some(conn) = conns.get_mut(key).filter(|c| c.phase == Phase::Open) else {
                return Ok(());
            };
            let n = match conn.receive(room) {
                Ok(n) => n,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break unsent.map(talking),
                Err(e) => break Some(talking(unsent.unwrap_or(e))),
            };
            now = now_ns();
            let mut whole = |asked: &Asked, answer: super::response::Answer, bytes: u64| {
                answers += 1;
                recorder.record(self.window, asked, now, answer.status, bytes);
            };
            if n == 0 {
                conn.ended(&mut whole);
                let within = conn.is_within();
                break Some(if within { Failed::ClosedWithin } else { Failed::ClosedBefore });
            }
            let bytes = room.get(..n).unwrap_or_default();
            if let Err(why) = conn.took(bytes, now, &mut whole) {
                break Some(Failed::Bad(why));
            }
            if conn.closing || (n < room.len() && !to_the_end) {
                break None;
            }
        };
        self.heard(state, key, answers);
        let Some(conn) = state.conns.get_mut(key) else { return Ok(()) };
        let closing = conn.closing || (self.shape.new_connections && answers > 0);
        match end {
            // The server said that it closes: then the TIME_WAIT is there and not here.
            None if self.shape.new_connections && conn.closing && !to_the_end => {
                (conn.phase, conn.begun_ns) = (Phase::Lingering, now);
                Ok(())
            }
            _ if closing => self.closed(state, key),
            Some(why) => self.lost(state, key, why),
            None if answers > 0 => self.refill(state, key, now),
            None => Ok(()),
        }
    }

    #[inline]
    fn heard(&self, state: &mut State<'_>, key: usize, answers: u64) {
        if answers == 0 {
            return;
        }
        state.settled += answers;
        state.done += answers;
        self.member.handled(state.done);
        if state.done % LOOK_EVERY < answers {
            state.looks.turn_to(state.conns.get(key).map_or(-1, Conn::fd));
            state.looks.look();
        }
    }

    /// The last response on a connection has come.
    fn closed(&self, state: &mut State<'_>, key: usize) -> Result<(), Error> {
        let Some(conn) = state.conns.get_mut(key) else { return Ok(()) };
        conn.close();
        if !self.shape.new_connections {
            state.recorder.reconnects += 1;
        }
        self.offer(state, key)
    }

    /// A connection has ended without having said so: the request whose turn it was has failed,
    /// those behind it are sent again.
    #[cold]
    fn lost(&self, state: &mut State<'_>, key: usize, why: Failed) -> Result<(), Error> {
        let Some(conn) = state.conns.get_mut(key) else { return Ok(()) };
        let (now, answered) = (now_ns(), conn.answered);
        conn.close();
        match conn.asked.pop_front() {
            Some(asked) => {
                state.settled += 1;
                state.recorder.fail(self.window, asked.due_ns, now, why);
            }
            // Between responses a server may.
            None => state.recorder.reconnects += 1,
        }
        if answered == 0 {
            state.resting.insert((now + REST_NS, key));
            return Ok(());
        }
        self.offer(state, key)
    }

    /// No connection came about: the request that waited for it has failed, or the one that would
    /// have been begun.
    #[cold]
    fn unconnected(&self, state: &mut State<'_>, key: usize, why: Failed) -> Result<(), Error> {
        let now = now_ns();
        let due = self.due(state, now);
        let Some(conn) = state.conns.get_mut(key) else { return Ok(()) };
        conn.close();
        let due_ns = match (conn.asked.pop_front(), due) {
            (Some(asked), _) => Some(asked.due_ns),
            (None, Due::At(due_ns)) if due_ns <= now => {
                state.next += 1;
                Some(due_ns)
            }
            _ => None,
        };
        if let Some(due_ns) = due_ns {
            state.settled += 1;
            state.recorder.fail(self.window, due_ns, now, why);
        }
        state.resting.insert((now + REST_NS, key));
        Ok(())
    }

    /// What took too long has failed.
    fn give_up(&self, state: &mut State<'_>) -> Result<(), Error> {
        let now = now_ns();
        for key in 0..state.conns.len() {
            let Some(conn) = state.conns.get(key) else { continue };
            let since = match conn.phase {
                Phase::Closed => continue,
                Phase::Connecting => conn.begun_ns,
                Phase::Lingering => {
                    if now.saturating_sub(conn.begun_ns) >= LINGER_NS {
                        self.closed(state, key)?;
                    }
                    continue;
                }
                Phase::Open => conn.asked.front().map_or(now, |a| a.sent_ns),
            };
            if now.saturating_sub(since) < self.shape.timeout_ns {
                continue;
            }
            match conn.phase {
                Phase::Connecting => self.unconnected(state, key, Failed::NoConnection)?,
                _ => self.lost(state, key, Failed::NoAnswer)?,
            }
        }
        Ok(())
    }

    /// Lets the window's requests under way end.
    fn drain(&self, state: &mut State<'_>) -> Result<(), Error> {
        if let Some(schedule) = self.schedule.as_ref().filter(|_| self.quota.is_none()) {
            let until = self.window.end_ns().min(now_ns());
            let first = schedule.number_at(self.window.start_ns()).max(state.next);
            state.recorder.not_begun = schedule.number_at(until).saturating_sub(first);
        }
        state.draining = true;
        let until = now_ns() + DRAIN_NS;
        let mut left = self.left(state);
        while left > 0 && self.team.broken().is_none() && now_ns() < until {
            let rested = self.begin_due(state)?;
            self.turn(state, until.min(rested))?;
            left = self.left(state);
        }
        state.recorder.unfinished = left;
        Ok(())
    }

    /// Requests of the window under way.
    fn left(&self, state: &State<'_>) -> u64 {
        let all = state.conns.iter().flat_map(|c| &c.asked);
        all.filter(|a| self.window.holds(a.due_ns)).count() as u64
    }
}

/// When the next request may begin.
#[derive(Debug, Clone, Copy)]
enum Due {
    At(u64),
    /// There is none.
    Never,
}

fn talking(e: io::Error) -> Failed {
    match e.raw_os_error() {
        // After a reset the kernel says this of a write.
        Some(libc::EPIPE) | None => Failed::Talking(libc::ECONNRESET),
        Some(errno) => Failed::Talking(errno),
    }
}
