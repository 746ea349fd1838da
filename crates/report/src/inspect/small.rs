//! Sections of one table each: backlog counters, listening sockets, storage controllers.

use model::Reading;

use super::View;
use crate::{
    text::{Ink, Line, Page, Table},
    words::{grouped, ranges, reading, reading_as},
};

/// The list, or one line saying why there is none.
fn known<'a, T>(r: &'a Reading<Vec<T>>, page: &mut Page) -> Option<&'a [T]> {
    match r {
        Reading::Known(list) => Some(list),
        Reading::Absent(why) | Reading::Denied(why) => {
            page.line(Line::plain("  ").text(why), 4);
            None
        }
    }
}

/// The counters of `/proc/net/softnet_stat` by CPU.
pub fn softnet(v: &View<'_>, page: &mut Page) {
    page.heading("SOFTNET, SINCE BOOT");
    let Some(rows) = known(&v.facts.softnet, page) else { return };
    let mut t = Table::new()
        .right("CPU")
        .right("PROCESSED")
        .right("DROPPED")
        .right("TIME SQUEEZE")
        .right("RPS WAKE-UPS")
        .right("FLOW LIMIT")
        .right("BACKLOG NOW");
    for r in rows {
        let alarming =
            |n: u64| Line::new().ink(if n > 0 { Ink::Warn } else { Ink::Plain }, grouped(n));
        t.row([
            Line::plain(r.cpu),
            Line::plain(grouped(r.processed)),
            alarming(r.dropped),
            Line::plain(grouped(r.time_squeeze)),
            reading_as(&r.received_rps, |n| grouped(*n)),
            reading_as(&r.flow_limit_count, |n| grouped(*n)),
            reading_as(&r.backlog_len, |n| grouped(*n)),
        ]);
    }
    page.table(&t, 2);
    if rows.iter().any(|r| r.cpu_from_position) {
        page.line(
            Line::plain("  ").ink(
                Ink::Faint,
                "This kernel does not name the CPUs in this file; they are deduced from the order \
                 of its lines.",
            ),
            2,
        );
    }
}

pub fn listeners(v: &View<'_>, page: &mut Page) {
    page.heading("LISTENING TCP SOCKETS");
    let Some(rows) = known(&v.facts.listeners, page) else { return };
    let mut t = Table::new().left("ADDRESS").right("RECV-Q").right("BACKLOG").wrapping("PROCESSES");
    for l in rows {
        t.row([
            Line::plain(&l.address),
            reading(&l.accept_queue),
            reading(&l.accept_queue_limit),
            reading_as(&l.pids, |p| ranges(p.iter().copied())),
        ]);
    }
    if t.is_empty() {
        page.line(Line::plain("  none"), 4);
        return;
    }
    page.table(&t, 2);
}

pub fn storage(v: &View<'_>, page: &mut Page) {
    page.heading("STORAGE CONTROLLERS");
    let mut t = Table::new()
        .left("NAME")
        .left("KIND")
        .left("DRIVER")
        .left("BUS")
        .left("NODE")
        .wrapping("DISKS")
        .wrapping("IRQS")
        .wrapping("MODEL");
    for s in &v.facts.storage {
        t.row([
            Line::plain(&s.name),
            Line::plain(&s.kind),
            reading(&s.driver),
            reading(&s.bus_address),
            reading(&s.numa_node),
            Line::plain(s.disks.join(" ")),
            Line::plain(ranges(s.irqs.iter().map(|i| i.0))),
            reading(&s.model),
        ]);
    }
    if t.is_empty() {
        page.line(Line::plain("  none found"), 4);
        return;
    }
    page.table(&t, 2);
}
