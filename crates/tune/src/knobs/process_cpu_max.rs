//! `process.PID.cpu_max`: the CPU quota of a process's control group, which all processes of the
//! group share.

use model::{
    knob::Target,
    tune::{AtStake, Disruption, Impact},
};

use crate::{
    Host, TuneError,
    cgroup_place::CgroupPlace,
    knob::{Kind, Knob, PlanContext, Refusal, Undone, ended, harmful, number, usage},
    need::Need,
    phase::Phase,
};

/// **Source**: `cpu.max` of cgroup v2 (`Documentation/admin-guide/cgroup-v2.rst`), `cpu.cfs_quota_us`
/// and `cpu.cfs_period_us` of v1 (`Documentation/scheduler/sched-bwc.rst`).
pub const KIND: Kind = Kind {
    name: "process_cpu_max",
    spelling: "process.PID.cpu_max=max or 'QUOTA PERIOD' (us) or Ncpus",
    parse: |target| match target {
        Target::Process(pid, "cpu_max") if pid > 0 => Some(Box::new(ProcessCpuMax { pid })),
        _ => None,
    },
};

struct ProcessCpuMax {
    pid: u32,
}

/// **Source**: `min_cfs_quota_period` and `max_cfs_quota_period` in `kernel/sched/core.c`, us.
const LEAST_US: u64 = 1_000;
const MOST_PERIOD_US: u64 = 1_000_000;

/// A quota in microseconds of CPU time for each period; `None` is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Quota {
    quota_us: Option<u64>,
    period_us: u64,
}

impl Quota {
    /// `QUOTA PERIOD` or `max PERIOD`, as `cpu.max` has it.
    fn parsed(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let (quota, period) = (words.next()?, words.next()?);
        let quota_us = match quota {
            "max" => None,
            number => Some(number.parse().ok()?),
        };
        let period_us = period.parse().ok()?;
        words.next().is_none().then_some(Self { quota_us, period_us })
    }

    /// Whether a write of v1 that was cut short, in either direction, leaves this.
    fn is_between(self, from: Self, to: Self) -> bool {
        self.quota_us.is_none() && [from.period_us, to.period_us].contains(&self.period_us)
    }
}

impl std::fmt::Display for Quota {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.quota_us {
            None => write!(f, "max {}", self.period_us),
            Some(quota) => write!(f, "{quota} {}", self.period_us),
        }
    }
}

/// The quota of one group at one time, and the process that it was read for.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Limited {
    /// The process's start time, in ticks since boot.
    start: u64,
    v2: bool,
    folder: String,
    quota: Quota,
}

impl Limited {
    fn of(host: &Host, pid: u32) -> Result<Self, TuneError> {
        let start = host.start_ticks(&pid.to_string())?;
        let place = CgroupPlace::of(host, pid, "cpu")?;
        if place.path.is_empty() {
            // v1 shows a file there, and refuses each write.
            return Err(TuneError::Absent(format!(
                "process {pid} is in the root group, which has no quota; start it in a group, as \
                 systemd-run --scope does"
            )));
        }
        let folder = place.folder();
        match quota(host, place.v2, &folder) {
            Ok(quota) => Ok(Self { start, v2: place.v2, folder, quota }),
            Err(TuneError::Absent(why)) => Err(TuneError::Absent(format!(
                "{why}: the controller cpu is off for this group (cgroup.subtree_control above it)"
            ))),
            Err(e) => Err(e),
        }
    }

    /// As an exact value.
    fn text(&self) -> String {
        let version = if self.v2 { "v2" } else { "v1" };
        format!("start {}\n{version} {}\n{}\n", self.start, self.folder, self.quota)
    }

    /// Reads an exact value.
    fn parsed(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let start = lines.next()?.strip_prefix("start ")?.parse().ok()?;
        let (version, folder) = lines.next()?.split_once(' ')?;
        let quota = Quota::parsed(lines.next()?)?;
        Some(Self { start, v2: version == "v2", folder: folder.to_owned(), quota })
    }
}

