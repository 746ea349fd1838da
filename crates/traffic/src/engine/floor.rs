//! Cost of the load generator, and the smallest figures that it can measure.
//!
//! # The rule
//! - Between a response and the next request a thread reads the clock once and records one sample;
//!   both are part of the next round trip. A figure below 100 times that cost contains more than 1%
//!   generator cost. The cost is measured with the generator's own recorder, in a loop with warm
//!   caches; between system calls it may be twice that.
//! - A figure below 100 clock steps is not accurate to 1% either.
//! - A thread that blocks is sometimes woken late, by the timer, the idle CPU or the scheduler.
//!   Excursions of high quantiles up to that lateness can come from this machine instead of the
//!   network.
//! - While the hypervisor runs another guest, no figure is the network's. If it took a share s of
//!   CPU time, values above the quantile 1 − s can be due to it.
//!
//! All of this is measured on the CPU that the generator will be pinned to.

use model::{
    CpuId, Nanos, Reading,
    measure::{EndCpu, Floor, Quantiles, TrustLimit},
};
use probe::samples::clock::sleep_until;
use stats::Histogram;

use super::{rtt_recorder::RttRecorder, window::Window};
use crate::{
    Error, Result,
    host::{clocks::monotonic_ns, pin::Pinned},
};

/// Figures from this multiple of the generator's cost on are accurate to 1%.
const TIMES: f64 = 100.0;

/// Duration of each of the two loops: enough for a stable median of rounds.
const LOOP_NS: u64 = 5_000_000;
const PER_ROUND: u64 = 1_000;
const MAX_ROUNDS: usize = 1_000;

/// Number of sleeps, and the length of each.
const SLEEPS: u32 = 100;
const SLEEP_NS: u64 = 100_000;
/// Time limit: a host that wakes threads milliseconds late needs fewer sleeps.
const LONGEST_NS: u64 = 250_000_000;

/// A clock that costs more than this is read by a system call.
const DEAR_CLOCK_NS: f64 = 100.0;

/// Result of the calibration before a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Calibration {
    /// Cost of one clock reading.
    pub clock_ns: f64,
    /// Smallest step of the clock that was seen.
    pub clock_step_ns: u64,
    /// Cost of recording one sample, including the clock reading.
    pub sample_ns: f64,
    /// Lateness of 100 µs sleeps.
    pub timer_lateness_ns: Quantiles,
}

/// Calibrates on a new thread with its default timer slack, pinned to `cpu` if given. Takes 20 to
/// 30 ms on an idle host, at most 0.3 s.
///
/// # Errors
/// The CPU cannot be pinned to, or no thread can be made.
pub fn calibrate(cpu: Option<CpuId>) -> Result<Calibration> {
    let work = move || {
        // Pinned until the end of the scope.
        let _pinned = cpu.map(Pinned::to).transpose()?;
        Ok(measure())
    };
    let thread = std::thread::Builder::new().name("floor".into()).spawn(work);
    let thread = thread.map_err(|e| Error::io("a thread to calibrate on", &e))?;
    thread.join().map_err(|_| Error::Environment("the calibration ended early".into()))?
}

fn measure() -> Calibration {
    let (clock_ns, clock_step_ns) = clock();
    Calibration {
        clock_ns,
        clock_step_ns,
        sample_ns: sample(),
        timer_lateness_ns: lateness().quantiles(),
    }
}

/// Nanoseconds for one of [`PER_ROUND`] operations of `round`; the median over rounds, since
/// interruptions lengthen some.
fn cost(mut round: impl FnMut()) -> f64 {
    round(); // caches and page tables
    let mut rounds = Vec::with_capacity(MAX_ROUNDS);
    let mut now = monotonic_ns();
    let end = now.saturating_add(LOOP_NS);
    while rounds.len() < MAX_ROUNDS && (now < end || rounds.len() < 3) {
        let began = now;
        round();
        now = monotonic_ns();
        rounds.push(now.saturating_sub(began));
    }
    rounds.sort_unstable();
    let median = rounds.get(rounds.len() / 2).copied().unwrap_or(0);
    median as f64 / PER_ROUND as f64
}

/// Cost of a clock reading, and the smallest step between two.
fn clock() -> (f64, u64) {
    let mut step = u64::MAX;
    let mut last = monotonic_ns();
    let cost = cost(|| {
        for _ in 0..PER_ROUND {
            let now = monotonic_ns();
            if now > last {
                step = step.min(now - last);
            }
            last = now;
        }
    });
    (cost, if step == u64::MAX { 0 } else { step })
}

