//! What an interval lacks, each reason once.

use model::{Reading, watch::WatchInterval};

/// Something that is not seen, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// What, several with commas between.
    pub what: String,
    /// Why, and what would grant it.
    pub why: String,
}

/// Everything that is not seen; what has the same reason is one.
pub fn missing(interval: &WatchInterval) -> Vec<Missing> {
    let mut all: Vec<Missing> = vec![];
    let mut add = |what: &str, why: Option<&str>| {
        let Some(why) = why else { return };
        match all.iter_mut().find(|m| m.why == why) {
            Some(same) if same.what.split(", ").any(|w| w == what) => {}
            Some(same) => same.what = format!("{}, {what}", same.what),
            None => all.push(Missing { what: what.into(), why: why.into() }),
        }
    };
    fn why<T>(reading: &Reading<T>) -> Option<&str> {
        reading.why_not()
    }
    for cpu in &interval.cpus {
        add("softirq time", why(&cpu.softirq_ns));
        add("/proc/stat", why(&cpu.proc_stat));
        add("instructions a cycle", why(&cpu.ipc));
        if let Some(by) = cpu.softirq_ns.known() {
            add("threaded NAPI's time", why(&by.threaded));
        }
    }
    add("payers", why(&interval.payers));
    add("queues", why(&interval.napi));
    add("waits", why(&interval.waits));
    add("movers", why(&interval.movers));
    add("messages", why(&interval.messages));
    add("retransmits by connection", why(&interval.retransmits));
    add("instructions a cycle by process", why(&interval.process_ipc));
    add("counters", why(&interval.samples));
    for program in &interval.observer.programs {
        add(&program.program, why(&program.ran));
    }
    all
}
