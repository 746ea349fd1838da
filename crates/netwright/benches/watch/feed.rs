//! The time to read, show and write an interval of a large host: generated hosts of 2 and 512 CPUs.
//! Their `/proc` is made of regular files, so the kernel's time to produce `/proc` is not included.

use std::{fmt::Write, fs, io, time::Instant};

use model::{
    snapshot::SampleTime,
    watch::{WatchRecord, test_data},
};
use probe::{
    Root,
    samples::{Options, delta, raw::Raw},
};
use report::{TextStyle, watch::Teller};

use super::tree::{Tree, TreeShape};

/// Intervals of each host; the first, which shows more, counts as the others.
const TURNS: u64 = 20;

/// Prints the time of an interval as text and as JSON.
pub fn measure() -> io::Result<()> {
    println!();
    for cpus in [2, 512] {
        let mut teller = Teller::new(TextStyle::default(), test_data::host(cpus, 8));
        let (mut text, mut json) = (Vec::new(), Vec::new());
        for turn in 0..TURNS {
            let record =
                WatchRecord { interval: test_data::interval(cpus, turn), findings: vec![] };
            let begun = Instant::now();
            std::hint::black_box(teller.tell(&record));
            text.push(begun.elapsed().as_secs_f64() * 1e3);
            let begun = Instant::now();
            std::hint::black_box(serde_json::to_vec(&record).map_err(io::Error::other)?);
            json.push(begun.elapsed().as_secs_f64() * 1e3);
        }
        println!(
            "an interval of {cpus} CPUs at 1 Hz: {} ms as text, {} ms as JSON (5% of a CPU is 50 ms)",
            super::user::spread(text),
            super::user::spread(json)
        );
    }
    for cpus in [2, 512] {
        reading(cpus)?;
    }
    Ok(())
}

/// Reads the counters of a host with this many CPUs and computes the difference, as each interval
/// does.
fn reading(cpus: usize) -> io::Result<()> {
    let dir = tempfile::tempdir_in(if fs::exists("/dev/shm")? { "/dev/shm" } else { "/tmp" })?;
    let shape = TreeShape::of(cpus);
    Tree::generate(dir.path(), &shape)?;
    fs::write(dir.path().join("proc/stat"), stat(cpus))?;
    let root = Root::open(dir.path()).map_err(io::Error::other)?;
    let options = Options::default();
    // Not `samples::one`, which looks for a recording's files.
    let read = |turn: u64| {
        let at = turn * 1_000_000_000;
        Raw::read(&root, SampleTime { start_ns: at, end_ns: at }, &options)
    };
    let mut before = read(1);
    let mut took = Vec::new();
    for turn in 2..TURNS + 2 {
        let begun = Instant::now();
        let now = read(turn);
        let between = delta::samples(&[before, now.clone()]);
        std::hint::black_box(&between);
        took.push(begun.elapsed().as_secs_f64() * 1e3);
        before = now;
        let seen = between.map_or(0, |s| s.cpus.len());
        if seen != cpus {
            return Err(io::Error::other(format!("{seen} of {cpus} CPUs were read")));
        }
    }
    println!(
        "reading the counters of {cpus} CPUs and {} interrupts from files: {} ms an interval",
        shape.irqs,
        super::user::spread(took)
    );
    Ok(())
}

/// `/proc/stat` of that many CPUs.
fn stat(cpus: usize) -> String {
    let mut text = String::from("cpu  1 2 3 4 5 6 7 8 9 10\n");
    for cpu in 0..cpus {
        let _ = writeln!(text, "cpu{cpu} 18273645 271 8173645 918273645 1827 0 817364 9182 0 0");
    }
    text.push_str("intr 918273645\nctxt 18273645546\nbtime 1790000000\nprocesses 81726\n");
    text.push_str("procs_running 3\nprocs_blocked 0\nsoftirq 918273 1 2 3 4 5 6 7 8 9 10\n");
    text
}
