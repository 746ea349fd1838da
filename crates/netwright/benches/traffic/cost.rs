//! The cost of recording every sample of a spinning round trip.

use std::io;

use crate::{
    cell::{Cell, Compare, Contender, Metric, Target},
    floor::Floor,
    options::Options,
    ours::{self, NAME},
    room::Room,
    rtt::Exchange,
    table::{Table, Verdict},
};

const EXCHANGE: Exchange = Exchange { udp: false, bytes: 64, spin: true, one_cpu: false };
/// The largest allowed share of a round trip.
const MOST: f64 = 0.01;

/// Measures the cost in two ways.
pub fn measure(room: &Room, options: &Options, table: &mut Table) -> io::Result<()> {
    let floor = &Floor::compile(room)?;
    table.part("Recording every sample: trips a second beside a bare loop that reads no clock");
    table.columns();
    let ms = options.window_ms;
    let mut contenders = vec![
        Contender {
            name: "unrecorded",
            run: Box::new(move || floor.rtt_unrecorded(room, &EXCHANGE, ms)),
        },
        Contender { name: "floor", run: Box::new(move || floor.rtt(room, &EXCHANGE, ms)) },
    ];
    if ours::ready() {
        let run = move || ours::rtt(room, &EXCHANGE, 1, ms);
        contenders.push(Contender { name: NAME, run: Box::new(run) });
    }
    let one = |subject| Compare {
        metric: Metric::Trips,
        subject,
        other: "unrecorded",
        target: Target::Shown,
    };
    let compare = vec![one("floor"), one(NAME)];
    Cell { name: EXCHANGE.to_string(), contenders, compare }.measure(options, table)?;
    if ours::ready() { own_word(room, options, table) } else { Ok(()) }
}

/// The cost of a sample by the result itself, as a share of its fastest round trip.
fn own_word(room: &Room, options: &Options, table: &mut Table) -> io::Result<()> {
    let (_server, port) = ours::serve(room, room.peer)?;
    let ms = u64::from(options.window_ms);
    let arguments = ["rtt", "--request", "64", "--wait", "spin"];
    let document = ours::document(ours::measure(room, port, ms, room.peer, &arguments)?, ms)?;
    let sample = ours::number(&document, "/floor/sample_ns")?;
    let median = ours::number(&document, "/runs/0/rtt_ns/p50")?;
    let share = sample / median;
    let verdict = if share < MOST { Verdict::Kept } else { Verdict::Missed };
    let text = format!(
        "its floor certificate: {sample:.1} ns for a sample of {:.2} µs, {:.2}% (< {}%)",
        median / 1e3,
        share * 100.0,
        MOST * 100.0
    );
    table.line(&text, verdict);
    Ok(())
}
