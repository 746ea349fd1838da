//! Disturbances of a measurement that use no CPU time: clock steps, suspends, lower frequencies.
//! One reading costs some µs, and on hosts with frequency scaling a file for each of a few
//! policies.

use std::collections::BTreeMap;

use model::{
    Reading,
    samples::{FrequencyLimit, HostChange},
};
use rustix::time::ClockId;

use super::clock;
use crate::{Root, error::reading};

const POLICIES: &str = "/sys/devices/system/cpu/cpufreq";
const CPUS: &str = "/sys/devices/system/cpu";

/// The most policies with a frequency reading: on x86 the kernel may wake a CPU for it.
const MOST_POLICIES: usize = 32;

/// The clocks are read so often, and the reading that took least time counts.
const LOOKS: usize = 5;

/// By policy: governor and upper limit.
type Limits = BTreeMap<String, (Reading<String>, Reading<u64>)>;

#[derive(Debug, Clone, PartialEq)]
pub struct ClockChanges {
    /// `None` where the root is not the running host.
    clocks: Option<Clocks>,
    /// The mean of the CPUs' present frequencies. **Source**: `scaling_cur_freq`.
    pub frequency_khz: Reading<u64>,
    /// By policy: governor and upper limit. **Source**: `scaling_governor`, `scaling_max_freq`.
    limits: Reading<Limits>,
    /// By CPU's folder: times that its core was throttled. **Source**:
    /// `thermal_throttle/core_throttle_count`.
    throttles: Reading<BTreeMap<String, u64>>,
}

/// Clocks at one moment, in nanoseconds beside `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clocks {
    /// `CLOCK_REALTIME`: jumps when it is set; slewing affects both clocks equally.
    pub real_ns: i64,
    /// `CLOCK_BOOTTIME`: grows while the host is suspended.
    pub boot_ns: i64,
}

/// What happened between two moments.
#[derive(Debug, Clone, PartialEq)]
pub struct Unrested {
    /// By how much the clock was set.
    pub clock_step_ns: Reading<i64>,
    /// For how long the host was suspended.
    pub suspended_ns: Reading<u64>,
    /// Policies with a changed governor or limit, with both values.
    pub limits: Reading<Vec<HostChange>>,
    /// Times that cores were throttled for heat.
    pub throttles: Reading<u64>,
}

impl ClockChanges {
    pub fn read(root: &Root) -> Self {
        let policies = policies(root);
        let step = policies.known().map_or(1, |p| p.len().div_ceil(MOST_POLICIES).max(1));
        let current = |p: &String| root.number(&format!("{p}/scaling_cur_freq")).into_known();
        let frequency_khz = policies.as_ref().and_then(|all| {
            let khz: Vec<u64> = all.iter().step_by(step).filter_map(current).collect();
            let sum: u64 = khz.iter().fold(0, |a, b| a.saturating_add(*b));
            match sum.checked_div(khz.len() as u64) {
                Some(mean) => Reading::Known(mean),
                None => Reading::absent(format!("{POLICIES}: no scaling_cur_freq")),
            }
        });
        let limits = |p: String| {
            let governor = root.word(&format!("{p}/scaling_governor"));
            let most = root.number(&format!("{p}/scaling_max_freq"));
            (p, (governor, most))
        };
        Self {
            clocks: root.is_live().then(clocks),
            frequency_khz,
            limits: policies.map(|all| all.into_iter().map(limits).collect()),
            throttles: throttles(root),
        }
    }

    /// What happened until `later`.
    pub fn until(&self, later: &Self) -> Unrested {
        let clocks = self.clocks.zip(later.clocks);
        let of_clocks = |pick: fn(&Clocks) -> i64| match clocks {
            Some((a, b)) => Reading::Known(pick(&b).saturating_sub(pick(&a))),
            None => Reading::absent("clocks are the running host's only"),
        };
        Unrested {
            clock_step_ns: of_clocks(|c| c.real_ns),
            suspended_ns: of_clocks(|c| c.boot_ns).map(|ns| u64::try_from(ns).unwrap_or(0)),
            limits: self.limits.as_ref().and_then(|a| later.limits.as_ref().map(|b| changed(a, b))),
            throttles: self
                .throttles
                .as_ref()
                .and_then(|a| later.throttles.as_ref().and_then(|b| throttled(a, b))),
        }
    }
}

fn changed(before: &Limits, after: &Limits) -> Vec<HostChange> {
    let both = before.iter().filter_map(|(p, old)| Some((p, old, after.get(p)?)));
    let other = both.filter(|(_, old, new)| old != new);
    other
        .map(|(p, old, new)| {
            let limit = |(governor, most): &(Reading<String>, Reading<u64>)| FrequencyLimit {
                governor: governor.get(),
                max_khz: most.get(),
            };
            let policy = p.rsplit('/').next().unwrap_or(p).to_owned();
            HostChange::FrequencyLimitChanged { policy, before: limit(old), after: limit(new) }
        })
        .collect()
}

fn policies(root: &Root) -> Reading<Vec<String>> {
    reading(root.entries(POLICIES)).and_then(|names| {
        let own = names.into_iter().filter(|n| n.starts_with("policy"));
        let all: Vec<String> = own.map(|n| format!("{POLICIES}/{n}")).collect();
        match all.is_empty() {
            true => Reading::absent(format!("{POLICIES}: no policy")),
            false => Reading::Known(all),
        }
    })
}

