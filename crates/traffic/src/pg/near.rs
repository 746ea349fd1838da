//! One thread: its connections on one epoll, a `send` and a `recv` for each statement.

use std::{
    collections::{BTreeSet, VecDeque},
    io,
    net::{IpAddr, SocketAddr},
};

use model::measure::{SocketOptions, Transport, Wait};
use socket2::{Domain, SockAddr, Socket, Type};

use super::{
    client::{Client, Next},
    conn::{Conn, Heard, Phase},
    login::{Credentials, Refused},
    plan::Plan,
    recorder::{Failed, Recorder},
    why,
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

/// Looks at the receiving CPU once in so many transactions.
const LOOK_EVERY: u64 = 1024;
/// Transactions begun without a look at those under way.
const BEGIN_AT_ONCE: usize = 64;
/// How long a connection rests after it failed without a transaction: whoever refuses shall not
/// be flooded.
const REST_NS: u64 = 10_000_000;
/// How often a thread that must not begin yet looks whether it may.
const GATE_NS: u64 = 100_000;
/// How long the last transactions may take to end after the run.
const DRAIN_NS: u64 = 1_000_000_000;
/// Room for what is received at a time.
const ROOM: usize = 64 << 10;

/// What is done, and how.
#[derive(Debug)]
pub struct Shape {
    pub to: SockAddr,
    pub transport: Transport,
    /// The server as it is named to people.
    pub name: String,
    pub from: Option<IpAddr>,
    pub socket: SocketOptions,
    pub who: Credentials,
    pub plan: Plan,
    pub connect_each: bool,
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
    /// So many transactions, which begin with the window: so does the schedule, whose times are
    /// then counted from there.
    pub quota: Option<u64>,
}

struct State<'r> {
    conns: Vec<Conn>,
    /// Those that may begin a transaction.
    idle: VecDeque<usize>,
    /// Those that rest, by the time until when.
    resting: BTreeSet<(u64, usize)>,
    /// Those whose script sleeps.
    sleeping: BTreeSet<(u64, usize)>,
    epoll: Epoll,
    room: Vec<u8>,
    recorder: &'r mut Recorder,
    looks: Looks,
    /// Transactions begun: which time of the schedule is next.
    next: u64,
    /// Sessions begun.
    logins: usize,
    /// Transactions that are over, well or not.
    settled: u64,
    /// Nothing more is begun.
    draining: bool,
}

