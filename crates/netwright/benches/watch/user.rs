//! CPU time of `watch` itself, and the time to its first interval.

use std::{
    ffi::{OsStr, OsString},
    io::{self, BufRead, BufReader},
    process::{Command, Stdio},
    time::Instant,
};

use serde_json::Value;

/// Prints the process's CPU time at 1 Hz, that of its programs, and the time to the first interval;
/// of an older program too, if there is one, in turn.
pub fn measure() -> io::Result<()> {
    let mut all = vec![("netwright", OsString::from(super::NETWRIGHT), Costs::default())];
    all.extend(super::older().map(|program| ("before", program, Costs::default())));
    for _ in 0..ROUNDS {
        for (_, program, costs) in &mut all {
            costs.add(program)?;
        }
        all.reverse();
    }
    println!();
    for (name, _, costs) in all {
        let Costs { process, programs, first } = costs;
        println!(
            "{name}: process at 1 Hz: {} ms of CPU an interval (0.5% of a CPU is 5 ms)",
            spread(process)
        );
        println!("{name}: its programs beside this traffic: {} ms an interval", spread(programs));
        println!(
            "{name}: from start to the end of the first interval, less the interval: {} ms",
            spread(first)
        );
    }
    Ok(())
}

const ROUNDS: usize = 6;

/// Milliseconds, one for each interval or start.
#[derive(Default)]
struct Costs {
    process: Vec<f64>,
    programs: Vec<f64>,
    first: Vec<f64>,
}

impl Costs {
    /// One round: a start, and four intervals of which the first does not count.
    fn add(&mut self, program: &OsStr) -> io::Result<()> {
        for line in lines(program, &["--interval", "1s", "--duration", "4s"])?.1.iter().skip(1) {
            let observer = &line["observer"];
            self.process.extend(observer["process_ns"].as_f64().map(|n| n / 1e6));
            self.programs.extend(observer["programs_ns"].as_f64().map(|n| n / 1e6));
        }
        self.first.push(lines(program, &["--interval", "100ms", "--duration", "100ms"])?.0 - 100.0);
        Ok(())
    }
}

/// The median with its range.
pub fn spread(mut of: Vec<f64>) -> String {
    of.sort_by(f64::total_cmp);
    match (of.first(), of.get(of.len() / 2), of.last()) {
        (Some(min), Some(median), Some(max)) => format!("{median:.1} ({min:.1}–{max:.1})"),
        _ => "none".into(),
    }
}

/// Milliseconds to the first line, and all lines.
fn lines(program: &OsStr, args: &[&str]) -> io::Result<(f64, Vec<Value>)> {
    let begun = Instant::now();
    let mut child = Command::new(program)
        .args(["watch", "--json"])
        .args(args)
        .stdout(Stdio::piped())
        .spawn()?;
    let out = child.stdout.take().ok_or_else(|| io::Error::other("it is piped"))?;
    let mut first = None;
    let mut all = Vec::new();
    for line in BufReader::new(out).lines() {
        first.get_or_insert_with(|| begun.elapsed().as_secs_f64() * 1e3);
        all.push(serde_json::from_str(&line?)?);
    }
    child.wait()?;
    Ok((first.unwrap_or(f64::NAN), all))
}
