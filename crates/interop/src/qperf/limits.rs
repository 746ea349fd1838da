//! What clients may cost.

use std::{ops::RangeInclusive, sync::Arc, time::Duration};

use model::Nanos;
use traffic::budget::Budget;

/// Bounds on what the server does for its clients, one and all.
#[derive(Debug, Clone)]
pub struct Limits {
    pub sessions: usize,
    /// Connections that have not asked yet; the oldest goes when one more comes.
    pub waiting: usize,
    /// How long a connection may take to ask.
    pub patience: Duration,
    /// How long a test may be silent before it is ended.
    pub idle: Duration,
    pub longest: Duration,
    /// Memory for all tests.
    pub memory: Arc<Budget>,
    /// Ports for data where the client names none; `None` lets the kernel choose.
    pub data_ports: Option<RangeInclusive<u16>>,
    /// Spin so long before each answer: an injected service time.
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
