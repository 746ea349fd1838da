//! One NIC with its packet path, as in the overview.

use model::{
    nic::{Channels, Nic, Rings},
    reading::{Denied, Known},
};

use super::{View, dotted, fact};
use crate::{
    notes,
    path::{self, Row},
    text::{Ink, Line, Page, Table},
    words::{grouped, many, queues, ranges, reading, reading_as},
};

/// From this many rows on, equal neighbours are merged.
const MANY_ROWS: usize = 8;

/// Head lines, table, remarks.
pub fn show(v: &View<'_>, nic: &Nic, may_collapse: bool, page: &mut Page) {
    page.line(head(nic), 2);
    page.line(Line::plain("  ").also(settings(nic)), 4);
    let mut rows = path::rows(nic, &v.irqs, &v.places);
    if may_collapse && rows.len() > MANY_ROWS {
        rows = path::collapse(rows);
    }
    page.table(&table(&rows), 2);
    why_no_irq(&rows, page);
    for n in notes::of_nic(nic, v.facts, &v.irqs, &v.places) {
        let (ink, mark) = if n.warning { (Ink::Warn, "  ! ") } else { (Ink::Faint, "  - ") };
        page.labelled(Line::new().ink(ink, mark), &Line::plain(n.text));
    }
}

/// What it is and whether it is up.
pub fn head(nic: &Nic) -> Line {
    let mut id = Line::new().ink(Ink::Strong, &nic.name);
    if let Known(driver) = &nic.driver {
        id.push(Ink::Plain, format!(" {driver}"));
    }
    let state = match (nic.carrier.get(), nic.up.get()) {
        (Some(false), _) => Line::new().ink(Ink::Bad, "no carrier"),
        (_, Some(false)) => Line::new().ink(Ink::Warn, "down"),
        // "Unknown" means that the driver does not report it, as for loopback and tun.
        (_, Some(true)) if nic.operstate.known().is_some_and(|s| s == "unknown") => {
            Line::plain("up")
        }
        _ => match nic.operstate.get() {
            Some(state) => Line::plain(state),
            None => Line::new().ink(Ink::Faint, "state not known"),
        },
    };
    dotted([
        id,
        nic.bus_address.get().map(Line::plain).unwrap_or_default(),
        fact("node", &nic.numa_node, ToString::to_string),
        state,
        speed(nic),
        fact("mtu", &nic.mtu, ToString::to_string),
        nic.addresses.get().map(|a| Line::plain(a.join(" "))).unwrap_or_default(),
        master(nic),
    ])
}

fn speed(nic: &Nic) -> Line {
    let mut line = fact("speed", &nic.speed_bps, ToString::to_string);
    if let Some(half) = nic.duplex.get().filter(|d| d == "half") {
        line.push(Ink::Bad, format!(" {half} duplex"));
    }
    line
}

/// The bridge, bond or VRF above.
pub fn master(nic: &Nic) -> Line {
    match nic.master.get().filter(|m| !m.is_empty()) {
        Some(m) => Line::plain(format!("master {m}")),
        None => Line::new(),
    }
}

fn settings(nic: &Nic) -> Line {
    let spread = nic.rss.known().filter(|r| !r.table.is_empty());
    let steering =
        spread.map(|r| Line::plain(format!("RSS to rx {}", ranges(r.table.iter().copied()))));
    let kinds = nic.qdiscs.as_ref().map(|list| {
        let mut kinds: Vec<&str> = list.iter().map(|q| q.kind.as_str()).collect();
        kinds.dedup();
        kinds.join(", ")
    });
    let xdp = if nic.xdp == Known(true) { Line::plain("XDP program") } else { Line::new() };
    let threaded =
        if nic.threaded_napi == Known(true) { Line::plain("threaded NAPI") } else { Line::new() };
    dotted([
        fact("channels", &nic.channels, channels),
        fact("rings", &nic.rings, rings),
        match &nic.rss {
            Denied(_) => Line::new().ink(Ink::Faint, "RSS ").ink(Ink::Warn, "denied"),
            _ => steering.unwrap_or_default(),
        },
        fact("qdisc", &kinds, String::clone),
        threaded,
        xdp,
    ])
}

/// `4 of 8`, or rx and tx apart where the NIC has them apart.
pub fn channels(c: &Channels) -> String {
    let part = |now: u32, most: u32, what: &str| {
        (most > 0 || now > 0).then(|| {
            if most > now { format!("{now} of {most}{what}") } else { format!("{now}{what}") }
        })
    };
    let parts = [
        part(c.combined, c.max_combined, ""),
        part(c.rx, c.max_rx, " rx"),
        part(c.tx, c.max_tx, " tx"),
    ];
    let text = parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
    if text.is_empty() { "0".into() } else { text }
}

/// `rx 1024 of 8192, tx 1024 of 8192`.
pub fn rings(r: &Rings) -> String {
    let part = |way: &str, now: u32, most: u32| {
        if most > now { format!("{way} {now} of {most}") } else { format!("{way} {now}") }
    };
    format!("{}, {}", part("rx", r.rx, r.max_rx), part("tx", r.tx, r.max_tx))
}

/// Queue → IRQ → CPU → node and L3, with the steering columns only where something is set.
fn table(rows: &[Row]) -> Table {
    let rps = rows.iter().any(|r| !r.rps.is_empty());
    let xps = rows.iter().any(|r| !r.xps.is_empty());
    let mut t = Table::new()
        .left("QUEUE")
        .right("IRQ")
        .wrapping("CPU")
        .left("NODE")
        .wrapping("L3")
        .right("INTERRUPTS");
    if rps {
        t = t.wrapping("RPS TO");
    }
    if xps {
        t = t.wrapping("XPS FROM");
    }
    for r in rows {
        t.row(cells(r, rps, xps));
    }
    t
}

fn cells(r: &Row, rps: bool, xps: bool) -> Vec<Line> {
    let dash = || Line::new().ink(Ink::Faint, "-");
    let or_dash = |s: String| if s.is_empty() { dash() } else { Line::plain(s) };
    let queue = if r.queues.is_empty() {
        Line::new().ink(Ink::Faint, short_name(&r.name))
    } else {
        Line::plain(queues(&r.queues))
    };
    let irq = if r.irqs.is_empty() {
        reading_as(&r.no_irq, |()| "-".into())
    } else {
        Line::plain(ranges(r.irqs.iter().map(|i| i.0)))
    };
    let mut cells = vec![
        queue,
        irq,
        reading(&r.target),
        or_dash(ranges(r.nodes.iter().map(|n| n.0))),
        or_dash(r.l3s.to_string()),
        reading_as(&r.count, |c| grouped(*c)),
    ];
    if rps {
        cells.push(or_dash(r.rps.to_string()));
    }
    if xps {
        cells.push(or_dash(r.xps.to_string()));
    }
    cells
}

/// An interrupt that serves no queue: its name within the device (`config` of `virtio2-config`).
fn short_name(name: &str) -> String {
    match name {
        "" => "other".into(),
        name => name.chars().take(20).collect(),
    }
}

/// One line for all queues whose interrupt is not known.
fn why_no_irq(rows: &[Row], page: &mut Page) {
    let without: Vec<&Row> =
        rows.iter().filter(|r| r.irqs.is_empty() && !r.queues.is_empty()).collect();
    let Some(why) = without.iter().find_map(|r| r.no_irq.why_not()) else { return };
    let n = many(without.iter().map(|r| r.queues.len()).sum(), "queue");
    let text = format!("no interrupt known for {n}: {why}");
    page.labelled(Line::new().ink(Ink::Faint, "  - "), &Line::plain(text));
}
