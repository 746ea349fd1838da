//! What a page says of the exporter's own process.

use std::time::{SystemTime, UNIX_EPOCH};

use ::metrics::Process;
use probe::Root;

/// When this process began to count.
#[derive(Debug, Clone, Copy)]
pub struct Own {
    start_unix_s: f64,
}

impl Own {
    /// A process that started at the present time.
    pub fn begin() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { start_unix_s: since.as_secs_f64() }
    }

    /// Its CPU time and memory now.
    pub fn process(&self, root: &Root) -> Process {
        let spent = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        let statm = root.word("/proc/self/statm").into_known().unwrap_or_default();
        let pages = statm.split_ascii_whitespace().nth(1).and_then(|n| n.parse::<u64>().ok());
        Process {
            cpu_s: Some(spent.tv_sec as f64 + spent.tv_nsec as f64 / 1e9),
            resident_bytes: pages.map(|n| n * rustix::param::page_size() as u64),
            start_unix_s: self.start_unix_s,
        }
    }
}