/// The quota of a group's directory.
fn quota(host: &Host, v2: bool, folder: &str) -> Result<Quota, TuneError> {
    let makes_no_sense = |file: &str| TuneError::Environment(format!("{file}: makes no sense"));
    if v2 {
        let file = format!("{folder}/cpu.max");
        return Quota::parsed(&host.text(&file)?).ok_or_else(|| makes_no_sense(&file));
    }
    let number = |name: &str| {
        let file = format!("{folder}/{name}");
        host.text(&file)?.trim().parse::<i64>().map_err(|_| makes_no_sense(&file))
    };
    let (quota, period) = (number("cpu.cfs_quota_us")?, number("cpu.cfs_period_us")?);
    // -1 is no limit.
    Ok(Quota { quota_us: u64::try_from(quota).ok(), period_us: period.unsigned_abs() })
}

/// Writes a quota. v1 takes quota and period one after the other: without a limit in between, no
/// pair that the group above forbids comes about.
fn set(host: &Host, v2: bool, folder: &str, to: Quota) -> Result<(), TuneError> {
    if v2 {
        return host.write(&format!("{folder}/cpu.max"), &to.to_string());
    }
    let quota_file = format!("{folder}/cpu.cfs_quota_us");
    if quota(host, v2, folder)?.period_us != to.period_us {
        host.write(&quota_file, "-1")?;
        host.write(&format!("{folder}/cpu.cfs_period_us"), &to.period_us.to_string())?;
    }
    let quota = to.quota_us.map_or_else(|| "-1".to_owned(), |q| q.to_string());
    host.write(&quota_file, &quota)
}

/// The value that is asked for; a number of CPUs and `max` keep the period.
fn wanted(text: &str, period_us: u64) -> Result<Quota, Refusal> {
    if text == "max" {
        return Ok(Quota { quota_us: None, period_us });
    }
    if let Some(cpus) = text.strip_suffix("cpus").or_else(|| text.strip_suffix("cpu")) {
        return match cpus.trim().parse::<f64>() {
            Ok(cpus) if cpus > 0.0 && cpus <= 100_000.0 => {
                Ok(Quota { quota_us: Some((cpus * period_us as f64).round() as u64), period_us })
            }
            _ => usage(format!("{text:?} is no number of CPUs such as 1.5cpus")),
        };
    }
    let (quota, period) = match text.split_whitespace().collect::<Vec<_>>().as_slice() {
        [quota, period] => (*quota, *period),
        _ => {
            return usage(format!(
                "{text:?} is neither max, nor 'QUOTA PERIOD' in microseconds, nor CPUs as 1.5cpus"
            ));
        }
    };
    let period_us = number(period, LEAST_US, MOST_PERIOD_US, "us")?;
    let quota_us = match quota {
        "max" => None,
        quota => Some(number(quota, LEAST_US, u64::MAX / 1_000, "us")?),
    };
    Ok(Quota { quota_us, period_us })
}

