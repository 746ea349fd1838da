//! Error rates of `prove` on live noise: false positives with two equal servers, detection of one
//! that serves 5% longer within a minute, of 2% longer within three, and wrong signs. Everything
//! runs on this host, over loopback.
//!
//! Of ten experiments four compare equal servers, four 5%, two 2%. Options:
//! - `--minutes 25`, or `--trials N` of equal and of 5% each, whichever comes first;
//! - `--null-runs 40`, `--budget 60s` and `--small-budget 180s` of one experiment;
//! - `--service 400` µs;
//! - `--record FILE` keeps every experiment as a line and continues from it; with `--minutes 0` it
//!   only shows the file.

mod counts;

use std::{
    io::{self, BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, ExitCode, Stdio},
    time::Instant,
};

use counts::{BenchCounts, Trial, TruthKind};
use model::prove::ProveDocument;
use serde_json::Value;

const NETWRIGHT: &str = env!("CARGO_BIN_EXE_netwright");

/// The service times of the slower servers, relative to the others.
const LONGER: [f64; 2] = [1.05, 1.02];

/// The order of the kinds of experiments.
const TURNS: [TruthKind; 10] = [
    TruthKind::Alike,
    TruthKind::Slower,
    TruthKind::Alike,
    TruthKind::Faster,
    TruthKind::SlightlySlower,
    TruthKind::Alike,
    TruthKind::Slower,
    TruthKind::Alike,
    TruthKind::Faster,
    TruthKind::SlightlyFaster,
];

/// The most experiments in a row that may fail.
const MOST_FAILURES: usize = 5;

struct Options {
    minutes: f64,
    trials: usize,
    budget: String,
    null_runs: usize,
    small_budget: String,
    service_us: f64,
    record: Option<PathBuf>,
}

impl Options {
    /// The options that the figures depend on.
    fn made(&self) -> String {
        format!(
            "service {} µs, {} runs for nothing, {} for 5%, {} for 2%",
            self.service_us, self.null_runs, self.budget, self.small_budget
        )
    }
}

fn main() -> ExitCode {
    match options().and_then(|o| run(&o)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("prove: {e}");
            ExitCode::from(4)
        }
    }
}

fn options() -> io::Result<Options> {
    let mut o = Options {
        minutes: 25.0,
        trials: 200,
        budget: "60s".into(),
        null_runs: 40,
        small_budget: "180s".into(),
        service_us: 400.0,
        record: None,
    };
    // Cargo adds --bench.
    let mut args = std::env::args().skip(1).filter(|a| a != "--bench");
    while let Some(name) = args.next() {
        let value = args.next().ok_or_else(|| io::Error::other(format!("{name} VALUE")))?;
        match name.as_str() {
            "--minutes" => o.minutes = value.parse().map_err(io::Error::other)?,
            "--trials" => o.trials = value.parse().map_err(io::Error::other)?,
            "--budget" => o.budget = value,
            "--null-runs" => o.null_runs = value.parse().map_err(io::Error::other)?,
            "--small-budget" => o.small_budget = value,
            "--service" => o.service_us = value.parse().map_err(io::Error::other)?,
            "--record" => o.record = Some(value.into()),
            _ => return Err(io::Error::other(format!("{name} is no option"))),
        }
    }
    Ok(o)
}

/// A server, ended when dropped.
struct PeerEnd {
    child: Child,
    target: String,
}

impl PeerEnd {
    fn start(service_us: f64) -> io::Result<Self> {
        let service = format!("{:.0}us", service_us);
        let mut child = Command::new(NETWRIGHT)
            .args(["serve", "--json", "--port", "0", "--service-time", &service])
            .env_remove("NETWRIGHT_SECRET")
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        if let Some(out) = child.stdout.take() {
            BufReader::new(out).read_line(&mut line)?;
        }
        let said: Value = serde_json::from_str(&line)?;
        let target = said.pointer("/addresses/0").and_then(Value::as_str).unwrap_or_default();
        Ok(Self { target: target.to_owned(), child })
    }
}

impl Drop for PeerEnd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn run(o: &Options) -> io::Result<()> {
    let mut counts = BenchCounts::open(o.record.as_deref(), &o.made())?;
    let (one, other) = (PeerEnd::start(o.service_us)?, PeerEnd::start(o.service_us)?);
    let [slow, slightly] = LONGER.map(|by| PeerEnd::start(o.service_us * by));
    let (slow, slightly) = (slow?, slightly?);
    let folder = std::env::temp_dir().join(format!("netwright-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let began = Instant::now();
    let enough = |t: &BenchCounts| {
        t.count(&[TruthKind::Alike]).min(t.count(&[TruthKind::Slower, TruthKind::Faster]))
            >= o.trials
    };
    let null_runs = o.null_runs.to_string();
    let mut failed = 0;
    while began.elapsed().as_secs_f64() < o.minutes * 60.0 && !enough(&counts) {
        let Some(&kind) = TURNS.get(counts.trials.len() % TURNS.len()) else { break };
        let (first, second, extent) = match kind {
            TruthKind::Alike => (&one, &other, ["--runs", &null_runs]),
            TruthKind::Slower => (&one, &slow, ["--budget", &o.budget]),
            TruthKind::Faster => (&slow, &one, ["--budget", &o.budget]),
            TruthKind::SlightlySlower => (&one, &slightly, ["--budget", &o.small_budget]),
            TruthKind::SlightlyFaster => (&slightly, &one, ["--budget", &o.small_budget]),
        };
        let at = Instant::now();
        match experiment(&folder, [&first.target, &second.target], extent) {
            Ok(said) => {
                counts.take(Trial::of(kind, &said, at.elapsed().as_secs_f64()))?;
                eprint!("\r{}: {kind:?}: {:?}    ", counts.trials.len(), said.verdict.outcome);
                failed = 0;
            }
            // A single failure is repeated, so that hours are not lost.
            Err(e) if failed < MOST_FAILURES => {
                failed += 1;
                eprintln!("{kind:?}: {e}");
            }
            Err(e) => return Err(e),
        }
    }
    eprintln!();
    std::fs::remove_dir_all(&folder)?;
    println!("live, figure rtt min, {}", o.made());
    counts.show();
    Ok(())
}

fn experiment(folder: &Path, levels: [&str; 2], extent: [&str; 2]) -> io::Result<ProveDocument> {
    let workload = "measure rtt {level} --duration 100ms --warmup 10ms";
    let out = Command::new(NETWRIGHT)
        .current_dir(folder)
        .args(["prove", "--json", "--quiet", "--record", "r.jsonl", "--workload", workload])
        .args(levels.iter().flat_map(|level| ["--level", level]))
        .args(extent)
        .args(["--metric", "rtt_min_ns=runs.0.rtt_ns.min:lower"])
        .output()?;
    let complaint = String::from_utf8_lossy(&out.stderr);
    let said = serde_json::from_slice(&out.stdout)
        .map_err(|e| io::Error::other(format!("{e}: {}", complaint.trim())))?;
    // An experiment that broke off is reported, but does not count.
    match complaint.trim() {
        "" => Ok(said),
        why => Err(io::Error::other(why.to_owned())),
    }
}
