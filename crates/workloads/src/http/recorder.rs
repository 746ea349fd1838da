//! HTTP part of a thread's record.

use stats::Histogram;
use traffic::engine::{
    protocol::Record,
    recorder::Recorder,
    window::{Inclusion, Window},
};

use super::pipeline::PendingRequest;

/// Number of possible status codes: three digits.
const STATUSES: usize = 1000;

#[derive(Debug)]
pub struct HttpRecorder {
    pub requests: Recorder,
    /// Times to the first byte of the response.
    pub first_byte: Histogram,
    pub statuses: Vec<u64>,
    /// Bytes of the responses, including heads.
    pub bytes: u64,
    /// Receive calls within the window that returned data.
    pub receives: u64,
    /// The `Server` header, if one was seen.
    pub server: Option<String>,
}

impl HttpRecorder {
    /// The record of one thread; `batch_ns` is the initial batch length.
    pub fn new(open_loop: bool, batch_ns: u64) -> Self {
        Self {
            requests: Recorder::new(open_loop, batch_ns),
            first_byte: Histogram::new(),
            statuses: vec![0; STATUSES],
            bytes: 0,
            receives: 0,
            server: None,
        }
    }

    #[inline]
    pub fn record(
        &mut self,
        window: &Window,
        asked: &PendingRequest,
        now: u64,
        status: u16,
        bytes: u64,
    ) {
        let counts = self.requests.record(window, asked.due_ns, asked.sent_ns, now);
        if counts == Inclusion::None {
            return;
        }
        if counts == Inclusion::Full {
            self.bytes += bytes;
            if let Some(n) = self.statuses.get_mut(usize::from(status)) {
                *n += 1;
            }
        }
        self.first_byte.record(asked.first_ns.saturating_sub(asked.due_ns));
    }
}

impl Record for HttpRecorder {
    fn requests(&self) -> &Recorder {
        &self.requests
    }

    fn requests_mut(&mut self) -> &mut Recorder {
        &mut self.requests
    }

    fn add(&mut self, other: &Self) {
        self.requests.add(&other.requests);
        self.first_byte.add(&other.first_byte);
        self.statuses.iter_mut().zip(&other.statuses).for_each(|(n, more)| *n += more);
        self.bytes += other.bytes;
        self.receives += other.receives;
        if self.server.is_none() {
            self.server.clone_from(&other.server);
        }
    }
}
