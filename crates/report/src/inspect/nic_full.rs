//! Everything about one NIC.

use std::collections::BTreeMap;

use model::{
    Reading,
    link::{self, Fec, LinkModes, Module},
    nic::{Coalesce, Feature, Nic, PciFunction, Qdisc, Rss},
};

use super::{View, dotted, fact, is_physical, nics, virtuals};
use crate::{
    text::{Ink, Line, Page, Table},
    words::{grouped, ranges, reading, reading_as, yes_no},
};

const LABEL: usize = 14;

pub fn show(v: &View<'_>, nic: &Nic, page: &mut Page) {
    page.gap();
    if is_physical(nic) || !nic.irqs.is_empty() {
        nics::show(v, nic, false, page);
    } else {
        page.line(nics::head(nic), 2);
        page.line(
            Line::plain("  ")
                .text(&nic.kind)
                .text(" ")
                .also(dotted([virtuals::tie(v.facts, nic), virtuals::steering(nic)])),
            4,
        );
    }
    let mut say = |label: &str, value: Line| {
        page.labelled(Line::plain("  ").ink(Ink::Faint, format!("{label:<LABEL$}")), &value);
    };
    say("identity", identity(nic));
    say("link", state(nic));
    say("link modes", reason_or(&nic.link_modes, modes));
    say("FEC", reason_or(&nic.fec, fec));
    say("transceiver", reason_or(&nic.module, module));
    say("PCI", reason_or(&nic.pci, pci));
    say("channels", reason_or(&nic.channels, |c| Line::plain(nics::channels(c))));
    say("rings", reason_or(&nic.rings, |r| Line::plain(nics::rings(r))));
    say("coalescing", reason_or(&nic.coalesce, coalesce));
    say(
        "pause",
        reason_or(&nic.pause, |p| {
            let on = |b: bool| if b { "on" } else { "off" };
            Line::plain(format!("autoneg {}, rx {}, tx {}", on(p.autoneg), on(p.rx), on(p.tx)))
        }),
    );
    say("RSS", reason_or(&nic.rss, rss));
    say("ntuple rules", reason_or(&nic.ntuple_rules, |n| Line::plain(n.to_string())));
    say("NAPI", napi(nic));
    say("offloads", reason_or(&nic.features, features));
    let stats = page.look().verbose;
    qdiscs(nic, page);
    counters("KERNEL COUNTERS", &nic.statistics, stats, page);
    counters("DRIVER COUNTERS", &nic.driver_stats, stats, page);
}

/// The value, or a faint reason.
fn reason_or<T>(r: &Reading<T>, show: impl FnOnce(&T) -> Line) -> Line {
    match r {
        Reading::Known(v) => show(v),
        Reading::Absent(why) => Line::new().ink(Ink::Faint, format!("-  {why}")),
        Reading::Denied(why) => {
            Line::new().ink(Ink::Warn, "denied").ink(Ink::Faint, format!("  {why}"))
        }
    }
}

fn identity(nic: &Nic) -> Line {
    dotted([
        fact("driver version", &nic.driver_version, String::clone),
        fact("firmware", &nic.firmware, String::clone),
        fact("MAC", &nic.mac, String::clone),
        fact("ifindex", &nic.ifindex, ToString::to_string),
    ])
}

fn state(nic: &Nic) -> Line {
    dotted([
        fact("carrier", &nic.carrier, |c| if *c { "yes".into() } else { "no".into() }),
        fact("duplex", &nic.duplex, String::clone),
        fact("mtu", &nic.min_mtu, |m| format!("from {m}")),
        fact("to", &nic.max_mtu, ToString::to_string),
        fact("txqueuelen", &nic.txqueuelen, ToString::to_string),
    ])
}

