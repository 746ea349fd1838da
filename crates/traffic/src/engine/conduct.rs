//! The course of one test at the client: warm-up, both ends' first look at themselves, the
//! window, their last look, cool-down.

use std::sync::atomic::{AtomicBool, Ordering};

use model::measure::{Common, ServedInterval};
use probe::samples::clock::wait_until;

use super::{
    intervals::Intervals,
    window::Window,
    worker_pool::{AskedUntilNow, WorkerPool},
};
use crate::{Error, client::Peer, control::message::Counters, host::Mark, net::now_ns};

/// Hears how far a measurement has come: what is being done and the share of it, 0 to 1.
pub type Progress<'a> = &'a (dyn Fn(&str, f64) + Sync);

/// What every measurement is given besides its request.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    /// Set by Ctrl-C: end early and report.
    pub stop: &'a AtomicBool,
    /// See [`Progress`].
    pub progress: Progress<'a>,
    /// Called right before each window begins and right after it has ended, while the traffic
    /// goes on: for who wants to look at something else at the same moments.
    pub beside: Option<&'a (dyn Fn() + Sync)>,
    /// Hears of each interval of a server's answers (`http`, `pg`) as soon as it is over.
    pub heard: Option<&'a (dyn Fn(&ServedInterval) + Sync)>,
    /// Hears each second of a window of `rtt` or `connect`: its end in seconds since the window
    /// began, and round trips or connections a second.
    pub second: Option<&'a (dyn Fn(f64, f64) + Sync)>,
}

impl<'a> Run<'a> {
    pub fn new(stop: &'a AtomicBool, progress: Progress<'a>) -> Self {
        Self { stop, progress, beside: None, heard: None, second: None }
    }
}

impl std::fmt::Debug for Run<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run").finish_non_exhaustive()
    }
}

/// A window that is over.
#[derive(Debug)]
pub struct MeasuredWindow {
    /// This end's first and last look.
    pub marks: (Mark, Mark),
    /// The server's first and last counters; the last only if it lived to tell.
    #[allow(dead_code, reason = "streams count at the server")]
    pub peer: (Option<Counters>, Option<Counters>),
    /// When the window began, on this end's clock.
    pub start_ns: u64,
    /// The window's real length.
    pub window_ns: u64,
    /// Whether it ended before its time.
    pub interrupted: bool,
    /// Why the server fell silent.
    pub silent: Option<Error>,
}

/// What is done now and then while the window is open: hears the time since its beginning.
pub type Tick<'a> = &'a mut dyn FnMut(u64);

/// Conducts one test whose threads run already; without a `peer` where the server is another
/// program, which cannot be asked. `tick` is called about every 50 ms, and the
/// sleep between is cut to `every_ns` where that is shorter.
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
        // Its data sockets may say nothing of it: there may be none now, or no answer to miss.
        if let Some(peer) = peer.filter(|p| p.is_gone()) {
            pool.break_off(Error::Environment(format!("{}: the server is gone", peer.name)));
        }
        tick(window_from.map_or(0, |from| now - from));
    };
    sleep_until(begun + common.warmup_ns.0, &over, &mut || look(None));
    // The looks come before the window, not within: what they cost shall not be in its samples.
    let mut silent = None;
    // One that did not answer is not waited for again.
    let mut ask_peer = || match peer.filter(|_| silent.is_none()).map(Peer::mark) {
        Some(Ok(counters)) => Some(counters),
        Some(Err(e)) => {
            silent = Some(e);
            None
        }
        None => None,
    };
    let beside = || run.beside.iter().for_each(|look| look());
    beside();
    let first = Mark::take(&pool.tids(), &root);
    let peer_first = ask_peer();
    let start = now_ns();
    // Ended while it warmed up there is no window: the few samples of one would be no result.
    let end = if over() {
        start
    } else {
        window.open_at(start);
        sleep_until(start + common.duration_ns.0, &over, &mut || look(Some(start)));
        // An interval may end with the window.
        look(Some(start));
        now_ns()
    };
    window.close_at(end);
    let broke = pool.stopping();
    let last = Mark::take(&pool.tids(), &root);
    let peer_last = ask_peer();
    beside();
    sleep_until(now_ns() + common.cooldown_ns.0, &over, &mut || look(Some(start)));
    MeasuredWindow {
        marks: (first, last),
        peer: (peer_first, peer_last),
        start_ns: start,
        window_ns: end - start,
        interrupted: broke || end - start < common.duration_ns.0,
        silent,
    }
}

/// Sleeps until then or until `over`, looking about every 50 ms.
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
