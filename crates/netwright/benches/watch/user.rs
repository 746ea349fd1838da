//! CPU time of `watch` itself, and the time to its first interval.

use std::{
    io::{self, BufRead, BufReader},
    process::{Command, Stdio},
    time::Instant,
};

use serde_json::Value;

/// Prints the process's CPU time at 1 Hz, that of its programs, and the time to the first interval.
pub fn measure() -> io::Result<()> {
    let mut process = Vec::new();
    let mut programs = Vec::new();
    for line in lines(&["--interval", "1s", "--duration", "8s"])?.1.iter().skip(1) {
        let observer = &line["observer"];
        process.extend(observer["process_ns"].as_f64().map(|n| n / 1e6));
        programs.extend(observer["programs_ns"].as_f64().map(|n| n / 1e6));
    }
    let mut first = Vec::new();
    for _ in 0..7 {
        first.push(lines(&["--interval", "100ms", "--duration", "100ms"])?.0 - 100.0);
    }
    println!();
    println!("process at 1 Hz: {} ms of CPU an interval (0.5% of a CPU is 5 ms)", spread(process));
    println!("its programs beside this traffic: {} ms an interval", spread(programs));
    println!(
        "from start to the end of the first interval, less the interval: {} ms",
        spread(first)
    );
    Ok(())
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
fn lines(args: &[&str]) -> io::Result<(f64, Vec<Value>)> {
    let begun = Instant::now();
    let mut child = Command::new(super::NETWRIGHT)
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
