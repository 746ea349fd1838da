//! Divides the time budget among the present experiment, later ones, further observations and the
//! final experiment, which compares everything kept with the state before.

use std::time::Duration;

/// The fewest runs of an experiment: six blocks of four.
pub const FEWEST_RUNS: u32 = 24;
/// The factor by which setting, undoing and reading back lengthen a run, until an experiment has
/// measured it.
const BESIDE: f64 = 1.4;
/// The longest experiment, as a multiple of the shortest.
const MOST: f64 = 4.0;
/// The longest final experiment, as a multiple of the shortest, where the budget allows.
const MOST_LAST: f64 = 8.0;

/// The share of the rest of the budget (one part in this many) that is spent waiting for the first
/// run. An experiment and the final one are some sixty runs, so a slower run does not fit anyway.
/// Its duration shows which budget would.
const PATIENCE: u32 = 8;

/// A run that takes this many times the longest known one hangs; its candidate is reverted.
const HANGS: u32 = 8;
/// No run hangs before this: short runs vary by chance.
const SHORTEST_HANG: Duration = Duration::from_secs(10);

/// How long to wait for a run where none has ended yet.
pub fn patience(room: Duration) -> Duration {
    room / PATIENCE
}

/// The duration of runs, with setting and undoing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pace {
    now: Duration,
    slowest: Duration,
    /// The longest run so far: a workload may have two modes.
    longest: Duration,
}

impl Pace {
    /// Whether a run is known to have ended.
    pub fn is_known(self) -> bool {
        !self.slowest.is_zero()
    }

    /// An observation measured the workload's duration on the host as it is now.
    pub fn looked(&mut self, run: Duration) {
        self.now = run.mul_f64(BESIDE);
        self.slowest = self.slowest.max(self.now);
    }

    /// A run of this duration succeeded.
    pub fn ran(&mut self, run: Duration) {
        self.longest = self.longest.max(run);
    }

    /// An experiment of this many runs took this long.
    pub fn made(&mut self, runs: usize, took: Duration) {
        let runs = u32::try_from(runs).unwrap_or(u32::MAX);
        if let Some(each) = took.checked_div(runs) {
            self.slowest = self.slowest.max(each);
        }
    }

    /// The time after which a run hangs; `None` where none has ended yet.
    pub fn hang(self) -> Option<Duration> {
        let usual = self.slowest.max(self.longest);
        self.is_known().then(|| (usual * HANGS).max(SHORTEST_HANG))
    }

    /// The duration of the shortest experiment on the host as it is now.
    pub fn shortest(self) -> Duration {
        self.now * FEWEST_RUNS
    }

    /// The shortest duration of the final experiment. It runs the workload without the kept
    /// changes, which may be far slower.
    pub fn last(self) -> Duration {
        self.slowest * FEWEST_RUNS
    }
}

/// The rest of the budget, and what it must hold.
#[derive(Debug, Clone, Copy)]
pub struct TimeBudget {
    pub room: Duration,
    /// How long runs take.
    pub pace: Pace,
    /// How long further observations may take.
    pub looks: Duration,
}

/// The time that an experiment may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allotment {
    pub share: Duration,
    /// How far it may exceed `share` to complete the fewest blocks for a verdict.
    pub disruption: Duration,
}

impl TimeBudget {
    /// The time for the next of `left` experiments: an equal share of the budget without the final
    /// one and further observations; from the shortest time to [`MOST`] times that. `None` where the
    /// shortest does not fit.
    pub fn slice(&self, left: usize) -> Option<Allotment> {
        let (shortest, own) = (self.pace.shortest(), self.room.saturating_sub(self.pace.last()));
        if own < shortest {
            return None;
        }
        // A further observation may lead to a further experiment.
        let after = self.looks + shortest;
        let part = own.saturating_sub(after) / u32::try_from(left.max(1)).unwrap_or(u32::MAX);
        Some(Allotment { share: part.clamp(shortest, shortest.mul_f64(MOST)), disruption: own })
    }

    /// The time of the final experiment: the rest of the budget within [`MOST_LAST`], and at least
    /// what it needs.
    pub fn last(&self) -> Allotment {
        let needs = self.pace.last();
        let share = self.room.clamp(needs, needs.mul_f64(MOST_LAST));
        Allotment { share, disruption: self.room.max(needs * 2) }
    }

    /// Whether the budget holds an observation of this length, an experiment after it, and the
    /// final one.
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
        // The kept change made the workload forty times as fast.
        time_budget.pace.looked(Duration::from_millis(10));
        assert!(time_budget.pace.shortest() < s(1) && time_budget.pace.last() > s(13));
        assert!(time_budget.last().share == s(60) && time_budget.last().disruption == s(60));
        time_budget.room = s(10);
        assert_eq!(time_budget.last().share, time_budget.pace.last());
        assert_eq!(time_budget.slice(1), None, "the last has the rest");
        // An experiment measured that setting takes longer than assumed.
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
        // An experiment that exceeds its share for its fewest blocks leaves the final one its time.
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
