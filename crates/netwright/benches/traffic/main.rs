//! Compares `netwright measure` with bare C loops and with its peers, as ratios within one run.
//! Whole processes run in turn (A B B A …), pinned in the same way.
//!
//! The loops are in `../floor` and compiled here. The peers are Debian's qperf, sockperf, iperf3,
//! wrk and redis-benchmark, PostgreSQL's pgbench, and neper's `tcp_rr` at `NEPER=path/to/tcp_rr`.
//! As root everything runs in a network namespace without BBR's pacing.
//!
//! Exit code 1: a mandatory target is missed. Exit code 4: a part could not be measured; the others
//! still are. `options.rs` has the options.

use std::{io, process::ExitCode};

mod cell;
mod cost;
mod floor;
mod flows;
mod http;
mod memory;
mod options;
mod ours;
mod peers;
mod pg;
mod process;
mod redis;
mod room;
mod rtt;
mod stream;
mod syscalls;
mod table;
mod verdicts;

use options::Options;
use room::Room;
use table::{End, Table};

fn main() -> ExitCode {
    match run() {
        Ok(end) => end.into(),
        Err(e) => {
            eprintln!("traffic: {e}");
            ExitCode::from(4)
        }
    }
}

fn run() -> io::Result<End> {
    let options = Options::parse(std::env::args().skip(1))?;
    let room = Room::enter(&options)?;
    let mut table = Table::begin(&room, &options)?;
    for (name, measure) in [
        ("rtt", rtt::measure as fn(&Room, &Options, &mut Table) -> io::Result<()>),
        ("flows", flows::measure),
        ("calls", flows::measure_calls),
        ("stream", stream::measure),
        ("http", http::measure),
        ("cost", cost::measure),
        ("pg", pg::measure),
        ("redis", redis::measure),
        ("memory", memory::measure),
    ] {
        if !options.wants(name) {
            continue;
        }
        match measure(&room, &options, &mut table) {
            Err(e) if e.kind() != io::ErrorKind::Interrupted => table.failed(name, &e),
            other => other?,
        }
    }
    Ok(table.end())
}
