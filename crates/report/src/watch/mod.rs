//! `watch` for people: its tables, and intervals as text without a terminal.

mod blocks;
pub mod contexts;
pub mod counters;
pub mod interrupted_tasks;
pub mod legend;
pub mod listing;
mod missing;
pub mod panes;
mod tables;
mod traffic;

use model::{
    CpuId,
    watch::{CpuWatch, EndedProcess, WatchHost, WatchInterval, WatchRecord},
};

pub use self::{
    missing::{Missing, missing},
    tables::{Titled, tables},
    traffic::{NicTraffic, Rate, Retransmitted, Traffic, traffic},
};
use crate::{
    text::{Ink, Line, Page, TextStyle},
    words::many,
};

/// The most rows of a table without `-v`.
const ROWS: usize = 8;
/// The most CPUs shown singly without `-v`: the busiest.
const CPUS: usize = 16;

/// Tables of processes, which are not counted by CPU.
const OF_ALL_CPUS: [&str; 4] = ["interrupted tasks", "waits", "messages", "senders"];

/// Prints intervals; missing values and findings appear when they change.
#[derive(Debug)]
pub struct Teller {
    look: TextStyle,
    host: WatchHost,
    missing: Vec<Missing>,
    accounting: Option<&'static str>,
    found: Vec<(String, String)>,
    some_cpus: bool,
}

/// What a column says in most intervals. A column that says only this is left out without `-v`.
const USUAL: [(&str, &str); 2] = [("SAMPLE %", "100.0%"), ("THREADED", "no")];

impl Teller {
    pub fn new(look: TextStyle, host: WatchHost) -> Self {
        Self { look, host, missing: vec![], accounting: None, found: vec![], some_cpus: false }
    }

    /// Whether only some CPUs are shown: tables of processes then say that they are of all.
    #[must_use]
    pub fn of_some_cpus(mut self, some: bool) -> Self {
        self.some_cpus = some;
        self
    }

    /// One interval as text.
    pub fn tell(&mut self, record: &WatchRecord) -> String {
        let interval = &record.interval;
        let mut page = Page::new(self.look);
        page.line(heading(interval), 2);
        if let Some(line) = busiest(interval) {
            page.line(Line::plain(line), 2);
        }
        self.finds(&mut page, record);
        for process in &interval.ended_processes {
            page.line(Line::new().ink(Ink::Warn, ended(process)), 2);
        }
        self.cpus(&mut page, interval);
        self.tables(&mut page, interval);
        self.lacks(&mut page, interval);
        page.line(Line::new().ink(Ink::Faint, costs(interval)), 2);
        page.gap();
        page.finish()
    }

    fn cpus(&mut self, page: &mut Page, interval: &WatchInterval) {
        let mut list = panes::cpus(interval, &self.host);
        let all = list.rows.len();
        let most = if self.look.verbose { all } else { CPUS };
        if all > most {
            list.sort(2);
        }
        blocks::print(page, &list.without_empty_columns(), most, 0);
        if all > most {
            page.line(Line::new().ink(Ink::Faint, format!("the busiest {most} of {all} CPUs")), 0);
        }
        let accounting = accounting(interval);
        if accounting != self.accounting {
            if let Some(why) = accounting {
                page.line(Line::new().ink(Ink::Faint, format!("/proc si: {why}")), 4);
            }
            self.accounting = accounting;
        }
    }

    fn tables(&self, page: &mut Page, interval: &WatchInterval) {
        let most = if self.look.verbose { usize::MAX } else { ROWS };
        for Titled { title, list } in tables(interval, self.look.verbose) {
            if list.rows.is_empty() {
                continue;
            }
            let more = list.rows.len().saturating_sub(most);
            let more = if more > 0 { format!("  (and {more} more: -v)") } else { String::new() };
            let of_all = self.some_cpus && OF_ALL_CPUS.contains(&title);
            let of_all = if of_all { ", on all CPUs" } else { "" };
            page.raw(&Line::new().ink(Ink::Strong, title).text(of_all).ink(Ink::Faint, more));
            let list = if self.look.verbose { list } else { list.without(&USUAL) };
            blocks::print(page, &list, most, 2);
        }
    }

    fn lacks(&mut self, page: &mut Page, interval: &WatchInterval) {
        let now = missing(interval);
        if now == self.missing {
            return;
        }
        page.raw(&Line::new().ink(Ink::Strong, "not seen"));
        for m in &now {
            let label = Line::plain("  ").ink(Ink::Warn, &m.what).text(": ");
            page.line(label.text(&m.why), 4);
        }
        self.missing = now;
    }

