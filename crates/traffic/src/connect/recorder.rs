//! Per-thread record of connections, in bounded memory.

use std::collections::BTreeMap;

use stats::{Batches, Histogram};

use crate::engine::{
    ran_on::{RanOn, current_cpu},
    window::Window,
};

/// Number of batches kept for each thread.
const BATCHES: usize = 64;

/// Why an attempt failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Failed {
    /// The kernel's errno before the connection was established.
    Connecting(i32),
    /// The kernel's errno after that.
    Talking(i32),
    /// Not established in time.
    NoConnection,
    /// Established, but the response or the server's close did not come in time.
    NoAnswer,
    /// The server closed before its response was whole.
    ClosedEarly,
}

/// A connection that completed.
#[derive(Debug, Clone, Copy)]
pub struct MadeConnection {
    /// Start of its measured time: the schedule's time in open loop, else the call of `connect`.
    pub due_ns: u64,
    /// Time of the call of `connect`.
    pub begun_ns: u64,
    pub connected_ns: u64,
    /// Time of the response's first byte; 0 without a response.
    pub first_ns: u64,
    /// Time when it ended.
    pub ended_ns: u64,
}

/// The record of one client thread.
#[derive(Debug)]
pub struct Recorder {
    /// Connect times within the window.
    pub connect: Histogram,
    /// Times to the first byte; `None` without a response.
    pub first_byte: Option<Histogram>,
    /// Open loop: how late each attempt began (schedule lag).
    pub lag: Option<Histogram>,
    pub batches: Option<Batches>,
    batch_ns: u64,
    /// Failed attempts within the window.
    pub failed: BTreeMap<Failed, u64>,
    /// Connections established in total.
    pub established: u64,
    /// Attempts without a free local port, within the window and outside.
    pub portless: u64,
    /// Attempts that had not ended when the run ended.
    pub unfinished: u64,
    /// Open loop: scheduled attempts of the window for which no flow was free.
    pub never_begun: u64,
    /// CPUs that the thread ran on.
    pub ran_on: RanOn,
}

impl Recorder {
    /// The record of one thread; `batch_ns` is the initial batch length.
    pub fn new(response: bool, open_loop: bool, batch_ns: u64) -> Self {
        Self {
            connect: Histogram::new(),
            first_byte: response.then(Histogram::new),
            lag: open_loop.then(Histogram::new),
            batches: None,
            batch_ns,
            failed: BTreeMap::new(),
            established: 0,
            portless: 0,
            unfinished: 0,
            never_begun: 0,
            ran_on: RanOn::default(),
        }
    }

    /// Records a connection. In closed loop it counts at the time it ended, in open loop at its
    /// scheduled time.
    #[inline]
    pub fn record(&mut self, window: &Window, made: &MadeConnection) {
        let when = if self.lag.is_some() { made.due_ns } else { made.ended_ns };
        if !window.holds(when) {
            return;
        }
        let connect = made.connected_ns.saturating_sub(made.due_ns);
        self.connect.record(connect);
        if let (Some(first), true) = (&mut self.first_byte, made.first_ns > 0) {
            first.record(made.first_ns.saturating_sub(made.due_ns));
        }
        if let Some(lag) = &mut self.lag {
            lag.record(made.begun_ns.saturating_sub(made.due_ns));
        }
        self.ran_on.on(current_cpu());
        match &mut self.batches {
            Some(batches) => batches.record(made.ended_ns, connect),
            None => {
                let mut batches = Batches::new(window.start_ns(), self.batch_ns, BATCHES);
                batches.record(made.ended_ns, connect);
                self.batches = Some(batches);
            }
        }
    }

    /// Records a failed attempt; it counts at the time a success would.
    #[cold]
    pub fn fail(&mut self, window: &Window, due_ns: u64, now: u64, why: Failed) {
        if matches!(why, Failed::Connecting(libc::EADDRNOTAVAIL)) {
            self.portless += 1;
        }
        if window.holds(if self.lag.is_some() { due_ns } else { now }) {
            *self.failed.entry(why).or_default() += 1;
        }
    }
}
