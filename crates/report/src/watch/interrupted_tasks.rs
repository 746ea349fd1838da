//! Time that softirqs and interrupts take from processes, or from their threads.

use std::{cmp::Reverse, collections::BTreeMap};

use model::{
    Reading,
    watch::{InterruptedTask, WatchInterval},
};

use super::listing::{Cell, Listing};

/// One process per row; with `threads` one thread per row, grouped by process.
pub fn interrupted_tasks(interval: &WatchInterval, threads: bool) -> Listing {
    let paid = [">LOST TO IRQ", ">FOR OTHERS", ">BY IRQ", ">OWN SOFTIRQ", ">SOFTIRQS"];
    let who: &[&'static str] = match threads {
        true => &[">PID", "PROCESS", ">TID", "THREAD"],
        false => &[">PID", "NAME"],
    };
    let heads: Vec<&'static str> = who.iter().copied().chain(paid).collect();
    let rows = interval.interrupted_tasks.as_ref().map(|all| match threads {
        true => by_thread(all),
        false => by_process(all),
    });
    Listing::new(&heads).keyed(who.len()).of(&rows, |p| {
        let mut row = vec![Cell::id(p.pid), Cell::text(&p.name)];
        if threads {
            row = vec![
                Cell::id(p.pid),
                Cell::reading(&p.process, |name| Cell::text(name)),
                Cell::id(p.tid),
                Cell::text(&p.name),
            ];
        }
        row.extend([
            Cell::time(preempted(p)),
            Cell::time(p.preempted_by_softirq_ns),
            Cell::time(p.preempted_by_irq_ns),
            Cell::time(p.own_softirq_ns),
            Cell::count(p.softirqs),
        ]);
        row
    })
}

fn preempted(p: &InterruptedTask) -> u64 {
    p.preempted_by_softirq_ns + p.preempted_by_irq_ns
}

/// Sums by process, the largest loss first. The name is the process's. Where that is unknown it is
/// the main thread's, else that of the thread that lost most.
fn by_process(threads: &[InterruptedTask]) -> Vec<InterruptedTask> {
    let mut sums: BTreeMap<u32, InterruptedTask> = BTreeMap::new();
    for t in threads {
        let sum = sums.entry(t.pid).or_insert_with(|| InterruptedTask {
            name: t.process.get().unwrap_or_else(|| t.name.clone()),
            preempted_by_softirq_ns: 0,
            preempted_by_irq_ns: 0,
            own_softirq_ns: 0,
            softirqs: 0,
            ..t.clone()
        });
        sum.preempted_by_softirq_ns += t.preempted_by_softirq_ns;
        sum.preempted_by_irq_ns += t.preempted_by_irq_ns;
        sum.own_softirq_ns += t.own_softirq_ns;
        sum.softirqs += t.softirqs;
        if t.tid == t.pid && !t.process.is_known() {
            sum.name.clone_from(&t.name);
        }
    }
    let mut all: Vec<InterruptedTask> = sums.into_values().collect();
    all.sort_by_key(|p| Reverse((preempted(p), p.own_softirq_ns)));
    all
}

/// Threads by rank, after the first of their process.
fn by_thread(threads: &[InterruptedTask]) -> Vec<InterruptedTask> {
    let rank: BTreeMap<u32, usize> =
        by_process(threads).iter().enumerate().map(|(at, p)| (p.pid, at)).collect();
    let mut all = threads.to_vec();
    all.sort_by_key(|p| rank.get(&p.pid).copied());
    // Older recordings lack the process's name; the main thread has it.
    let mains: BTreeMap<u32, String> =
        threads.iter().filter(|p| p.tid == p.pid).map(|p| (p.pid, p.name.clone())).collect();
    for p in &mut all {
        if let (false, Some(name)) = (p.process.is_known(), mains.get(&p.pid)) {
            p.process = Reading::Known(name.clone());
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use model::watch::test_data;

    use super::*;

    fn of(interrupted_tasks: Vec<InterruptedTask>) -> WatchInterval {
        let mut interval = test_data::interval(2, 0);
        interval.interrupted_tasks = Reading::Known(interrupted_tasks);
        interval
    }

    fn interrupted_task(pid: u32, tid: u32, name: &str, ms: u64) -> InterruptedTask {
        InterruptedTask {
            pid,
            process: Reading::Known(format!("process{pid}")),
            tid,
            name: name.into(),
            preempted_by_softirq_ns: ms * 1_000_000,
            preempted_by_irq_ns: 0,
            own_softirq_ns: 0,
            softirqs: 1,
        }
    }

    fn texts(list: &Listing, columns: usize) -> Vec<Vec<String>> {
        let first = |row: &Vec<Cell>| row.iter().take(columns).map(|c| c.text.clone()).collect();
        list.rows.iter().map(first).collect()
    }

    #[test]
    fn a_process_has_its_own_name_and_its_threads_are_together() {
        let interval = of(vec![
            interrupted_task(7, 71, "a", 5),
            interrupted_task(8, 8, "b", 4),
            interrupted_task(7, 70, "c", 3),
        ]);
        let list = interrupted_tasks(&interval, false);
        assert_eq!(texts(&list, 3), [["7", "process7", "8.00 ms"], ["8", "process8", "4.00 ms"]]);
        let threads = interrupted_tasks(&interval, true);
        assert_eq!(
            texts(&threads, 4),
            [
                ["7", "process7", "71", "a"],
                ["7", "process7", "70", "c"],
                ["8", "process8", "8", "b"]
            ]
        );
    }

    #[test]
    fn without_the_process_s_name_its_main_thread_s_is_taken() {
        let mut all = vec![
            interrupted_task(7, 71, "worker", 5),
            interrupted_task(7, 7, "main", 1),
            interrupted_task(9, 91, "x", 1),
        ];
        all.iter_mut().for_each(|p| p.process = Reading::absent("an earlier netwright"));
        let interval = of(all);
        assert_eq!(texts(&interrupted_tasks(&interval, false), 2), [["7", "main"], ["9", "x"]]);
        let threads = texts(&interrupted_tasks(&interval, true), 2);
        assert_eq!(threads, [["7", "main"], ["7", "main"], ["9", "-"]]);
    }
}
