//! What takes too long, and the requests under way when the run ends.

use super::{Near, State};
use crate::{
    Error,
    http::{conn::Phase, recorder::Failed},
    net::now_ns,
};

/// How long a server that said it closes is waited for.
const LINGER_NS: u64 = 20_000_000;
/// How long the last requests may take to end after the run.
const DRAIN_NS: u64 = 1_000_000_000;

impl Near<'_> {
    /// What took too long has failed.
    pub(super) fn give_up(&self, state: &mut State<'_>) -> Result<(), Error> {
        let now = now_ns();
        for key in 0..state.conns.len() {
            let Some(conn) = state.conns.get(key) else { continue };
            let since = match conn.phase {
                Phase::Closed => continue,
                Phase::Connecting | Phase::Shaking => conn.begun_ns,
                Phase::Lingering => {
                    if now.saturating_sub(conn.begun_ns) >= LINGER_NS {
                        self.closed(state, key)?;
                    }
                    continue;
                }
                Phase::Open => conn.asked.front().map_or(now, |a| a.sent_ns),
            };
            if now.saturating_sub(since) < self.shape.timeout_ns {
                continue;
            }
            match conn.phase {
                Phase::Connecting | Phase::Shaking => {
                    self.unconnected(state, key, Failed::NoConnection)?;
                }
                _ => self.lost(state, key, Failed::NoAnswer)?,
            }
        }
        Ok(())
    }

    /// Lets the window's requests under way end.
    pub(super) fn drain(&self, state: &mut State<'_>) -> Result<(), Error> {
        let now = now_ns();
        state.recorder.not_begun = self.duty.pace.not_begun(self.duty.window, state.next, now);
        state.recorder.behind_ns = self.duty.pace.behind_ns(state.next, now);
        self.tell_unserved(state, now);
        state.draining = true;
        let until = now + DRAIN_NS;
        let mut left = self.left(state);
        while left > 0 && self.duty.team.broken().is_none() && now_ns() < until {
            let rested = self.begin_due(state)?;
            self.turn(state, until.min(rested))?;
            left = self.left(state);
        }
        state.recorder.unfinished = left;
        Ok(())
    }

    /// Which places had no answer, or no connection.
    fn tell_unserved(&self, state: &mut State<'_>, now: u64) {
        let (window, closed_loop) = (self.duty.window, self.duty.pace.schedule.is_none());
        if window.start_ns() == u64::MAX {
            return;
        }
        for conn in &state.conns {
            let due = closed_loop || conn.phase != Phase::Open || !conn.asked.is_empty();
            state.recorder.silent += u64::from(due && conn.last_ns < window.start_ns());
            let away = conn.away_since_ns.map_or(0, |since| window.share_ns(since, now));
            state.recorder.away_ns += away;
        }
    }

    /// Requests of the window under way.
    fn left(&self, state: &State<'_>) -> u64 {
        let all = state.conns.iter().flat_map(|c| &c.asked);
        all.filter(|a| self.duty.window.holds(a.due_ns)).count() as u64
    }
}
