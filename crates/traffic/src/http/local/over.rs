//! What takes too long, and the requests under way when the run ends.

use super::{HttpClient, HttpLoop};
use crate::{
    Error,
    http::{conn::Phase, recorder::Failed},
    net::now_ns,
    served::connection_counts::RequestTiming,
};

/// How long a server that said it closes is waited for.
const LINGER_NS: u64 = 20_000_000;
/// How long the last requests may take to end after the run.
const DRAIN_NS: u64 = 1_000_000_000;

impl HttpClient<'_> {
    /// What took too long has failed.
    pub(super) fn give_up(&self, state: &mut HttpLoop<'_>) -> Result<(), Error> {
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
    pub(super) fn drain(&self, state: &mut HttpLoop<'_>) -> Result<(), Error> {
        let now = now_ns();
        let places = state.conns.iter().map(|conn| RequestTiming {
            busy: conn.phase != Phase::Open || !conn.asked.is_empty(),
            last_ns: conn.last_ns,
            away_since_ns: conn.away_since_ns,
        });
        state.recorder.fate.ends(self.duty, state.next, now, places);
        state.draining = true;
        let until = now + DRAIN_NS;
        let mut left = self.left(state);
        while left > 0 && self.duty.pool.broken().is_none() && now_ns() < until {
            let rested = self.begin_due(state)?;
            self.turn(state, until.min(rested))?;
            left = self.left(state);
        }
        state.recorder.fate.unfinished = left;
        Ok(())
    }

    /// Requests of the window under way.
    fn left(&self, state: &HttpLoop<'_>) -> u64 {
        let all = state.conns.iter().flat_map(|c| &c.asked);
        all.filter(|a| self.duty.window.holds(a.due_ns)).count() as u64
    }
}
