//! One flow: the median round trip, beside a bare loop, qperf and sockperf.

use std::{fmt, io};

use crate::{
    cell::{Cell, Compare, Contender, Metric, Target},
    floor::Floor,
    options::Options,
    ours::{self, NAME},
    peers,
    room::Room,
    table::Table,
};

/// The size of the exchange, and how both ends wait.
#[derive(Debug, Clone, Copy)]
pub struct Exchange {
    pub udp: bool,
    /// Bytes of the request, and of the response.
    pub bytes: u32,
    /// Both ends spin, else both block.
    pub spin: bool,
    /// Both ends on one CPU, else on two.
    pub one_cpu: bool,
}

impl Exchange {
    pub fn peer_cpu_of(&self, room: &Room) -> usize {
        if self.one_cpu { room.local } else { room.peer }
    }
}

impl fmt::Display for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let transport = if self.udp { "UDP" } else { "TCP" };
        let wait = if self.spin { "spinning" } else { "blocking" };
        let cpus = if self.one_cpu { "one CPU" } else { "two CPUs" };
        write!(f, "{transport} {} B, {wait}, {cpus}", self.bytes)
    }
}

/// The largest ratio of the median to the bare loop's.
const MOST: f64 = 1.02;

pub fn measure(room: &Room, options: &Options, table: &mut Table) -> io::Result<()> {
    let floor = Floor::compile(room)?;
    table.part(
        "Round trips, one flow (qperf tells only means and cannot spin; sockperf's smallest \
         message is 14 B)",
    );
    table.columns();
    for (udp, bytes) in [(false, 1), (false, 64), (true, 64)] {
        for (spin, one_cpu) in [(false, false), (false, true), (true, false), (true, true)] {
            let exchange = Exchange { udp, bytes, spin, one_cpu };
            cell(room, options, &floor, exchange).measure(options, table)?;
        }
    }
    Ok(())
}

fn cell<'a>(
    room: &'a Room,
    options: &'a Options,
    floor: &'a Floor,
    exchange: Exchange,
) -> Cell<'a> {
    let ms = options.window_ms;
    let mut contenders =
        vec![Contender { name: "floor", run: Box::new(move || floor.rtt(room, &exchange, ms)) }];
    if options.control {
        contenders.push(Contender {
            name: "again",
            run: Box::new(move || floor.rtt(room, &exchange, ms)),
        });
    }
    if ours::ready() {
        contenders.push(Contender {
            name: NAME,
            run: Box::new(move || ours::rtt(room, &exchange, 1, ms)),
        });
    }
    // Two processes that spin on one CPU only wait for the scheduler to switch. That does not
    // distinguish programs, so the peers are left out.
    if !exchange.spin {
        contenders.push(Contender {
            name: "qperf",
            run: Box::new(move || peers::qperf(room, &exchange)),
        });
    }
    if exchange.bytes >= peers::SOCKPERF_LEAST_BYTES && !(exchange.spin && exchange.one_cpu) {
        contenders.push(Contender {
            name: "sockperf",
            run: Box::new(move || peers::sockperf(room, &exchange)),
        });
    }
    Cell { name: exchange.to_string(), contenders, compare: compare() }
}

fn compare() -> Vec<Compare> {
    let one = |metric, subject, other, target| Compare { metric, subject, other, target };
    let control = one(Metric::Median, "again", "floor", Target::Shown);
    if !ours::ready() {
        return vec![
            control,
            one(Metric::Mean, "qperf", "floor", Target::Shown),
            one(Metric::Median, "sockperf", "floor", Target::Shown),
        ];
    }
    vec![
        control,
        one(Metric::Median, NAME, "floor", Target::AtMost(MOST)),
        one(Metric::Mean, NAME, "qperf", Target::AtMost(1.0)),
        one(Metric::Median, NAME, "sockperf", Target::AtMost(1.0)),
    ]
}
