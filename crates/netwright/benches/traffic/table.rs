//! Prints the table, line by line as the cells complete.

use std::{
    fs, io,
    process::{Command, ExitCode},
    time::Instant,
};

use crate::{
    cell::{Metric, Spread, Target},
    options::Options,
    ours,
    room::{CONGESTION, Room},
    verdicts::Verdicts,
};

/// One comparison of a cell.
pub struct Row {
    pub metric: Metric,
    /// The program in the numerator.
    pub subject: &'static str,
    /// The program in the denominator.
    pub other: &'static str,
    /// What the ratio must be.
    pub target: Target,
    pub figures: Spread,
    pub other_figures: Spread,
    /// The ratios, run by run.
    pub ratios: Spread,
}

impl Row {
    /// Whether the ratio's interval is on both sides of a mandatory target.
    pub fn unclear(&self) -> bool {
        let (low, high) = self.ratios.interval();
        match self.target {
            Target::AtMost(limit) | Target::AtLeast(limit, _) => low <= limit && limit < high,
            Target::Shown => false,
        }
    }

    fn verdict(&self) -> Verdict {
        let ratio = self.ratios.median();
        let kept = match self.target {
            Target::Shown => return Verdict::Shown,
            Target::AtMost(limit) => ratio <= limit,
            Target::AtLeast(limit, _) => ratio >= limit,
        };
        match (kept, self.unclear()) {
            (true, _) => Verdict::Kept,
            (false, true) => Verdict::Unclear,
            (false, false) => Verdict::Missed,
        }
    }
}

/// The result for a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Shown,
    /// The median meets it.
    Kept,
    /// The median misses it, by less than these repetitions can resolve.
    Unclear,
    Missed,
}

/// Prints the table, and counts results.
pub struct Table {
    begun: Instant,
    kept: usize,
    unclear: Vec<String>,
    missed: Vec<String>,
    failed: Vec<String>,
    /// The runs of all cells, judged at the end.
    pub verdicts: Verdicts,
}

/// The result of the benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Everything was measured and no target missed.
    Well,
    /// A mandatory target was missed.
    Missed,
    /// A part could not be measured.
    Failed,
}

impl From<End> for ExitCode {
    fn from(end: End) -> Self {
        Self::from(match end {
            End::Well => 0,
            End::Missed => 1,
            End::Failed => 4,
        })
    }
}

impl Table {
    /// Prints the comparison and its conditions.
    pub fn begin(room: &Room, options: &Options) -> io::Result<Self> {
        let network = match room.own_network {
            true => "in a network namespace of its own",
            false => "on the host's loopback (root would use a network namespace of its own)",
        };
        let read = |path| fs::read_to_string(path).map(|text| text.trim().to_owned());
        println!("kernel {}", read("/proc/sys/kernel/osrelease")?);
        println!("client on CPU {}, server on CPU {} or the same", room.local, room.peer);
        println!("{network}, congestion control {}", read(CONGESTION)?);
        println!("load average {}", read("/proc/loadavg")?);
        for program in ["cc", "qperf", "sockperf", "iperf3", "wrk"] {
            println!("{program}: {}", version(program));
        }
        match &options.neper {
            Some(path) => println!("neper: {}", path.display()),
            None => println!("neper: not given (NEPER=path/to/tcp_rr), so not compared with"),
        }
        if !ours::ready() {
            println!("this build has no `serve` and `measure` yet: only the others are shown");
        }
        println!("\nFigures: median (smallest–largest) of n runs. Ratios: run by run, in turn.");
        Ok(Self {
            begun: Instant::now(),
            kept: 0,
            unclear: vec![],
            missed: vec![],
            failed: vec![],
            verdicts: Verdicts::default(),
        })
    }

    pub fn part(&mut self, what: &str) {
        println!("\n{what}\n");
    }

    /// The column heads of cells.
    pub fn columns(&mut self) {
        println!("| what | | compared with | n | ratio: min / median / max | must be |");
        println!("|---|---|---|---|---|---|");
    }

