//! Begins and continues requests: at once in closed loop, by the schedule in open loop.

use super::{EventLoop, Loop};
use crate::{
    Error,
    engine::{
        conn::Phase,
        pace::Due,
        protocol::{Advance, Protocol},
    },
    net::now_ns,
};

/// Most requests begun before those under way are served again.
const BEGIN_AT_ONCE: usize = 64;

impl<P: Protocol> EventLoop<'_, P> {
    /// Makes a slot available: it begins a request in its turn, and connects first if needed.
    pub(super) fn offer(&self, all: &mut Loop<'_, P>, key: usize) -> Result<(), Error> {
        let Some(conn) = all.conns.get(key) else { return Ok(()) };
        let waits = self.protocol.waits(&conn.state);
        match self.protocol.connecting().one_each && !waits {
            true => all.idle.add(key),
            false if all.draining && !waits => {}
            false => self.connect(all, key)?,
        }
        Ok(())
    }

    /// Begins due requests; returns when the next is due.
    pub(super) fn begin_due(&self, all: &mut Loop<'_, P>) -> Result<u64, Error> {
        let until = self.begin_some(all)?;
        self.hand_over(all)?;
        Ok(until)
    }

    fn begin_some(&self, all: &mut Loop<'_, P>) -> Result<u64, Error> {
        let now = now_ns();
        while let Some(key) = all.resting.come(now) {
            self.offer(all, key)?;
        }
        while let Some(key) = all.sleeping.come(now) {
            if all.conns.get(key).is_some_and(|c| (1..=now).contains(&c.wake_ns)) {
                self.go_on(all, key, now)?;
            }
        }
        let later = all.resting.next().min(all.sleeping.next());
        for _ in 0..BEGIN_AT_ONCE {
            let Some(key) = all.idle.first() else { return Ok(later) };
            let now = now_ns();
            match self.due(all, now) {
                Due::At(due) if due > now => return Ok(due.min(later)),
                Due::At(_) => {}
                Due::Never => return Ok(later),
            }
            all.idle.take();
            self.refill(all, key, now)?;
        }
        Ok(0)
    }

    /// When the next request may begin.
    #[inline]
    pub(super) fn due(&self, all: &Loop<'_, P>, now: u64) -> Due {
        match all.draining {
            true => Due::Never,
            false => self.task.pace.due(self.task.window, all.next, now),
        }
    }

    /// Begins as many requests as a connection may take; in open loop one, since other connections
    /// may be free.
    pub(super) fn refill(&self, all: &mut Loop<'_, P>, key: usize, now: u64) -> Result<(), Error> {
        let mut begun = false;
        while all.conns.get(key).is_some_and(|c| self.protocol.has_room(&c.state)) {
            let due = self.due(all, now);
            let Some(conn) = all.conns.get_mut(key) else { return Ok(()) };
            let open_loop_has_one = begun && self.task.pace.schedule.is_some();
            match due {
                Due::At(due_ns) if due_ns <= now && !open_loop_has_one => {
                    self.protocol.begin(&mut conn.state, due_ns, now, all.next);
                    all.next += 1;
                    begun = true;
                }
                _ => {
                    all.idle.add(key);
                    break;
                }
            }
        }
        if !begun {
            return Ok(());
        }
        if self.protocol.connecting().one_each {
            return self.connect(all, key);
        }
        if P::TOGETHER {
            all.begun.push(key);
        } else if self.advance(all, key, now)? {
            all.idle.add(key);
        }
        Ok(())
    }

    /// Sends the requests begun in this turn together. Each request has the time of its own call.
    #[inline]
    pub(super) fn hand_over(&self, all: &mut Loop<'_, P>) -> Result<(), Error> {
        let mut n = 0;
        while let Some(&key) = all.begun.get(n) {
            n += 1;
            let Some(conn) = all.conns.get_mut(key) else { continue };
            let closed_loop = self.task.pace.schedule.is_none();
            self.protocol.handed_over(&mut conn.state, now_ns(), closed_loop);
            if conn.phase == Phase::Open {
                self.push(all, key)?;
            }
        }
        all.begun.clear();
        Ok(())
    }

    /// Continues a request, and begins the next one after its end.
    #[inline]
    pub(super) fn go_on(&self, all: &mut Loop<'_, P>, key: usize, now: u64) -> Result<(), Error> {
        if self.advance(all, key, now)? {
            self.refill(all, key, now)?;
        }
        Ok(())
    }

    /// Continues a request; returns whether another may begin.
    #[inline]
    pub(super) fn advance(
        &self,
        all: &mut Loop<'_, P>,
        key: usize,
        now: u64,
    ) -> Result<bool, Error> {
        let Some(conn) = all.conns.get_mut(key).filter(|c| c.phase == Phase::Open) else {
            return Ok(false);
        };
        conn.wake_ns = 0;
        let next = self.protocol.advance(conn, now)?;
        if let Advance::Sleeps(until) = next {
            conn.wake_ns = until.max(1);
            all.sleeping.add(conn.wake_ns, key);
        }
        if !self.push(all, key)? {
            return Ok(false);
        }
        match next {
            Advance::Waits | Advance::Sleeps(_) => Ok(false),
            Advance::Free => Ok(true),
            Advance::Over(outcome) => self.over(all, key, now, outcome),
        }
    }

    /// Ends a request and counts its outcome.
    #[inline]
    fn over(
        &self,
        all: &mut Loop<'_, P>,
        key: usize,
        now: u64,
        outcome: P::Outcome,
    ) -> Result<bool, Error> {
        let Some(conn) = all.conns.get_mut(key) else { return Ok(false) };
        self.protocol.over(conn, outcome, now, &mut self.counting(all.recorder));
        self.settle(all, key, 1);
        if self.protocol.connecting().one_each {
            self.closed(all, key)?;
            return Ok(false);
        }
        Ok(true)
    }
}