impl Near<'_> {
    /// Runs until the team ends or the quota is fulfilled.
    pub fn run(&self, clients: Vec<Client>, recorder: &mut Recorder) {
        if let Err(why) = self.go(clients, recorder) {
            self.team.break_off(why);
        }
    }

    fn go(&self, clients: Vec<Client>, recorder: &mut Recorder) -> Result<(), Error> {
        let mut state = State {
            conns: clients.into_iter().map(Conn::new).collect(),
            idle: VecDeque::new(),
            resting: BTreeSet::new(),
            sleeping: BTreeSet::new(),
            epoll: Epoll::new().map_err(|e| Error::io("epoll", &e))?,
            room: vec![0; ROOM],
            recorder,
            looks: Looks::new(-1),
            next: 0,
            logins: 0,
            settled: 0,
            draining: false,
        };
        (0..state.conns.len()).try_for_each(|key| self.offer(&mut state, key))?;
        let patrol_every = (self.shape.timeout_ns / 8).clamp(1_000_000, 100_000_000);
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
        state.conns.iter_mut().for_each(Conn::close);
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

    /// A place without a connection may be used: it begins when its turn comes, or connects
    /// first.
    fn offer(&self, state: &mut State<'_>, key: usize) -> Result<(), Error> {
        let Some(conn) = state.conns.get(key) else { return Ok(()) };
        let waits = conn.client.running.is_some();
        match self.shape.connect_each && !waits {
            true => queue(state, key),
            false if state.draining && !waits => {}
            false => self.connect(state, key)?,
        }
        Ok(())
    }

    /// Begins what may begin, and says when there is more to do.
    fn begin_due(&self, state: &mut State<'_>) -> Result<u64, Error> {
        let now = now_ns();
        while let Some(key) = due_of(&mut state.resting, now) {
            self.offer(state, key)?;
        }
        while let Some(key) = due_of(&mut state.sleeping, now) {
            if state.conns.get(key).is_some_and(|c| (1..=now).contains(&c.wake_ns)) {
                self.go_on(state, key, now)?;
            }
        }
        let mut later = u64::MAX;
        for waiting in [&state.resting, &state.sleeping] {
            later = later.min(waiting.first().map_or(u64::MAX, |(until, _)| *until));
        }
        for _ in 0..BEGIN_AT_ONCE {
            let Some(&key) = state.idle.front() else { return Ok(later) };
            let now = now_ns();
            match self.due(state, now) {
                Due::At(due) if due > now => return Ok(due.min(later)),
                Due::At(_) => {}
                Due::Never => return Ok(later),
            }
            state.idle.pop_front();
            if let Some(conn) = state.conns.get_mut(key) {
                conn.queued = false;
            }
            self.refill(state, key, now)?;
        }
        Ok(0)
    }

    /// When the next transaction may begin.
    #[inline]
    fn due(&self, state: &State<'_>, now: u64) -> Due {
        if state.draining {
            return Due::Never;
        }
        if let Some(quota) = self.quota {
            if state.next >= quota {
                return Due::Never;
            }
            let begins = self.window.start_ns();
            if begins == u64::MAX {
                return Due::At(now + GATE_NS);
            }
            return Due::At(self.schedule.as_ref().map_or(now, |s| begins + s.due(state.next)));
        }
        Due::At(self.schedule.as_ref().map_or(now, |s| s.due(state.next)))
    }

    /// Begins a transaction, where one is due.
    fn refill(&self, state: &mut State<'_>, key: usize, now: u64) -> Result<(), Error> {
        let due = self.due(state, now);
        let Some(conn) = state.conns.get_mut(key) else { return Ok(()) };
        if conn.client.running.is_some() {
            return Ok(());
        }
        match due {
            Due::At(due_ns) if due_ns <= now => {
                conn.client.begin(&self.shape.plan, due_ns, now);
                let phase = conn.phase;
                state.next += 1;
                match phase {
                    Phase::Open => {
                        if self.advance(state, key, now)? {
                            queue(state, key);
                        }
                        Ok(())
                    }
                    Phase::Closed if self.shape.connect_each => self.connect(state, key),
                    _ => Ok(()),
                }
            }
            _ => {
                queue(state, key);
                Ok(())
            }
        }
    }

    /// Goes on with a transaction, and with the next one after its end.
    #[inline]
    fn go_on(&self, state: &mut State<'_>, key: usize, now: u64) -> Result<(), Error> {
        if self.advance(state, key, now)? {
            self.refill(state, key, now)?;
        }
        Ok(())
    }

    /// Goes on with a transaction; whether it is over and another may begin.
    #[inline]
    fn advance(&self, state: &mut State<'_>, key: usize, now: u64) -> Result<bool, Error> {
        let Some(conn) = state.conns.get_mut(key) else { return Ok(false) };
        if conn.client.running.is_none() || conn.phase != Phase::Open {
            return Ok(false);
        }
        conn.wake_ns = 0;
        let next = conn.client.advance(&self.shape.plan, now, &mut conn.out);
        if let Next::Sleep(until) = next {
            conn.wake_ns = until.max(1);
            state.sleeping.insert((conn.wake_ns, key));
        }
        if !conn.out.is_empty()
            && let Err(e) = conn.push()
        {
            // It may have answered before it hung up.
            self.hear(state, key, true, Some(e))?;
            return Ok(false);
        }
        match next {
            Next::Await | Next::Sleep(_) => Ok(false),
            Next::Over(result) => self.over(state, key, now, result),
            Next::Broken(broken) => Err(why::broken(&broken, &self.shape.plan)),
        }
    }

    /// A transaction is over.
    #[inline]
    fn over(
        &self,
        state: &mut State<'_>,
        key: usize,
        now: u64,
        result: Result<(), super::wire::ServerError>,
    ) -> Result<bool, Error> {
        let Some(conn) = state.conns.get_mut(key) else { return Ok(false) };
        let Some(running) = conn.client.running.take() else { return Ok(false) };
        conn.settled += 1;
        match result {
            Ok(()) => state.recorder.record(self.window, &running, now),
            Err(error) => {
                let named = state.recorder.named(&error);
                state.recorder.fail(self.window, Some(&running), running.due_ns, now, named);
            }
        }
        state.settled += 1;
        self.member.handled(state.settled);
        if state.settled.is_multiple_of(LOOK_EVERY) {
            state.looks.turn_to(conn.fd());
            state.looks.look();
        }
        if self.shape.connect_each {
            conn.close();
            self.offer(state, key)?;
            return Ok(false);
        }
        Ok(true)
    }

    fn connect(&self, state: &mut State<'_>, key: usize) -> Result<(), Error> {
        let socket = match self.socket()? {
            Ok(socket) => socket,
            Err(errno) => return self.unconnected(state, key, Failed::Connecting(errno)),
        };
        let begun = now_ns();
        let errno = match socket.connect(&self.shape.to) {
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
            // A Unix socket's queue is full: no failure, only a wait.
            Some(libc::EAGAIN) if self.shape.transport == Transport::Unix => {
                state.resting.insert((begun + REST_NS / 10, key));
                Ok(())
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
        let domain = Domain::from(i32::from(shape.to.family()));
        let socket = match Socket::new(domain, Type::STREAM.nonblocking(), None) {
            Ok(socket) => socket,
            Err(e) => return Ok(Err(e.raw_os_error().unwrap_or(0))),
        };
        options::apply(&socket, shape.transport, &shape.socket, true)?;
        if shape.wait == Wait::BusyPoll {
            let _ = options::prepare(&socket, shape.wait);
        }
        if let Some(from) = shape.from {
            let level = if from.is_ipv6() { libc::IPPROTO_IPV6 } else { libc::IPPROTO_IP };
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
            Phase::Connecting => match if ready.broken { conn.outcome() } else { Ok(()) } {
                Ok(()) if ready.writable || ready.readable => conn.greet(&self.shape.who),
                Ok(()) => return Ok(()),
                Err(errno) => return self.unconnected(state, key, Failed::Connecting(errno)),
            },
            Phase::LoggingIn | Phase::Open => {}
        }
        if ready.writable
            && !conn.out.is_empty()
            && let Err(e) = conn.push()
        {
            return self.hear(state, key, true, Some(e));
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
        let (mut some, mut now) = (false, 0);
        let end = loop {
            let State { conns, room, recorder, .. } = state;
            let Some(conn) = conns.get_mut(key) else { return Ok(()) };
            if !matches!(conn.phase, Phase::Open | Phase::LoggingIn) {
                return Ok(());
            }
            let n = match conn.receive(room) {
                Ok(0) => break Some(Failed::Closed),
                Ok(n) => n,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break unsent.map(talking),
                Err(e) => break Some(talking(unsent.unwrap_or(e))),
            };
            now = now_ns();
            let bytes = room.get(..n).unwrap_or_default();
            let heard = conn.took(bytes, &self.shape.who, &self.shape.plan, |number, sent| {
                recorder.statement(self.window, number, sent, now);
            });
            match heard {
                Heard::Nothing => {}
                Heard::Some => some = true,
                Heard::LoggedIn => {
                    some = true;
                    self.logged_in(state, key, now);
                }
                Heard::Refused(refused) => return self.refused(state, key, refused),
                Heard::Bad(why) => break Some(Failed::Bad(why)),
            }
            if n < state.room.len() && !to_the_end {
                break None;
            }
        };
        if let Some(conn) = state.conns.get_mut(key).filter(|c| c.phase == Phase::LoggingIn)
            && let Err(e) = conn.push()
            && end.is_none()
        {
            return self.lost(state, key, talking(e));
        }
        match end {
            Some(why) => self.lost(state, key, why),
            None if some => self.go_on(state, key, now),
            None => Ok(()),
        }
    }

    #[cold]
    fn logged_in(&self, state: &mut State<'_>, key: usize, now: u64) {
        let places = state.conns.len();
        let Some(conn) = state.conns.get(key) else { return };
        let waits = conn.client.running.is_none();
        if !self.shape.connect_each || self.window.holds(now) {
            state.recorder.connect.record(now.saturating_sub(conn.begun_ns));
        }
        // Of the first connections alone: later ones are made while others work.
        if state.logins < places {
            state.recorder.connected_ns = now;
        }
        state.logins += 1;
        if waits {
            queue(state, key);
        }
    }

    #[cold]
    fn refused(&self, state: &mut State<'_>, key: usize, refused: Refused) -> Result<(), Error> {
        match &refused {
            Refused::Server(error) if why::will_pass(error) => {
                let named = state.recorder.named(error);
                self.unconnected(state, key, named)
            }
            _ => Err(why::refused(&refused, &self.shape.name, &self.shape.who)),
        }
    }

    /// A connection has ended: the transaction on it has failed.
    #[cold]
    fn lost(&self, state: &mut State<'_>, key: usize, why: Failed) -> Result<(), Error> {
        let Some(conn) = state.conns.get_mut(key) else { return Ok(()) };
        let now = now_ns();
        if conn.phase == Phase::LoggingIn {
            return self.unconnected(state, key, why);
        }
        let why = match conn.client.take_error() {
            Some(error) => state.recorder.named(&error),
            None => why,
        };
        conn.close();
        match conn.client.running.take() {
            Some(running) => {
                state.settled += 1;
                state.recorder.fail(self.window, Some(&running), running.due_ns, now, why);
            }
            None => state.recorder.reconnects += 1,
        }
        if conn.settled == 0 {
            state.resting.insert((now + REST_NS, key));
            return Ok(());
        }
        self.offer(state, key)
    }

    /// No session came about: the transaction that waited for it has failed, or the one that
    /// would have been begun.
    #[cold]
    fn unconnected(&self, state: &mut State<'_>, key: usize, why: Failed) -> Result<(), Error> {
        let now = now_ns();
        let due = self.due(state, now);
        let Some(conn) = state.conns.get_mut(key) else { return Ok(()) };
        conn.close();
        let running = conn.client.running.take();
        let due_ns = match (&running, due) {
            (Some(running), _) => Some(running.due_ns),
            (None, Due::At(due_ns)) if due_ns <= now => {
                state.next += 1;
                Some(due_ns)
            }
            _ => None,
        };
        if let Some(due_ns) = due_ns {
            state.settled += 1;
            state.recorder.fail(self.window, running.as_ref(), due_ns, now, why);
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
                Phase::Connecting | Phase::LoggingIn => conn.begun_ns,
                Phase::Open => conn.client.waits_since().unwrap_or(now),
            };
            if now.saturating_sub(since) < self.shape.timeout_ns {
                continue;
            }
            match conn.phase {
                Phase::Open => self.lost(state, key, Failed::NoAnswer)?,
                _ => self.unconnected(state, key, Failed::NoConnection)?,
            }
        }
        Ok(())
    }

    /// Lets the window's transactions under way end.
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
            let later = self.begin_due(state)?;
            self.turn(state, until.min(later))?;
            left = self.left(state);
        }
        state.recorder.unfinished = left;
        Ok(())
    }

    /// Transactions of the window under way.
    fn left(&self, state: &State<'_>) -> u64 {
        let all = state.conns.iter().filter_map(|c| c.client.running.as_ref());
        all.filter(|r| self.window.holds(r.due_ns)).count() as u64
    }
}

fn queue(state: &mut State<'_>, key: usize) {
    if let Some(conn) = state.conns.get_mut(key).filter(|c| !c.queued) {
        conn.queued = true;
        state.idle.push_back(key);
    }
}

/// The first of those whose time has come.
fn due_of(waiting: &mut BTreeSet<(u64, usize)>, now: u64) -> Option<usize> {
    waiting.first().filter(|(until, _)| *until <= now)?;
    waiting.pop_first().map(|(_, key)| key)
}

/// When the next transaction may begin.
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
