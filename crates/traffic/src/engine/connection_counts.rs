//! What became of a thread's connections, and of what it was to begin, beside the answers that came.

use std::collections::BTreeMap;

use super::{backlog::ScheduleLeft, workers::WorkerTask};

/// The counts; failures are told apart by `F`.
#[derive(Debug)]
pub struct ConnectionCounts<F> {
    /// Connections made anew after the server ended them between answers.
    pub reconnects: u64,
    /// What was begun in the window and has no end.
    pub unfinished: u64,
    /// Open loop: what the schedule has left.
    pub left: ScheduleLeft,
    /// Places of connections without an answer within the window though one was due.
    pub silent: u64,
    /// Time of the window that places had no connection, summed.
    pub disconnected_ns: u64,
    /// Connections that served nothing, warm-up included.
    pub refused: BTreeMap<F, u64>,
}

/// The place of a connection, as it stands when the run ends.
#[derive(Debug, Clone, Copy)]
pub struct RequestTiming {
    /// Whether it has no connection that waits to be asked: it connects, or an answer is due.
    pub busy: bool,
    /// When the last answer came, on whichever connection.
    pub last_ns: u64,
    /// Since when it has no connection; `None` where it has one.
    pub away_since_ns: Option<u64>,
}

impl<F> Default for ConnectionCounts<F> {
    fn default() -> Self {
        Self {
            reconnects: 0,
            unfinished: 0,
            left: ScheduleLeft::default(),
            silent: 0,
            disconnected_ns: 0,
            refused: BTreeMap::new(),
        }
    }
}

impl<F: Ord + Clone> ConnectionCounts<F> {
    /// A connection that served nothing.
    #[cold]
    pub fn refuse(&mut self, why: F) {
        *self.refused.entry(why).or_default() += 1;
    }

    /// The run ends: what the schedule has left, of which `next` would be begun next, and which places
    /// had no answer, or no connection.
    pub fn ends(
        &mut self,
        duty: &WorkerTask<'_>,
        next: u64,
        now: u64,
        places: impl Iterator<Item = RequestTiming>,
    ) {
        let (window, pace) = (duty.window, &duty.pace);
        self.left = ScheduleLeft {
            schedule_lag_ns: pace.schedule_lag_ns(next, now),
            not_started: pace.not_started(window, next, now),
        };
        // One that never opened holds nothing.
        if window.start_ns() == u64::MAX {
            return;
        }
        let closed_loop = pace.schedule.is_none();
        for RequestTiming { busy, last_ns, away_since_ns } in places {
            let due = closed_loop || busy;
            self.silent += u64::from(due && last_ns < window.start_ns());
            self.disconnected_ns += away_since_ns.map_or(0, |since| window.share_ns(since, now));
        }
    }

    /// Adds another thread's, or another round's.
    pub fn add(&mut self, other: &Self) {
        self.reconnects += other.reconnects;
        self.unfinished += other.unfinished;
        self.left.add(other.left);
        self.silent += other.silent;
        self.disconnected_ns += other.disconnected_ns;
        for (why, n) in &other.refused {
            *self.refused.entry(why.clone()).or_default() += n;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fates_of_threads_add_up_and_the_last_is_the_farthest_behind() {
        let of = |n: u64, why| {
            let left = ScheduleLeft { schedule_lag_ns: n, not_started: n };
            let mut fate = ConnectionCounts {
                reconnects: n,
                left,
                disconnected_ns: n,
                ..ConnectionCounts::default()
            };
            fate.refuse(why);
            fate
        };
        let mut sum = of(3, "reset");
        sum.add(&of(2, "reset"));
        sum.add(&of(1, "silent"));
        assert_eq!((sum.reconnects, sum.disconnected_ns), (6, 6));
        assert_eq!(sum.left, ScheduleLeft { schedule_lag_ns: 3, not_started: 6 });
        assert_eq!(sum.refused, BTreeMap::from([("reset", 2), ("silent", 1)]));
    }
}
