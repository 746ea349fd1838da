//! Accuracy of `explain`'s predictions for other paths. `explain` predicts from rounds on loopback
//! and the path's round trip, for a real PostgreSQL and a real nginx.
//!
//! Each delay has a `lab pair`. Server and `explain` run on `right`, which reaches the server over
//! loopback. `left` at the other end of the link measures the predicted load, before and after. The
//! naive estimate stands beside it: clients / rate, less the network here, plus the network there.
//! Needs root.
//!
//! Options:
//! - `--delays 40us,250us,1ms`, `--clients 1,4,16`, `--only nginx`: the grid;
//! - `--duration 4s` of explain; `--passes 3` of each measurement before and after;
//! - `--scale 20` of pgbench's tables;
//! - `--window 700ms` of a measurement, after the milliseconds that each session takes to begin
//!   (`--beginning 8`);
//! - `--repetitions 20` of everything, to count how often the intervals hold the measurement;
//! - `--virtual-time`: run in a guest with a clock that counts instructions. Its CPU is slower: use
//!   `--window 2s --beginning 60`.

use std::{io, process::ExitCode};

mod cells;
#[path = "../guest.rs"]
mod guest;
mod site;

use cells::{Cell, table};
use site::{NETWRIGHT, Site, Work};

const DELAYS: &str = "40us,250us,1ms";
const CLIENTS: &str = "1,4,16";

struct Options {
    delays: Vec<String>,
    clients: String,
    duration: String,
    passes: usize,
    only: String,
    scale: String,
    window: String,
    beginning_ms: u32,
    repetitions: usize,
}

fn main() -> ExitCode {
    let done = match guest::instead(NETWRIGHT, &[]) {
        Ok(None) => options().and_then(|o| run(&o)),
        other => other.map(|_| ()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("explain: {e}");
            ExitCode::from(4)
        }
    }
}

fn options() -> io::Result<Options> {
    let mut o = Options {
        delays: DELAYS.split(',').map(str::to_owned).collect(),
        clients: CLIENTS.into(),
        duration: "4s".into(),
        passes: 3,
        only: String::new(),
        scale: "20".into(),
        window: "700ms".into(),
        beginning_ms: 8,
        repetitions: 1,
    };
    // Cargo adds --bench.
    let mut args = std::env::args().skip(1).filter(|a| a != "--bench");
    while let Some(name) = args.next() {
        let value = args.next().ok_or_else(|| io::Error::other(format!("{name} VALUE")))?;
        match name.as_str() {
            "--delays" => o.delays = value.split(',').map(str::to_owned).collect(),
            "--clients" => o.clients = value,
            "--duration" => o.duration = value,
            "--passes" => o.passes = value.parse().map_err(io::Error::other)?,
            "--only" => o.only = value,
            "--scale" => o.scale = value,
            "--window" => o.window = value,
            "--repetitions" => o.repetitions = value.parse().map_err(io::Error::other)?,
            "--beginning" => o.beginning_ms = value.parse().map_err(io::Error::other)?,
            _ => return Err(io::Error::other(format!("{name} is no option"))),
        }
    }
    Ok(o)
}

fn run(o: &Options) -> io::Result<()> {
    let mut cells = vec![];
    for delay in &o.delays {
        let site = Site::up(delay, &o.scale)?;
        let asked = || Work::ALL.iter().filter(|w| w.name().contains(&o.only));
        for work in (0..o.repetitions).flat_map(|_| asked()) {
            cells.extend(explain(o, &site, *work)?);
        }
    }
    table(&cells);
    Ok(())
}

/// One workload on one link: measured there, predicted from here, measured there again.
fn explain(o: &Options, site: &Site, work: Work) -> io::Result<Vec<Cell>> {
    let clients: Vec<u32> = o.clients.split(',').filter_map(|n| n.parse().ok()).collect();
    let mut measured: Vec<Vec<f64>> = clients.iter().map(|_| vec![]).collect();
    let mut there = |passes: usize| -> io::Result<()> {
        for _ in 0..passes {
            for (n, rates) in clients.iter().zip(&mut measured) {
                rates.push(site.per_s(work, *n, &o.window, o.beginning_ms)?);
            }
        }
        Ok(())
    };
    there(o.passes)?;
    let before = site.wire();
    let document = site.explain(work, &o.clients, &o.duration)?;
    there(o.passes)?;
    let after = site.wire();
    let cells = clients.iter().zip(measured).filter_map(|(n, rates)| {
        let at = |p: &&model::explain::Prediction| p.clients == *n && p.path != "this";
        let p = document.predictions.iter().find(at)?;
        let here = document.levels.iter().find(|l| l.clients == *n)?;
        Some(Cell {
            work: work.name(),
            delay: site.delay.clone(),
            clients: *n,
            here: here.per_s,
            predicted: p.predicted_per_s,
            range: (p.low_per_s, p.high_per_s),
            inconclusive: p.inconclusive,
            naive: p.naive_per_s.unwrap_or(f64::NAN),
            measured: rates,
        })
    });
    let cells: Vec<Cell> = cells.collect();
    cells.iter().for_each(Cell::print);
    if let (Some((before, carried)), Some((after, carried_after))) = (before, after) {
        let frame_us = (after - before) * 1e6 / (carried_after - carried).max(1) as f64;
        println!("  (the wire takes {frame_us:.1} µs of CPU for a frame)");
    }
    for path in &document.other_paths {
        let added = (path.added_ns + path.idle_ns + path.reconnecting_ns.unwrap_or(0.0)) / 1e3;
        println!(
            "  ({added:.1} µs longer there, {:.1} of them the server's, ±{:.1}; others kept {:.2} CPUs busy, rounds lie {:.1}% apart)",
            path.idle_ns / 1e3,
            path.margin_ns / 1e3,
            document.levels.iter().filter_map(|l| l.others_cpus).fold(0.0, f64::max),
            document.levels.iter().filter_map(|l| l.spread).fold(0.0, f64::max) * 100.0,
        );
        for late in &path.delayed {
            println!("  (with delayed answers {} clients made {:.0}/s)", late.clients, late.per_s);
        }
        for synthetic in &path.loads {
            println!(
                "  (synthetic workload of {} clients: {:.0}/s here with {:.1} µs of CPU; there {:.0}/s, {:.1} µs more, held out {:.0}%)",
                synthetic.clients,
                synthetic.this_path_per_s,
                synthetic.this_path_cpu_ns.unwrap_or(f64::NAN) / 1e3,
                synthetic.other_path_per_s.unwrap_or(f64::NAN),
                synthetic.cpu_ns.unwrap_or(f64::NAN) / 1e3,
                synthetic.held_out.unwrap_or(f64::NAN) * 100.0
            );
        }
    }
    Ok(cells)
}
