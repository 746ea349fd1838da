//! Which transactions begin, when, and how they go on.

use super::{PgClient, PgLoop};
use crate::{
    Error,
    net::now_ns,
    pg::{client::Next, conn::Phase, why, wire::ServerError},
    served::pace::Due,
};

/// Looks at the receiving CPU once in so many transactions.
const LOOK_EVERY: u64 = 1024;
/// Transactions begun without a look at those under way.
const BEGIN_AT_ONCE: usize = 64;

impl PgClient<'_> {
    /// A place without a connection may be used: it begins when its turn comes, or connects
    /// first.
    pub(super) fn offer(&self, state: &mut PgLoop<'_>, key: usize) -> Result<(), Error> {
        let Some(conn) = state.conns.get(key) else { return Ok(()) };
        let waits = conn.client.running.is_some();
        match self.shape.connect_each && !waits {
            true => state.idle.add(key),
            false if state.draining && !waits => {}
            false => self.connect(state, key)?,
        }
        Ok(())
    }

    /// Begins what may begin, and says when there is more to do.
    pub(super) fn begin_due(&self, state: &mut PgLoop<'_>) -> Result<u64, Error> {
        let now = now_ns();
        while let Some(key) = state.resting.come(now) {
            self.offer(state, key)?;
        }
        while let Some(key) = state.sleeping.come(now) {
            if state.conns.get(key).is_some_and(|c| (1..=now).contains(&c.wake_ns)) {
                self.go_on(state, key, now)?;
            }
        }
        let later = state.resting.next().min(state.sleeping.next());
        for _ in 0..BEGIN_AT_ONCE {
            let Some(key) = state.idle.first() else { return Ok(later) };
            let now = now_ns();
            match self.due(state, now) {
                Due::At(due) if due > now => return Ok(due.min(later)),
                Due::At(_) => {}
                Due::Never => return Ok(later),
            }
            state.idle.take();
            self.refill(state, key, now)?;
        }
        Ok(0)
    }

    /// When the next transaction may begin.
    #[inline]
    pub(super) fn due(&self, state: &PgLoop<'_>, now: u64) -> Due {
        match state.draining {
            true => Due::Never,
            false => self.duty.pace.due(self.duty.window, state.next, now),
        }
    }

    /// Begins a transaction, where one is due.
    pub(super) fn refill(&self, state: &mut PgLoop<'_>, key: usize, now: u64) -> Result<(), Error> {
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
                            state.idle.add(key);
                        }
                        Ok(())
                    }
                    Phase::Closed if self.shape.connect_each => self.connect(state, key),
                    _ => Ok(()),
                }
            }
            _ => {
                state.idle.add(key);
                Ok(())
            }
        }
    }

    /// Goes on with a transaction, and with the next one after its end.
    #[inline]
    pub(super) fn go_on(&self, state: &mut PgLoop<'_>, key: usize, now: u64) -> Result<(), Error> {
        if self.advance(state, key, now)? {
            self.refill(state, key, now)?;
        }
        Ok(())
    }

    /// Goes on with a transaction; whether it is over and another may begin.
    #[inline]
    fn advance(&self, state: &mut PgLoop<'_>, key: usize, now: u64) -> Result<bool, Error> {
        let Some(conn) = state.conns.get_mut(key) else { return Ok(false) };
        if conn.client.running.is_none() || conn.phase != Phase::Open {
            return Ok(false);
        }
        conn.wake_ns = 0;
        let next = conn.client.advance(&self.shape.plan, now, &mut conn.out);
        if let Next::Sleep(until) = next {
            conn.wake_ns = until.max(1);
            state.sleeping.add(conn.wake_ns, key);
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
        state: &mut PgLoop<'_>,
        key: usize,
        now: u64,
        result: Result<(), ServerError>,
    ) -> Result<bool, Error> {
        let Some(conn) = state.conns.get_mut(key) else { return Ok(false) };
        let Some(running) = conn.client.running.take() else { return Ok(false) };
        conn.settled += 1;
        match result {
            Ok(()) => {
                self.duty.worker.asked.answered(now.saturating_sub(running.due_ns));
                state.recorder.record(self.duty.window, &running, now);
            }
            Err(error) => {
                self.duty.worker.asked.failed();
                let named = state.recorder.named(&error);
                state.recorder.fail(self.duty.window, Some(&running), running.due_ns, now, named);
            }
        }
        state.settled += 1;
        self.duty.worker.handled(state.settled);
        if state.settled.is_multiple_of(LOOK_EVERY) {
            state.looks.turn_to(conn.link.fd());
            state.looks.look();
        }
        if self.shape.connect_each {
            conn.close();
            self.offer(state, key)?;
            return Ok(false);
        }
        Ok(true)
    }
}
