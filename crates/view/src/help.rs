//! The help pages: columns, letters and keys.

use report::watch::legend::{self, Entry};

use super::state::{Help, Pane};

/// The meaning of the bars' letters.
const BARS: [&str; 6] = [
    "BARS, by where softirq time went; on many CPUs one letter each,",
    "  upper case from 10%, with a digit for tens of percent, a dot below 1%:",
    "  S at the end of a task's own system call     I on an idle CPU",
    "  T after an interrupt in a task's time        K ksoftirqd   N NAPI threads",
    "  Without eBPF they are /proc/stat's: u user s system i irq q softirq x steal",
    "  (upper case from 50%, a dot below 5%). -: not known; table 8 says why.",
];

/// The keys and what they do, one per line.
const KEYS: [&str; 12] = [
    "KEYS",
    "  q, Ctrl-C      quit                      space, p   pause / go on",
    "  tab, 0-9       next table, that table    s          sort by the next column",
    "  up, down       a row (PgUp, PgDn: ten)   r          reverse the order",
    "  < >            columns to the left, right",
    "  f              filter; Esc drops it      t          tasks: threads, processes",
    "  left, right    replay: an interval back, on   (live: the table before, behind)",
    "  home, end      replay: the first interval, the last",
    "",
    "FILTER  words, and nic:eth0  cpu:0-3,8  pid:4711; a row must fit them all",
    "",
    "Any key goes back.",
];

/// A page of the help, as lines.
pub fn lines(page: Help, pane: Pane) -> Vec<String> {
    let text = |lines: &[&str]| lines.iter().map(|l| (*l).to_owned()).collect::<Vec<_>>();
    if page == Help::Keys {
        return text(&KEYS);
    }
    let mut lines = vec!["COLUMNS of this table".to_owned()];
    lines.extend(columns(pane).iter().map(|(head, about)| format!("  {head:<18} {about}")));
    lines.extend(text(&BARS));
    lines.push("? again: the keys. Any other key goes back.".into());
    lines
}

fn columns(pane: Pane) -> &'static [Entry] {
    match pane {
        Pane::Cpus => legend::CPUS,
        Pane::Queues => legend::QUEUES,
        Pane::InterruptedTasks => legend::TASKS,
        Pane::Waits => legend::WAITS,
        Pane::MigratedThreads => legend::MIGRATIONS,
        Pane::Messages => legend::MESSAGES,
        Pane::Counters => legend::COUNTERS,
        Pane::Senders => legend::SENDERS,
        Pane::Programs => legend::PROGRAMS,
        Pane::Findings => legend::FINDINGS,
    }
}
