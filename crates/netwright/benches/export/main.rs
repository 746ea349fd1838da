//! CPU time of one scrape of `netwright export` on generated hosts: counters since boot read, made
//! into families and written as a page, as the exporter does for each scrape.
//!
//! The files are generated, so the time in which a kernel writes `/proc/interrupts` is not in it; for
//! this host, live, it is. Exit code 1: a scrape of 64 CPUs takes 20 ms (median).
//!
//! `make bench BENCHES=export` runs it.

use std::{
    fmt::Write,
    fs, io,
    path::Path,
    process::ExitCode,
    time::{Duration, Instant},
};

use metrics::{
    Process, Scrape, families,
    text::{self, Format},
    totals::Totals,
};
use model::{Reading, watch::test_data};
use probe::{Root, samples::since_boot};
use rustix::time::{ClockId, clock_gettime};

#[path = "../tree/mod.rs"]
mod tree;

use tree::{Tree, TreeShape};

const RUNS: usize = 50;
const JUDGED_CPUS: usize = 64;
const MOST_TIME: Duration = Duration::from_millis(20);

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(e) => {
            eprintln!("export: {e}");
            ExitCode::from(4)
        }
    }
}

fn run() -> io::Result<bool> {
    let mut fits = true;
    println!(
        "{:>10} {:>12} {:>12} {:>8} {:>10}",
        "CPUs", "CPU median", "wall median", "series", "bytes"
    );
    show("this host", &scrapes(&Root::live(), 2)?);
    for cpus in [2, JUDGED_CPUS, 512] {
        let dir = tempfile::tempdir()?;
        Tree::generate(dir.path(), &TreeShape::of(cpus))?;
        counters(dir.path(), cpus)?;
        let root = Root::open(dir.path()).map_err(io::Error::other)?;
        let seen = scrapes(&root, cpus as u32)?;
        show(&cpus.to_string(), &seen);
        fits &= cpus != JUDGED_CPUS || seen.cpu < MOST_TIME;
    }
    if !fits {
        println!("a scrape of {JUDGED_CPUS} CPUs takes more than {MOST_TIME:?}");
    }
    Ok(fits)
}

/// The counters that change, which a tree for `inspect` lacks.
fn counters(dir: &Path, cpus: usize) -> io::Result<()> {
    let header: String = (0..cpus).fold(String::new(), |mut line, cpu| {
        let _ = write!(line, " CPU{cpu}");
        line
    });
    let vectors = [
        "HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER",
        "RCU",
    ];
    let rows = vectors.map(|v| format!("{v}:{}\n", " 123456789".repeat(cpus)));
    fs::write(dir.join("proc/softirqs"), format!("{header}\n{}", rows.concat()))?;
    let lines = (0..cpus).map(|c| format!("cpu{c} 1234 5 678 90123 45 6 789 0 0 0\n"));
    fs::write(dir.join("proc/stat"), lines.collect::<String>())?;
    fs::write(dir.join("proc/uptime"), "100000.00 900000.00\n")?;
    for name in ["snmp", "netstat", "snmp6", "dev", "sockstat"] {
        fs::copy(format!("/proc/net/{name}"), dir.join("proc/net").join(name))?;
    }
    fs::copy("/proc/vmstat", dir.join("proc/vmstat")).map(drop)
}

/// Medians of many scrapes, and the page's size.
struct Scrapes {
    cpu: Duration,
    wall: Duration,
    series: usize,
    bytes: usize,
}

fn scrapes(root: &Root, cpus: u32) -> io::Result<Scrapes> {
    let facts = probe::facts::collect(root, &probe::facts::Request::default());
    let mut totals = Totals::new(10);
    (0..3).for_each(|turn| totals.add(&test_data::interval(cpus, turn)));
    let mut page = String::new();
    let mut runs = vec![];
    for _ in 0..RUNS {
        let (spent, begun) = (spent(), Instant::now());
        let samples =
            since_boot::counters_now(root).ok_or_else(|| io::Error::other("no time since boot"))?;
        let scrape = Scrape {
            samples: Reading::Known(&samples),
            totals: &totals,
            facts: Reading::Known(&facts),
            findings: Reading::Known(&[]),
            changes: Reading::absent("none"),
            probes: &[],
            process: Process::default(),
            version: "bench",
        };
        page = text::page(&families(&scrape), Format::OpenMetrics);
        runs.push((self::spent() - spent, begun.elapsed()));
    }
    let median = |of: fn(&(Duration, Duration)) -> Duration| {
        let mut all: Vec<Duration> = runs.iter().map(of).collect();
        all.sort();
        all[RUNS / 2]
    };
    let series = page.lines().filter(|l| !l.starts_with('#')).count();
    Ok(Scrapes { cpu: median(|r| r.0), wall: median(|r| r.1), series, bytes: page.len() })
}

/// CPU time of this process so far.
fn spent() -> Duration {
    let t = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(t.tv_sec as u64, t.tv_nsec as u32)
}

fn show(host: &str, seen: &Scrapes) {
    let ms = |d: Duration| format!("{:.2} ms", d.as_secs_f64() * 1e3);
    let Scrapes { cpu, wall, series, bytes } = seen;
    println!("{host:>10} {:>12} {:>12} {series:>8} {bytes:>10}", ms(*cpu), ms(*wall));
}
