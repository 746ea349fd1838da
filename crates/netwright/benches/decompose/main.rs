//! Accuracy of `explain`'s components against a server with known service times: 10 µs to 2 ms, 1
//! to 64 clients, on loopback and on links with delay. The service component is compared with the
//! server's own spin clock, the sum with the measured mean.
//!
//! Links with delay need root. Options:
//! - `--services 10us,100us,2ms`, `--clients 1,8,64`, `--delays 0us,250us,2ms`: the grid;
//! - `--duration 2s` of explain for each cell, `--round 100ms`;
//! - `--virtual-time`: run in a guest with a clock that counts instructions.
//!
//! The whole grid takes two to three minutes, in the guest ten to thirty.

#[path = "../guest.rs"]
mod guest;

use std::{
    io::{self, BufRead, BufReader},
    process::{Child, Command, ExitCode, Stdio},
};

use lab::{pair::PairSpec, testing::TestLab};
use model::{Nanos, explain::ExplainDocument};

const NETWRIGHT: &str = env!("CARGO_BIN_EXE_netwright");
/// The address of `right` on the link.
const THERE: &str = "10.99.0.2";
/// The secret of server and client.
const SECRET: &str = "the benchmark's own";
/// The tolerance of a service time: this share, or this many nanoseconds.
const OFF: (f64, f64) = (0.03, 2_000.0);
/// The tolerance of the components' sum, as a share of the measured mean.
const SUM_OFF: f64 = 0.02;

struct Options {
    services: Vec<String>,
    clients: Vec<String>,
    delays: Vec<String>,
    duration: String,
    round: String,
}

fn main() -> ExitCode {
    let done = match guest::instead(NETWRIGHT, &[]) {
        Ok(None) => options().and_then(|o| run(&o)),
        other => other.map(|_| ()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("decompose: {e}");
            ExitCode::from(4)
        }
    }
}

fn options() -> io::Result<Options> {
    let list = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
    let mut o = Options {
        services: list("10us,100us,2ms"),
        clients: list("1,8,64"),
        delays: list("0us,250us,2ms"),
        duration: "2s".into(),
        round: "100ms".into(),
    };
    // Cargo adds --bench.
    let mut args = std::env::args().skip(1).filter(|a| a != "--bench");
    while let Some(name) = args.next() {
        let value = args.next().ok_or_else(|| io::Error::other(format!("{name} VALUE")))?;
        match name.as_str() {
            "--services" => o.services = list(&value),
            "--clients" => o.clients = list(&value),
            "--delays" => o.delays = list(&value),
            "--duration" => o.duration = value,
            "--round" => o.round = value,
            _ => return Err(io::Error::other(format!("{name} is no option"))),
        }
    }
    Ok(o)
}

/// One point of the grid.
struct Cell {
    /// The error of the service time: nanoseconds, and the share of the true service time.
    service: (f64, f64),
    /// The same for the typical transaction.
    typical: (f64, f64),
    /// The error of the components' sum.
    sum: f64,
}

impl Cell {
    fn of(d: &ExplainDocument) -> Option<Self> {
        let spun = d.injected_service_ns?;
        let off = |ns: f64| (ns - spun, ns / spun - 1.0);
        let service = d.components.iter().find(|c| c.name == "service")?.ns;
        let typical = d.typical?.service_ns;
        Some(Self { service: off(service), typical: off(typical), sum: d.sum.error })
    }
}

fn within((ns, part): (f64, f64)) -> bool {
    part.abs() <= OFF.0 || ns.abs() <= OFF.1
}

fn run(o: &Options) -> io::Result<()> {
    println!(
        "| one way | service | clients | it spun | service found | off | at the median, off | sum off |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let mut cells = vec![];
    for delay in &o.delays {
        let each: Nanos = delay.parse().map_err(|e| io::Error::other(format!("{e}")))?;
        let lab = if each.0 > 0 { Some(wire(each)?) } else { None };
        for service in &o.services {
            let peer = PeerEnd::start(lab.as_ref(), service)?;
            for clients in &o.clients {
                let d = explain(o, lab.as_ref(), &peer, clients)?;
                let Some(cell) = Cell::of(&d) else {
                    println!("| {delay} | {service} | {clients} | nothing measured |||||");
                    continue;
                };
                let spun = d.injected_service_ns.unwrap_or(f64::NAN);
                println!(
                    "| {delay} | {service} | {clients} | {} | {} | {} | {} | {:+.1}% |",
                    us(spun),
                    us(spun + cell.service.0),
                    off(cell.service),
                    off(cell.typical),
                    cell.sum * 100.0
                );
                cells.push(cell);
            }
        }
    }
    let n = cells.len();
    let count = |good: fn(&Cell) -> bool| cells.iter().filter(|c| good(c)).count();
    println!(
        "\nof {n}: service within 3% or 2 µs {}, at the median {}; sum within 2% {}",
        count(|c| within(c.service)),
        count(|c| within(c.typical)),
        count(|c| c.sum.abs() <= SUM_OFF)
    );
    Ok(())
}

fn us(ns: f64) -> String {
    format!("{:.1} µs", ns / 1e3)
}

fn off((ns, part): (f64, f64)) -> String {
    format!("{:+.1} µs, {:+.1}%", ns / 1e3, part * 100.0)
}

/// Two hosts. The link sleeps, as spinning would take the CPUs that both ends need.
fn wire(delay: Nanos) -> io::Result<TestLab> {
    let spec = PairSpec {
        delay: Some(delay),
        spin: Nanos(0),
        queues: 1,
        program: Some(NETWRIGHT.into()),
        ..PairSpec::default()
    };
    TestLab::pair(&spec).map_err(io::Error::other)
}

/// A server with a service time.
struct PeerEnd {
    child: Child,
    target: String,
}

impl PeerEnd {
    fn start(lab: Option<&TestLab>, service: &str) -> io::Result<Self> {
        let address = if lab.is_some() { THERE } else { "127.0.0.1" };
        let all = [NETWRIGHT, "serve", "--json", "--quiet", "--port", "0", "--bind", address];
        let all = [&all[..], &["--service-time", service]].concat();
        let mut command = command(lab, "right", &all)?;
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        if let Some(out) = child.stdout.as_mut() {
            BufReader::new(out).read_line(&mut line)?;
        }
        let said: serde_json::Value = serde_json::from_str(&line)?;
        let target = said.pointer("/addresses/0").and_then(|a| a.as_str()).unwrap_or_default();
        Ok(Self { child, target: target.to_owned() })
    }
}

impl Drop for PeerEnd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn command(lab: Option<&TestLab>, host: &str, args: &[&str]) -> io::Result<Command> {
    let mut command = match lab {
        Some(lab) => lab.command(host, args).map_err(io::Error::other)?,
        None => {
            let mut command = Command::new(NETWRIGHT);
            command.args(args.get(1..).unwrap_or_default());
            command
        }
    };
    command.env("NETWRIGHT_SECRET", SECRET);
    Ok(command)
}

fn explain(
    o: &Options,
    lab: Option<&TestLab>,
    peer: &PeerEnd,
    clients: &str,
) -> io::Result<ExplainDocument> {
    let target = format!("rtt://{}", peer.target);
    let args = [NETWRIGHT, "explain", "--json", "--quiet", &target, "--clients", clients];
    let times = ["--duration", &o.duration, "--round", &o.round];
    let out = command(lab, "left", &[&args[..], &times].concat())?.output()?;
    serde_json::from_slice(&out.stdout)
        .map_err(|e| io::Error::other(format!("{e}: {}", String::from_utf8_lossy(&out.stderr))))
}
