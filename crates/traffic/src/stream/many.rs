//! Several flows on one thread, in both directions, served as they become ready.
//!
//! Sockets are registered once, edge-triggered. Each is used until it is full or empty; the kernel
//! then reports when that changes.

use model::measure::Wait;
use probe::samples::clock::sleep_until;

use super::{
    StreamShape,
    datagram::HEADER,
    pace::Pacer,
    receive::{Inbox, Notes, ROOM, ReceiveSocket, flags},
    send::{Lane, Source, Trouble, length, nonblocking, share, trouble},
    shared_counts::{Ledger, put},
    zerocopy,
};
use crate::{
    Error,
    engine::{
        wait::server_gone,
        worker_pool::{Worker, WorkerPool},
    },
    net::{epoll::Epoll, now_ns, sys},
};

/// Most receive calls on one socket before the others are served.
const TURN: usize = 16;
/// Most due datagrams sent in one turn.
const BURST: usize = 64;

struct Out {
    lane: Lane,
    ready: bool,
    open: bool,
}

struct In<'a> {
    ear: &'a ReceiveSocket<'a>,
    inbox: Option<Inbox<'a>>,
    got: u64,
    ready: bool,
    open: bool,
}

pub struct Many<'a> {
    shape: &'a StreamShape,
    ledger: &'a Ledger,
    pool: &'a WorkerPool,
    worker: &'a Worker,
    epoll: Epoll,
    out: Vec<Out>,
    inn: Vec<In<'a>>,
    source: Source,
    datagram: Vec<u8>,
    room: Vec<u8>,
    pacer: Option<Pacer>,
    /// Index of the next flow to send, with a schedule.
    turn: usize,
    notes: Notes,
}

