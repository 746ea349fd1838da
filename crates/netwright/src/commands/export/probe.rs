//! `--probe`: short measurements of other hosts on a schedule, one at a time.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use clap::Parser;
use model::{
    Nanos,
    measure::{Quantiles, RttRun, RttSpec},
};
use traffic::Secret;

use super::{args::ProbeArgs, collected::Collected};
use crate::{
    commands::measure::{args::RttArgs, spec},
    failure::Failure,
    output::note,
};

const SHORTEST: Nanos = Nanos(1_000_000_000);
const LONGEST: Nanos = Nanos(3_600_000_000_000);
/// How often an end is looked for.
const LOOK: Duration = Duration::from_millis(100);

/// A probe's flags of `measure rtt`.
const FLAGS: [&str; 4] = ["--duration", "250ms", "--warmup", "50ms"];

/// A probe of one target: round trips of 64 bytes on one connection, for a quarter of a second.
pub struct Probe {
    target: String,
    spec: RttSpec,
}

/// The flags of `measure rtt` that a probe has.
#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    rtt: RttArgs,
}

/// The probes of the flags.
///
/// # Errors
/// A target that is none, or a period out of bounds (exit code 2).
pub fn checked(args: &ProbeArgs) -> Result<Vec<Probe>, Failure> {
    check_period(args.every)?;
    let one = |target: &String| {
        let usage = |why: &str| Failure::Usage(format!("--probe {target}: {why}"));
        let host = target.strip_prefix("rtt://").filter(|h| !h.is_empty());
        let host = host.ok_or_else(|| usage("write rtt://HOST or rtt://HOST:PORT"))?;
        Ok(Probe { target: target.clone(), spec: specified(&FLAGS, host)? })
    };
    args.probe.iter().map(one).collect()
}

/// Refuses a period out of bounds.
///
/// # Errors
/// As said (exit code 2).
pub fn check_period(every: Nanos) -> Result<(), Failure> {
    match (SHORTEST..=LONGEST).contains(&every) {
        true => Ok(()),
        false => Err(Failure::Usage(format!(
            "--every {every}; from {SHORTEST} to {LONGEST} is possible"
        ))),
    }
}

/// The measurement that `measure rtt` makes of these flags.
///
/// # Errors
/// The target is none (exit code 2).
pub fn specified(flags: &[&str], target: &str) -> Result<RttSpec, Failure> {
    let line = [&["probe"], flags, &["--", target]].concat();
    let line =
        Line::try_parse_from(line).map_err(|_| Failure::Usage(format!("{target}: no host")))?;
    spec::rtt(&line.rtt)
}

/// Begins the schedule in a thread, which ends with `stop`.
///
/// # Errors
/// The kernel refused to start a thread (exit code 4).
pub fn begin(
    probes: Vec<Probe>,
    args: &ProbeArgs,
    secret: Option<Secret>,
    collected: Collected,
    stop: &'static AtomicBool,
) -> Result<Option<JoinHandle<()>>, Failure> {
    if probes.is_empty() {
        return Ok(None);
    }
    collected.probes(probes.iter().map(|p| p.target.clone()));
    let (every, jitter) = (Duration::from_nanos(args.every.0), args.jitter);
    let run = move || {
        traffic::exact_timers();
        let begun = Instant::now();
        let mut failing = vec![false; probes.len()];
        for number in 0.. {
            let done = period(begun + every * number, (every, jitter), probes.len(), stop, |n| {
                let Some((probe, failing)) = probes.get(n).zip(failing.get_mut(n)) else { return };
                let result = one(probe, secret.as_ref(), stop);
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                if let Err(why) = &result
                    && !std::mem::replace(failing, true)
                {
                    note(&format!("{} has no answer: {why}", probe.target));
                }
                *failing = result.is_err();
                collected.probed(n, result.ok());
            });
            if !done {
                return;
            }
        }
    };
    let thread = thread::Builder::new().name("nw-probe".into()).spawn(run);
    thread.map(Some).map_err(|e| Failure::thread(&e))
}

/// Runs each of `count` probes once within a period, one at a time, each at its time; whether all had
/// their turn before the end.
pub fn period(
    begin: Instant,
    (every, jitter): (Duration, bool),
    count: usize,
    stop: &AtomicBool,
    mut probe: impl FnMut(usize),
) -> bool {
    let mut times: Vec<(Duration, usize)> =
        (0..count).map(|n| (offset(every, jitter), n)).collect();
    times.sort();
    times.into_iter().all(|(offset, n)| {
        waited(begin + offset, stop) && {
            probe(n);
            !stop.load(Ordering::Relaxed)
        }
    })
}

/// When within its period a probe begins.
fn offset(every: Duration, jitter: bool) -> Duration {
    let mut bytes = [0; 4];
    let random = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    match jitter && random.is_ok() {
        true => every.mul_f64(f64::from(u32::from_ne_bytes(bytes)) / f64::from(u32::MAX)),
        false => Duration::ZERO,
    }
}

/// Waits; whether the time came before the end.
pub fn waited(until: Instant, stop: &AtomicBool) -> bool {
    while !stop.load(Ordering::Relaxed) {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        thread::sleep(left.min(LOOK));
    }
    false
}

fn one(probe: &Probe, secret: Option<&Secret>, stop: &AtomicBool) -> Result<Quantiles, String> {
    let run = measured(&probe.spec, secret, stop)?;
    (run.rtt_ns.count > 0).then_some(run.rtt_ns).ok_or_else(|| "no round trip".to_owned())
}

/// The run of a probe.
///
/// # Errors
/// Why nothing was measured, as a line.
pub fn measured(
    spec: &RttSpec,
    secret: Option<&Secret>,
    stop: &AtomicBool,
) -> Result<RttRun, String> {
    let silent = |_: &str, _: f64| {};
    let run = traffic::Run::new(stop, &silent);
    let measured = traffic::measure_rtt(spec, secret, run).map_err(|e| e.to_string())?;
    if let Some(why) = measured.broken {
        return Err(why.to_string());
    }
    measured.document.runs.into_iter().next().ok_or_else(|| "no round trip".to_owned())
}
