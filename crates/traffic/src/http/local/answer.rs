//! What came on a connection: responses, its end, or what is neither.

use std::io;

use super::{HttpClient, HttpLoop};
use crate::{
    Error,
    http::{
        conn::{PendingRequest, Phase},
        recorder::Failed,
        response::Answer,
    },
    net::{
        now_ns,
        tls::{
            conn::Received,
            fault::{Fault, named},
        },
    },
    served::places::REST_NS,
};

/// So many connections that came to nothing, over so long, before any answer: it speaks no HTTP.
const MOST_UNSERVED: u64 = 20;
const LEAST_NS: u64 = 300_000_000;
/// Looks at the receiving CPU once in so many responses.
const LOOK_EVERY: u64 = 1024;

impl HttpClient<'_> {
    /// Takes what came, `to_the_end` where the server sends no more.
    pub(super) fn hear(
        &self,
        state: &mut HttpLoop<'_>,
        key: usize,
        to_the_end: bool,
        unsent: Option<Fault>,
    ) -> Result<(), Error> {
        let (mut answers, mut now) = (0u64, 0);
        let end = loop {
            let HttpLoop { conns, rooms, recorder, .. } = state;
            let Some(conn) = conns.get_mut(key).filter(|c| c.phase == Phase::Open) else {
                return Ok(());
            };
            let (received, bytes) = match conn.link.receive(rooms) {
                Ok(received) => received,
                Err(e) if e.is_would_block() => break unsent.map(|e| talking(&e)),
                Err(e) => break Some(talking(&unsent.unwrap_or(e))),
            };
            now = now_ns();
            recorder.receives += u64::from(self.duty.window.holds(now) && !bytes.is_empty());
            let mut whole = |asked: &PendingRequest, answer: Answer, bytes: u64| {
                answers += 1;
                self.duty.worker.asked.answered(now.saturating_sub(asked.due_ns));
                recorder.record(self.duty.window, asked, now, answer.status, bytes);
            };
            let drained = match received {
                Received::Bytes { drained, .. } => drained,
                Received::End { clean } => {
                    if clean {
                        conn.ended(&mut whole);
                    }
                    // Its end may be the response's.
                    if answers > 0 {
                        conn.last_ns = now;
                    }
                    let within = conn.is_within();
                    break Some(if within { Failed::ClosedWithin } else { Failed::ClosedBefore });
                }
            };
            let took = conn.took(bytes, now, &mut whole);
            if answers > 0 {
                conn.last_ns = now;
            }
            if let Err(why) = took {
                break Some(Failed::Bad(why));
            }
            if conn.closing || (drained && !to_the_end && !conn.link.has_ended()) {
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
    fn heard(&self, state: &mut HttpLoop<'_>, key: usize, answers: u64) {
        if answers == 0 {
            return;
        }
        state.settled += answers;
        state.done += answers;
        self.duty.worker.handled(state.done);
        if state.done % LOOK_EVERY < answers {
            state.looks.turn_to(state.conns.get(key).map_or(-1, |c| c.link.fd()));
            state.looks.look();
        }
    }

    /// The last response on a connection has come.
    pub(super) fn closed(&self, state: &mut HttpLoop<'_>, key: usize) -> Result<(), Error> {
        let Some(conn) = state.conns.get_mut(key) else { return Ok(()) };
        conn.close();
        if !self.shape.new_connections {
            state.recorder.fate.reconnects += 1;
        }
        self.offer(state, key)
    }

    /// A connection has ended without having said so: the request whose turn it was has failed,
    /// those behind it are retransmitted.
    #[cold]
    pub(super) fn lost(
        &self,
        state: &mut HttpLoop<'_>,
        key: usize,
        why: Failed,
    ) -> Result<(), Error> {
        let Some(conn) = state.conns.get_mut(key) else { return Ok(()) };
        let (now, answered) = (now_ns(), conn.answered);
        conn.close();
        match conn.asked.pop_front() {
            Some(asked) => {
                state.settled += 1;
                self.duty.worker.asked.failed();
                state.recorder.fail(self.duty.window, asked.due_ns, now, why);
            }
            // Between responses a server may.
            None => state.recorder.fate.reconnects += 1,
        }
        if answered == 0 {
            state.recorder.fate.refuse(why);
            state.resting.add(now + REST_NS, key);
            return self.speaks_http(state, now, why);
        }
        self.offer(state, key)
    }

    /// Who ends connection after connection, or answers what is none of HTTP's, and has never
    /// answered anything else will not later: more of it is no measurement.
    fn speaks_http(&self, state: &HttpLoop<'_>, now: u64, why: Failed) -> Result<(), Error> {
        let (what, hint) = match why {
            Failed::Bad(why) => (why, "is it the right port?"),
            Failed::ClosedBefore | Failed::Talking(libc::ECONNRESET)
                if self.shape.tls.is_none() =>
            {
                (
                    "the server closes every connection without a response",
                    "does it speak HTTP, or TLS, for https://?",
                )
            }
            _ => return Ok(()),
        };
        let of_this = state.recorder.fate.refused.get(&why).copied().unwrap_or(0);
        let never = self.duty.pool.transactions() == 0;
        if of_this < MOST_UNSERVED || now < self.duty.begun_ns + LEAST_NS || !never {
            return Ok(());
        }
        let name = match self.shape.way.to.as_socket() {
            Some(ip) => ip.to_string(),
            None => "the server".into(),
        };
        Err(Error::Environment(format!("{name}: {what}, {of_this} times; {hint}")))
    }
}

pub(super) fn talking(fault: &Fault) -> Failed {
    match fault {
        Fault::Tls(why) => Failed::Tls(named(why)),
        Fault::Io(e) if e.kind() == io::ErrorKind::UnexpectedEof => Failed::ClosedBefore,
        Fault::Io(e) => match e.raw_os_error() {
            // After a reset the kernel says this of a write.
            Some(libc::EPIPE) | None => Failed::Talking(libc::ECONNRESET),
            Some(errno) => Failed::Talking(errno),
        },
    }
}