impl<'a> Many<'a> {
    /// Registers all sockets.
    ///
    /// # Errors
    /// No descriptor is left, or no memory file could be made.
    pub fn new(
        lanes: Vec<Lane>,
        ears: &'a [ReceiveSocket<'a>],
        shape: &'a StreamShape,
        ledger: &'a Ledger,
        greeting: &[u8],
        (pool, worker): (&'a WorkerPool, &'a Worker),
    ) -> Result<Self, Error> {
        let epoll = Epoll::new().map_err(|e| Error::io("epoll", &e))?;
        worker.see(|seen| seen.warnings.extend(epoll.busy_poll(shape.wait)));
        let rate = share(shape, lanes.len());
        for (key, fd) in lanes.iter().map(|l| l.fd).chain(ears.iter().map(|e| e.fd)).enumerate() {
            nonblocking(fd);
            match epoll.add_once(fd, key) {
                Ok(()) => {}
                // UDP: flows that share a socket; its sends need no waiting.
                Err(e) if e.raw_os_error() == Some(libc::EEXIST) => {}
                Err(e) => return Err(Error::io("epoll", &e)),
            }
        }
        let source = Source::new(shape, length(shape, rate))
            .map_err(|e| Error::io("no file in memory (memfd_create)", &e))?;
        let first = ears.first().map(|e| e.fd).or(lanes.first().map(|l| l.fd));
        Ok(Self {
            shape,
            ledger,
            pool,
            worker,
            epoll,
            pacer: rate.filter(|_| !lanes.is_empty()).map(|r| Pacer::new(r, shape.wait)),
            out: lanes.into_iter().map(|lane| Out { lane, ready: true, open: true }).collect(),
            inn: ears
                .iter()
                .map(|ear| In {
                    ear,
                    inbox: (!shape.bytes()).then(|| Inbox::new(ear, shape, greeting)),
                    got: 0,
                    ready: true,
                    open: true,
                })
                .collect(),
            source,
            datagram: vec![0x5a; shape.message_bytes.max(HEADER)],
            room: vec![1; ROOM],
            turn: 0,
            notes: Notes::new(first.unwrap_or(-1)),
        })
    }

    /// Sends and receives until the pool ends.
    ///
    /// # Errors
    /// A flow ended early.
    pub fn run(mut self) -> Result<(), Error> {
        let result = self.turns();
        self.notes.tell(self.worker);
        result
    }

    fn turns(&mut self) -> Result<(), Error> {
        while !self.pool.stopping() {
            self.send()?;
            self.receive()?;
            self.wait();
        }
        Ok(())
    }

    fn send(&mut self) -> Result<(), Error> {
        if self.out.is_empty() || self.ledger.is_quiet() {
            return Ok(());
        }
        if self.pacer.is_some() {
            return self.send_due();
        }
        for at in 0..self.out.len() {
            if self.out.get(at).is_some_and(|o| o.ready && o.open) {
                self.send_one(at, 0)?;
            }
        }
        Ok(())
    }

    /// Sends by the schedule, flow after flow.
    fn send_due(&mut self) -> Result<(), Error> {
        for _ in 0..BURST {
            let now = now_ns();
            let Some(pacer) = &mut self.pacer else { return Ok(()) };
            if pacer.due_ns() > now {
                return Ok(());
            }
            pacer.forgive(now);
            // A full flow is skipped.
            let n = self.out.len();
            let ready = |at: &usize| self.out.get(*at).is_some_and(|o| o.ready && o.open);
            let next = (self.turn..self.turn + n).map(|at| at % n).find(ready);
            let Some(at) = next else { return Ok(()) };
            self.turn = (at + 1) % n;
            let sent = self.send_one(at, now)?;
            if let Some(pacer) = &mut self.pacer {
                pacer.sent(sent as u64);
            }
        }
        Ok(())
    }

    /// Makes one send call; returns the bytes by which the schedule advances.
    fn send_one(&mut self, at: usize, now: u64) -> Result<usize, Error> {
        let Some(out) = self.out.get_mut(at) else { return Ok(0) };
        let Some(counts) = self.ledger.flows.get(out.lane.index as usize) else { return Ok(0) };
        let sent = match self.shape.bytes() {
            true => out.lane.push(&self.source, counts),
            false => {
                let now = if now == 0 { now_ns() } else { now };
                let length = self.datagram.len();
                out.lane.throw(&mut self.datagram, now, counts).map(|()| length)
            }
        };
        match sent {
            Ok(n) => {
                // A short send means that the socket is full: saves a call.
                out.ready = n == self.source.length() || !self.shape.bytes();
                self.notes.one(self.worker);
                Ok(n)
            }
            Err(e) => match trouble(&e) {
                Trouble::Again => Ok(0),
                Trouble::Full if self.shape.bytes() => {
                    let pinned = matches!(self.source, Source::Pinned(_));
                    out.ready = pinned && zerocopy::reap(out.lane.fd, counts) > 0;
                    Ok(0)
                }
                Trouble::Full => {
                    super::shared_counts::add(&counts.refused, 1);
                    Ok(self.datagram.len())
                }
                Trouble::Over(_) if e.raw_os_error() == Some(libc::EPERM) => {
                    super::shared_counts::add(&counts.refused, 1);
                    Ok(self.datagram.len())
                }
                Trouble::Over(why) => {
                    out.open = false;
                    self.over(why).map(|()| 0)
                }
            },
        }
    }

    /// Handles a flow that ended: at the client this fails the test.
    fn over(&self, why: Error) -> Result<(), Error> {
        match self.shape.local && !self.pool.stopping() {
            true => Err(why),
            false => Ok(()),
        }
    }

    fn receive(&mut self) -> Result<(), Error> {
        let flags = flags(self.shape) | libc::MSG_DONTWAIT;
        for at in 0..self.inn.len() {
            for _ in 0..TURN {
                let Some(inn) = self.inn.get_mut(at).filter(|i| i.ready && i.open) else { break };
                match &mut inn.inbox {
                    Some(inbox) => match inbox.take_now(self.ledger) {
                        Some(true) => self.notes.one(self.worker),
                        Some(false) => {}
                        None => inn.ready = false,
                    },
                    None => {
                        let why = match hear(inn, &mut self.room, flags, self.ledger) {
                            Ok(true) => {
                                self.notes.one(self.worker);
                                continue;
                            }
                            Ok(false) => {
                                inn.ready = false;
                                continue;
                            }
                            Err(why) => why,
                        };
                        inn.open = false;
                        self.over(why)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn wait(&mut self) {
        let idle_out = self.ledger.is_quiet() || !self.out.iter().any(|o| o.ready && o.open);
        let busy_in = self.inn.iter().any(|i| i.ready && i.open);
        let now = now_ns();
        let until = match &self.pacer {
            _ if busy_in => now,
            _ if idle_out => u64::MAX,
            None => now,
            Some(pacer) => {
                let due = pacer.due_ns();
                if due <= now { now } else { pacer.wake_ns(now, due) }
            }
        };
        let nobody = self.out.iter().all(|o| !o.open) && self.inn.iter().all(|i| !i.open);
        match until {
            _ if nobody => sleep_until(now + 20_000_000),
            // Something is ready already: only collect new events.
            until if until <= now => self.epoll.wait(Wait::Spin, 0),
            until => self.epoll.wait(self.shape.wait, until),
        }
        let mut n = 0;
        while let Some(ready) = self.epoll.nth(n) {
            n += 1;
            self.news(ready.key);
        }
    }

    fn news(&mut self, key: usize) {
        let senders = self.out.len();
        match self.out.get_mut(key) {
            Some(out) => {
                out.ready = true;
                let counts = self.ledger.flows.get(out.lane.index as usize);
                if let (Source::Pinned(_), Some(counts)) = (&self.source, counts) {
                    zerocopy::reap(out.lane.fd, counts);
                }
                // UDP: the registered socket of the flows that share it.
                let fd = out.lane.fd;
                if !self.shape.bytes() {
                    self.inn.iter_mut().filter(|i| i.ear.fd == fd).for_each(|i| i.ready = true);
                }
            }
            None => {
                if let Some(inn) = self.inn.get_mut(key - senders) {
                    inn.ready = true;
                }
            }
        }
    }
}

/// Makes one receive call; `false` if nothing is available.
fn hear(inn: &mut In<'_>, room: &mut [u8], flags: i32, ledger: &Ledger) -> Result<bool, Error> {
    let Some(counts) = ledger.flows.get(inn.ear.index as usize) else { return Ok(false) };
    match sys::recv(inn.ear.fd, room, flags) {
        Ok(0) => Err(server_gone(None)),
        Ok(n) => {
            inn.got += n as u64;
            put(&counts.received_bytes, inn.got);
            Ok(true)
        }
        Err(e) => match e.kind() {
            std::io::ErrorKind::WouldBlock => Ok(false),
            std::io::ErrorKind::Interrupted => Ok(true),
            _ => Err(server_gone(Some(&e))),
        },
    }
}
