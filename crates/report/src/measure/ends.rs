//! The placement of both ends.

use std::{collections::BTreeMap, fmt::Display};

use model::{
    CpuId, CpuSet,
    measure::{EndPlacement, Floor},
    reading::{Absent, Denied, Known},
};

use super::{
    Run,
    cpu::{self, Unit},
    numbers::share,
    rest,
    runs::{about, alike},
};
use crate::{
    inspect::dotted,
    text::{Ink, Line, Page},
    words::{cpus, many},
};

/// The sections around the runs: placement, CPU time, measurement noise, and counters that moved.
/// `smallest` is the smallest duration of the result, where it has any.
pub fn show<R: Run>(
    runs: &[R],
    unit: &Unit,
    floor: &Floor,
    smallest: Option<u64>,
    page: &mut Page,
) {
    show_with(runs, unit, Some(floor), smallest, page);
}

/// The same without measurement noise, where a foreign program made the traffic.
pub fn show_with<R: Run>(
    runs: &[R],
    unit: &Unit,
    floor: Option<&Floor>,
    smallest: Option<u64>,
    page: &mut Page,
) {
    placement(runs, page);
    cpu::show(runs, unit, page);
    if !runs.is_empty() {
        rest::evidence(runs, page);
    }
    if let Some(floor) = floor {
        rest::floor(floor, smallest, page);
    }
}

fn placement<R: Run>(runs: &[R], page: &mut Page) {
    if runs.is_empty() {
        return;
    }
    page.heading("PLACEMENT");
    for (name, local) in [("client", true), ("server", false)] {
        let pick = |r: &'_ R| -> EndPlacement {
            let p = r.placement();
            if local { p.local.clone() } else { p.peer.clone() }
        };
        let verbose = page.look().verbose;
        let lines = runs.iter().enumerate().map(|(n, r)| (n + 1, chosen(&pick(r), verbose)));
        let labelled = entries(page, name, alike(lines), runs.len());
        let lines = runs.iter().enumerate().map(|(n, r)| (n + 1, went(&pick(r))));
        entries(page, if labelled { "" } else { name }, alike(lines), runs.len());
    }
}

/// Each as `  name  text`, with its runs where it is not about all.
/// Returns whether there was any.
fn entries(page: &mut Page, name: &str, lines: Vec<(Line, Vec<usize>)>, all: usize) -> bool {
    let lines: Vec<_> = lines.into_iter().filter(|(l, _)| !l.is_empty()).collect();
    let any = !lines.is_empty();
    for (n, (line, runs)) in lines.into_iter().enumerate() {
        let name = if n == 0 { name } else { "" };
        let label = Line::plain("  ").ink(Ink::Faint, format!("{name:<6}")).text("  ");
        let text = Line::new().ink(Ink::Faint, about(&runs, all)).also(line);
        page.labelled(label, &text);
    }
    any
}

/// The pinned CPUs, and who chose them.
fn chosen(end: &EndPlacement, verbose: bool) -> Line {
    let pinned: CpuSet = end.pinned.iter().copied().collect();
    let mut line = match pinned.is_empty() {
        true => Line::plain(&end.why),
        false => Line::new().ink(Ink::Strong, cpus(&pinned)).text(format!(": {}", end.why)),
    };
    if verbose && !end.allowed.is_empty() {
        line = line.ink(Ink::Faint, format!("; may use {}", cpus(&end.allowed)));
    }
    line
}

/// The CPUs of the threads, and those that received packets.
fn went(end: &EndPlacement) -> Line {
    let ran = shares(&end.ran_on, "CPU");
    let received = shares(&end.received_on, "CPU");
    let real: BTreeMap<u32, u64> =
        end.napi_ids.iter().filter(|(id, _)| **id != 0).map(|(id, n)| (*id, *n)).collect();
    let napi = shares(&real, "NAPI");
    let piece = |what: &str, text: &str| match text.is_empty() {
        true => Line::new(),
        false => Line::plain(format!("{what} {text}")),
    };
    let migrations = match &end.migrations {
        Known(0) => Line::plain("0 migrations"),
        Known(n) => Line::new().ink(Ink::Warn, many(*n as usize, "migration")),
        Absent(_) | Denied(_) if ran.is_empty() && received.is_empty() => {
            Line::new().ink(Ink::Faint, "CPUs and migrations not known")
        }
        Absent(_) | Denied(_) => Line::new().ink(Ink::Faint, "migrations not known"),
    };
    dotted([
        piece("ran on", &ran),
        piece("RX softirq on", &received),
        piece("through", &napi),
        migrations,
    ])
}

/// `CPU 0`, or `CPU 0 61%, CPU 1 39%`: the largest shares first, at most four.
fn shares<K: Display + Ord>(counts: &BTreeMap<K, u64>, what: &str) -> String {
    const SHOWN: usize = 4;
    let total: u64 = counts.values().fold(0, |a, n| a.saturating_add(*n));
    let mut most: Vec<(&K, u64)> =
        counts.iter().map(|(k, n)| (k, *n)).filter(|e| e.1 > 0).collect();
    most.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    if let [(only, _)] = most.as_slice() {
        return format!("{what} {only}");
    }
    let one = |(k, n): &(&K, u64)| format!("{what} {k} {}", share(*n as f64 / total.max(1) as f64));
    let mut parts: Vec<String> = most.iter().take(SHOWN).map(one).collect();
    if most.len() > SHOWN {
        parts.push(format!("{} more", most.len() - SHOWN));
    }
    parts.join(", ")
}

pub fn cpu_pair(local: CpuId, peer: Option<CpuId>) -> String {
    match peer {
        Some(peer) => format!("client CPU {local}, server CPU {peer}"),
        None => format!("client CPU {local}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_name_the_most_first_and_few() {
        let counts = |list: &[(u32, u64)]| list.iter().map(|&(c, n)| (CpuId(c), n)).collect();
        assert_eq!(shares::<CpuId>(&counts(&[(3, 7)]), "CPU"), "CPU 3");
        assert_eq!(shares::<CpuId>(&counts(&[(0, 1), (1, 3)]), "CPU"), "CPU 1 75%, CPU 0 25%");
        let many: BTreeMap<CpuId, u64> = (0..6).map(|c| (CpuId(c), 10)).collect();
        assert!(shares(&many, "CPU").ends_with("CPU 3 17%, 2 more"));
        assert_eq!(shares::<CpuId>(&counts(&[]), "CPU"), "");
    }
}
