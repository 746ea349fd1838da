//! CPU time of both ends, for each run.

use std::collections::BTreeMap;

use model::{
    measure::EndCpu,
    reading::{Absent, Denied, Known},
};

use super::{
    Run,
    numbers::{none, share, time_of},
    runs::windows,
};
use crate::{
    text::{Ink, Line, Page, Table},
    words::ranges,
};

/// The unit that CPU time is divided by.
pub struct Unit {
    /// Name in the heading: `ROUND TRIP`.
    pub name: &'static str,
    /// How many of the run's counts make one unit.
    pub of: f64,
}

/// States that are not busy.
const IDLE: [&str; 2] = ["idle", "iowait"];

/// The section: a line for each run and end.
pub fn show<R: Run>(runs: &[R], unit: &Unit, page: &mut Page) {
    if runs.is_empty() {
        return;
    }
    page.heading(&format!("CPU PER {}", unit.name));
    let mut table = Table::new();
    if runs.len() > 1 {
        table = table.right("RUN");
    }
    let heads = ["THREAD CPU", "USER", "KERNEL", "SYSTEM CPU", "SOFTIRQ", "CTXSW", "PREEMPT"];
    table = heads.into_iter().fold(table.left(""), Table::right);
    let mut missing: Vec<String> = vec![];
    for window in windows(runs) {
        let run = window.run;
        let names = ranges(window.numbers.iter().filter_map(|&n| u32::try_from(n).ok()));
        let number = || (runs.len() > 1).then(|| Line::plain(&names));
        let units = window.units as f64 / unit.of;
        let row = cells("client", &run.cpu().local, units, unit);
        table.row(number().into_iter().chain(row));
        match &run.cpu().peer {
            Known(peer) => {
                table.row(number().into_iter().chain(cells("server", peer, units, unit)))
            }
            Absent(why) | Denied(why) => {
                let why = format!("server: {why}");
                if !missing.contains(&why) {
                    missing.push(why);
                }
            }
        }
    }
    page.table(&table, 2);
    if runs.iter().any(|r| r.placement().same_host) {
        let text = "  Both ends are on one host: SYSTEM CPU is the same counter.";
        page.line(Line::new().ink(Ink::Faint, text), 2);
    }
    for why in missing {
        page.line(Line::plain("  ").ink(Ink::Faint, why), 4);
    }
}

fn cells(end: &'static str, cpu: &EndCpu, units: f64, unit: &Unit) -> [Line; 8] {
    let each = |r: &model::Reading<f64>| r.get().map_or_else(none, |ns| time_of(ns * unit.of));
    let (user, system) = (cpu.threads_user_ns.get(), cpu.threads_system_ns.get());
    let part = |n: Option<u64>| {
        let sum = user.unwrap_or(0).saturating_add(system.unwrap_or(0));
        match n {
            Some(n) if sum > 0 => Line::plain(share(n as f64 / sum as f64)),
            _ => none(),
        }
    };
    let per = |r: &model::Reading<u64>| match r {
        Known(n) if units > 0.0 => Line::plain(format!("{:.2}", *n as f64 / units)),
        _ => none(),
    };
    [
        Line::new().ink(Ink::Faint, end),
        each(&cpu.threads_per_unit_ns),
        part(user),
        part(system),
        each(&cpu.host_busy_per_unit_ns),
        cpu.host_ns.known().and_then(softirq).map_or_else(none, |s| Line::plain(share(s))),
        per(&cpu.voluntary_switches),
        per(&cpu.involuntary_switches),
    ]
}

/// Softirq's share of the host's busy time.
fn softirq(host: &BTreeMap<String, u64>) -> Option<f64> {
    let busy: u64 = host
        .iter()
        .filter(|(state, _)| !IDLE.contains(&state.as_str()))
        .fold(0, |sum, (_, ns)| sum.saturating_add(*ns));
    let softirq = *host.get("softirq")?;
    (busy > 0).then(|| softirq as f64 / busy as f64)
}
