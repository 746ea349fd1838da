//! Timeouts, and requests under way when the run ends.

use super::{EventLoop, Loop};
use crate::{
    Error,
    engine::{
        conn::Phase,
        connection_counts::RequestTiming,
        failed::Failed,
        protocol::{Protocol, Record},
    },
    net::now_ns,
};

/// How long to wait for a server to close after it announced that.
const LINGER_NS: u64 = 20_000_000;
/// How long the last requests may take to end after the run.
const DRAIN_NS: u64 = 1_000_000_000;

impl<P: Protocol> EventLoop<'_, P> {
    /// Fails whatever exceeded its timeout.
    pub(super) fn give_up(&self, all: &mut Loop<'_, P>) -> Result<(), Error> {
        let now = now_ns();
        for key in 0..all.conns.len() {
            let Some(conn) = all.conns.get(key) else { continue };
            let since = match conn.phase {
                Phase::Closed => continue,
                Phase::Connecting | Phase::Asking | Phase::Shaking | Phase::Greeting => {
                    conn.begun_ns
                }
                Phase::Lingering => {
                    if now.saturating_sub(conn.begun_ns) >= LINGER_NS {
                        self.closed(all, key)?;
                    }
                    continue;
                }
                Phase::Open => self.protocol.asked_since(&conn.state).unwrap_or(now),
            };
            if now.saturating_sub(since) < self.protocol.connecting().timeout_ns {
                continue;
            }
            match conn.phase {
                Phase::Open => self.lost(all, key, Failed::NoAnswer)?,
                _ => self.unconnected(all, key, Failed::NoConnection)?,
            }
        }
        Ok(())
    }

    /// Waits for the window's requests under way to end.
    pub(super) fn drain(&self, all: &mut Loop<'_, P>) -> Result<(), Error> {
        let now = now_ns();
        let places = all.conns.iter().map(|conn| RequestTiming {
            busy: conn.phase != Phase::Open || self.protocol.waits(&conn.state),
            last_ns: conn.last_ns,
            away_since_ns: conn.away_since_ns,
        });
        all.recorder.requests_mut().connections.ends(self.task, all.next, now, places);
        all.draining = true;
        let until = now + DRAIN_NS;
        let mut left = self.left(all);
        while left > 0 && self.task.pool.broken().is_none() && now_ns() < until {
            let later = self.begin_due(all)?;
            self.turn(all, until.min(later))?;
            left = self.left(all);
        }
        all.recorder.requests_mut().connections.unfinished = left;
        Ok(())
    }

    /// Number of the window's requests under way.
    fn left(&self, all: &Loop<'_, P>) -> u64 {
        let window = self.task.window;
        all.conns.iter().map(|c| self.protocol.under_way(&c.state, window)).sum()
    }
}
