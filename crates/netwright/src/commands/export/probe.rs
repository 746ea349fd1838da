//! `--probe`: short measurements of other hosts on a schedule, one at a time.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use clap::Parser;
use model::{
    Nanos,
    measure::{Quantiles, RttSpec},
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
    if !(SHORTEST..=LONGEST).contains(&args.every) {
        let why = format!("--every {}; from {SHORTEST} to {LONGEST} is possible", args.every);
        return Err(Failure::Usage(why));
    }
    let one = |target: &String| {
        let usage = |why: &str| Failure::Usage(format!("--probe {target}: {why}"));
        let host = target.strip_prefix("rtt://").filter(|h| !h.is_empty());
        let host = host.ok_or_else(|| usage("write rtt://HOST or rtt://HOST:PORT"))?;
        let line = ["probe", "--duration", "250ms", "--warmup", "50ms", "--", host];
        let line = Line::try_parse_from(line).map_err(|_| usage("no host"))?;
        Ok(Probe { target: target.clone(), spec: spec::rtt(&line.rtt)? })
    };
    args.probe.iter().map(one).collect()
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
        for period in 0.. {
            // A time of its own within each period, for each target.
            let mut times: Vec<(Duration, usize)> =
                (0..probes.len()).map(|n| (offset(every, jitter), n)).collect();
            times.sort();
            for (offset, n) in times {
                if !waited(begun + every * period + offset, stop) {
                    return;
                }
                let Some((probe, failing)) = probes.get(n).zip(failing.get_mut(n)) else {
                    continue;
                };
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
            }
        }
    };
    let thread = thread::Builder::new().name("nw-probe".into()).spawn(run);
    thread.map(Some).map_err(|e| Failure::thread(&e))
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
fn waited(until: Instant, stop: &AtomicBool) -> bool {
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
    let silent = |_: &str, _: f64| {};
    let run = traffic::Run::new(stop, &silent);
    let measured = traffic::measure_rtt(&probe.spec, secret, run).map_err(|e| e.to_string())?;
    if let Some(why) = measured.broken {
        return Err(why.to_string());
    }
    let run = measured.document.runs.into_iter().next().filter(|r| r.rtt_ns.count > 0);
    run.map(|r| r.rtt_ns).ok_or_else(|| "no round trip".to_owned())
}