    pub fn cell(&mut self, name: &str, rows: &[Row]) {
        for row in rows {
            let what = format!("{name}: {}", unit(row.metric));
            let figures = |name, of| format!("{name} {}", words(row.metric, of));
            let subject = figures(row.subject, &row.figures);
            let other = figures(row.other, &row.other_figures);
            let (min, median, max) = (row.ratios.min(), row.ratios.median(), row.ratios.max());
            let (n, target) = (row.ratios.count(), target(row));
            println!(
                "| {what:<42} | {subject:<34} | {other:<34} | {n:>2} | \
                 {min:.3} / **{median:.3}** / {max:.3} | {target} |"
            );
            let line = format!("{what}, {} by {}: {median:.3}", row.subject, row.other);
            self.count(row.verdict(), line);
        }
    }

    /// A line of another form, with the result for its target.
    pub fn line(&mut self, text: &str, verdict: Verdict) {
        println!("{text}  {}", word(verdict));
        self.count(verdict, text.trim().to_owned());
    }

    fn count(&mut self, verdict: Verdict, line: String) {
        match verdict {
            Verdict::Shown => {}
            Verdict::Kept => self.kept += 1,
            Verdict::Unclear => self.unclear.push(line),
            Verdict::Missed => self.missed.push(line),
        }
    }

    /// A part that could not be measured, or not completely.
    pub fn failed(&mut self, part: &str, e: &io::Error) {
        println!("\n{part}: {e}  FAILED");
        self.failed.push(format!("{part}: {e}"));
    }

    pub fn end(self) -> End {
        self.verdicts.print();
        let [unclear, missed, failed] =
            [("unclear", self.unclear), ("MISSED", self.missed), ("FAILED", self.failed)];
        println!(
            "\n{} kept, {} unclear, {} missed, {} parts failed",
            self.kept,
            unclear.1.len(),
            missed.1.len(),
            failed.1.len()
        );
        for (word, lines) in [&unclear, &missed, &failed] {
            lines.iter().for_each(|l| println!("  {word}: {l}"));
        }
        println!("took {:.0} s", self.begun.elapsed().as_secs_f64());
        match (missed.1.is_empty(), failed.1.is_empty()) {
            (_, false) => End::Failed,
            (false, true) => End::Missed,
            (true, true) => End::Well,
        }
    }
}

fn version(program: &str) -> String {
    let Ok(out) = Command::new(program).arg("--version").output() else {
        return "not installed; `make bench` installs it".to_owned();
    };
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    text.lines().next().unwrap_or_default().to_owned()
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Shown => "",
        Verdict::Kept => "kept",
        Verdict::Unclear => "unclear",
        Verdict::Missed => "MISSED",
    }
}

fn target(row: &Row) -> String {
    let goal = |g: f64| if row.ratios.median() >= g { ", goal too" } else { ", goal not" };
    let word = word(row.verdict());
    match row.target {
        Target::Shown => String::new(),
        Target::AtMost(limit) => format!("≤ {limit} {word}"),
        Target::AtLeast(limit, None) => format!("≥ {limit} {word}"),
        Target::AtLeast(limit, Some(g)) => format!("≥ {limit} {word}{}", goal(g)),
    }
}

fn unit(metric: Metric) -> &'static str {
    match metric {
        Metric::Median => "median, µs",
        Metric::Mean => "mean, µs",
        Metric::Trips => "trips/s",
        Metric::Requests => "requests/s",
        Metric::CpuPerRequest => "client's CPU, µs",
        Metric::Bits => "Gbit/s",
        Metric::BitsPerCpu => "Gbit/CPU-s",
        Metric::CpuPerTransaction => "CPU, µs",
        Metric::Transactions => "tps",
    }
}

fn words(metric: Metric, values: &Spread) -> String {
    let (scale, digits) = match metric {
        Metric::Median | Metric::Mean | Metric::CpuPerRequest | Metric::CpuPerTransaction => {
            (1e3, 2)
        }
        Metric::Trips | Metric::Requests | Metric::Transactions => (1.0, 0),
        Metric::Bits | Metric::BitsPerCpu => (1e9, 2),
    };
    let one = |v: f64| format!("{:.digits$}", v / scale);
    format!("{} ({}–{})", one(values.median()), one(values.min()), one(values.max()))
}
