//! The server on io_uring.

use model::Warning;
use std::os::fd::RawFd;

use super::lines::{Event, Lines};
use crate::{
    Error,
    engine::{
        looks::Looks,
        ran_on::{RanOn, UNKNOWN_CPU, current_cpu},
        service_time::serve_for,
        worker_pool::{Worker, WorkerPool},
    },
    rtt::{exchange::stamp_cpu, single::RttShape},
};

/// Reads the receiving CPU once per this many requests.
const LOOK_EVERY: u64 = 1024;

struct Answering<'a> {
    shape: &'a RttShape,
    lines: Lines,
    /// Bytes received of an incomplete request, by flow.
    got: Vec<u64>,
    ran_on: RanOn,
    stamped: u16,
    done: u64,
}

/// Answers on this thread's flows until the pool ends.
pub fn run(lines: Lines, fds: &[RawFd], shape: &RttShape, pool: &WorkerPool, worker: &Worker) {
    let mut all = Answering {
        shape,
        // With a service time, answers are flushed one by one: it must not delay the answers before
        // it.
        lines: if shape.service_ns > 0 { lines.careful() } else { lines },
        got: vec![0; fds.len()],
        ran_on: RanOn::default(),
        stamped: UNKNOWN_CPU,
        done: 0,
    };
    let mut looks = Looks::new(fds.first().copied().unwrap_or(-1));
    let mut looked = 0;
    let mut result = Ok(());
    while !pool.stopping() && result.is_ok() {
        result = all.round(pool);
        worker.handled(all.done);
        if all.done - looked >= LOOK_EVERY {
            looked = all.done;
            looks.look();
        }
    }
    worker.see(|seen| {
        looks.tell(seen);
        all.ran_on.tell(seen);
        if let Err(e) = result {
            let why = Error::io("io_uring broke off", &e).to_string();
            seen.warnings.push(Warning::ThreadEnded { why });
        }
    });
}

impl Answering<'_> {
    fn round(&mut self, pool: &WorkerPool) -> std::io::Result<()> {
        self.lines.exchange(self.shape.wait)?;
        let cpu = current_cpu();
        if cpu != self.stamped {
            self.stamped = cpu;
            let transport = self.shape.transport;
            self.lines.messages().for_each(|response| stamp_cpu(transport, response, cpu));
        }
        while let Some(event) = self.lines.next()? {
            // A flow that ended has no more events.
            if let Event::Bytes { key, buffer, length } = event {
                self.lines.give(buffer);
                self.hear(key, length as u64, pool)?;
            }
        }
        Ok(())
    }

    #[inline]
    fn hear(&mut self, key: usize, length: u64, pool: &WorkerPool) -> std::io::Result<()> {
        let Some(got) = self.got.get_mut(key) else { return Ok(()) };
        *got += length;
        let whole = *got / self.shape.request_bytes;
        if whole == 0 {
            return Ok(());
        }
        *got %= self.shape.request_bytes;
        serve_for(self.shape.service_ns.saturating_mul(whole), pool);
        self.done += whole;
        (0..whole).for_each(|_| self.ran_on.on(self.stamped));
        self.lines.owe(key, whole);
        if self.shape.service_ns > 0 { self.lines.flush() } else { Ok(()) }
    }
}
