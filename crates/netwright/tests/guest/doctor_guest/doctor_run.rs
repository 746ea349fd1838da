//! One run of `doctor` in the guest, between two readings of the kernel's counters.

use std::collections::BTreeMap;

use lab::testing::TestLab;
use serde_json::Value;

use super::guest;

pub struct DoctorRun {
    pub d: Value,
    before: String,
    after: String,
}

impl DoctorRun {
    pub fn new(lab: &TestLab, args: &str) -> Self {
        let said = guest(lab, &format!("look {args}"));
        let [d, before, after] = said.split("\n=====\n").collect::<Vec<_>>()[..] else {
            panic!("{said}")
        };
        Self {
            d: serde_json::from_str(d).unwrap_or_else(|e| panic!("{e}: {d}")),
            before: before.to_owned(),
            after: after.to_owned(),
        }
    }

    pub fn finding(&self, rule: &str) -> Option<&Value> {
        self.d["findings"].as_array().unwrap().iter().find(|f| f["rule"] == rule)
    }

    /// The finding of a rule about a subject.
    pub fn found(&self, rule: &str, subject: &str) -> &Value {
        let f = self.finding(rule).unwrap_or_else(|| panic!("no {rule}: {:#}", self.d));
        assert_eq!(f["subject"], subject, "{f:#}");
        f
    }

    pub fn silent(&self, rules: &[&str]) {
        for rule in rules {
            let found = self.finding(rule);
            assert!(found.is_none(), "{rule}: {:#}", found.unwrap());
            // Judged, and not skipped.
            let clear = self.d["passed"].as_array().unwrap();
            assert!(clear.iter().any(|c| c["rule"] == *rule), "no {rule} judged: {:#}", self.d);
        }
    }

    /// The figure is a counter's growth over the window. It is at most the growth over the whole
    /// run, and about the window's part of a steady rate. Emulated CPUs that wait for one another
    /// make the rate unsteady; tests in namespaces have closer limits.
    pub fn holds(&self, figure: u64, counter: impl Fn(&str) -> u64 + Copy) {
        let grew = counter(&self.after) - counter(&self.before);
        let window = self.d["window_ns"].as_u64().unwrap() as f64 / 1e9;
        let due = self.per_s(counter) * window;
        let fits = figure <= grew && figure as f64 >= 0.45 * due && figure as f64 <= 2.2 * due;
        assert!(fits, "{figure} of {grew}, about {due:.0} due");
    }

    /// A counter's rate over the run of doctor, its start and its end.
    pub fn per_s(&self, counter: impl Fn(&str) -> u64) -> f64 {
        let uptime = |text: &str| text.split_whitespace().next().unwrap().parse::<f64>().unwrap();
        let grew = counter(&self.after) - counter(&self.before);
        grew as f64 / (uptime(&self.after) - uptime(&self.before))
    }

    /// Shares of a CPU's time by `/proc/stat`: busy, and in the kernel. Where every process only
    /// computes, the latter is ksoftirqd, interrupts and softirqs.
    pub fn cpu(&self, number: u32) -> (f64, f64) {
        let name = format!("cpu{number} ");
        let ticks = |text: &str| -> Vec<u64> {
            let line = text.lines().find_map(|l| l.strip_prefix(&name)).unwrap();
            line.split_whitespace().map(|n| n.parse().unwrap()).collect()
        };
        let (before, after) = (ticks(&self.before), ticks(&self.after));
        let grew: Vec<f64> =
            after.iter().zip(&before).map(|(a, b)| a.saturating_sub(*b) as f64).collect();
        let [user, nice, system, idle, iowait, irq, softirq, ..] = grew[..] else {
            panic!("{grew:?}")
        };
        let kernel = system + irq + softirq;
        let all = user + nice + kernel + idle + iowait;
        (1.0 - (idle + iowait) / all, kernel / all)
    }

