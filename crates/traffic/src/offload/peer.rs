//! A probe at the server.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use model::measure::{Direction, OffloadCounts, Transport};

use super::{datagram, nic, pieces::Pieces, stream};
use crate::{
    control::message::{OffloadSide, OffloadTest},
    engine::worker_pool::{Worker, WorkerPool},
    net::data_flow::DataFlow,
};

/// Pause after which no more datagrams are expected.
pub const QUIET: Duration = Duration::from_millis(20);

/// The server's end of one probe.
#[derive(Debug)]
pub struct PeerEnd {
    test: OffloadTest,
    pieces: Pieces,
    side: Mutex<OffloadSide>,
    /// The client is ready to receive.
    go: AtomicBool,
    done: AtomicBool,
}

/// The pieces of a test.
pub fn pieces(test: &OffloadTest) -> Pieces {
    let large = usize::try_from(test.large_bytes).unwrap_or(usize::MAX);
    Pieces::of(test.probe, test.size, large, test.seed)
}

impl PeerEnd {
    pub fn new(test: &OffloadTest) -> Self {
        Self {
            pieces: pieces(test),
            test: test.clone(),
            side: Mutex::default(),
            go: AtomicBool::new(false),
            done: AtomicBool::new(false),
        }
    }

    /// Whether all is sent.
    pub fn is_done(&self) -> bool {
        self.done.load(Ordering::Acquire)
    }

    /// The client is ready.
    pub fn go(&self) {
        self.go.store(true, Ordering::Release);
    }

    /// Sends or receives until the pool ends.
    pub fn work(&self, flows: &[DataFlow], pool: &WorkerPool, worker: &Worker) {
        let Some(flow) = flows.first() else { return };
        let udp = self.test.probe.transport() == Transport::Udp;
        let sends = self.test.direction == Direction::Reverse;
        let mut side = OffloadSide::default();
        let progress = |sent: u64| {
            worker.handled(sent);
            !pool.stopping()
        };
        let (probe, pieces) = (self.test.probe, &self.pieces);
        while udp && sends && !self.go.load(Ordering::Acquire) && !pool.stopping() {
            datagram::answer(&flow.socket, Duration::from_millis(1));
        }
        let counts = match (udp, sends) {
            (true, true) => datagram::send(&flow.socket, probe, pieces, &progress),
            (false, true) => stream::send(&flow.socket, probe, pieces, &progress),
            (false, false) => Ok(stream::receive(&flow.socket, pieces)),
            (true, false) => self.receive(flow, pool, &mut side),
        };
        match counts {
            Ok(counts) => side.counts = counts,
            Err(e) => side.not_run = Some(super::why_not(probe, &e)),
        }
        if self.test.with_nic {
            let local = flow.socket.local_addr().ok().and_then(|a| a.as_socket());
            side.nic = local.map(|a| nic::with(a.ip().to_canonical()));
        }
        *self.side.lock().unwrap_or_else(PoisonError::into_inner) = side;
        self.done.store(true, Ordering::Release);
    }

    fn receive(
        &self,
        flow: &DataFlow,
        pool: &WorkerPool,
        side: &mut OffloadSide,
    ) -> std::io::Result<OffloadCounts> {
        let mut receiver =
            datagram::Receiver::new(&flow.socket, self.test.probe, &self.pieces, true)?;
        while !pool.stopping() {
            receiver.turn(QUIET);
        }
        while !receiver.is_complete() && receiver.last.elapsed() < QUIET {
            receiver.turn(Duration::from_millis(1));
        }
        receiver.turn(Duration::from_millis(1));
        side.came = receiver.came();
        Ok(receiver.counts())
    }

    /// What this end counted.
    pub fn side(&self) -> OffloadSide {
        self.side.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