/// The highest speed that each end has.
fn modes(m: &LinkModes) -> Line {
    let up_to = |list: &Vec<String>| {
        link::highest(list).map_or_else(|| "none".to_owned(), |best| best.to_string())
    };
    dotted([
        Line::new().ink(Ink::Faint, "supports ").text(up_to(&m.supported)),
        Line::new().ink(Ink::Faint, "offers ").text(up_to(&m.advertised)),
        fact("other end offers", &m.peer, up_to),
        Line::new().ink(Ink::Faint, "negotiated ").also(yes_no(&m.autoneg)),
    ])
}

fn fec(f: &Fec) -> Line {
    dotted([
        fact("in use", &f.active, String::clone),
        Line::new().ink(Ink::Faint, "configured ").text(f.configured.join(" ")),
    ])
}

fn module(m: &Module) -> Line {
    let degrees = |milli: &i32| format!("{:.1} °C", f64::from(*milli) / 1000.0);
    let list = |what: &str, all: &[String]| match all {
        [] => Line::new(),
        all => Line::new().ink(Ink::Warn, format!("{what} ")).text(all.join(", ")),
    };
    dotted([
        fact("temperature", &m.temperature_millicelsius, degrees),
        fact("alarm from", &m.high_alarm_millicelsius, degrees),
        list("alarm:", &m.alarms),
        list("warning:", &m.warnings),
    ])
}

fn pci(p: &PciFunction) -> Line {
    dotted([
        Line::plain(format!("{}:{}", reading(&p.vendor_id).bare(), reading(&p.device_id).bare())),
        pci_link(p),
        fact("usable", &p.usable_bps, ToString::to_string),
        fact("read request", &p.read_request_bytes, ToString::to_string),
        fact("payload", &p.max_payload_bytes, ToString::to_string),
        fact("IOMMU", &p.iommu, ToString::to_string),
    ])
}

/// Speed and lanes now, then what is possible; one dash where the function has no link.
fn pci_link(p: &PciFunction) -> Line {
    let speed = |mts: &u32| format!("{} GT/s", f64::from(*mts) / 1000.0);
    let now = fact("link", &p.link_speed_mts, speed);
    if !p.link_speed_mts.is_known() && !p.max_link_speed_mts.is_known() {
        return now;
    }
    now.text(" x")
        .also(reading(&p.link_width))
        .ink(Ink::Faint, " of ")
        .also(reading_as(&p.max_link_speed_mts, speed))
        .text(" x")
        .also(reading(&p.max_link_width))
}

/// A parameter that the driver does not have is left out, not shown as 0 or off.
fn coalesce(c: &Coalesce) -> Line {
    let way =
        |name: &str, usecs: &Reading<u32>, frames: &Reading<u32>, adaptive: &Reading<bool>| {
            let mode = match adaptive {
                Reading::Known(true) => " adaptive",
                Reading::Known(false) => " fixed",
                _ => "",
            };
            let limits: Vec<String> = [
                usecs.known().map(|n| format!("{n} µs")),
                frames.known().map(|n| format!("{n} frames")),
            ]
            .into_iter()
            .flatten()
            .collect();
            match limits.as_slice() {
                [] if mode.is_empty() => Line::plain(format!("{name} none")),
                [] => Line::plain(format!("{name}{mode}")),
                limits => Line::plain(format!("{name}{mode}, {}", limits.join(" or "))),
            }
        };
    dotted([
        way("rx", &c.rx_usecs, &c.rx_max_frames, &c.adaptive_rx),
        way("tx", &c.tx_usecs, &c.tx_max_frames, &c.adaptive_tx),
    ])
}

fn rss(r: &Rss) -> Line {
    let by = |by: &String| if by.is_empty() { "nothing".to_owned() } else { by.clone() };
    let fields = r.hash_fields.as_ref().map(|f| {
        f.iter().map(|(flow, b)| format!("{flow} by {}", by(b))).collect::<Vec<_>>().join("; ")
    });
    let table = match r.table.len() {
        0 => "no table".to_owned(),
        n => format!("{n} entries to rx {}", ranges(r.table.iter().copied())),
    };
    dotted([
        Line::plain(table),
        fact("hash", &r.functions, |f| f.join(" ")),
        fact("fields", &fields, String::clone),
    ])
}