    /// The figure is a slow gauge: within its values before and after, plus a tenth.
    pub fn gauge(&self, figure: u64, gauge: impl Fn(&str) -> u64) {
        let (one, other) = (gauge(&self.before), gauge(&self.after));
        let (low, high) = (one.min(other) as f64 * 0.9, one.max(other) as f64 * 1.1);
        assert!((low..=high).contains(&(figure as f64)), "{figure}, {one} before, {other} after");
    }
}

/// The counts by CPU of an interrupt in `/proc/interrupts`.
pub fn interrupts(text: &str, irq: u32) -> Vec<u64> {
    let line = text.lines().find_map(|l| l.trim().strip_prefix(&format!("{irq}:"))).unwrap();
    line.split_whitespace().map_while(|n| n.parse().ok()).collect()
}

/// A column of `/proc/net/softnet_stat` for a CPU, which is the last column.
pub fn softnet(text: &str, column: usize, cpu: u64) -> u64 {
    let hex = |row: &str| -> Option<Vec<u64>> {
        let row: Vec<&str> = row.split_whitespace().collect();
        (row.len() == 13).then_some(())?;
        row.into_iter().map(|n| u64::from_str_radix(n, 16).ok()).collect()
    };
    let mut rows = text.lines().filter_map(hex);
    rows.find(|row| row[12] == cpu).unwrap()[column]
}

/// The sum over CPUs of a column of the table of `/proc/net/stat` that has it.
pub fn table_sum(text: &str, name: &str) -> u64 {
    let has = |l: &str| l.starts_with("entries ") && l.split_whitespace().any(|n| n == name);
    let mut lines = text.lines().skip_while(|l| !has(l));
    let at = lines.next().unwrap().split_whitespace().position(|n| n == name).unwrap();
    let rows = lines.take_while(|l| l.starts_with("0000"));
    rows.map(|r| u64::from_str_radix(r.split_whitespace().nth(at).unwrap(), 16).unwrap()).sum()
}

/// The sum of all lines `NAME VALUE` or `NAME: VALUE`: `ethtool -S` repeats the name for each
/// queue.
pub fn named(text: &str, name: &str) -> u64 {
    let rest = |l: &str| -> Option<u64> {
        l.trim().strip_prefix(name)?.trim_start_matches(':').trim().parse().ok()
    };
    text.lines().filter_map(rest).sum::<u64>()
}

/// The value of a finding's evidence.
pub fn shows<'d>(f: &'d Value, what: &str) -> &'d str {
    let all = f["evidence"].as_array().unwrap();
    let found = all.iter().find(|e| e["what"].as_str().unwrap().starts_with(what));
    found.unwrap_or_else(|| panic!("no evidence {what:?}: {f:#}"))["value"].as_str().unwrap()
}

/// The number at its beginning.
pub fn figure(f: &Value, what: &str) -> u64 {
    let digits = shows(f, what).replace(',', "");
    let digits: String = digits.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or_else(|_| panic!("{what}: {f:#}"))
}

/// `KNOB=NEW` of a finding's changes.
pub fn asks(f: &Value) -> Vec<String> {
    let text = |c: &Value, key: &str| c[key].as_str().unwrap().to_owned();
    let all = f["changes"].as_array().unwrap().iter().filter(|c| c["knob"] != "");
    all.map(|c| format!("{}={}", text(c, "knob"), text(c, "new"))).collect()
}

/// Interrupts and their requested CPU.
pub fn moves(f: &Value) -> BTreeMap<u32, u32> {
    let one = |ask: String| {
        let (irq, cpu) = ask.strip_prefix("irq.")?.split_once(".affinity=")?;
        Some((irq.parse().unwrap(), cpu.parse().unwrap()))
    };
    asks(f).into_iter().filter_map(one).collect()
}

/// Whether a finding names another one as its cause, and leaves the changes to it.
pub fn leaves_to(f: &Value, cause: &str) -> bool {
    f["caused_by"].as_array().unwrap().iter().any(|c| c == cause) && asks(f).is_empty()
}
