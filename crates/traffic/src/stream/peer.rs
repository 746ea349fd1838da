//! The server of a stream test.

use model::Warning;
use std::{
    sync::{Mutex, PoisonError},
    thread::Scope,
};

use probe::samples::clock::sleep_until;

use super::{
    StreamShape,
    series::{EVERY_NS, Series},
    side::Side,
};
use crate::{
    control::message::{Test, TestKind},
    engine::worker_pool::WorkerPool,
    net::{data_flow::DataFlow, now_ns},
};

/// The server's end, and its received bytes over time.
#[derive(Debug)]
pub struct PeerEnd {
    pub side: Side,
    /// Settings that could not be applied.
    pub warnings: Vec<Warning>,
    series: Mutex<Series>,
}

impl PeerEnd {
    /// The server's end with the data connections of a test.
    pub fn new(test: &Test, flows: Vec<DataFlow>, greeting: Vec<u8>) -> Self {
        let shape = StreamShape::of(test, false, test.wait);
        let (side, warnings) = Side::new(shape, flows, test.threads as usize, greeting);
        Self { side, warnings, series: Mutex::default() }
    }

    /// Samples the received bytes until the pool ends.
    pub fn watch<'scope, 'env>(
        &'env self,
        threads: &'scope Scope<'scope, 'env>,
        pool: &'env WorkerPool,
    ) {
        let look = move || {
            while !pool.stopping() {
                self.note();
                sleep_until(now_ns() + EVERY_NS);
            }
        };
        // Without this thread only the confidence interval is missing.
        let _ = std::thread::Builder::new().spawn_scoped(threads, look);
    }

    fn note(&self) {
        let mut series = self.series.lock().unwrap_or_else(PoisonError::into_inner);
        series.note(now_ns(), self.side.ledger.received());
    }

    /// Samples of received bytes within a window: time and total.
    pub fn received(&self, from_ns: u64, to_ns: u64) -> Vec<(u64, u64)> {
        self.series.lock().unwrap_or_else(PoisonError::into_inner).within(from_ns, to_ns)
    }
}

impl StreamShape {
    /// Parameters of one end of a test.
    pub fn of(test: &Test, local: bool, wait: model::measure::Wait) -> Self {
        let mut shape = Self {
            transport: test.transport,
            direction: model::measure::Direction::Forward,
            local,
            message_bytes: 1,
            rate_bps: None,
            flows: test.flows,
            zerocopy: None,
            skip_receive_copy: false,
            wait,
        };
        if let TestKind::Stream {
            direction,
            message_bytes,
            rate_bps,
            zerocopy,
            skip_receive_copy,
        } = &test.kind
        {
            shape.direction = *direction;
            shape.message_bytes = usize::try_from(*message_bytes).unwrap_or(usize::MAX);
            shape.rate_bps = *rate_bps;
            shape.zerocopy = *zerocopy;
            shape.skip_receive_copy = *skip_receive_copy;
        }
        shape
    }
}
