//! Handles received data: answers, the end of a connection, invalid bytes.

use super::{EventLoop, Loop};
use crate::{
    Error,
    engine::{
        conn::Phase,
        failed::Failed,
        places::REST_NS,
        protocol::{Counting, Protocol, Record, Taken},
    },
    net::{
        now_ns,
        tls::{conn::Received, fault::Fault},
    },
};

/// This many useless connections before any answer, over the time below, mean another protocol.
const MOST_UNSERVED: u64 = 20;
const LEAST_NS: u64 = 300_000_000;
/// Reads the receiving CPU once per this many answers.
const LOOK_EVERY: u64 = 1024;

impl<P: Protocol> EventLoop<'_, P> {
    /// Takes received bytes; `to_the_end` if the server sends no more.
    pub(super) fn hear(
        &self,
        all: &mut Loop<'_, P>,
        key: usize,
        to_the_end: bool,
        unsent: Option<Fault>,
    ) -> Result<(), Error> {
        let (mut answers, mut progress, mut now) = (0u64, false, 0);
        let end = loop {
            let Loop { conns, rooms, recorder, .. } = &mut *all;
            let Some(conn) = conns.get_mut(key) else { return Ok(()) };
            if !matches!(conn.phase, Phase::Open | Phase::Greeting) {
                return Ok(());
            }
            let (received, bytes) = match conn.link.receive(rooms) {
                Ok(received) => received,
                Err(e) if e.is_would_block() => break unsent.map(|e| Failed::from(&e)),
                Err(e) => break Some(Failed::from(&unsent.unwrap_or(e))),
            };
            now = now_ns();
            let (window, asked) = (self.task.window, &self.task.worker.asked);
            let mut counting = Counting { window, asked, recorder: &mut **recorder };
            let drained = match received {
                Received::Bytes { drained, .. } => drained,
                Received::End { clean } => {
                    let (more, why) = self.protocol.ended(conn, clean, now, &mut counting);
                    answers += more;
                    break Some(why);
                }
            };
            match self.protocol.take(conn, bytes, now, &mut counting)? {
                Taken::Nothing => {}
                Taken::Progress => progress = true,
                Taken::Answers(n) => answers += n,
                Taken::Greeted => {
                    progress = true;
                    self.opened(all, key, now);
                }
                Taken::Refused(why) => return self.unconnected(all, key, why),
                Taken::Bad(why, before) => {
                    answers += before;
                    break Some(Failed::Bad(why));
                }
            }
            let Some(conn) = all.conns.get_mut(key) else { return Ok(()) };
            if conn.closing || (drained && !to_the_end && !conn.link.has_ended()) {
                break None;
            }
        };
        let Some(conn) = all.conns.get_mut(key) else { return Ok(()) };
        if progress || answers > 0 {
            conn.last_ns = now;
        }
        if conn.phase == Phase::Greeting
            && self.protocol.is_unsent(conn)
            && let Err(e) = self.protocol.push(conn)
            && end.is_none()
        {
            return self.lost(all, key, Failed::from(&e));
        }
        self.settle(all, key, answers);
        let one_each = self.protocol.connecting().one_each;
        let Some(conn) = all.conns.get_mut(key) else { return Ok(()) };
        let closing = conn.closing || (one_each && answers > 0);
        match end {
            // The server announced that it closes: then it keeps the TIME_WAIT, not this end.
            None if one_each && conn.closing && !to_the_end => {
                (conn.phase, conn.begun_ns) = (Phase::Lingering, now);
                Ok(())
            }
            _ if closing => self.closed(all, key),
            Some(why) => self.lost(all, key, why),
            None if progress || answers > 0 => self.go_on(all, key, now),
            None => Ok(()),
        }
    }

    /// Counts answered requests of a connection.
    #[inline]
    pub(super) fn settle(&self, all: &mut Loop<'_, P>, key: usize, answers: u64) {
        let Some(conn) = all.conns.get_mut(key).filter(|_| answers > 0) else { return };
        conn.answered += answers;
        all.settled += answers;
        all.done += answers;
        self.task.worker.handled(all.done);
        if all.done % LOOK_EVERY < answers {
            all.rx_cpus.turn_to(conn.link.fd());
            all.rx_cpus.sample();
        }
    }

    /// Handles the last answer of a connection.
    pub(super) fn closed(&self, all: &mut Loop<'_, P>, key: usize) -> Result<(), Error> {
        self.close(all, key);
        if !self.protocol.connecting().one_each {
            all.recorder.requests_mut().connections.reconnects += 1;
        }
        self.offer(all, key)
    }

    pub(super) fn close(&self, all: &mut Loop<'_, P>, key: usize) {
        let Some(conn) = all.conns.get_mut(key) else { return };
        self.protocol.close(conn);
        conn.close();
    }

    /// Handles an unannounced end: the current request fails, those queued behind it are retried.
    #[cold]
    pub(super) fn lost(&self, all: &mut Loop<'_, P>, key: usize, why: Failed) -> Result<(), Error> {
        let Some(conn) = all.conns.get_mut(key) else { return Ok(()) };
        if conn.phase == Phase::Greeting {
            return self.unconnected(all, key, why);
        }
        let (now, answered) = (now_ns(), conn.answered);
        let why = self.protocol.because(&mut conn.state, all.recorder).unwrap_or(why);
        self.close(all, key);
        let Some(conn) = all.conns.get_mut(key) else { return Ok(()) };
        match self.protocol.fail(&mut conn.state, &why, now, &mut self.counting(all.recorder)) {
            true => {
                all.settled += 1;
                self.task.worker.asked.failed();
            }
            // A server may close between answers.
            false => all.recorder.requests_mut().connections.reconnects += 1,
        }
        if answered == 0 {
            all.recorder.requests_mut().connections.refuse(why.clone());
            all.resting.add(now + REST_NS, key);
            return self.speaks_it(all, now, &why);
        }
        self.offer(all, key)
    }

    /// Whether the server speaks this protocol. One that only closes or answers nonsense and never
    /// answered a request will not do so later: the run stops.
    fn speaks_it(&self, all: &mut Loop<'_, P>, now: u64, why: &Failed) -> Result<(), Error> {
        let Some((what, hint)) = self.protocol.is_another(why) else { return Ok(()) };
        let refused = &all.recorder.requests().connections.refused;
        let of_this = refused.get(why).copied().unwrap_or(0);
        let never = self.task.pool.transactions() == 0;
        if of_this < MOST_UNSERVED || now < self.task.begun_ns + LEAST_NS || !never {
            return Ok(());
        }
        let name = match self.protocol.connecting().way.to.as_socket() {
            Some(ip) => ip.to_string(),
            None => "the server".into(),
        };
        Err(Error::Environment(format!("{name}: {what}, {of_this} times; {hint}")))
    }
}
