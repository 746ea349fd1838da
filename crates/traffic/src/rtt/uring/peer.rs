//! The server on io_uring.

use model::Warning;
use std::os::fd::RawFd;

use super::flows::{FlowEvent, UringFlows};
use crate::{
    Error,
    engine::{
        ran_on::{RanOn, UNKNOWN_CPU, current_cpu},
        rx_cpu_samples::RxCpuSamples,
        service_time::serve_for,
        worker_pool::{Worker, WorkerPool},
    },
    rtt::{exchange::stamp_cpu, single::RttShape},
};

/// Reads the receiving CPU once per this many requests.
const LOOK_EVERY: u64 = 1024;

struct Answering<'a> {
    shape: &'a RttShape,
    uring: UringFlows,
    /// Bytes received of an incomplete request, by flow.
    got: Vec<u64>,
    ran_on: RanOn,
    stamped: u16,
    done: u64,
}

/// Answers on this thread's flows until the pool ends.
pub fn run(uring: UringFlows, fds: &[RawFd], shape: &RttShape, pool: &WorkerPool, worker: &Worker) {
    let mut all = Answering {
        shape,
        // With a service time, answers are flushed one by one: it must not delay the answers before
        // it.
        uring: if shape.service_ns > 0 { uring.careful() } else { uring },
        got: vec![0; fds.len()],
        ran_on: RanOn::default(),
        stamped: UNKNOWN_CPU,
        done: 0,
    };
    let mut rx_cpus = RxCpuSamples::new(fds.first().copied().unwrap_or(-1));
    let mut looked = 0;
    let mut result = Ok(());
    while !pool.stopping() && result.is_ok() {
        result = all.round(pool);
        worker.handled(all.done);
        if all.done - looked >= LOOK_EVERY {
            looked = all.done;
            rx_cpus.sample();
        }
    }
    worker.see(|seen| {
        rx_cpus.add_to(seen);
        all.ran_on.tell(seen);
        if let Err(e) = result {
            let why = Error::io("io_uring broke off", &e).to_string();
            seen.warnings.push(Warning::ThreadEnded { why });
        }
    });
}

impl Answering<'_> {
    fn round(&mut self, pool: &WorkerPool) -> std::io::Result<()> {
        self.uring.exchange(self.shape.wait)?;
        let cpu = current_cpu();
        if cpu != self.stamped {
            self.stamped = cpu;
            let transport = self.shape.transport;
            self.uring.messages().for_each(|response| stamp_cpu(transport, response, cpu));
        }
        while let Some(event) = self.uring.next()? {
            // A flow that ended has no more events.
            if let FlowEvent::Bytes { key, buffer, length } = event {
                self.uring.give(buffer);
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
        self.uring.enqueue(key, whole);
        if self.shape.service_ns > 0 { self.uring.flush() } else { Ok(()) }
    }
}
