//! Explanations of the columns of `watch`.

/// A column's head and its meaning.
pub type Entry = (&'static str, &'static str);

pub const CPUS: &[Entry] = &[
    ("CPU, NODE", "number of the CPU, and its NUMA node"),
    ("SOFTIRQ", "share of time in softirqs; the next five are its parts"),
    ("SYSCALL", "at the end of a task's own system call"),
    ("ON TASK", "after an interrupt in a task's time"),
    ("IDLE", "on an idle CPU"),
    ("KSOFT", "in ksoftirqd"),
    ("THREAD", "in NAPI threads"),
    ("NET", "of SOFTIRQ, what NET_RX and NET_TX took"),
    ("/PROC si", "softirq time by /proc/stat, as mpstat's %soft"),
    ("us, sy, id", "user, system and idle time by /proc/stat"),
    ("SQUEEZE", "times that polling stopped with packets left (softnet_stat)"),
    ("DROPS", "packets dropped at a full backlog (netdev_max_backlog)"),
    ("RPS", "times that another CPU's RPS woke this one (softnet_stat)"),
    ("IPC", "instructions per cycle"),
];

pub const QUEUES: &[Entry] = &[
    ("NIC, QUEUE", "interface, and the queue that this NAPI instance serves"),
    ("NAPI, IRQ, CPU", "id of the instance, its interrupt, the CPU that polled"),
    ("POLLS, PACKETS", "polls, and packets that they took"),
    ("PER POLL", "packets a poll; the budget of one poll is mostly 64"),
    ("BUDGET USED", "polls that used their whole budget: more was waiting"),
    ("TIME, CPU%", "time in polls, and its share of one CPU"),
    ("THREADED", "whether a thread polls instead of the softirq"),
    ("SAMPLE %", "share of the interval that was observed"),
];

/// Tasks that softirqs and interrupts took time from.
pub const TASKS: &[Entry] = &[
    ("PID, NAME", "the process; with t also PROCESS, TID and THREAD"),
    ("LOST TO IRQ", "time that interrupts took from it: FOR OTHERS and BY IRQ"),
    ("FOR OTHERS", "softirqs after an interrupt in its time, for any packets"),
    ("BY IRQ", "interrupt handlers in its time"),
    ("OWN SOFTIRQ", "softirqs at the end of its own system calls"),
    ("SOFTIRQS", "how many"),
];

pub const WAITS: &[Entry] = &[
    ("PID, NAME", "the process that reads"),
    ("READS", "timed reads: the reader slept until its packet came"),
    ("STACK", "from the packet's entry into the stack to the socket"),
    ("WAKE-UP", "from readable to the reader's wake-up"),
    ("RUN QUEUE", "from the wake-up to running"),
    ("IDLE EXIT", "those of RUN QUEUE whose CPU was idle before"),
    ("COPY", "from running to the end of the copy"),
    ("FILTERED", "reads that were not timed: data was there already"),
    ("LATE READS", "of FILTERED: data that waited for a lost packet"),
    ("SAMPLE %", "share of the interval that was observed"),
];

pub const MIGRATIONS: &[Entry] = &[
    ("PID, TID, THREAD", "the thread"),
    ("MIGRATIONS, PER S", "migrations to another CPU"),
    ("ACROSS L3", "of them, to a CPU of another L3 cache"),
    ("NODE, PACKAGE", "to another NUMA node, to another package"),
    ("FROM→TO", "the most frequent migrations, and how many"),
];

/// Sends and receives of processes.
pub const MESSAGES: &[Entry] = &[
    ("PID, NAME, PORT", "the process, and the port of the service"),
    ("SENDS, RECEIVES", "calls"),
    ("BYTES EACH", "bytes a call"),
    ("REQUESTS", "sending calls after a receiving one on the same socket"),
    ("ON OTHER CPU", "receives on another CPU than the last packet's"),
    ("SAMPLE %", "share of the interval that was observed"),
];

/// What limits each process that sends over TCP.
pub const SENDERS: &[Entry] = &[
    ("PROCESS", "processes of this name that sent data over TCP"),
    ("LIMITED BY", "the application had no more to send; or the receiver's"),
    ("", "window was full; or its own send buffer; else the network"),
    ("CONNECTIONS, SENT", "connections that sent, and what was acknowledged"),
    ("BUSY", "share of time with data to send or not acknowledged"),
    ("RWND", "of BUSY, the receiver's window was full (ss: rwnd_limited)"),
    ("SNDBUF", "of BUSY, the send buffer was full (ss: sndbuf_limited)"),
    ("NOTSENT", "share of readings at which data waited (ss: notsent)"),
];

pub const COUNTERS: &[Entry] = &[
    ("WHERE", "host, CPU, NIC, queueing discipline, process or connection"),
    ("COUNTER", "its name in /proc, ethtool or ip"),
    ("COUNT, PER S", "growth in the interval, and a second"),
];

/// Netwright's own eBPF programs.
pub const PROGRAMS: &[Entry] = &[
    ("PROGRAM, STATE", "the eBPF program, and whether it is attached"),
    ("RUNS, NS/RUN, TIME", "how often it ran, how long each took, and all of it"),
    ("GIVES", "what is known by it"),
];

pub const FINDINGS: &[Entry] =
    &[("the rules of doctor", "worst first: when each was first seen, and its evidence")];

#[cfg(test)]
mod tests {
    use model::watch::test_data;

    use super::*;
    use crate::watch::{counters::counters, interrupted_tasks::interrupted_tasks, panes};

    #[test]
    fn every_column_has_its_entry() {
        let (interval, host) = (test_data::interval(2, 1), test_data::host(2, 1));
        for (legend, list) in [
            (CPUS, panes::cpus(&interval, &host)),
            (QUEUES, panes::queues(&interval)),
            (TASKS, interrupted_tasks(&interval, false)),
            (TASKS, interrupted_tasks(&interval, true)),
            (WAITS, panes::waits(&interval)),
            (MIGRATIONS, panes::migrated_threads(&interval)),
            (MESSAGES, panes::messages(&interval)),
            (SENDERS, panes::senders(&interval)),
            (COUNTERS, counters(&interval)),
            (PROGRAMS, panes::programs(&interval)),
        ] {
            for column in &list.columns {
                // `p99` follows the column of its `p50`.
                let head = column.head.trim_end_matches(" p50");
                let known = |(heads, about): &Entry| {
                    heads.split(", ").any(|h| h == head) || about.contains(head)
                };
                assert!(head == "p99" || legend.iter().any(known), "{head} is not explained");
            }
        }
    }
}
