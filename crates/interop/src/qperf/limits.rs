//! Limits on clients' resource use.

use std::{ops::RangeInclusive, sync::Arc, time::Duration};

use model::Nanos;
use traffic::budget::Budget;

/// Limits of the server, for each client and for all together.
#[derive(Debug, Clone)]
pub struct Limits {
    pub sessions: usize,
    /// Most connections without a request; a further one replaces the oldest.
    pub waiting: usize,
    /// Timeout for a connection's request.
    pub patience: Duration,
    /// A test without data for this long is ended.
    pub idle: Duration,
    pub longest: Duration,
    /// Memory of all tests together, shared with other servers if configured.
    pub memory: Arc<Budget>,
    /// Ports for data if the client names none; `None` lets the kernel choose.
    pub data_ports: Option<RangeInclusive<u16>>,
    /// Service time: busy loop before each answer.
    pub service_ns: Nanos,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            sessions: 64,
            waiting: 1024,
            patience: Duration::from_secs(5),
            idle: Duration::from_secs(30),
            longest: Duration::from_secs(24 * 3600),
            memory: Arc::new(Budget::new(512 << 20)),
            data_ports: None,
            service_ns: Nanos(0),
        }
    }
}
