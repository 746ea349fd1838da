//! The thread that sends a stream to qperf's server.

use std::{
    io,
    os::fd::RawFd,
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::Duration,
};

use traffic::{
    Error,
    engine::{
        ran_on::{RanOn, current_cpu},
        wait::{send_all, server_gone},
        worker_pool::{Worker, WorkerPool},
    },
    net::now_ns,
};

/// A schedule with more lag than this is restarted instead of made up for by a burst.
const BEHIND_NS: u64 = 10_000_000;
/// Shorter waits are spun: a sleep would take longer.
const SPIN_NS: u64 = 60_000;
/// Consecutive refusals that cannot be a full queue.
const REFUSALS: u32 = 1000;

#[derive(Debug)]
pub struct Sender {
    /// Message size in bytes.
    pub message: usize,
    /// Whether each message is a datagram.
    pub udp: bool,
    /// Bits per second; `None` for no limit.
    pub rate: Option<u64>,
    /// Datagrams that the kernel refused.
    pub refused: AtomicU64,
}

impl Sender {
    /// Sends until told to stop; `worker` counts whole messages.
    pub fn run(&self, fd: RawFd, pool: &WorkerPool, worker: &Worker) {
        let (message, mut ran) = (vec![0u8; self.message], RanOn::default());
        let gap_ns = self.rate.map(|r| self.message as f64 * 8e9 / r.max(1) as f64);
        let (mut sent, mut refusals) = (0u64, 0u32);
        let (mut begun, mut of) = (now_ns(), 0u64);
        while !pool.stopping() {
            if let Some(gap) = gap_ns {
                let due = begun + (of as f64 * gap) as u64;
                let now = now_ns();
                if now > due + BEHIND_NS.max(gap as u64) {
                    (begun, of) = (now, 0);
                } else {
                    wait_until(due, pool);
                }
                of += 1;
            }
            match send_all(fd, &message, pool) {
                Ok(()) => {
                    sent += 1;
                    refusals = 0;
                    worker.handled(sent);
                    ran.on(current_cpu());
                }
                Err(_) if pool.stopping() => break,
                Err(e) if self.udp && refusals < REFUSALS => {
                    refusals += 1;
                    self.refused.fetch_add(1, Ordering::Relaxed);
                    if e.kind() != io::ErrorKind::ConnectionRefused {
                        thread::sleep(Duration::from_micros(100));
                    }
                }
                Err(e) => {
                    pool.break_off(broken(&e));
                    break;
                }
            }
        }
        worker.see(|seen| ran.tell(seen));
    }
}

fn broken(e: &io::Error) -> Error {
    match e.raw_os_error() {
        Some(libc::EMSGSIZE) => Error::Usage("a message is larger than a datagram can be".into()),
        _ => server_gone(Some(e)),
    }
}

fn wait_until(due: u64, pool: &WorkerPool) {
    loop {
        let left = due.saturating_sub(now_ns());
        if left == 0 || pool.stopping() {
            return;
        }
        if left > SPIN_NS {
            thread::sleep(Duration::from_nanos((left - SPIN_NS).min(50_000_000)));
        } else {
            std::hint::spin_loop();
        }
    }
}
