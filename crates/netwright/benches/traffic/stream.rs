//! One stream: bits per second, and bits per second of CPU time of both ends. For every program the
//! figures are the loopback's byte counter and the CPU time of both processes, between two moments
//! of steady flow.

use std::{
    io,
    time::{Duration, Instant},
};

use crate::{
    cell::{Cell, Compare, Contender, Figures, Metric, Target},
    floor::Floor,
    options::Options,
    ours::{self, NAME},
    peers,
    process::Process,
    room::{Room, sleep},
    table::Table,
};

/// How long the flow is measured.
const LOOK: Duration = Duration::from_millis(800);
/// How long the programs send, where they have such an option.
const SEND_MS: u32 = 1500;

pub fn measure(room: &Room, options: &Options, table: &mut Table) -> io::Result<()> {
    let floor = &Floor::compile(room)?;
    table.part("One stream, TCP, 128 KiB a call, two CPUs");
    table.columns();
    let mut contenders = vec![
        Contender {
            name: "floor",
            run: Box::new(move || steady(room, floor.stream(room, SEND_MS)?)),
        },
        Contender { name: "iperf3", run: Box::new(move || steady(room, peers::iperf3(room)?)) },
    ];
    let (subject, bits, cost) = match ours::ready() {
        true => (NAME, Target::AtLeast(1.0, None), Target::AtLeast(1.0, Some(1.2))),
        false => ("floor", Target::Shown, Target::Shown),
    };
    if ours::ready() {
        let run = move || steady(room, ours_start(room)?);
        contenders.push(Contender { name: NAME, run: Box::new(run) });
    }
    let one = |metric, other, target| Compare { metric, subject, other, target };
    let mut compare =
        vec![one(Metric::BitsPerCpu, "iperf3", cost), one(Metric::Bits, "iperf3", bits)];
    if ours::ready() {
        compare.push(one(Metric::BitsPerCpu, "floor", Target::Shown));
        compare.push(one(Metric::Bits, "floor", Target::Shown));
    }
    Cell { name: "stream".into(), contenders, compare }.measure(options, table)
}

fn ours_start(room: &Room) -> io::Result<(Process, Process)> {
    let (server, port) = ours::serve(room, room.peer)?;
    Ok((ours::measure(room, port, SEND_MS.into(), room.peer, &["stream"])?, server))
}

fn steady(room: &Room, (sender, receiver): (Process, Process)) -> io::Result<Figures> {
    room.wait_traffic(50_000_000)?;
    sleep(Duration::from_millis(150))?;
    let look = || -> io::Result<_> {
        Ok((Instant::now(), room.loopback_bytes()?, sender.cpu_ns()? + receiver.cpu_ns()?))
    };
    let (begun, bytes, cpu_ns) = look()?;
    sleep(LOOK)?;
    let (ended, bytes_after, cpu_ns_after) = look()?;
    let bits = (bytes_after - bytes) as f64 * 8.0;
    Ok(Figures::from([
        (Metric::Bits, bits / (ended - begun).as_secs_f64()),
        (Metric::BitsPerCpu, bits * 1e9 / (cpu_ns_after - cpu_ns) as f64),
    ]))
}
