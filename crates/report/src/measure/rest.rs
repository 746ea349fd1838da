//! Measurement noise, counters that moved, and warnings.

use std::collections::BTreeMap;

use model::{
    CpuSet, Nanos, Warning,
    measure::{Floor, Moved, TrustLimit},
    units::grouped,
};

use super::{
    Run,
    runs::{about as about_runs, alike, named, windows},
};
use crate::text::{Ink, Line, Page, Table};

/// Counters that only count the traffic itself.
const QUIET: [&str; 4] =
    ["softnet.processed", "softnet.received_rps", "softirq.NET_RX", "softirq.NET_TX"];

/// Share of steal time from which it is always reported: a p99 can then be the hypervisor's.
const STEAL: f64 = 0.01;

/// The noise certificate. `smallest` is the smallest duration of the result, where it has any.
pub fn floor(floor: &Floor, smallest: Option<u64>, page: &mut Page) {
    page.heading("CAVEATS");
    let below = smallest.filter(|&ns| ns > 0 && ns < floor.trust_above_ns);
    if let Some(ns) = below {
        let text = format!(
            "  Noise: {} is below {}, where client overhead is over 1%.",
            Nanos(ns),
            Nanos(floor.trust_above_ns)
        );
        page.line(Line::new().ink(Ink::Warn, text), 2);
    }
    let steal = floor
        .why
        .iter()
        .find(|limit| matches!(limit, TrustLimit::Steal { share, .. } if *share >= STEAL));
    if let Some(steal) = steal {
        page.line(Line::new().ink(Ink::Warn, format!("  {}.", capital(&steal.to_string()))), 2);
    }
    if !page.look().verbose {
        let text = format!(
            "  Noise: client overhead >1% below {}; wake-up jitter up to {} (-v).",
            Nanos(floor.trust_above_ns),
            Nanos(floor.timer_lateness_ns.max)
        );
        page.line(Line::new().ink(Ink::Faint, text), 2);
    } else {
        let why: Vec<String> = floor.why.iter().map(TrustLimit::to_string).collect();
        page.line(Line::plain("  ").text(format!("{}.", capital(&why.join("; ")))), 2);
        let late = &floor.timer_lateness_ns;
        let text = format!(
            "  Clock: {:.1} ns per read, resolution {}. Recording a sample: {:.1} ns. Wake-up after {} \
             sleeps of 100 µs: p50 {} late, max {}.",
            floor.clock_ns,
            Nanos(floor.clock_step_ns),
            floor.sample_ns,
            late.count,
            Nanos(late.p50),
            Nanos(late.max)
        );
        page.line(Line::new().ink(Ink::Faint, text), 2);
    }
}

/// Why a run's `±` is a dash.
pub fn no_interval<R: Run>(runs: &[R], missing: impl Fn(&R) -> bool, page: &mut Page) {
    let numbers: Vec<usize> =
        runs.iter().enumerate().filter(|(_, r)| missing(r)).map(|(n, _)| n + 1).collect();
    if numbers.is_empty() {
        return;
    }
    let about = about_runs(&numbers, runs.len());
    let text = "no 95% CI (±): too few batches or samples; measure longer";
    page.line(Line::new().ink(Ink::Faint, format!("{about}{text}")), 2);
}

/// The text with a capital first letter.
pub fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |c| c.to_uppercase().chain(chars).collect())
}

/// Counters that moved, summed over the runs, with the runs that moved them.
pub fn evidence<R: Run>(runs: &[R], page: &mut Page) {
    let mut rows: BTreeMap<&str, Row> = BTreeMap::new();
    let ends: [fn(&R) -> &Moved; 2] = [|r| &r.evidence().local, |r| &r.evidence().peer];
    for (end, pick) in ends.iter().enumerate() {
        for window in windows(runs) {
            for (name, &count) in pick(window.run).iter().filter(|(_, n)| **n > 0) {
                let row = rows.entry(name).or_default();
                if let Some(sum) = row.counts.get_mut(end) {
                    *sum = sum.saturating_add(count);
                }
                row.runs.extend(&window.numbers);
            }
        }
    }
    // A foreign server reports nothing, which is not 0. A server of ours reports the packets at least.
    let peer = runs.iter().any(|r| !r.evidence().peer.is_empty());
    let (quiet, reported): (Vec<_>, Vec<_>) =
        rows.into_iter().partition(|(name, _)| QUIET.contains(name));
    if reported.is_empty() {
        page.gap();
        let at = if peer { "at either end" } else { "at the client; the server does not report" };
        let text = format!("No drops, retransmits or full queues {at}.");
        page.line(Line::new().ink(Ink::Good, text), 2);
    } else {
        page.heading("KERNEL COUNTERS THAT CHANGED");
        let mut table = Table::new().left("").right("CLIENT").right("SERVER").left("");
        // Softirq time is in the evidence of an end that measured it.
        let timed_at = ends.map(|pick| {
            runs.iter().any(|r| pick(r).keys().any(|name| name.starts_with(SOFTIRQ_TIME)))
        });
        let twice = reported.iter().any(|(_, row)| row.counts.iter().all(|n| *n > 0));
        for (name, row) in reported {
            let timed = name.starts_with(SOFTIRQ_TIME);
            let reported = timed_at.map(|at| !timed || at);
            let reported = [reported[0], reported[1] && peer];
            let [local, peer] = both(row.counts, reported).map(|(n, reported)| match n {
                0 if !reported => Line::new().ink(Ink::Faint, "-"),
                0 => Line::new().ink(Ink::Faint, "0"),
                n => Line::plain(grouped(n)),
            });
            let about = Line::new().ink(Ink::Faint, named(&row.runs, runs.len()));
            table.row([Line::plain(name), local, peer, about]);
        }
        page.table(&table, 2);
        if twice && runs.iter().any(|r| r.placement().same_host) {
            let text =
                "  Both ends are on one host: equal figures of CLIENT and SERVER are one counter.";
            page.line(Line::new().ink(Ink::Faint, text), 2);
        }
    }
    let counts: Vec<String> = quiet
        .into_iter()
        .map(|(name, row)| {
            let [local, peer_count] = row.counts.map(grouped);
            if peer {
                format!("{name} {local} at the client, {peer_count} at the server")
            } else {
                format!("{name} {local} at the client")
            }
        })
        .collect();
    // These grow with any traffic.
    if page.look().verbose && !counts.is_empty() {
        let text = format!("  Counters of the traffic itself: {}.", counts.join("; "));
        page.line(Line::new().ink(Ink::Faint, text), 2);
    }
}

