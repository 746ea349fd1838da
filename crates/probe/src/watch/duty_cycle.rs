//! Decides for how much of each interval programs that run for every packet or call are attached,
//! to limit their cost. The cost so far predicts the cost to come.

use model::CpuId;

use super::ObserveWhen;

/// What each such part may take of each CPU's time; of the four together it is 0.8%.
const BUDGET: f64 = 0.002;

/// The observed time at the start of each interval, at any cost, nanoseconds.
const LEAST_NS: u64 = 10_000_000;

/// How many times an interval is checked at least, so that a burst does not go on unnoticed.
const LOOKS: u64 = 3;

/// The assumed cost of a run where the kernel does not report it, nanoseconds.
pub const USUAL_NS: f64 = 100.0;

/// How often each of a part's programs ran, by CPU.
pub type Runs = Vec<(CpuId, Vec<u64>)>;

/// Programs that can be detached for a while.
pub trait Part {
    /// How often they ran since they were loaded; empty where it cannot be read.
    fn runs(&self) -> Runs;
    /// What a run of each takes, nanoseconds; [`USUAL_NS`] where that is not known yet.
    fn ns_per_run(&self) -> Vec<f64>;
    fn pause(&mut self);
    fn resume(&mut self);
}

/// When one part's programs are attached.
#[derive(Debug)]
pub struct DutyCycle {
    when: ObserveWhen,
    /// Each CPU's runs as the interval began.
    begun: Runs,
    begun_ns: u64,
    end_ns: u64,
    /// When to look again at what they cost.
    due_ns: Option<u64>,
    /// Since when they are attached, and for how long they were before in this interval.
    attached_at: Option<u64>,
    attached_ns: u64,
    looked_at: u64,
    budget: f64,
}

impl DutyCycle {
    /// They were attached just now.
    pub fn begin(when: ObserveWhen, now: u64) -> Self {
        Self {
            when,
            begun: Vec::new(),
            begun_ns: now,
            end_ns: now,
            due_ns: None,
            attached_at: Some(now),
            attached_ns: 0,
            looked_at: now,
            budget: BUDGET,
        }
    }

    /// They may take this share of each CPU's time instead.
    pub fn within(self, budget: f64) -> Self {
        Self { budget, ..self }
    }

    /// An interval begins now, and ends then: attaches what was detached amid the last one.
    pub fn resume(&mut self, part: &mut impl Part, now: u64, end: u64) {
        if self.when != ObserveWhen::Auto {
            return;
        }
        if self.attached_at.is_none() {
            part.resume();
            self.attached_at = Some(now);
        }
        (self.begun, self.begun_ns, self.end_ns) = (part.runs(), now, end);
        self.due_ns = Some(now.saturating_add(LEAST_NS));
    }

    /// When to look at what they cost; none: no more in this interval.
    pub fn due(&self) -> Option<u64> {
        self.due_ns.filter(|at| *at < self.end_ns)
    }

    /// Detaches them for the rest of the interval if they have cost enough.
    pub fn look(&mut self, part: &mut impl Part, now: u64) {
        if self.due_ns.is_none_or(|at| at > now) {
            return;
        }
        let span = self.end_ns.saturating_sub(self.begun_ns);
        let spent = self.spent(&part.runs(), &part.ns_per_run());
        let wait = until_spent(span, now.saturating_sub(self.begun_ns), spent, self.budget);
        self.due_ns = wait.map(|ns| now.saturating_add(ns));
        if wait.is_none() {
            part.pause();
            let since = self.attached_at.take().unwrap_or(now);
            self.attached_ns += now.saturating_sub(since);
        }
    }

    /// What the interval cost so far on the CPU that it cost most, nanoseconds.
    fn spent(&self, now: &Runs, ns: &[f64]) -> f64 {
        let one = |(cpu, now): &(CpuId, Vec<u64>)| {
            let before = self.begun.iter().find(|(c, _)| c == cpu);
            let before = before.map_or(&[][..], |(_, runs)| runs.as_slice());
            let before = before.iter().chain(std::iter::repeat(&0));
            let grown = now.iter().zip(before).map(|(now, then)| now.wrapping_sub(*then));
            grown.zip(ns).map(|(runs, ns)| runs as f64 * ns).sum()
        };
        now.iter().map(one).fold(0.0, f64::max)
    }

