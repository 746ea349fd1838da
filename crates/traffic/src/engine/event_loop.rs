//! The event loop of one thread: its connections on one epoll, for any protocol.

mod answer;
mod begin;
mod connect;
mod end;

use super::{
    conn::{Conn, Phase},
    failed::Failed,
    link::Rooms,
    places::{Queue, Until},
    protocol::{Counting, Protocol, Record},
    rx_cpu_samples::RxCpuSamples,
    workers::WorkerTask,
};
use crate::{
    Error,
    net::{
        epoll::{Epoll, Ready},
        now_ns,
        tls::conn::take_spent_ns,
    },
};

/// Size of the receive buffer.
const ROOM: usize = 64 << 10;

pub struct EventLoop<'a, P: Protocol> {
    pub protocol: &'a P,
    pub task: &'a WorkerTask<'a>,
}

struct Loop<'r, P: Protocol> {
    conns: Vec<Conn<P::State>>,
    /// Slots that may begin a request.
    idle: Queue,
    resting: Until,
    /// Slots with a sleeping request.
    sleeping: Until,
    epoll: Epoll,
    rooms: Rooms,
    recorder: &'r mut P::Recorder,
    rx_cpus: RxCpuSamples,
    /// Slots with requests begun but not sent yet.
    begun: Vec<usize>,
    /// Requests that ended with an answer.
    done: u64,
    /// Requests begun: index of the schedule's next time.
    next: u64,
    /// Connections opened, first ones and reconnects.
    opened: usize,
    /// Requests that ended, with or without success.
    settled: u64,
    /// Whether no more requests are begun.
    draining: bool,
}

impl<P: Protocol> EventLoop<'_, P> {
    /// Runs until the pool ends or the quota is reached.
    pub fn run(&self, states: Vec<P::State>, recorder: &mut P::Recorder) {
        if let Err(why) = self.go(states, recorder) {
            self.task.pool.break_off(why);
        }
    }

    fn go(&self, states: Vec<P::State>, recorder: &mut P::Recorder) -> Result<(), Error> {
        let (connecting, conns) = (self.protocol.connecting(), states.len());
        let mut all = Loop {
            conns: states.into_iter().map(Conn::new).collect(),
            idle: Queue::new(conns),
            resting: Until::default(),
            sleeping: Until::default(),
            epoll: Epoll::new().map_err(|e| Error::io("epoll", &e))?,
            rooms: Rooms::new(ROOM, connecting.tls.is_some()),
            recorder,
            rx_cpus: RxCpuSamples::new(-1),
            begun: Vec::with_capacity(conns),
            done: 0,
            next: 0,
            opened: 0,
            settled: 0,
            draining: false,
        };
        let warning = all.epoll.busy_poll(connecting.way.wait);
        self.task.worker.see(|seen| seen.warnings.extend(warning));
        (0..conns).try_for_each(|key| self.offer(&mut all, key))?;
        let patrol_every = (connecting.timeout_ns / 8).clamp(1_000_000, 100_000_000);
        let mut patrol = now_ns() + patrol_every;
        while !self.task.pool.stopping() && self.task.pace.quota.is_none_or(|q| all.settled < q) {
            let until = self.begin_due(&mut all)?.min(patrol);
            self.turn(&mut all, until)?;
            if now_ns() >= patrol {
                self.give_up(&mut all)?;
                patrol = now_ns() + patrol_every;
            }
        }
        self.drain(&mut all)?;
        self.task.worker.see(|seen| all.rx_cpus.add_to(seen));
        all.recorder.requests_mut().handshakes.ciphered(take_spent_ns(), all.settled);
        self.protocol.end(&mut all.conns, all.recorder);
        Ok(())
    }

    /// Handles socket events until a time.
    fn turn(&self, all: &mut Loop<'_, P>, until: u64) -> Result<(), Error> {
        all.epoll.wait(self.protocol.connecting().way.wait, until);
        let mut n = 0;
        while let Some(ready) = all.epoll.nth(n) {
            n += 1;
            self.ready(all, ready)?;
        }
        self.hand_over(all)
    }

    #[inline]
    fn ready(&self, all: &mut Loop<'_, P>, ready: Ready) -> Result<(), Error> {
        let key = ready.key;
        let Some(conn) = all.conns.get_mut(key) else { return Ok(()) };
        match conn.phase {
            Phase::Closed => return Ok(()),
            Phase::Lingering if ready.ended => return self.closed(all, key),
            Phase::Lingering => return Ok(()),
            Phase::Connecting => match if ready.broken { conn.link.outcome() } else { Ok(()) } {
                Ok(()) if ready.writable || ready.readable => {
                    self.connected(all, key, ready.ended)?;
                }
                Ok(()) => return Ok(()),
                Err(errno) => return self.unconnected(all, key, Failed::Connecting(errno)),
            },
            Phase::Asking => return self.granted(all, key, ready.ended),
            Phase::Shaking => return self.shake(all, key, ready.ended),
            Phase::Greeting | Phase::Open if ready.writable => {
                if !self.push(all, key)? {
                    return Ok(());
                }
            }
            Phase::Greeting | Phase::Open => {}
        }
        match ready.readable {
            true => self.hear(all, key, ready.ended, None),
            false => Ok(()),
        }
    }

    /// Sends pending bytes; `false` if that ended the connection.
    #[inline]
    fn push(&self, all: &mut Loop<'_, P>, key: usize) -> Result<bool, Error> {
        let Some(conn) = all.conns.get_mut(key) else { return Ok(false) };
        if !self.protocol.is_unsent(conn) {
            return Ok(true);
        }
        match self.protocol.push(conn) {
            Ok(()) => Ok(true),
            // The server may have answered before it closed.
            Err(e) => self.hear(all, key, true, Some(e)).map(|()| false),
        }
    }

    fn counting<'c>(&'c self, recorder: &'c mut P::Recorder) -> Counting<'c, P::Recorder> {
        Counting { window: self.task.window, asked: &self.task.worker.asked, recorder }
    }
}
