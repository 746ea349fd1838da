//! The course of one test at the client: warm-up, first snapshot at both ends, window, last
//! snapshot, cool-down.

use std::sync::atomic::{AtomicBool, Ordering};

use model::measure::{Common, ServedInterval};
use probe::samples::clock::wait_until;

use super::{
    intervals::Intervals,
    window::Window,
    worker_pool::{AskedUntilNow, WorkerPool},
};
use crate::{Error, client::Peer, control::message::Counters, host::CounterSnapshot, net::now_ns};

/// Called with the current activity and its share done, 0 to 1.
pub type Progress<'a> = &'a (dyn Fn(&str, f64) + Sync);

/// Callbacks and the stop flag of a measurement.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    /// Set by Ctrl-C: end early and report.
    pub stop: &'a AtomicBool,
    /// Progress callback, see [`Progress`].
    pub progress: Progress<'a>,
    /// Called right before and right after each window, while traffic continues: for other
    /// observers of the same period.
    pub around_window: Option<&'a (dyn Fn() + Sync)>,
    /// Called after each interval of a server's answers (`http`, `pg`).
    pub on_interval: Option<&'a (dyn Fn(&ServedInterval) + Sync)>,
    /// Called each second of an `rtt` or `connect` window: seconds since its start, and round trips
    /// or connections per second.
    pub second: Option<&'a (dyn Fn(f64, f64) + Sync)>,
}

impl<'a> Run<'a> {
    pub fn new(stop: &'a AtomicBool, progress: Progress<'a>) -> Self {
        Self { stop, progress, around_window: None, on_interval: None, second: None }
    }
}

impl std::fmt::Debug for Run<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run").finish_non_exhaustive()
    }
}

/// A completed window: counters of both ends at its start and end.
#[derive(Debug)]
pub struct MeasuredWindow {
    /// First and last snapshot of this end.
    pub snapshots: (CounterSnapshot, CounterSnapshot),
    /// First and last counters of the server; the last is `None` if the server failed.
    #[allow(dead_code, reason = "streams count at the server")]
    pub peer: (Option<Counters>, Option<Counters>),
    /// Start of the window, on this end's clock.
    pub start_ns: u64,
    /// Actual length of the window.
    pub window_ns: u64,
    /// Whether it ended early.
    pub interrupted: bool,
    /// Why the server stopped answering.
    pub silent: Option<Error>,
}

/// Called during the window with the time since its start.
pub type Tick<'a> = &'a mut dyn FnMut(u64);

/// Conducts one test on running threads; `peer` is `None` if the server is another program. `tick`
/// is called about every 50 ms, or every `every_ns` if that is shorter.
pub fn conduct(
    run: Run<'_>,
    peer: Option<&Peer>,
    common: &Common,
    pool: &WorkerPool,
    window: &Window,
    what: &str,
    tick: Tick<'_>,
) -> MeasuredWindow {
    let root = probe::Root::live();
    let over = || run.stop.load(Ordering::Relaxed) || pool.stopping();
    let whole = (common.warmup_ns.0 + common.duration_ns.0 + common.cooldown_ns.0).max(1) as f64;
    let begun = now_ns();
    let mut seconds = Intervals::new(1_000_000_000, common.duration_ns.0);
    let mut look = |window_from: Option<u64>| {
        let now = now_ns();
        if let Some(hear) = run.second {
            let handled = AskedUntilNow { answered: pool.transactions(), ..Default::default() };
            let second = seconds.look(window_from.map_or(0, |from| now - from), handled);
            second.into_iter().for_each(|s| hear(s.end_s, s.transactions_per_s));
        }
        (run.progress)(what, (now - begun) as f64 / whole);
        // Its data sockets may not show it: perhaps there are none now, or no answer is due.
        if let Some(peer) = peer.filter(|p| p.is_gone()) {
            pool.break_off(Error::Environment(format!("{}: the server is gone", peer.name)));
        }
        tick(window_from.map_or(0, |from| now - from));
    };
    sleep_until(begun + common.warmup_ns.0, &over, &mut || look(None));
    // Marks are taken outside the window, so that their cost is in no sample.
    let mut silent = None;
    // A server that did not answer is not asked again.
    let mut ask_peer = || match peer.filter(|_| silent.is_none()).map(Peer::mark) {
        Some(Ok(counters)) => Some(counters),
        Some(Err(e)) => {
            silent = Some(e);
            None
        }
        None => None,
    };
    let around_window = || run.around_window.iter().for_each(|look| look());
    around_window();
    let first = CounterSnapshot::take(&pool.tids(), &root);
    let peer_first = ask_peer();
    let start = now_ns();
    // A run stopped during warm-up has no window: its few samples are no result.
    let end = if over() {
        start
    } else {
        window.open_at(start);
        sleep_until(start + common.duration_ns.0, &over, &mut || look(Some(start)));
        // An interval may end together with the window.
        look(Some(start));
        now_ns()
    };
    window.close_at(end);
    let broke = pool.stopping();
    let last = CounterSnapshot::take(&pool.tids(), &root);
    let peer_last = ask_peer();
    around_window();
    sleep_until(now_ns() + common.cooldown_ns.0, &over, &mut || look(Some(start)));
    MeasuredWindow {
        snapshots: (first, last),
        peer: (peer_first, peer_last),
        start_ns: start,
        window_ns: end - start,
        interrupted: broke || end - start < common.duration_ns.0,
        silent,
    }
}

/// Sleeps until a time or until `over`; calls `look` about every 50 ms.
pub fn sleep_until(until: u64, over: &dyn Fn() -> bool, look: &mut dyn FnMut()) {
    let never = AtomicBool::new(false);
    loop {
        let now = now_ns();
        if now >= until || over() {
            return;
        }
        look();
        wait_until(until.min(now + 50_000_000), &never, &mut |_| {});
    }
}
