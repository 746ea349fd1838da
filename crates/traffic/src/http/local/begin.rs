//! What a connection is asked, and when: at once in closed loop, by the schedule in open loop.

use super::{HttpClient, HttpLoop};
use crate::{
    Error,
    http::conn::{Conn, PendingRequest, Phase},
    net::now_ns,
    served::pace::Due,
};

/// When a request was sent that is not handed over yet: after all that is judged by it.
const UNSENT: u64 = u64::MAX;
/// Requests begun without a look at those under way.
const BEGIN_AT_ONCE: usize = 64;
impl HttpClient<'_> {
    /// A place without a connection may be used: it is asked when its turn comes, or connects
    /// first.
    pub(super) fn offer(&self, state: &mut HttpLoop<'_>, key: usize) -> Result<(), Error> {
        let Some(conn) = state.conns.get(key) else { return Ok(()) };
        let waits = !conn.asked.is_empty();
        match self.shape.new_connections && !waits {
            true => state.idle.add(key),
            false if state.draining && !waits => {}
            false => self.connect(state, key)?,
        }
        Ok(())
    }

    /// Begins what may begin, and says when there is more to do.
    pub(super) fn begin_due(&self, state: &mut HttpLoop<'_>) -> Result<u64, Error> {
        let until = self.begin_some(state)?;
        self.hand_over(state)?;
        Ok(until)
    }

    fn begin_some(&self, state: &mut HttpLoop<'_>) -> Result<u64, Error> {
        let now = now_ns();
        while let Some(key) = state.resting.come(now) {
            self.offer(state, key)?;
        }
        let rested = state.resting.next();
        for _ in 0..BEGIN_AT_ONCE {
            let Some(key) = state.idle.first() else { return Ok(rested) };
            let now = now_ns();
            match self.due(state, now) {
                Due::At(due) if due > now => return Ok(due.min(rested)),
                Due::At(_) => {}
                Due::Never => return Ok(rested),
            }
            state.idle.take();
            self.refill(state, key, now)?;
        }
        Ok(0)
    }

    /// When the next request may begin.
    #[inline]
    pub(super) fn due(&self, state: &HttpLoop<'_>, now: u64) -> Due {
        match state.draining {
            true => Due::Never,
            false => self.duty.pace.due(self.duty.window, state.next, now),
        }
    }

    /// Asks on a connection as much as may be: in open loop one request, for others may be free.
    pub(super) fn refill(
        &self,
        state: &mut HttpLoop<'_>,
        key: usize,
        now: u64,
    ) -> Result<(), Error> {
        let shape = self.shape;
        let sent_ns = if shape.new_connections { now } else { UNSENT };
        let mut begun = false;
        loop {
            let full = |c: &Conn| c.asked.len() >= shape.pipeline as usize;
            if state.conns.get(key).is_none_or(full) {
                break;
            }
            let due = self.due(state, now);
            let Some(conn) = state.conns.get_mut(key) else { return Ok(()) };
            let open_loop_has_one = begun && self.duty.pace.schedule.is_some();
            match due {
                Due::At(due_ns) if due_ns <= now && !open_loop_has_one => {
                    let which = (state.next % shape.requests.len().max(1) as u64) as usize;
                    conn.asked.push_back(PendingRequest { due_ns, sent_ns, first_ns: 0, which });
                    state.next += 1;
                    begun = true;
                }
                _ => {
                    state.idle.add(key);
                    break;
                }
            }
        }
        match begun {
            true if shape.new_connections => self.connect(state, key),
            true => {
                state.begun.push(key);
                Ok(())
            }
            false => Ok(()),
        }
    }

    /// Hands over what has begun, all that was heard of together: a call like the last one finds
    /// its code and data at hand, and a server that sleeps is woken once. Each request has the
    /// time of its own call.
    pub(super) fn hand_over(&self, state: &mut HttpLoop<'_>) -> Result<(), Error> {
        let mut n = 0;
        while let Some(&key) = state.begun.get(n) {
            n += 1;
            let Some(conn) = state.conns.get_mut(key) else { continue };
            let now = now_ns();
            for asked in conn.asked.iter_mut().rev().take_while(|a| a.sent_ns == UNSENT) {
                asked.sent_ns = now;
                if self.duty.pace.schedule.is_none() {
                    asked.due_ns = now;
                }
            }
            if conn.phase == Phase::Open {
                self.push(state, key)?;
            }
        }
        state.begun.clear();
        Ok(())
    }

    pub(super) fn push(&self, state: &mut HttpLoop<'_>, key: usize) -> Result<(), Error> {
        let Some(conn) = state.conns.get_mut(key) else { return Ok(()) };
        match conn.push(&self.shape.requests) {
            Ok(()) => Ok(()),
            // It may have answered before it hung up.
            Err(e) => self.hear(state, key, true, Some(e)),
        }
    }
}