/// Cost of a client thread's bookkeeping per round trip.
fn sample() -> f64 {
    let window = Window::closed();
    window.open_at(monotonic_ns());
    let mut recorder = RttRecorder::new(false, 1_000_000);
    let mut last = monotonic_ns();
    let mut spread = 0u64;
    cost(|| {
        for _ in 0..PER_ROUND {
            let now = monotonic_ns();
            // Round-trip times vary: 8 to 24 µs, over many buckets of the histogram.
            spread = spread.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let rtt = 8_000 + (spread >> 50) + (now - last) % 64;
            last = now;
            recorder.record(&window, None, now, rtt, 0);
        }
        std::hint::black_box(&mut recorder);
    })
}

/// Lateness of absolute sleeps.
fn lateness() -> Histogram {
    let mut late = Histogram::new();
    let begun = monotonic_ns();
    for _ in 0..SLEEPS {
        let due = monotonic_ns().saturating_add(SLEEP_NS);
        sleep_until(due);
        let now = monotonic_ns();
        // A signal may end a sleep early; such a sleep does not count.
        if now >= due {
            late.record(now - due);
        }
        if now.saturating_sub(begun) > LONGEST_NS {
            break;
        }
    }
    late
}

/// The noise report without a calibration.
pub fn not_measured(why: &str) -> Floor {
    Floor {
        clock_ns: 0.0,
        clock_step_ns: 0,
        sample_ns: 0.0,
        timer_lateness_ns: Quantiles::default(),
        steal_ns: Reading::absent("not measured"),
        trust_above_ns: 0,
        why: vec![TrustLimit::NotMeasured { why: why.to_owned() }],
    }
}

impl Calibration {
    /// The noise report, with the steal time of this end's windows.
    pub fn certificate<'a>(&self, windows: impl IntoIterator<Item = &'a EndCpu>) -> Floor {
        let limit = TIMES * self.sample_ns.max(self.clock_step_ns as f64);
        let trust_above_ns = limit.ceil() as u64;
        let (steal_ns, capacity) = preempted(windows);
        let why = self.why(trust_above_ns, &steal_ns, capacity as f64);
        Floor {
            clock_ns: self.clock_ns,
            clock_step_ns: self.clock_step_ns,
            sample_ns: self.sample_ns,
            timer_lateness_ns: self.timer_lateness_ns.clone(),
            steal_ns,
            trust_above_ns,
            why,
        }
    }

    fn why(
        &self,
        trust_above_ns: u64,
        steal_ns: &Reading<u64>,
        capacity_ns: f64,
    ) -> Vec<TrustLimit> {
        let below_ns = Nanos(trust_above_ns);
        let rounded = |ns: f64| Nanos(ns.round() as u64);
        let mut limits = vec![if self.sample_ns >= self.clock_step_ns as f64 {
            TrustLimit::ClientOverhead { sample_ns: rounded(self.sample_ns), below_ns }
        } else {
            TrustLimit::ClockStep { step_ns: Nanos(self.clock_step_ns), below_ns }
        }];
        if self.clock_ns > DEAR_CLOCK_NS {
            limits.push(TrustLimit::SlowClock { read_ns: rounded(self.clock_ns) });
        }
        let late = &self.timer_lateness_ns;
        limits.push(match late.count {
            0 => TrustLimit::LateTimersNotKnown,
            sleeps => TrustLimit::LateTimers { latest_ns: Nanos(late.max), sleeps },
        });
        match steal_ns {
            Reading::Known(0) => {}
            Reading::Known(ns) => {
                let share = (*ns as f64 / capacity_ns.max(1.0)).min(1.0);
                limits.push(TrustLimit::Steal { steal_ns: Nanos(*ns), share });
            }
            Reading::Absent(_) | Reading::Denied(_) => limits.push(TrustLimit::StealNotKnown),
        }
        limits
    }
}

