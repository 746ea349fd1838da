//! Many flows on one thread at each end, beside neper; and the system calls of a round trip, also
//! with one flow.

use std::{io, time::Duration};

use crate::{
    cell::{Cell, Compare, Contender, Metric, Target},
    options::Options,
    ours::{self, NAME},
    peers,
    process::Process,
    room::{Room, sleep},
    rtt::Exchange,
    syscalls::{Calls, Counted},
    table::{Table, Verdict},
};

const EXCHANGE: Exchange = Exchange { udp: false, bytes: 1, spin: false, one_cpu: false };
/// The least ratio to neper's rate.
const LEAST: f64 = 1.3;
/// The most system calls of both ends per round trip with many flows.
const MOST_CALLS: f64 = 4.0;
/// The same with one flow. A send and a receive at each end are 4; the threads for time and the
/// control connection add some hundred calls a second.
const MOST_CALLS_OF_ONE: f64 = 4.05;
/// The tolerance between the kernel's count of round trips and the result's rate, a mean over a
/// longer time.
const MOST_APART: f64 = 2.0;

pub fn measure(room: &Room, options: &Options, table: &mut Table) -> io::Result<()> {
    table.part("Round trips a second, TCP 1 B, blocking, two CPUs, one thread at each end");
    table.columns();
    for flows in [64, 1000] {
        let mut contenders = vec![];
        if ours::ready() {
            let run = move || ours::rtt(room, &EXCHANGE, flows, options.window_ms);
            contenders.push(Contender { name: NAME, run: Box::new(run) });
        }
        if let Some(path) = &options.neper {
            let run = move || peers::neper(room, path, flows);
            contenders.push(Contender { name: "neper", run: Box::new(run) });
        }
        let target = Target::AtLeast(LEAST, None);
        let compare =
            vec![Compare { metric: Metric::Trips, subject: NAME, other: "neper", target }];
        Cell { name: format!("{flows} flows"), contenders, compare }.measure(options, table)?;
    }
    Ok(())
}

pub fn measure_calls(room: &Room, options: &Options, table: &mut Table) -> io::Result<()> {
    table.part("System calls for one round trip, both ends, counted by the kernel for 300 ms");
    for flows in [1, 64, 1000] {
        if ours::ready() {
            let (local, peer) = ours_start(room, flows)?;
            let counted = count(room, &local, &peer)?;
            let document = ours::document(local, SEND_MS)?;
            let said = ours::number(&document, "/runs/0/transactions_per_s")?;
            same_trips(counted.trips_per_s(), said)?;
            let most = if flows == 1 { MOST_CALLS_OF_ONE } else { MOST_CALLS };
            let kept = counted.per_trip() <= most;
            let verdict = if kept { Verdict::Kept } else { Verdict::Missed };
            line(table, NAME, flows, &counted, &format!(" (≤ {most})"), verdict);
        }
        if let Some(path) = &options.neper {
            let (local, peer) = peers::neper_start(room, path, flows)?;
            let counted = count(room, &local, &peer)?;
            line(table, "neper", flows, &counted, "", Verdict::Shown);
        }
    }
    Ok(())
}

/// How long traffic flows.
const SEND_MS: u64 = 1500;

fn ours_start(room: &Room, flows: u32) -> io::Result<(Process, Process)> {
    let (server, port) = ours::serve(room, room.peer)?;
    let (bytes, flows) = (EXCHANGE.bytes.to_string(), flows.to_string());
    let arguments = ["rtt", "--request", &bytes, "--flows", &flows];
    Ok((ours::measure(room, port, SEND_MS, room.peer, &arguments)?, server))
}

/// Counts in the middle of the traffic.
fn count(room: &Room, local: &Process, peer: &Process) -> io::Result<Counted> {
    // Waits until the traffic flows, and a little longer.
    room.wait_traffic(200_000)?;
    sleep(Duration::from_millis(100))?;
    let mut calls = Calls::of(local, peer)?;
    calls.clear()?;
    sleep(Duration::from_millis(300))?;
    calls.counted()
}

/// The counters must have seen the round trips of the result.
fn same_trips(counted: f64, said: f64) -> io::Result<()> {
    let apart = (counted / said).max(said / counted);
    match apart <= MOST_APART {
        true => Ok(()),
        false => Err(io::Error::other(format!(
            "the kernel counted {counted:.0} round trips a second, the result has {said:.0}"
        ))),
    }
}

fn line(
    table: &mut Table,
    name: &str,
    flows: u32,
    counted: &Counted,
    target: &str,
    verdict: Verdict,
) {
    let Counted { calls, trips, .. } = counted;
    let per_trip = counted.per_trip();
    let text = format!(
        "{name:<10} {flows:>5} flows: {per_trip:.3} system calls a round trip{target}: \
         {calls} for {trips}"
    );
    table.line(&text, verdict);
}
