//! How busy the CPUs were: where all of them are, CPU time is short before the network is.

use model::{CpuId, CpuSet, Reading, Samples, reading::Known};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    text::{Ink, Line, Page},
    words::many,
};

/// The share of the window from which a CPU counts as busy. Its ticks are whole, so a full CPU may lack
/// some. Our proposal.
const BUSY: f64 = 0.95;

/// The share of the window from which a wait for a CPU is worth words.
const WAITED: f64 = 0.05;

/// What it means that all CPUs are busy and tasks wait for them.
pub const SHORT: &str = "what runs here needs more CPU time than there is";

/// CPU time over the window, all states but idle and waiting for I/O.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuTime {
    /// Share of all CPUs' time, 0 to 1. **Source**: `/proc/stat`.
    pub busy_share: f64,
    /// How many CPUs were there over the whole window; the share is of those that are known.
    pub cpus: u32,
    /// The CPUs that were busy for 95% of it at least.
    pub busy_cpus: CpuSet,
    /// Share of the window in which at least one task waited for a CPU, 0 to 1. **Source**:
    /// `/proc/pressure/cpu`, since 4.20.
    pub waiting_share: Reading<f64>,
}

/// CPU time of the samples.
pub fn of(s: &Samples) -> Reading<CpuTime> {
    if s.since_boot {
        return Reading::absent("one reading does not say how busy the CPUs are now");
    }
    let shares: Vec<(CpuId, f64)> =
        s.cpus.iter().filter_map(|c| Some((c.id, c.proc_stat.known()?.busy_share()?))).collect();
    if shares.is_empty() {
        return Reading::absent("/proc/stat of no CPU is known");
    }
    let waiting = s.pressure.as_ref().and_then(|all| {
        let host = all.iter().find(|p| p.resource == "cpu" && p.cgroup.is_empty());
        match host {
            Some(cpu) => {
                cpu.some_ns.as_ref().map(|ns| (*ns as f64 / s.window_ns.0.max(1) as f64).min(1.0))
            }
            None => Reading::absent("/proc/pressure/cpu: not in the samples"),
        }
    });
    Reading::Known(CpuTime {
        busy_share: shares.iter().map(|(_, share)| share).sum::<f64>() / shares.len() as f64,
        // Where one of them is not known, they are not called all busy.
        cpus: u32::try_from(s.cpus.len()).unwrap_or(u32::MAX),
        busy_cpus: shares.iter().filter(|(_, share)| *share >= BUSY).map(|(id, _)| *id).collect(),
        waiting_share: waiting,
    })
}

impl CpuTime {
    /// Whether tasks waited for a CPU for most of the window.
    pub fn is_short(&self) -> bool {
        self.waiting_share.get().is_some_and(|share| share >= 0.5)
    }

    pub fn all_busy(&self) -> bool {
        self.busy_cpus.len() == self.cpus as usize
    }
}

/// One line where a CPU is busy, or with `-v`.
pub fn show(cpu: &CpuTime, page: &mut Page) {
    if cpu.busy_cpus.is_empty() && !page.look().verbose {
        return;
    }
    let percent = |share: f64| format!("{:.1}%", share * 100.0);
    let waited = match &cpu.waiting_share {
        Known(share) if *share >= WAITED => {
            format!("; tasks waited for a CPU {} of the time", percent(*share))
        }
        _ => String::new(),
    };
    let text = match (cpu.all_busy(), cpu.busy_cpus.is_empty()) {
        (true, _) => format!(
            "all {} busy ({}){waited}{}",
            many(cpu.cpus as usize, "CPU"),
            percent(cpu.busy_share),
            if cpu.is_short() { format!(": {SHORT}") } else { String::new() }
        ),
        (false, true) => format!("{} busy{waited}", percent(cpu.busy_share)),
        (false, false) => format!(
            "{} of {} busy: CPU {}; {} of all CPU time{waited}",
            cpu.busy_cpus.len(),
            many(cpu.cpus as usize, "CPU"),
            cpu.busy_cpus,
            percent(cpu.busy_share)
        ),
    };
    page.gap();
    page.labelled(Line::new().ink(Ink::Strong, "CPU TIME").text("  "), &Line::plain(text));
}