/// Stolen time, and the total CPU time. Two runs that are the two directions of one window report
/// the same time, which counts once.
fn preempted<'a>(windows: impl IntoIterator<Item = &'a EndCpu>) -> (Reading<u64>, u64) {
    let (mut steal, mut capacity) = (Reading::absent("nothing was measured"), 0u64);
    let mut before = None;
    for window in windows {
        if before.replace(window) == Some(window) {
            continue;
        }
        let host = match &window.host_ns {
            Reading::Known(host) => host,
            Reading::Absent(why) => return (Reading::Absent(why.clone()), 0),
            Reading::Denied(why) => return (Reading::Denied(why.clone()), 0),
        };
        let Some(ns) = host.get("steal") else {
            return (Reading::absent("/proc/stat: no steal time"), 0);
        };
        steal = Reading::Known(steal.get().unwrap_or(0u64).saturating_add(*ns));
        capacity = host.values().fold(capacity, |all, ns| all.saturating_add(*ns));
    }
    (steal, capacity)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::host::pin::allowed;

    #[test]
    fn this_machine_s_floor_is_of_the_right_size() {
        let cpu = allowed().unwrap().first();
        let c = calibrate(cpu).unwrap();
        // A debug build on a busy machine: only impossible values fail.
        assert!((1.0..100_000.0).contains(&c.clock_ns), "{c:?}");
        assert!(c.sample_ns > c.clock_ns && c.sample_ns < 1_000_000.0, "{c:?}");
        assert!(c.clock_step_ns > 0 && c.clock_step_ns < 20_000_000, "{c:?}");
        let late = &c.timer_lateness_ns;
        assert!(late.count > 0 && late.count <= 100 && late.p50 <= late.max, "{c:?}");
    }

    #[test]
    fn a_dearer_sample_raises_the_floor_in_proportion() {
        let round = |extra: u64| {
            let mut sum = 0u64;
            cost(|| {
                for n in 0..PER_ROUND * extra {
                    sum = std::hint::black_box(sum.wrapping_add(n));
                }
            })
        };
        let ratio = round(40) / round(10);
        assert!((2.0..8.0).contains(&ratio), "{ratio}");
    }

    #[test]
    fn a_cpu_that_is_not_there_is_an_error() {
        assert!(calibrate(Some(CpuId(60_000))).is_err());
    }

    fn calibration(sample_ns: f64, clock_step_ns: u64) -> Calibration {
        Calibration {
            clock_ns: 22.0,
            clock_step_ns,
            sample_ns,
            timer_lateness_ns: Quantiles {
                count: 100,
                p50: 52_000,
                max: 84_000,
                ..Default::default()
            },
        }
    }

    /// A window in which 2 CPUs had one second each.
    fn window(steal_ns: Option<u64>) -> EndCpu {
        let mut host = BTreeMap::from([("idle".to_owned(), 2_000_000_000 - steal_ns.unwrap_or(0))]);
        host.extend(steal_ns.map(|ns| ("steal".to_owned(), ns)));
        let none = || Reading::absent("not read");
        EndCpu {
            window_ns: Nanos(1_000_000_000),
            threads_ns: none(),
            threads_user_ns: none(),
            threads_system_ns: none(),
            process_ns: none(),
            host_ns: Reading::Known(host),
            host_busy_per_unit_ns: Reading::absent("not read"),
            threads_per_unit_ns: Reading::absent("not read"),
            voluntary_switches: none(),
            involuntary_switches: none(),
        }
    }

    fn words(floor: &Floor) -> String {
        floor.why.iter().map(TrustLimit::to_string).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn the_rule_in_words() {
        let floor = calibration(31.4, 20).certificate(&[window(Some(0))]);
        assert_eq!((floor.trust_above_ns, &floor.steal_ns), (3140, &Reading::Known(0)));
        assert_eq!(
            words(&floor),
            "client overhead, 31 ns a sample, is over 1% of figures below 3.14 µs; excursions \
             up to 84 µs can be wake-up jitter of this machine: one wake-up in 100 was that late, \
             and rarer ones may be later"
        );
        let floor = calibration(31.4, 1_000).certificate(&[window(None)]);
        assert_eq!(floor.trust_above_ns, 100_000);
        let said = words(&floor);
        assert!(
            said.starts_with("a step of the clock, 1 µs, is over 1% of figures below 100 µs"),
            "{said}"
        );
        assert!(said.ends_with("is not known"), "{said}");
        assert!(calibration(1.0, 1).certificate(&[]).steal_ns.why_not().is_some());
    }

    #[test]
    fn steal_time_is_added_up_over_the_windows() {
        let both_ways = window(Some(30_000_000));
        let windows = [window(Some(10_000_000)), both_ways.clone(), both_ways];
        let floor = calibration(31.4, 20).certificate(&windows);
        assert_eq!(floor.steal_ns, Reading::Known(40_000_000));
        let said = words(&floor);
        assert!(said.contains("steal time 40 ms, 1.00% of the CPUs' time"), "{said}");
        assert!(said.contains("above the quantile 99.00%"), "{said}");
    }
}
