//! `prove`'s promises on live noise: how often two far ends that are alike are called different,
//! how often one that serves 5% longer is found within a minute, and how often with the wrong
//! sign. Everything on this host, over loopback.
//!
//! Experiments take turns: alike, slower, alike, faster. Options: `--minutes 25`, or `--trials N`
//! of each kind, whichever comes first; `--null-budget 12s` and `--budget 60s` of one experiment;
//! `--service 400` µs.

use std::{
    collections::BTreeMap,
    io::{self, BufRead, BufReader},
    process::{Child, Command, ExitCode, Stdio},
    time::{Duration, Instant},
};

use model::prove::{Outcome, ProveDocument};
use serde_json::Value;
use stats::rate::wilson;

const NETWRIGHT: &str = env!("CARGO_BIN_EXE_netwright");

/// How much longer the slow one serves.
const LONGER: f64 = 1.05;

struct Options {
    minutes: f64,
    trials: usize,
    budget: String,
    null_budget: String,
    service_us: f64,
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
        null_budget: "12s".into(),
        service_us: 400.0,
    };
    // Cargo adds --bench.
    let mut args = std::env::args().skip(1).filter(|a| a != "--bench");
    while let Some(name) = args.next() {
        let value = args.next().ok_or_else(|| io::Error::other(format!("{name} VALUE")))?;
        match name.as_str() {
            "--minutes" => o.minutes = value.parse().map_err(io::Error::other)?,
            "--trials" => o.trials = value.parse().map_err(io::Error::other)?,
            "--budget" => o.budget = value,
            "--null-budget" => o.null_budget = value,
            "--service" => o.service_us = value.parse().map_err(io::Error::other)?,
            _ => return Err(io::Error::other(format!("{name} is no option"))),
        }
    }
    Ok(o)
}

/// A far end, ended when dropped.
struct Far {
    child: Child,
    target: String,
}

impl Far {
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

impl Drop for Far {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Alike,
    Slower,
    Faster,
}

/// What experiments of one kind said.
#[derive(Debug, Default)]
struct Tally {
    all: usize,
    better: usize,
    worse: usize,
    held: usize,
    named: usize,
    took_s: Vec<f64>,
}

impl Tally {
    fn take(&mut self, said: &ProveDocument, took: Duration) {
        self.all += 1;
        self.better += usize::from(said.verdict.outcome == Outcome::Better);
        self.worse += usize::from(said.verdict.outcome == Outcome::Worse);
        let (low, high) = (said.verdict.low.unwrap_or(-1.0), said.verdict.high.unwrap_or(1.0));
        self.held += usize::from(low <= 0.0 && 0.0 <= high);
        self.named += usize::from(!said.evidence.moved.is_empty());
        self.took_s.push(took.as_secs_f64());
    }
}

fn run(o: &Options) -> io::Result<()> {
    let (one, other) = (Far::start(o.service_us)?, Far::start(o.service_us)?);
    let slow = Far::start(o.service_us * LONGER)?;
    let folder = std::env::temp_dir().join(format!("netwright-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let began = Instant::now();
    let mut tallies: BTreeMap<Kind, Tally> = BTreeMap::new();
    let (mut loads, mut turns) =
        (vec![], [Kind::Alike, Kind::Slower, Kind::Alike, Kind::Faster].into_iter().cycle());
    while began.elapsed().as_secs_f64() < o.minutes * 60.0
        && tallies.get(&Kind::Alike).map_or(0, |t| t.all) < o.trials
    {
        let Some(kind) = turns.next() else { break };
        let (first, second, budget) = match kind {
            Kind::Alike => (&one, &other, &o.null_budget),
            Kind::Slower => (&one, &slow, &o.budget),
            Kind::Faster => (&slow, &one, &o.budget),
        };
        let at = Instant::now();
        let said = experiment(&folder, &first.target, &second.target, budget)?;
        loads.push(load());
        tallies.entry(kind).or_default().take(&said, at.elapsed());
        eprint!("\r{kind:?}: {:?}    ", said.verdict.outcome);
    }
    eprintln!();
    std::fs::remove_dir_all(&folder)?;
    show(o, &tallies, &mut loads);
    Ok(())
}

fn experiment(
    folder: &std::path::Path,
    first: &str,
    second: &str,
    budget: &str,
) -> io::Result<ProveDocument> {
    let workload = "measure rtt {level} --duration 100ms --warmup 10ms";
    let out = Command::new(NETWRIGHT)
        .current_dir(folder)
        .args(["prove", "--json", "--quiet", "--record", "r.jsonl", "--workload", workload])
        .args(["--level", first, "--level", second, "--budget", budget])
        .args(["--metric", "rtt_min_ns=runs.0.rtt_ns.min:lower"])
        .output()?;
    serde_json::from_slice(&out.stdout).map_err(|e| {
        io::Error::other(format!("{e}: {}", String::from_utf8_lossy(&out.stderr).trim()))
    })
}

/// Programs that want a CPU, over the last minute.
fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().and_then(|w| w.parse().ok()).unwrap_or(f64::NAN)
}

fn show(o: &Options, tallies: &BTreeMap<Kind, Tally>, loads: &mut [f64]) {
    let rate = |hits: usize, of: usize| {
        let (p, low, high) = wilson(hits, of);
        format!("{hits} of {of}: {:.1}% ({:.1}% to {:.1}%)", 100.0 * p, 100.0 * low, 100.0 * high)
    };
    loads.sort_by(f64::total_cmp);
    let middle = |sorted: &[f64]| sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN);
    println!("live, service {:.0} µs, figure rtt min, load {:.1}", o.service_us, middle(loads));
    if let Some(t) = tallies.get(&Kind::Alike) {
        println!("alike, budget {}", o.null_budget);
        println!("  called better or worse   {}", rate(t.better + t.worse, t.all));
        println!("  interval holds 0         {}", rate(t.held, t.all));
        println!("  a counter is named       {}", rate(t.named, t.all));
    }
    let (mut found, mut wrong, mut all, mut took) = (0, 0, 0, vec![]);
    for (kind, t) in tallies.iter().filter(|(k, _)| **k != Kind::Alike) {
        let (right, other) =
            if *kind == Kind::Slower { (t.worse, t.better) } else { (t.better, t.worse) };
        (found, wrong, all) = (found + right, wrong + other, all + t.all);
        took.extend(&t.took_s);
    }
    took.sort_by(f64::total_cmp);
    println!("5% of service, budget {}", o.budget);
    println!("  found                    {}", rate(found, all));
    println!("  with the wrong sign      {}", rate(wrong, all));
    println!("  median time              {:.0} s", middle(&took));
}
