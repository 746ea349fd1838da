//! Counts of a thread's connections, and of requests without an answer.

use std::collections::BTreeMap;

use super::{backlog::ScheduleLeft, workers::WorkerTask};

/// The counts; `F` distinguishes failures.
#[derive(Debug)]
pub struct ConnectionCounts<F> {
    /// Reconnects after the server closed a connection between answers.
    pub reconnects: u64,
    /// Requests begun in the window that did not end.
    pub unfinished: u64,
    /// Open loop: lag of the schedule at the end.
    pub left: ScheduleLeft,
    /// Connection slots without any answer in the window though one was due.
    pub silent: u64,
    /// Time without a connection within the window, summed over slots.
    pub disconnected_ns: u64,
    /// Connections that served no request, warm-up included, by reason.
    pub refused: BTreeMap<F, u64>,
}

/// State of a connection slot when the run ends.
#[derive(Debug, Clone, Copy)]
pub struct RequestTiming {
    /// Whether it is connecting or waits for an answer.
    pub busy: bool,
    /// Time of the last answer on any connection of this slot.
    pub last_ns: u64,
    /// Time since when it has no connection; `None` if it has one.
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
    /// Counts a connection that served no request.
    #[cold]
    pub fn refuse(&mut self, why: F) {
        *self.refused.entry(why).or_default() += 1;
    }

    /// Ends the run: counts the schedule's remainder, where `next` would begin next, and the slots
    /// without an answer or a connection.
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
        // A window that never opened holds nothing.
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

    /// Adds another thread or round.
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
            let mut connections = ConnectionCounts {
                reconnects: n,
                left,
                disconnected_ns: n,
                ..ConnectionCounts::default()
            };
            connections.refuse(why);
            connections
        };
        let mut sum = of(3, "reset");
        sum.add(&of(2, "reset"));
        sum.add(&of(1, "silent"));
        assert_eq!((sum.reconnects, sum.disconnected_ns), (6, 6));
        assert_eq!(sum.left, ScheduleLeft { schedule_lag_ns: 3, not_started: 6 });
        assert_eq!(sum.refused, BTreeMap::from([("reset", 2), ("silent", 1)]));
    }
}