    /// The share of the time since the last asking in which they were attached.
    pub fn observed(&mut self, now: u64) -> f64 {
        let whole = now.saturating_sub(self.looked_at);
        let since = self.attached_at.as_mut().map_or(0, |at| now - std::mem::replace(at, now));
        let attached = std::mem::take(&mut self.attached_ns) + since;
        self.looked_at = now;
        if whole == 0 { 1.0 } else { (attached as f64 / whole as f64).min(1.0) }
    }
}

/// The nanoseconds until the next check; `None`: the interval's budget is exhausted. `spent`
/// nanoseconds were used in the first `elapsed` ones of `span`.
fn until_spent(span: u64, elapsed: u64, spent: f64, budget: f64) -> Option<u64> {
    let left = span as f64 * budget - spent;
    if left <= 0.0 {
        return None;
    }
    let longest = (span / LOOKS).max(LEAST_NS);
    let rate = spent / elapsed.max(1) as f64;
    // One millisecond: a look costs, too.
    Some(((left / rate.max(1e-9)) as u64).clamp(1_000_000, longest))
}

/// What would have been seen in the whole time, of which this was seen in a share.
pub fn scaled(n: u64, share: f64) -> u64 {
    if share > 0.0 && share < 1.0 { (n as f64 / share).round() as u64 } else { n }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Programs that ran so often, and whether they are attached.
    struct Fake(Runs, bool);

    impl Part for Fake {
        fn runs(&self) -> Runs {
            self.0.clone()
        }
        fn ns_per_run(&self) -> Vec<f64> {
            vec![50.0, 150.0]
        }
        fn pause(&mut self) {
            self.1 = false;
        }
        fn resume(&mut self) {
            self.1 = true;
        }
    }

    const SECOND: u64 = 1_000_000_000;

    fn fake(runs: [u64; 2]) -> Fake {
        Fake(runs.iter().zip(0..).map(|(n, cpu)| (CpuId(cpu), vec![*n, *n])).collect(), true)
    }

    #[test]
    fn the_dearest_cpu_spends_the_budget_and_the_share_is_reported() {
        let mut duty = DutyCycle::begin(ObserveWhen::Auto, 0);
        let mut part = fake([7, 1_000_000]);
        duty.resume(&mut part, 0, SECOND);
        assert_eq!(duty.due(), Some(LEAST_NS));
        // 5,000 runs of both, 1 ms, in 10 ms: the other half of 2 ms is gone after as long.
        part = fake([5_007, 1_000_100]);
        duty.look(&mut part, LEAST_NS);
        assert_eq!((part.1, duty.due()), (true, Some(2 * LEAST_NS)));
        duty.look(&mut part, LEAST_NS + 1);
        assert!(part.1, "it is not due yet");
        part = fake([10_007, 1_000_200]);
        duty.look(&mut part, 2 * LEAST_NS);
        assert_eq!((part.1, duty.due()), (false, None));
        assert!((duty.observed(SECOND) - 0.02).abs() < 1e-9);
        duty.resume(&mut part, SECOND, 2 * SECOND);
        assert!(part.1);
        assert!((duty.observed(2 * SECOND) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn what_costs_little_is_observed_to_the_end_and_looked_at_again() {
        let mut duty = DutyCycle::begin(ObserveWhen::Auto, 0);
        let mut part = fake([7, 7]);
        duty.resume(&mut part, 0, SECOND);
        let mut looks = 0;
        while let Some(at) = duty.due() {
            duty.look(&mut part, at);
            looks += 1;
        }
        assert!(part.1 && (3..=4).contains(&looks), "{looks} looks");
    }

    #[test]
    fn who_wants_all_of_it_gets_it() {
        let mut duty = DutyCycle::begin(ObserveWhen::Always, 0);
        let mut part = fake([7, 7]);
        duty.resume(&mut part, 0, SECOND);
        assert_eq!(duty.due(), None);
        assert!((duty.observed(SECOND) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_part_is_scaled_to_the_whole_and_none_is_nothing() {
        assert_eq!(scaled(50, 0.25), 200);
        assert_eq!(scaled(50, 1.0), 50);
        assert_eq!(scaled(0, 0.0), 0);
    }
}
