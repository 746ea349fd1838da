//! One thread: its connections on one epoll, a `send` and a `recv` for each statement.

mod answer;
mod begin;
mod connect;
mod over;

use super::{
    client::Client,
    conn::{Conn, Phase},
    login::Credentials,
    plan::Plan,
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

/// What is done, and how.
#[derive(Debug)]
pub struct PgShape {
    pub way: DialPath,
    /// The server as it is named to people.
    pub name: String,
    pub who: Credentials,
    /// How TLS is spoken there, where it is.
    pub tls: Option<Tls>,
    /// Whether its certificate is checked.
    pub verifies: bool,
    pub plan: Plan,
    pub connect_each: bool,
    pub timeout_ns: u64,
}

pub struct PgClient<'a> {
    pub shape: &'a PgShape,
    pub duty: &'a WorkerTask<'a>,
}

struct PgLoop<'r> {
    conns: Vec<Conn>,
    /// Those that may begin a transaction.
    idle: Queue,
    resting: Until,
    /// Those whose script sleeps.
    sleeping: Until,
    epoll: Epoll,
    rooms: Rooms,
    recorder: &'r mut Recorder,
    looks: Looks,
    /// Transactions begun: which time of the schedule is next.
    next: u64,
    logins: usize,
    /// Transactions that are over, well or not.
    settled: u64,
    /// Nothing more is begun.
    draining: bool,
}

impl PgClient<'_> {
    /// Runs until the pool ends or the quota is fulfilled.
    pub fn run(&self, clients: Vec<Client>, recorder: &mut Recorder) {
        if let Err(why) = self.go(clients, recorder) {
            self.duty.pool.break_off(why);
        }
    }

    fn go(&self, clients: Vec<Client>, recorder: &mut Recorder) -> Result<(), Error> {
        let mut state = PgLoop {
            conns: clients.into_iter().map(Conn::new).collect(),
            idle: Queue::new(self.duty.connections.len()),
            resting: Until::default(),
            sleeping: Until::default(),
            epoll: Epoll::new().map_err(|e| Error::io("epoll", &e))?,
            rooms: Rooms::new(ROOM, self.shape.tls.is_some()),
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
        state.conns.iter_mut().for_each(Conn::close);
        Ok(())
    }

    /// Hears what changed until a time.
    fn turn(&self, state: &mut PgLoop<'_>, until: u64) -> Result<(), Error> {
        state.epoll.wait(self.shape.way.wait, until);
        let mut n = 0;
        while let Some(ready) = state.epoll.nth(n) {
            n += 1;
            self.ready(state, ready)?;
        }
        Ok(())
    }

    #[inline]
    fn ready(&self, state: &mut PgLoop<'_>, ready: Ready) -> Result<(), Error> {
        let key = ready.key;
        let Some(conn) = state.conns.get_mut(key) else { return Ok(()) };
        match conn.phase {
            Phase::Closed => return Ok(()),
            Phase::Connecting => match if ready.broken { conn.link.outcome() } else { Ok(()) } {
                Ok(()) if ready.writable || ready.readable => self.connected(state, key)?,
                Ok(()) => return Ok(()),
                Err(errno) => return self.unconnected(state, key, Failed::Connecting(errno)),
            },
            Phase::Asking => return self.answered(state, key, ready.ended),
            Phase::Shaking => return self.shake(state, key, ready.ended),
            Phase::LoggingIn | Phase::Open => {}
        }
        let Some(conn) = state.conns.get_mut(key) else { return Ok(()) };
        if ready.writable
            && conn.has_more()
            && let Err(e) = conn.push()
        {
            return self.hear(state, key, true, Some(e));
        }
        match ready.readable {
            true => self.hear(state, key, ready.ended, None),
            false => Ok(()),
        }
    }
}
