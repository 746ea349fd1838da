//! What takes too long, and the transactions under way when the run ends.

use super::{PgClient, PgLoop};
use crate::{
    Error,
    net::now_ns,
    pg::{conn::Phase, recorder::Failed},
    served::connection_counts::RequestTiming,
};

/// How long the last transactions may take to end after the run.
const DRAIN_NS: u64 = 1_000_000_000;

impl PgClient<'_> {
    /// What took too long has failed.
    pub(super) fn give_up(&self, state: &mut PgLoop<'_>) -> Result<(), Error> {
        let now = now_ns();
        for key in 0..state.conns.len() {
            let Some(conn) = state.conns.get(key) else { continue };
            let since = match conn.phase {
                Phase::Closed => continue,
                Phase::Connecting | Phase::Asking | Phase::Shaking | Phase::LoggingIn => {
                    conn.begun_ns
                }
                Phase::Open => conn.client.waits_since().unwrap_or(now),
            };
            if now.saturating_sub(since) < self.shape.timeout_ns {
                continue;
            }
            match conn.phase {
                Phase::Open => self.lost(state, key, Failed::NoAnswer)?,
                _ => self.unconnected(state, key, Failed::NoConnection)?,
            }
        }
        Ok(())
    }

    /// Lets the window's transactions under way end.
    pub(super) fn drain(&self, state: &mut PgLoop<'_>) -> Result<(), Error> {
        let now = now_ns();
        let places = state.conns.iter().map(|conn| RequestTiming {
            busy: conn.phase != Phase::Open || conn.client.running.is_some(),
            last_ns: conn.last_ns,
            away_since_ns: conn.away_since_ns,
        });
        state.recorder.fate.ends(self.duty, state.next, now, places);
        state.draining = true;
        let until = now + DRAIN_NS;
        let mut left = self.left(state);
        while left > 0 && self.duty.pool.broken().is_none() && now_ns() < until {
            let later = self.begin_due(state)?;
            self.turn(state, until.min(later))?;
            left = self.left(state);
        }
        state.recorder.fate.unfinished = left;
        Ok(())
    }

    /// Transactions of the window under way.
    fn left(&self, state: &PgLoop<'_>) -> u64 {
        let all = state.conns.iter().filter_map(|c| c.client.running.as_ref());
        all.filter(|r| self.duty.window.holds(r.due_ns)).count() as u64
    }
}
