//! What the budget is spent on: the experiment at hand, those after it, the looks that may follow
//! and the last experiment, which compares all that was kept with before.

use std::time::Duration;

/// An experiment has blocks of four runs, six at least.
pub const FEWEST_RUNS: u32 = 24;
/// What setting, undoing and reading back cost beside the runs, until an experiment has told.
const BESIDE: f64 = 1.4;
/// One experiment takes at most so much longer than the shortest.
const MOST: f64 = 4.0;
/// The last one is given so much longer than the shortest, where the budget holds that.
const MOST_LAST: f64 = 8.0;

/// Of what is left of the budget, one part in so many is spent on waiting for a run that is slow:
/// an experiment and the last one are some sixty runs, so that one this slow has no room anyhow, but
/// how slow it is tells which budget has.
const PATIENCE: u32 = 8;

/// A run that takes so many times as long as the longest seen hangs, and what makes it so slow is not kept.
const HANGS: u32 = 8;
/// Of short runs one is slow by chance, so that none hangs before this.
const SHORTEST_HANG: Duration = Duration::from_secs(10);

/// How long a run is waited for where none has ended yet.
pub fn patience(room: Duration) -> Duration {
    room / PATIENCE
}

/// How long a run takes, setting and undoing included.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pace {
    now: Duration,
    slowest: Duration,
    /// The longest run that was seen: a workload may have two modes.
    longest: Duration,
}

impl Pace {
    /// Whether a run is known to have ended.
    pub fn is_known(self) -> bool {
        !self.slowest.is_zero()
    }

    /// A look told how long the workload takes as the host is now.
    pub fn looked(&mut self, run: Duration) {
        self.now = run.mul_f64(BESIDE);
        self.slowest = self.slowest.max(self.now);
    }

    /// A run took so long, and worked.
    pub fn ran(&mut self, run: Duration) {
        self.longest = self.longest.max(run);
    }

    /// An experiment of so many runs took so long.
    pub fn made(&mut self, runs: usize, took: Duration) {
        let runs = u32::try_from(runs).unwrap_or(u32::MAX);
        if let Some(each) = took.checked_div(runs) {
            self.slowest = self.slowest.max(each);
        }
    }

    /// After which time a run is taken to hang; `None` where none has ended yet.
    pub fn hang(self) -> Option<Duration> {
        let usual = self.slowest.max(self.longest);
        self.is_known().then(|| (usual * HANGS).max(SHORTEST_HANG))
    }

    /// How long the shortest experiment on the host as it is now takes.
    pub fn shortest(self) -> Duration {
        self.now * FEWEST_RUNS
    }

    /// How long the last one takes at least: it runs the workload as it was before anything was
    /// kept, which may be far slower than it is now.
    pub fn last(self) -> Duration {
        self.slowest * FEWEST_RUNS
    }
}

/// What is left of the budget, and what it has to hold.
#[derive(Debug, Clone, Copy)]
pub struct TimeBudget {
    pub room: Duration,
    /// How long runs take.
    pub pace: Pace,
    /// How long the looks take that may follow.
    pub looks: Duration,
}

/// How long an experiment may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allotment {
    pub share: Duration,
    /// How far it may go beyond that to have the fewest blocks that say anything.
    pub disruption: Duration,
}

impl TimeBudget {
    /// What the next of so many experiments may take: its part of what the last one and the looks
    /// after it leave, from the shortest to [`MOST`] times that. `None` where not even the shortest
    /// fits beside the last.
    pub fn slice(&self, left: usize) -> Option<Allotment> {
        let (shortest, own) = (self.pace.shortest(), self.room.saturating_sub(self.pace.last()));
        if own < shortest {
            return None;
        }
        // What a look shows is worth an experiment as well.
        let after = self.looks + shortest;
        let part = own.saturating_sub(after) / u32::try_from(left.max(1)).unwrap_or(u32::MAX);
        Some(Allotment { share: part.clamp(shortest, shortest.mul_f64(MOST)), disruption: own })
    }

    /// What the last may take: all that is left, within reason; and what it needs, even where the
    /// others left less.
    pub fn last(&self) -> Allotment {
        let needs = self.pace.last();
        let share = self.room.clamp(needs, needs.mul_f64(MOST_LAST));
        Allotment { share, disruption: self.room.max(needs * 2) }
    }

    /// Whether there is time for a look of this length, an experiment after it, and the last one.
    pub fn holds_look(&self, look: Duration) -> bool {
        self.room.saturating_sub(look) >= self.pace.shortest() + self.pace.last()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn time_budget(room: u64, run_ms: u64) -> TimeBudget {
        let mut pace = Pace::default();
        pace.looked(Duration::from_millis(run_ms));
        TimeBudget { room: s(room), pace, looks: s(27) }
    }

    #[test]
    fn the_last_is_reckoned_by_the_workload_as_it_was_before() {
        let mut time_budget = time_budget(60, 400);
        // What was kept made it forty times as fast.
        time_budget.pace.looked(Duration::from_millis(10));
        assert!(time_budget.pace.shortest() < s(1) && time_budget.pace.last() > s(13));
        assert!(time_budget.last().share == s(60) && time_budget.last().disruption == s(60));
        time_budget.room = s(10);
        assert_eq!(time_budget.last().share, time_budget.pace.last());
        assert_eq!(time_budget.slice(1), None, "the last has the rest");
        // An experiment told that setting takes longer than was thought.
        time_budget.pace.made(24, s(48));
        assert_eq!(time_budget.pace.last(), s(48));
        time_budget.pace.made(0, s(1));
    }

    #[test]
    fn a_run_hangs_by_the_slowest_so_far_and_never_soon() {
        assert_eq!(Pace::default().hang(), None);
        let mut pace = time_budget(60, 10).pace;
        assert_eq!(pace.hang(), Some(SHORTEST_HANG));
        pace.looked(s(5));
        pace.looked(s(1));
        assert_eq!(pace.hang(), Some(s(56)), "seven seconds with what is beside, eight times");
        pace.ran(s(9));
        pace.ran(s(2));
        assert_eq!(pace.hang(), Some(s(72)));
    }

    #[test]
    fn one_experiment_leaves_what_the_others_and_the_looks_need() {
        let time_budget = time_budget(120, 500);
        let (shortest, looks) = (time_budget.pace.shortest(), time_budget.looks);
        let slice = time_budget.slice(2).unwrap();
        let spent = slice.share * 2 + looks + shortest + time_budget.pace.last();
        assert!(slice.share >= shortest && spent <= s(120), "{slice:?}");
        let after = TimeBudget { room: s(120) - slice.share * 2, ..time_budget };
        assert!(after.holds_look(looks) && after.slice(1).is_some());
        // The farthest that one goes for its fewest blocks leaves the last one its time.
        assert_eq!(slice.disruption, s(120) - time_budget.pace.last());
        assert!(TimeBudget { room: s(30), ..time_budget }.slice(1).is_none());
    }

    #[test]
    fn much_time_is_not_spent_on_one() {
        let time_budget = time_budget(900, 100);
        assert_eq!(time_budget.slice(1).unwrap().share, time_budget.pace.shortest() * 4);
        assert_eq!(time_budget.last().share, time_budget.pace.last() * 8);
    }
}
