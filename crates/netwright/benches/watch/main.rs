//! The cost of `netwright watch` for traffic: the same loops with it and without it, in turn (A B B
//! A …). A bpftrace script that collects less is measured beside it. Needs root.
//!
//! `--pairs N` (9) pairs of each cell, `--window MS` (1000) each, `--only
//! udp,stream,rtt,user,feed`. A window is a whole interval of `watch`, as some programs run only at
//! its beginning. Exit code 1: a median loss exceeds its limit.

use std::{
    ffi::{OsStr, OsString},
    io,
    process::{Child, Command, ExitCode, Stdio},
    thread::sleep,
    time::Duration,
};

mod feed;
mod traffic;
#[path = "../tree/mod.rs"]
mod tree;
mod user;

use traffic::TrafficKind;

const NETWRIGHT: &str = env!("CARGO_BIN_EXE_netwright");

/// Softirq time by CPU and vector: the least that one would collect by bpftrace.
const SCRIPT: &str = "
tracepoint:irq:softirq_entry { @s[cpu] = nsecs; }
tracepoint:irq:softirq_exit /@s[cpu]/ { @ns[cpu, args->vec] = sum(nsecs - @s[cpu]); }
interval:s:1 { print(@ns); clear(@ns); }";

struct Options {
    pairs: usize,
    window: Duration,
    only: Vec<String>,
}

impl Options {
    fn parse(args: impl Iterator<Item = String>) -> io::Result<Self> {
        let mut options = Self { pairs: 9, window: Duration::from_secs(1), only: vec![] };
        let mut args = args.filter(|a| a != "--bench");
        while let Some(name) = args.next() {
            let value = args.next().unwrap_or_default();
            let number = || value.parse::<u16>().map_err(io::Error::other);
            match name.as_str() {
                "--pairs" => options.pairs = usize::from(number()?.max(1)),
                "--window" => options.window = Duration::from_millis(number()?.max(50).into()),
                "--only" => options.only = value.split(',').map(str::to_owned).collect(),
                _ => return Err(io::Error::other(format!("{name} is unknown; see main.rs"))),
            }
        }
        Ok(options)
    }

    fn wants(&self, part: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|o| o == part)
    }
}

/// A watching process, ended when dropped.
struct Watching(Child);

impl Watching {
    fn start(mut command: Command) -> io::Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Self(command.spawn()?))
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        // SAFETY: our own child, not waited for yet.
        unsafe { libc::kill(self.0.id() as libc::pid_t, libc::SIGINT) };
        let _ = self.0.wait();
    }
}

/// The older program to compare with.
fn older() -> Option<OsString> {
    std::env::var_os("BEFORE").filter(|file| !file.is_empty())
}

fn netwright() -> Command {
    watch_by(NETWRIGHT.as_ref())
}

fn before() -> Command {
    watch_by(&older().unwrap_or_default())
}

fn watch_by(program: &OsStr) -> Command {
    let mut command = Command::new(program);
    command.args(["watch", "--json", "--interval", "1s"]);
    command
}

/// Exact softirq time, beside the default programs.
fn exact() -> Command {
    let mut command = netwright();
    command.args(["--softirq", "always"]);
    command
}

/// Exact softirq time and no other program.
fn softirq_time() -> Command {
    let mut command = exact();
    command.args(["--waits", "never", "--messages", "never", "--queues", "never"]);
    command
}

fn bpftrace() -> Command {
    let mut command = Command::new("bpftrace");
    command.args(["-e", SCRIPT]);
    command
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(e) => {
            eprintln!("watch: {e}");
            ExitCode::from(4)
        }
    }
}

fn run() -> io::Result<bool> {
    let options = Options::parse(std::env::args().skip(1))?;
    // SAFETY: plain calls.
    unsafe {
        if libc::geteuid() != 0 {
            return Err(io::Error::other("eBPF takes root"));
        }
        // A higher priority, so that other load matters less.
        libc::setpriority(libc::PRIO_PROCESS, 0, -20);
    }
    println!(
        "| traffic | watched by | n | with by without: min / quartile / **median** / quartile / max | must be |"
    );
    println!("|---|---|---|---|---|");
    let mut kept = true;
    for (kind, least) in
        [(TrafficKind::Udp, 0.96), (TrafficKind::Stream, 0.99), (TrafficKind::Rtt, 0.99)]
    {
        if !options.wants(kind.name()) {
            continue;
        }
        let mut traffic = traffic::Traffic::start(kind)?;
        // First the same twice: this shows what the machine cannot resolve.
        row(&options, &mut traffic, "nothing (control)", [None, None], None)?;
        kept &= row(&options, &mut traffic, "netwright", [None, Some(netwright)], Some(least))?;
        row(&options, &mut traffic, "netwright --softirq always", [None, Some(exact)], None)?;
        row(&options, &mut traffic, "its softirq time alone", [None, Some(softirq_time)], None)?;
        row(&options, &mut traffic, "bpftrace", [None, Some(bpftrace)], None)?;
        if older().is_some() {
            row(&options, &mut traffic, "netwright before", [None, Some(before)], None)?;
            let both = [Some(before as Watcher), Some(netwright)];
            row(&options, &mut traffic, "netwright, by before", both, None)?;
        }
    }
    if options.wants("user") {
        user::measure()?;
    }
    if options.wants("feed") {
        feed::measure()?;
    }
    Ok(kept)
}

type Watcher = fn() -> Command;

/// One row: the work with the second watcher by that with the first.
fn row(
    options: &Options,
    traffic: &mut traffic::Traffic,
    name: &str,
    watchers: [Option<Watcher>; 2],
    least: Option<f64>,
) -> io::Result<bool> {
    let mut ratios = Vec::new();
    for pair in 0..options.pairs {
        let mut rates = [0.0; 2];
        for step in 0..2 {
            let which = usize::from((pair + step) % 2 == 0);
            let watching = watchers[which].map(|command| Watching::start(command())).transpose()?;
            // The pause is the same with and without `watch`; programs attach in it.
            sleep(Duration::from_millis(700));
            rates[which] = traffic.rate(options.window);
            drop(watching);
        }
        let [base, subject] = rates;
        ratios.push(subject / base);
    }
    ratios.sort_by(f64::total_cmp);
    let at = |q: f64| ratios[((ratios.len() - 1) as f64 * q).round() as usize];
    let kept = least.is_none_or(|l| at(0.5) >= l);
    let must = least
        .map_or_else(String::new, |l| format!("≥ {l} {}", if kept { "kept" } else { "MISSED" }));
    println!(
        "| {} | {name} | {} | {:.3} / {:.3} / **{:.3}** / {:.3} / {:.3} | {must} |",
        traffic.kind.title(),
        ratios.len(),
        at(0.0),
        at(0.25),
        at(0.5),
        at(0.75),
        at(1.0)
    );
    Ok(kept)
}