    fn finds(&mut self, page: &mut Page, record: &WatchRecord) {
        for f in &record.findings {
            let key = (f.rule.clone(), f.subject.clone());
            if self.found.contains(&key) {
                continue;
            }
            let ink = match f.severity {
                model::Severity::Critical => Ink::Bad,
                model::Severity::Warning => Ink::Warn,
                model::Severity::Info => Ink::Faint,
            };
            let line = Line::plain("found ").ink(ink, f.severity).text("  ").text(&f.title);
            page.line(line.ink(Ink::Faint, format!("  [{} {}]", f.rule, f.number)), 6);
            self.found.push(key);
        }
    }
}

/// Why the softirq time of `/proc/stat` differs from the measured time, where both are known.
pub fn accounting(interval: &WatchInterval) -> Option<&'static str> {
    let both = interval.cpus.iter().any(|c| c.softirq_gap.is_known());
    interval.softirq_accounting.get().filter(|_| both).map(|a| a.why())
}

/// The time, the interval's length, and its traffic; a line ends only between two of its figures.
fn heading(interval: &WatchInterval) -> Line {
    let traffic = traffic(interval).map(|t| t.to_string());
    let traffic = traffic.unwrap_or_else(|| "RX, TX: not sampled".into());
    let mut line = Line::new().ink(Ink::Strong, clock(interval.ended_unix_ns.0)).unbroken();
    line.push(Ink::Plain, format!("  {:.2}\u{a0}s", interval.interval_s));
    for part in traffic.split("  ") {
        line.push(Ink::Plain, "  ");
        line.extend(Line::plain(part).unbroken());
    }
    line
}

/// The softirq time of an interval, as shares of it, 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SoftirqShares {
    /// The CPU with the most, and its share.
    pub busiest: (CpuId, f64),
    /// The mean of all CPUs for which the time is known.
    pub mean: f64,
    /// Number of these CPUs, at least 1.
    pub cpus: usize,
}

/// The softirq time of the busiest CPU and of all; `None` where it was not measured.
pub fn softirq_shares(interval: &WatchInterval) -> Option<SoftirqShares> {
    let s = interval.interval_s.max(1e-9);
    let of = |c: &CpuWatch| c.softirq_ns.known().map(|by| by.softirq_ns() as f64 / 1e9 / s);
    let shares: Vec<(CpuId, f64)> =
        interval.cpus.iter().filter_map(|c| of(c).map(|share| (c.id, share))).collect();
    let busiest = *shares.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let mean = shares.iter().map(|s| s.1).sum::<f64>() / shares.len() as f64;
    Some(SoftirqShares { busiest, mean, cpus: shares.len() })
}

fn busiest(interval: &WatchInterval) -> Option<String> {
    let SoftirqShares { busiest: (cpu, most), mean, cpus } = softirq_shares(interval)?;
    let cpus = many(cpus, "CPU");
    let percent = |share: f64| format!("{:.1}%", share * 100.0);
    Some(format!(
        "softirq {} of CPU {cpu}, the busiest; {} of {cpus}",
        percent(most),
        percent(mean)
    ))
}

/// The probe overhead, its number of programs, and what it leaves out.
pub fn costs(interval: &WatchInterval) -> String {
    let observer = &interval.observer;
    let share = observer.share_of_host.known();
    let share = share.map_or_else(|| "?%".into(), |s| format!("{:.2}%", s * 100.0));
    let attached = observer.programs.iter().filter(|p| p.ran.is_known()).count();
    let untimed = match observer.programs_untimed {
        0 => String::new(),
        n => format!(" ({n} not timed)"),
    };
    let programs = observer.programs.len();
    let parts = [
        ("softirqs", interval.softirq_observed_share, true),
        ("messages", interval.messages_observed_share, interval.messages.is_known()),
        ("drops", interval.drops_observed_share, interval.drops.is_known()),
    ];
    let mut seen = String::new();
    for (part, share, _) in parts.into_iter().filter(|(_, share, known)| *known && *share < 0.995) {
        seen += &format!(", {part} by {:.1}% of the time", share * 100.0);
    }
    format!(
        "watching costs {share} of the host, {attached} of {programs} programs attached{untimed}{seen}"
    )
}

/// A followed process that ended.
pub fn ended(process: &EndedProcess) -> String {
    format!("process {} ({}) has ended: nothing more of it follows", process.pid, process.name)
}

/// Time of day, UTC.
pub fn clock(unix_ns: u64) -> String {
    let s = unix_ns / 1_000_000_000 % 86_400;
    format!("{:02}:{:02}:{:02} UTC", s / 3600, s / 60 % 60, s % 60)
}

#[cfg(test)]
mod tests;