/// Names of softirq time.
const SOFTIRQ_TIME: &str = "softirq_ns.";

fn both<A, B>([a, b]: [A; 2], [c, d]: [B; 2]) -> [(A, B); 2] {
    [(a, c), (b, d)]
}

#[derive(Default)]
struct Row {
    counts: [u64; 2],
    runs: Vec<usize>,
}

/// A run's failures by cause; empty without failures.
pub fn failures(by_name: &BTreeMap<String, u64>, about: &str, page: &mut Page) {
    if by_name.is_empty() {
        return;
    }
    let parts: Vec<String> =
        by_name.iter().map(|(why, n)| format!("{} × {why}", grouped(*n))).collect();
    let line = Line::new().ink(Ink::Faint, about).ink(Ink::Bad, "failed: ").text(parts.join(", "));
    page.line(line, 2);
}

/// The warnings of all runs; equal ones once, and the contention of each end in one line.
pub fn warnings<R: Run>(runs: &[R], page: &mut Page) {
    let all = runs.iter().enumerate();
    let all = all.flat_map(|(n, r)| r.warnings().iter().map(move |w| (n + 1, w.clone())));
    let found = alike(joined(all.collect()));
    if found.is_empty() {
        return;
    }
    page.heading("WARNINGS");
    for (warning, about) in found {
        let about = about_runs(&about, runs.len());
        let text = warning.to_string();
        let line = Line::plain("  ").ink(Ink::Warn, "! ").ink(Ink::Faint, about).text(text);
        page.line(line, 4);
    }
}

/// The end, the CPUs and the share of a warning of contention, by whichever end it came.
fn contention(warning: &mut Warning) -> Option<(&str, &mut CpuSet, &mut f64)> {
    match warning {
        Warning::OthersOnCpus { end, cpus, share } => Some((end, cpus, share)),
        Warning::AtServer(inner) => contention(inner),
        _ => None,
    }
}

/// Contention of one end says the same of every run: the CPUs of all runs, and the least share.
fn joined(mut all: Vec<(usize, Warning)>) -> Vec<(usize, Warning)> {
    let mut by_end: BTreeMap<String, (CpuSet, f64)> = BTreeMap::new();
    for (_, warning) in &mut all {
        let Some((end, cpus, share)) = contention(warning) else { continue };
        let known = by_end.entry(end.to_owned()).or_insert_with(|| (cpus.clone(), *share));
        *known = (known.0.union(cpus), known.1.min(*share));
    }
    for (_, warning) in &mut all {
        let Some((end, cpus, share)) = contention(warning) else { continue };
        let Some(known) = by_end.get(end) else { continue };
        (*cpus, *share) = known.clone();
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_contention_of_many_runs_is_one_line_for_each_end() {
        let others = |end: &str, cpus: &str, share| Warning::OthersOnCpus {
            end: end.into(),
            cpus: cpus.parse().unwrap(),
            share,
        };
        let at_server = |w| Warning::AtServer(Box::new(w));
        let all = vec![
            (1, others("client", "1", 0.85)),
            (1, at_server(others("server", "0", 0.86))),
            (1, Warning::MedianDrifts { trend: 0.1 }),
            (2, others("client", "0-1", 0.79)),
            (2, at_server(others("server", "0", 0.81))),
        ];
        let found = alike(joined(all));
        let found: Vec<_> = found.iter().map(|(w, runs)| (w.to_string(), &runs[..])).collect();
        let of = |end: &str, cpus, share| {
            format!(
                "CPU contention at the {end}: other tasks ran on its CPUs ({cpus}) for at least {share}% of the time"
            )
        };
        assert_eq!(
            found,
            [
                (of("client", "0-1", 79), &[1, 2][..]),
                (format!("server: {}", of("server", "0", 81)), &[1, 2]),
                ("the median drifts by +10.0% over the run".into(), &[1]),
            ]
        );
    }
}
