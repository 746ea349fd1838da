//! One thread: its connections on one epoll, a `send` and a `recv` for each request.

mod answer;
mod begin;
mod connect;
mod over;

use super::{
    conn::{Conn, Phase},
    recorder::{Failed, Recorder},
};
use crate::{
    Error,
    net::{
        epoll::{Epoll, Ready},
        incoming::Looks,
        now_ns,
        tls::{Tls, conn::take_spent_ns},
    },
    served::{
        dial::DialPath,
        link::Rooms,
        places::{Queue, Until},
        workers::WorkerTask,
    },
};

/// Room for what is received at a time.
const ROOM: usize = 64 << 10;

/// What is asked, and how.
#[derive(Debug)]
pub struct HttpShape {
    pub way: DialPath,
    pub tls: Option<Tls>,
    pub requests: Vec<Vec<u8>>,
    pub is_head: bool,
    pub pipeline: u32,
    pub new_connections: bool,
    pub timeout_ns: u64,
}

pub struct HttpClient<'a> {
    pub shape: &'a HttpShape,
    pub duty: &'a WorkerTask<'a>,
}

struct HttpLoop<'r> {
    conns: Vec<Conn>,
    /// Those that may be asked.
    idle: Queue,
    resting: Until,
    epoll: Epoll,
    rooms: Rooms,
    recorder: &'r mut Recorder,
    looks: Looks,
    /// Those whose requests have begun and are not handed over yet.
    begun: Vec<usize>,
    done: u64,
    /// Requests begun: which time of the schedule is next, which of the requests.
    next: u64,
    /// Requests that are over, well or not.
    settled: u64,
    /// Nothing more is begun.
    draining: bool,
}

impl HttpClient<'_> {
    /// Runs until the pool ends or the quota is fulfilled.
    pub fn run(&self, recorder: &mut Recorder) {
        if let Err(why) = self.go(self.duty.connections.len(), recorder) {
            self.duty.pool.break_off(why);
        }
    }

    fn go(&self, conns: usize, recorder: &mut Recorder) -> Result<(), Error> {
        let shape = self.shape;
        let mut state = HttpLoop {
            conns: (0..conns).map(|_| Conn::new(shape.pipeline, shape.is_head)).collect(),
            idle: Queue::new(conns),
            resting: Until::default(),
            epoll: Epoll::new().map_err(|e| Error::io("epoll", &e))?,
            rooms: Rooms::new(ROOM, shape.tls.is_some()),
            recorder,
            looks: Looks::new(-1),
            begun: Vec::with_capacity(conns),
            done: 0,
            next: 0,
            settled: 0,
            draining: false,
        };
        (0..conns).try_for_each(|key| self.offer(&mut state, key))?;
        let patrol_every = (shape.timeout_ns / 8).clamp(1_000_000, 100_000_000);
        let mut patrol = now_ns() + patrol_every;
        while !self.duty.pool.stopping() && self.duty.pace.quota.is_none_or(|q| state.settled < q) {
            let until = self.begin_due(&mut state)?.min(patrol);
            self.turn(&mut state, until)?;
            if now_ns() >= patrol {
                self.give_up(&mut state)?;
                patrol = now_ns() + patrol_every;
            }
        }
        self.drain(&mut state)?;
        self.duty.worker.see(|seen| state.looks.tell(seen));
        state.recorder.handshakes.ciphered(take_spent_ns(), state.settled);
        state.recorder.server = state.conns.iter_mut().find_map(|c| c.parser.server.take());
        Ok(())
    }

    /// Hears what changed until a time.
    fn turn(&self, state: &mut HttpLoop<'_>, until: u64) -> Result<(), Error> {
        state.epoll.wait(self.shape.way.wait, until);
        let mut n = 0;
        while let Some(ready) = state.epoll.nth(n) {
            n += 1;
            self.ready(state, ready)?;
        }
        self.hand_over(state)
    }

    #[inline]
    fn ready(&self, state: &mut HttpLoop<'_>, ready: Ready) -> Result<(), Error> {
        let key = ready.key;
        let Some(conn) = state.conns.get_mut(key) else { return Ok(()) };
        match conn.phase {
            Phase::Closed => return Ok(()),
            Phase::Lingering if ready.ended => return self.closed(state, key),
            Phase::Lingering => return Ok(()),
            Phase::Connecting => match if ready.broken { conn.link.outcome() } else { Ok(()) } {
                Ok(()) if ready.writable || ready.readable => {
                    self.connected(state, key, ready.ended)?;
                }
                Ok(()) => return Ok(()),
                Err(errno) => return self.unconnected(state, key, Failed::Connecting(errno)),
            },
            Phase::Shaking => return self.shake(state, key, ready.ended),
            Phase::Open if ready.writable => self.push(state, key)?,
            Phase::Open => {}
        }
        match ready.readable {
            true => self.hear(state, key, ready.ended, None),
            false => Ok(()),
        }
    }
}