/// Throttle counts of every CPU with a file; an offline CPU, even the first, has none.
fn throttles(root: &Root) -> Reading<BTreeMap<String, u64>> {
    const COUNT: &str = "thermal_throttle/core_throttle_count";
    reading(root.entries(CPUS)).and_then(|names| {
        let is_cpu = |n: &String| {
            n.strip_prefix("cpu").is_some_and(|id| id.bytes().all(|b| b.is_ascii_digit()))
        };
        let count = |n: String| {
            let times = root.number(&format!("{CPUS}/{n}/{COUNT}")).into_known()?;
            Some((n, times))
        };
        let all: BTreeMap<_, _> = names.into_iter().filter(is_cpu).filter_map(count).collect();
        match all.is_empty() {
            true => Reading::absent(format!("{CPUS}: no CPU has {COUNT}")),
            false => Reading::Known(all),
        }
    })
}

/// How often CPUs that were there both times were throttled in between; one that went and came
/// back may count from 0 again.
fn throttled(before: &BTreeMap<String, u64>, after: &BTreeMap<String, u64>) -> Reading<u64> {
    let mut times = 0u64;
    for (cpu, now) in after {
        let Some(then) = before.get(cpu) else { continue };
        match now.checked_sub(*then) {
            Some(n) => times = times.saturating_add(n),
            None => return Reading::absent(format!("{cpu}: its count went from {then} to {now}")),
        }
    }
    Reading::Known(times)
}

fn clocks() -> Clocks {
    let look = || {
        let before = clock::monotonic_ns();
        let (real, boot) = (now_ns(ClockId::Realtime), now_ns(ClockId::Boottime));
        let took = clock::monotonic_ns().saturating_sub(before);
        let middle = i64::try_from(before + took / 2).unwrap_or(i64::MAX);
        (took, Clocks { real_ns: real - middle, boot_ns: boot - middle })
    };
    let best = (0..LOOKS).map(|_| look()).min_by_key(|(took, _)| *took);
    best.map_or(Clocks { real_ns: 0, boot_ns: 0 }, |(_, clocks)| clocks)
}

fn now_ns(clock: ClockId) -> i64 {
    let t = rustix::time::clock_gettime(clock);
    t.tv_sec.saturating_mul(1_000_000_000).saturating_add(t.tv_nsec)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn clocks_stand_still_beside_one_another_unless_they_are_set() {
        let root = Root::live();
        let first = ClockChanges::read(&root);
        std::thread::sleep(std::time::Duration::from_millis(20));
        let later = ClockChanges::read(&root);
        let undisturbed = first.until(&later);
        assert!(undisturbed.clock_step_ns.get().unwrap().abs() < 5_000_000, "{undisturbed:?}");
        assert!(undisturbed.suspended_ns.get().unwrap() < 5_000_000, "{undisturbed:?}");
        let mut set = later.clone();
        let clocks = set.clocks.as_mut().unwrap();
        clocks.real_ns -= 3_000_000_000;
        clocks.boot_ns += 7_000_000_000;
        let reported = later.until(&set);
        assert_eq!(reported.clock_step_ns, Reading::Known(-3_000_000_000));
        assert_eq!(reported.suspended_ns, Reading::Known(7_000_000_000));
    }

    #[test]
    fn frequencies_limits_and_heat_of_a_tree() {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let policy = |n: u32, governor: &str, now: u64| {
            let of = format!("sys/devices/system/cpu/cpufreq/policy{n}");
            write(&format!("{of}/scaling_governor"), governor);
            write(&format!("{of}/scaling_max_freq"), "3000000\n");
            write(&format!("{of}/scaling_cur_freq"), &format!("{now}\n"));
        };
        let heat = |cpu: u32, n: u64| {
            let file =
                format!("sys/devices/system/cpu/cpu{cpu}/thermal_throttle/core_throttle_count");
            write(&file, &format!("{n}\n"));
        };
        policy(0, "performance\n", 3_000_000);
        policy(1, "performance\n", 2_000_000);
        heat(0, 5);
        heat(1, 7);
        let root = Root::open(dir.path()).unwrap();
        let before = ClockChanges::read(&root);
        assert_eq!(before.frequency_khz, Reading::Known(2_500_000));
        policy(1, "powersave\n", 800_000);
        heat(1, 9);
        let reported = before.until(&ClockChanges::read(&root));
        assert_eq!(reported.throttles, Reading::Known(2));
        let limits: Vec<String> =
            reported.limits.known().unwrap().iter().map(HostChange::to_string).collect();
        assert_eq!(
            limits,
            ["policy1 from performance up to 3000000 kHz to powersave up to 3000000 kHz"]
        );
        assert!(reported.clock_step_ns.why_not().is_some());
    }

    /// CPU 0 has none, CPU 2 goes and CPU 3 comes: neither is heat. A count that falls is not known.
    #[test]
    fn cpus_that_come_and_go_are_not_throttled() {
        let counts = |of: &[(u32, u64)]| {
            let dir = tempfile::tempdir().unwrap();
            for (cpu, n) in of {
                let folder = format!("sys/devices/system/cpu/cpu{cpu}/thermal_throttle");
                fs::create_dir_all(dir.path().join(&folder)).unwrap();
                let file = dir.path().join(folder).join("core_throttle_count");
                fs::write(file, format!("{n}\n")).unwrap();
            }
            ClockChanges::read(&Root::open(dir.path()).unwrap())
        };
        let between = |a: &[(u32, u64)], b: &[(u32, u64)]| counts(a).until(&counts(b)).throttles;
        assert_eq!(between(&[(1, 5), (2, 90)], &[(1, 8), (3, 70)]), Reading::Known(3));
        assert!(between(&[(1, 5), (2, 9)], &[(1, 8), (2, 0)]).why_not().is_some());
    }

    #[test]
    fn a_host_without_scaling_has_reasons_and_no_zeros() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        let none = ClockChanges::read(&root);
        assert!(none.frequency_khz.why_not().is_some());
        let reported = none.until(&none.clone());
        assert!(reported.limits.why_not().is_some() && reported.throttles.why_not().is_some());
    }
}
