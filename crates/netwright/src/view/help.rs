//! What the keys do and what the letters mean.

/// The help, a line each.
pub const LINES: [&str; 22] = [
    "KEYS",
    "  q, Ctrl-C      quit                      space, p   pause / go on",
    "  tab, 1-9       next table, that table    s          sort by the next column",
    "  up, down       a row (PgUp, PgDn: ten)   < >        columns to the left, right",
    "  f              filter; Esc drops it      t          tasks: threads, processes",
    "  left, right    replay: an interval back, on   (live: the table before, behind)",
    "  home, end      replay: the first interval, the last",
    "",
    "FILTER  words, and nic:eth0  cpu:0-3,8  pid:4711; a row must fit them all",
    "BARS    where softirq time went, as part of the CPU's time (full bar: see above)",
    "  S  at the end of a task's own system call: it works for its own packets",
    "  T  in an interrupt of some task: it loses that time",
    "  I  the CPU was idle before",
    "  K  ksoftirqd: too much for an interrupt",
    "  N  threaded NAPI's own threads",
    "Without eBPF the bars are what /proc/stat claims: u user, s system, i irq,",
    "q softirq, x stolen by the hypervisor.",
    "Many CPUs: a letter each, that of the largest part. Capital: 10% or more (of",
    "/proc/stat: 50%). A dot: below 1% (5%). A digit behind it: tens of percent.",
    "/PROC si, us, sy, id: what /proc/stat claims of the same interval.",
    "-: not known; table 8 says why, and what would grant it.",
    "Any key goes back.",
];
