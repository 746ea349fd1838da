//! Many flows on one thread at each end, beside neper; and how many system calls a round trip
//! takes.

use std::{io, time::Duration};

use crate::{
    cell::{Cell, Compare, Contender, Metric, Target},
    options::Options,
    ours::{self, NAME},
    peers,
    process::Process,
    room::{Room, sleep},
    rtt::Exchange,
    syscalls::Calls,
    table::{Table, Verdict},
};

const EXCHANGE: Exchange = Exchange { udp: false, bytes: 1, spin: false, one_cpu: false };
/// How much faster than neper.
const LEAST: f64 = 1.3;
/// System calls of both ends for one round trip.
const MOST_CALLS: f64 = 4.0;

/// All cells.
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
    table.part("System calls for one round trip, both ends, counted by the kernel for 300 ms");
    for flows in [1, 64, 1000] {
        if ours::ready() {
            let verdict = |calls| if calls <= MOST_CALLS { Verdict::Kept } else { Verdict::Missed };
            count(room, table, NAME, flows, ours_start(room, flows)?, verdict)?;
        }
        if let Some(path) = &options.neper {
            let ends = peers::neper_start(room, path, flows)?;
            count(room, table, "neper", flows, ends, |_| Verdict::Shown)?;
        }
    }
    Ok(())
}

fn ours_start(room: &Room, flows: u32) -> io::Result<(Process, Process)> {
    let (server, port) = ours::serve(room, room.far)?;
    let (bytes, flows) = (EXCHANGE.bytes.to_string(), flows.to_string());
    let arguments = ["rtt", "--request", &bytes, "--flows", &flows];
    Ok((ours::measure(room, port, 1500, room.far, &arguments)?, server))
}

fn count(
    room: &Room,
    table: &mut Table,
    name: &str,
    flows: u32,
    (near, far): (Process, Process),
    verdict: impl Fn(f64) -> Verdict,
) -> io::Result<()> {
    // Until the traffic flows, and a little beyond.
    room.wait_traffic(200_000)?;
    sleep(Duration::from_millis(100))?;
    let mut calls = Calls::of(&near, &far)?;
    calls.clear()?;
    sleep(Duration::from_millis(300))?;
    let per_trip = calls.per_trip()?;
    let text = format!("{name:<10} {flows:>5} flows: {per_trip:.3} system calls a round trip");
    table.line(&text, verdict(per_trip));
    Ok(())
}
