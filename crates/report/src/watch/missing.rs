//! What an interval lacks, each reason once.

use model::{Reading, watch::WatchInterval};

/// Values that are not visible, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// The values, separated by commas.
    pub what: String,
    /// The reason, and what would make them visible.
    pub why: String,
}

/// Everything that is not visible, grouped by reason. A program is named only where its reason
/// affects no value: readers look for values.
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
        add("IPC", why(&cpu.ipc));
        if let Some(by) = cpu.softirq_ns.known() {
            add("threaded NAPI's time", why(&by.threaded));
        }
    }
    add("interrupted tasks", why(&interval.interrupted_tasks));
    add("queues", why(&interval.napi));
    add("waits", why(&interval.waits));
    add("migrations", why(&interval.migrated_threads));
    add("messages", why(&interval.messages));
    add("retransmits by connection", why(&interval.retransmits));
    add("drops by reason", why(&interval.drops));
    add("IPC by process", why(&interval.process_ipc));
    match &interval.samples {
        Reading::Known(samples) => add("senders", why(&samples.connections)),
        samples => add("counters", why(samples)),
    }
    let mut programs: Vec<Missing> = vec![];
    for program in &interval.observer.programs {
        let Some(why) = why(&program.ran) else { continue };
        let name = program.program.as_str();
        // The list names the program.
        let why = why.strip_prefix(&format!("{name}: ")).unwrap_or(why);
        if all.iter().any(|m| m.why == why) {
            continue;
        }
        match programs.iter_mut().find(|m| m.why == why) {
            Some(same) => same.what = format!("{}, {name}", same.what),
            None => programs.push(Missing { what: name.into(), why: why.into() }),
        }
    }
    all.append(&mut programs);
    all
}

#[cfg(test)]
mod tests {
    use model::watch::{ProgramStatus, test_data};

    use super::*;

    #[test]
    fn one_reason_for_all_is_one_line_without_the_programs_names() {
        let mut interval = test_data::interval(4, 0);
        let why = "eBPF is switched off (--no-bpf)";
        interval.cpus.iter_mut().for_each(|c| c.softirq_ns = Reading::absent(why));
        interval.interrupted_tasks = Reading::absent(why);
        interval.napi = Reading::absent(why);
        let program = |n| ProgramStatus {
            object: "softirq".into(),
            program: format!("program{n}"),
            gives: String::new(),
            ran: Reading::absent(why),
        };
        interval.observer.programs = (0..20).map(program).collect();
        let all = missing(&interval);
        let of = |why: &str| all.iter().filter(|m| m.why == why).collect::<Vec<_>>();
        assert_eq!(of(why).len(), 1);
        assert_eq!(of(why)[0].what, "softirq time, interrupted tasks, queues");
        assert!(all.iter().all(|m| !m.what.contains("program")), "{all:?}");
    }

    #[test]
    fn a_program_that_is_missing_alone_is_named_once() {
        let mut interval = test_data::interval(1, 0);
        for program in &mut interval.observer.programs {
            if !program.ran.is_known() {
                program.ran = Reading::absent(format!("{}: no such tracepoint", program.program));
            }
        }
        let line = missing(&interval).into_iter().find(|m| m.what == "ipi_exit").unwrap();
        assert_eq!(line.why, "no such tracepoint");
    }
}
