//! What came on a connection: answers, its end, or what is neither.

use std::io;

use super::{PgClient, PgLoop};
use crate::{
    Error,
    net::{
        now_ns,
        tls::{
            conn::Received,
            fault::{Fault, named},
        },
    },
    pg::{
        conn::{Heard, Phase},
        recorder::Failed,
    },
    served::places::REST_NS,
};

impl PgClient<'_> {
    /// Takes what came, `to_the_end` where the server sends no more.
    pub(super) fn hear(
        &self,
        state: &mut PgLoop<'_>,
        key: usize,
        to_the_end: bool,
        unsent: Option<Fault>,
    ) -> Result<(), Error> {
        let (mut some, mut now) = (false, 0);
        let end = loop {
            let PgLoop { conns, rooms, recorder, .. } = state;
            let Some(conn) = conns.get_mut(key) else { return Ok(()) };
            if !matches!(conn.phase, Phase::Open | Phase::LoggingIn) {
                return Ok(());
            }
            let (received, bytes) = match conn.link.receive(rooms) {
                Ok(got) => got,
                Err(e) if e.is_would_block() => break unsent.map(|e| talking(&e)),
                Err(e) => break Some(talking(&unsent.unwrap_or(e))),
            };
            let Received::Bytes { drained, .. } = received else { break Some(Failed::Closed) };
            now = now_ns();
            let heard = conn.took(bytes, &self.shape.who, &self.shape.plan, |number, sent| {
                recorder.statement(self.duty.window, number, sent, now);
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
            let ended = state.conns.get(key).is_some_and(|c| c.link.has_ended());
            if drained && !to_the_end && !ended {
                break None;
            }
        };
        if let Some(conn) = state.conns.get_mut(key).filter(|c| c.phase == Phase::LoggingIn)
            && let Err(e) = conn.push()
            && end.is_none()
        {
            return self.lost(state, key, talking(&e));
        }
        match end {
            Some(why) => self.lost(state, key, why),
            None if some => {
                if let Some(conn) = state.conns.get_mut(key) {
                    conn.last_ns = now;
                }
                self.go_on(state, key, now)
            }
            None => Ok(()),
        }
    }

    /// A connection has ended: the transaction on it has failed.
    #[cold]
    pub(super) fn lost(
        &self,
        state: &mut PgLoop<'_>,
        key: usize,
        why: Failed,
    ) -> Result<(), Error> {
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
        if conn.settled == 0 {
            state.recorder.fate.refuse(why.clone());
        }
        match conn.client.running.take() {
            Some(running) => {
                state.settled += 1;
                self.duty.worker.asked.failed();
                state.recorder.fail(self.duty.window, Some(&running), running.due_ns, now, why);
            }
            None => state.recorder.fate.reconnects += 1,
        }
        if conn.settled == 0 {
            state.resting.add(now + REST_NS, key);
            return Ok(());
        }
        self.offer(state, key)
    }
}

pub(super) fn talking(fault: &Fault) -> Failed {
    match fault {
        Fault::Tls(why) => Failed::Tls(named(why)),
        Fault::Io(e) if e.kind() == io::ErrorKind::UnexpectedEof => Failed::Closed,
        Fault::Io(e) => match e.raw_os_error() {
            // After a reset the kernel says this of a write.
            Some(libc::EPIPE) | None => Failed::Talking(libc::ECONNRESET),
            Some(errno) => Failed::Talking(errno),
        },
    }
}