fn napi(nic: &Nic) -> Line {
    dotted([
        fact("instances", &nic.napis, |n| n.len().to_string()),
        Line::new().ink(Ink::Faint, "threaded ").also(yes_no(&nic.threaded_napi)),
        fact("gro flush timeout", &nic.gro_flush_timeout_ns, ToString::to_string),
        fact("deferred hard irqs", &nic.napi_defer_hard_irqs, ToString::to_string),
        suspended(nic),
    ])
}

/// How long the instances' interrupts may be suspended; nothing where none may or none says so.
fn suspended(nic: &Nic) -> Line {
    let napis = nic.napis.known().map(Vec::as_slice).unwrap_or_default();
    let on = napis.iter().filter_map(|n| n.irq_suspend_timeout_ns.get()).filter(|ns| ns.0 > 0);
    let mut values: Vec<_> = on.collect();
    let count = values.len();
    values.sort_unstable();
    values.dedup();
    if count == 0 {
        return Line::new();
    }
    let list: Vec<String> = values.iter().map(ToString::to_string).collect();
    let of = if count == napis.len() { String::new() } else { format!(" ({count} instances)") };
    Line::new().ink(Ink::Faint, "irq suspension ").text(format!("{}{of}", list.join(", ")))
}

/// On, off, and what cannot be changed only by its number.
fn features(f: &BTreeMap<String, Feature>) -> Line {
    let list = |on: bool| {
        let names = f.iter().filter(|(_, f)| !f.fixed && f.active == on).map(|(n, _)| n.as_str());
        names.collect::<Vec<_>>().join(" ")
    };
    let fixed = f.values().filter(|f| f.fixed).count();
    Line::new()
        .ink(Ink::Faint, "on ")
        .text(list(true))
        .ink(Ink::Faint, " · off ")
        .text(list(false))
        .ink(Ink::Faint, format!(" · {fixed} cannot be changed"))
}

fn qdiscs(nic: &Nic, page: &mut Page) {
    let Some(list) = nic.qdiscs.known().filter(|l| !l.is_empty()) else { return };
    page.raw(&Line::plain("  ").ink(Ink::Strong, "QUEUEING DISCIPLINES"));
    let mut t = Table::new()
        .left("KIND")
        .left("HANDLE")
        .left("PARENT")
        .right("PACKETS")
        .right("DROPS")
        .right("OVERLIMITS")
        .right("REQUEUES")
        .right("BACKLOG");
    for q in list {
        t.row(qdisc(q));
    }
    page.table(&t, 4);
}

fn qdisc(q: &Qdisc) -> Vec<Line> {
    let number = |r: &Reading<u64>| reading_as(r, |n| grouped(*n));
    vec![
        Line::plain(&q.kind),
        Line::plain(&q.handle),
        Line::plain(&q.parent),
        number(&q.sent_packets),
        number(&q.drops),
        number(&q.overlimits),
        number(&q.requeues),
        number(&q.backlog_packets),
    ]
}

/// Counters above zero; all of them when `all`.
fn counters(title: &str, r: &Reading<BTreeMap<String, u64>>, all: bool, page: &mut Page) {
    let Some(map) = r.known() else { return };
    let shown: Vec<_> = map.iter().filter(|(_, n)| all || **n > 0).collect();
    if shown.is_empty() {
        return;
    }
    let rest = map.len() - shown.len();
    let more = if rest > 0 { format!(" ({rest} at zero not shown)") } else { String::new() };
    page.raw(&Line::plain("  ").ink(Ink::Strong, title).ink(Ink::Faint, more));
    let mut t = Table::new().left("").right("");
    for (name, n) in shown {
        t.row([Line::plain(name), Line::plain(grouped(*n))]);
    }
    page.table(&t, 4);
}