impl Knob for ProcessCpuMax {
    fn target(&self) -> Target<'_> {
        Target::Process(self.pid, "cpu_max")
    }

    fn phase(&self) -> Phase {
        Phase::Cgroup
    }

    fn read(&self, host: &Host) -> Result<String, TuneError> {
        Limited::of(host, self.pid).map(|l| l.text())
    }

    /// Of the group that was limited: the process may have moved or ended since.
    fn read_again(&self, host: &Host, old: &str) -> Result<String, TuneError> {
        let Some(saved) = Limited::parsed(old) else { return self.read(host) };
        let quota = quota(host, saved.v2, &saved.folder)?;
        Ok(Limited { quota, ..saved }.text())
    }

    fn show(&self, exact: &str) -> String {
        match Limited::parsed(exact) {
            Some(limited) => limited.quota.to_string(),
            None => exact.trim().to_owned(),
        }
    }

    fn validate(&self, _: &PlanContext<'_>, old: &str, text: &str) -> Result<String, Refusal> {
        let Some(now) = Limited::parsed(old) else {
            return usage("its control group makes no sense");
        };
        let quota = wanted(text, now.quota.period_us)?;
        if quota.quota_us.is_some_and(|us| us < LEAST_US) {
            return harmful(
                "less than a millisecond of CPU time for each period: the kernel refuses it",
            );
        }
        Ok(quota.to_string())
    }

    fn needs(&self, host: &Host) -> Vec<Need> {
        let Ok(limited) = Limited::of(host, self.pid) else { return vec![] };
        let name = if limited.v2 { "cpu.max" } else { "cpu.cfs_quota_us" };
        vec![Need::File(format!("{}/{name}", limited.folder))]
    }

    fn write(&self, host: &Host, value: &str) -> Result<(), TuneError> {
        let limited = Limited::of(host, self.pid)?;
        let Some(to) = Quota::parsed(value) else {
            return Err(TuneError::Usage(format!("{}: {value:?} is no quota", self.target())));
        };
        set(host, limited.v2, &limited.folder, to)
    }

    /// The group is limited, not the process: a quota of ours that outlived the process goes, too.
    fn undo(&self, host: &Host, old: &str, written: &str) -> Result<Undone, TuneError> {
        let Some(saved) = Limited::parsed(old) else {
            return Err(TuneError::Environment(format!(
                "{}: the journal makes no sense",
                self.target()
            )));
        };
        let now = match quota(host, saved.v2, &saved.folder) {
            Ok(now) => now,
            Err(TuneError::Absent(_)) => {
                return Ok(Undone::Lost(format!("{}: the group is gone", saved.folder)));
            }
            Err(e) => return Err(e),
        };
        let lives = Limited::of(host, self.pid).is_ok_and(|now| now.start == saved.start);
        let ours = Quota::parsed(written)
            .is_some_and(|to| now == to || !saved.v2 && now.is_between(saved.quota, to));
        if !lives && now != saved.quota && !ours {
            return Ok(Undone::Lost(ended(self.pid)));
        }
        if now != saved.quota {
            set(host, saved.v2, &saved.folder, saved.quota)?;
        }
        let back = Limited { quota: quota(host, saved.v2, &saved.folder)?, ..saved.clone() };
        if back == saved {
            return Ok(Undone::Restored(back.text()));
        }
        Err(TuneError::Environment(format!(
            "{}: was {}, and after putting it back reads {}",
            self.target(),
            saved.quota,
            back.quota
        )))
    }

    fn lost(&self, host: &Host, old: &str) -> Option<String> {
        let saved = Limited::parsed(old)?;
        match quota(host, saved.v2, &saved.folder) {
            Err(TuneError::Absent(_)) => Some(format!("{}: the group is gone", saved.folder)),
            _ => None,
        }
    }

    fn undo_text(&self) -> String {
        "the group is given its old quota, also when the process has ended".into()
    }

    fn impact(&self, _: &PlanContext<'_>, old: &str, new: &str) -> Impact {
        let (Some(limited), Some(to)) = (Limited::parsed(old), Quota::parsed(new)) else {
            return Impact::none();
        };
        let share =
            |q: Quota| q.quota_us.map_or(f64::INFINITY, |us| us as f64 / q.period_us.max(1) as f64);
        let mut impact = match share(to) < share(limited.quota) {
            true => Impact::of(
                Disruption::BriefStall,
                "the group stands still whenever it has used up its quota",
            ),
            false => Impact::none(),
        };
        impact.also.push(AtStake::ProcessesOfGroup { group: limited.folder });
        impact
    }

    fn owner(&self, context: &PlanContext<'_>) -> String {
        let pid = self.pid;
        let unit =
            context.facts.processes.iter().find(|p| p.pid == pid).and_then(|p| p.unit.known());
        unit.map_or(String::new(), |u| format!("systemd unit {u} (CPUQuota=)"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exact_value_is_read_again() {
        let limited = Limited {
            start: 7,
            v2: true,
            folder: "/sys/fs/cgroup/system.slice/a b.service".into(),
            quota: Quota { quota_us: Some(50_000), period_us: 100_000 },
        };
        assert_eq!(Limited::parsed(&limited.text()), Some(limited.clone()));
        let free =
            Limited { v2: false, quota: Quota { quota_us: None, ..limited.quota }, ..limited };
        assert_eq!(Limited::parsed(&free.text()), Some(free));
        assert_eq!(Limited::parsed("50000 100000"), None);
    }

    #[test]
    fn a_quota_is_asked_for_in_three_ways() {
        let ask = |text: &str| wanted(text, 50_000).map(|q| q.to_string());
        assert_eq!(ask("max").unwrap(), "max 50000");
        assert_eq!(ask("1.5cpus").unwrap(), "75000 50000");
        assert_eq!(ask("2 cpu").unwrap(), "100000 50000");
        assert_eq!(ask("200000 100000").unwrap(), "200000 100000");
        assert_eq!(ask("max 10000").unwrap(), "max 10000");
        for bad in
            ["", "2", "-1cpus", "0cpus", "nancpus", "1 2 3", "500 100000", "1000 999", "x 1000"]
        {
            assert!(ask(bad).is_err(), "{bad:?}");
        }
    }
}
