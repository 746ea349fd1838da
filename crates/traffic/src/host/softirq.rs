//! Softirq time by context, if requested.
//!
//! The BPF programs run on every softirq of the host and cost about 100 ns each, which is part of
//! the measurement. They are attached only on request, for the whole process, and every snapshot
//! reads them.

use std::sync::{Mutex, PoisonError};

use model::{Reading, measure::Moved, watch::ByContext};
use probe::watch::Running;

use crate::{Error, Result};

static RUNNING: Mutex<Option<Running>> = Mutex::new(None);

/// Attaches the programs until this process ends.
///
/// # Errors
/// No permission, or no support in the kernel.
pub fn attach() -> Result<()> {
    let running = match Running::begin() {
        Reading::Known(running) => running,
        Reading::Denied(why) => return Err(Error::Denied(without(&why))),
        Reading::Absent(why) => return Err(Error::Environment(without(&why))),
    };
    *RUNNING.lock().unwrap_or_else(PoisonError::into_inner) = Some(running);
    Ok(())
}

/// Why `--softirq` is unavailable, with advice.
fn without(why: &str) -> String {
    format!("--softirq: {why}; or leave --softirq out: only softirq time is missing then")
}

/// Totals so far; `None` if not requested.
pub(super) fn until_now() -> Option<ByContext> {
    let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    running.as_mut()?.until_now().into_known()
}

/// Softirq time between two snapshots, in nanoseconds: `softirq_ns.syscall`,
/// `softirq_ns.syscall.pacing`, …; only contexts with any.
pub(super) fn moved(first: &ByContext, last: &ByContext, into: &mut Moved) {
    let contexts = [
        ("syscall", first.syscall, last.syscall),
        ("interrupting_task", first.interrupting_task, last.interrupting_task),
        ("idle", first.idle, last.idle),
        ("ksoftirqd", first.ksoftirqd, last.ksoftirqd),
    ];
    for (name, a, b) in contexts {
        let mut put = |key: String, ns: u64| {
            if ns > 0 {
                into.insert(key, ns);
            }
        };
        put(format!("softirq_ns.{name}"), b.total().saturating_sub(a.total()));
        put(format!("softirq_ns.{name}.pacing"), b.pacing.saturating_sub(a.pacing));
    }
}

#[cfg(test)]
mod tests {
    use model::watch::VectorNs;

    use super::*;

    #[test]
    fn only_what_passed_is_reported() {
        let first = ByContext {
            syscall: VectorNs { net_rx: 5, ..VectorNs::default() },
            ..ByContext::default()
        };
        let mut last = first.clone();
        last.syscall.net_rx = 12;
        last.idle.pacing = 3;
        let mut into = Moved::new();
        moved(&first, &last, &mut into);
        let all: Vec<_> = into.iter().map(|(k, v)| (k.as_str(), *v)).collect();
        assert_eq!(
            all,
            [("softirq_ns.idle", 3), ("softirq_ns.idle.pacing", 3), ("softirq_ns.syscall", 7)]
        );
    }
}
