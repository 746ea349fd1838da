//! `place` as text: how many services are with their devices, where each should run, and a picture
//! of the nodes.

use std::collections::BTreeSet;

use model::{
    CpuSet,
    placement::{PlacedInterrupts, PlacedNode, PlacedService, PlacementDocument, UsedDevice},
};

use crate::{
    text::{Ink, Line, Page, Table, TextStyle},
    words::{many, reading},
};

/// The page: how many services are with their devices, where each should run, a picture of the
/// nodes, and the changes.
pub fn text(d: &PlacementDocument, look: TextStyle) -> String {
    let mut page = Page::new(look);
    page.line(head(d), 2);
    page.line(Line::plain(answer(d)), 2);
    services(d, &mut page);
    interrupts(d, &mut page);
    picture(d, &mut page);
    if look.verbose {
        known_by(d, &mut page);
    }
    changes(d, &mut page);
    page.caveats(d.notes.iter().map(Line::plain));
    page.finish()
}

fn head(d: &PlacementDocument) -> Line {
    let placed = d.services.iter().filter(|s| !s.cpus.is_empty()).count();
    Line::new().ink(Ink::Strong, "Placement").text(format!(
        " of {} on {}: {}",
        many(d.services.len(), "service"),
        many(d.nodes.len(), "node"),
        match d.changes.len() {
            _ if placed == 0 => "none could be placed".into(),
            0 if placed < d.services.len() || !d.services.iter().all(is_there) => {
                "no change can be proposed".into()
            }
            0 => "all is in place".into(),
            n => many(n, "change"),
        }
    ))
}

fn is_there(service: &PlacedService) -> bool {
    service.cpus_now.known() == Some(&service.cpus)
}

/// How many are with their devices, as proposed.
fn answer(d: &PlacementDocument) -> String {
    let count = |devices: fn(&PlacedService) -> &[UsedDevice]| {
        let all: Vec<bool> = d.services.iter().filter_map(|s| s.is_local(devices(s))).collect();
        (all.iter().filter(|l| **l).count(), all.len())
    };
    let (nics, disks) = (count(|s| &s.nics), count(|s| &s.disks));
    if d.nodes.len() == 1 {
        return "This host has one node: only interrupts and services can be kept apart.".into();
    }
    let says = |(local, all): (usize, usize), what: &str| match all {
        0 => format!("the node of no {what} is known"),
        _ => format!("{local} of {all} are on the node of their {what}"),
    };
    format!("As proposed {}, and {}.", says(nics, "NIC"), says(disks, "disk"))
}

fn services(d: &PlacementDocument, page: &mut Page) {
    page.heading("SERVICES");
    let mut t = Table::new()
        .left("SERVICE")
        .right("PID")
        .right("NODE")
        .wrapping("CPUS")
        .wrapping("CPUS NOW")
        .wrapping("NIC (NODE)")
        .wrapping("DISK (NODE)");
    for s in &d.services {
        t.row([
            Line::plain(&s.name),
            Line::plain(s.pid),
            s.node.map_or_else(none, Line::plain),
            set(&s.cpus),
            reading(&s.cpus_now),
            devices(&s.nics),
            devices(&s.disks),
        ]);
    }
    page.table(&t, 0);
}

fn none() -> Line {
    Line::new().ink(Ink::Faint, "-")
}

fn set(cpus: &CpuSet) -> Line {
    if cpus.is_empty() { none() } else { Line::plain(cpus) }
}

fn devices(all: &[UsedDevice]) -> Line {
    let one = |d: &UsedDevice| match d.node.get() {
        Some(node) => format!("{} ({node})", d.name),
        None => format!("{} (-)", d.name),
    };
    match all.is_empty() {
        true => none(),
        false => Line::plain(all.iter().map(one).collect::<Vec<_>>().join(" ")),
    }
}

fn interrupts(d: &PlacementDocument, page: &mut Page) {
    if d.interrupts.is_empty() {
        return;
    }
    page.heading("INTERRUPTS");
    let mut t =
        Table::new().left("NIC").right("NODE").right("IRQS").wrapping("CPUS").wrapping("CPUS NOW");
    for i in &d.interrupts {
        t.row([
            Line::plain(&i.nic),
            reading(&i.node),
            Line::plain(i.movable),
            match i.cpus.is_empty() {
                true => Line::plain("as now"),
                false => Line::plain(&i.cpus),
            },
            set(&i.cpus_now),
        ]);
    }
    page.table(&t, 0);
}

/// One block for each node: who gets which of its CPUs.
fn picture(d: &PlacementDocument, page: &mut Page) {
    page.heading("NODES");
    for node in &d.nodes {
        let devices = match node.devices.is_empty() {
            true => "no device".into(),
            false => node.devices.join(" "),
        };
        let title = format!("node {}", node.id);
        page.line(
            Line::new().ink(Ink::Strong, title).text(format!(" · CPUs {} · {devices}", node.cpus)),
            2,
        );
        let mut t = Table::new().left("").wrapping("");
        for (cpus, who) in rows(d, node) {
            t.row([Line::plain("  ").also(Line::plain(cpus)), who]);
        }
        page.table(&t, 0);
    }
}

/// CPUs of a node with what runs there, by lowest CPU. Services with the same CPUs share a row.
fn rows(d: &PlacementDocument, node: &PlacedNode) -> Vec<(CpuSet, Line)> {
    let mut rows: Vec<(CpuSet, Line)> = vec![];
    let on_node = |i: &&PlacedInterrupts| !i.cpus.intersection(&node.cpus).is_empty();
    for i in d.interrupts.iter().filter(on_node) {
        rows.push((i.cpus.clone(), Line::plain(format!("interrupts of {}", i.nic))));
    }
    let here: Vec<&PlacedService> = d.services.iter().filter(|s| s.node == Some(node.id)).collect();
    let sets: BTreeSet<String> = here.iter().map(|s| s.cpus.to_string()).collect();
    for same in sets {
        let who: Vec<&PlacedService> =
            here.iter().copied().filter(|s| s.cpus.to_string() == same).collect();
        let names: Vec<String> = who.iter().map(|s| format!("{}[{}]", s.name, s.pid)).collect();
        if let Some(first) = who.first() {
            rows.push((first.cpus.clone(), Line::plain(names.join(" "))));
        }
    }
    if !node.free.is_empty() {
        rows.push((node.free.clone(), Line::new().ink(Ink::Faint, "not assigned")));
    }
    rows.sort_by_key(|(cpus, _)| cpus.first());
    rows
}

/// How each device is known to be used.
fn known_by(d: &PlacementDocument, page: &mut Page) {
    page.heading("USED DEVICES");
    let mut t = Table::new().left("SERVICE").left("DEVICE").wrapping("KNOWN BY");
    for s in &d.services {
        for device in s.nics.iter().chain(&s.disks) {
            t.row([
                Line::plain(format!("{}[{}]", s.name, s.pid)),
                Line::plain(&device.name),
                Line::plain(&device.known_by),
            ]);
        }
    }
    page.table(&t, 0);
}

fn changes(d: &PlacementDocument, page: &mut Page) {
    if d.changes.is_empty() {
        return;
    }
    page.heading("TO APPLY");
    for line in [
        "netwright place … --lines > placement.conf",
        "netwright tune plan placement.conf",
        "netwright tune apply placement.conf",
    ] {
        page.raw(&Line::plain("  ").also(Line::plain(line)));
    }
    if page.look().verbose {
        page.gap();
        for c in &d.changes {
            page.line(Line::plain(format!("  {}='{}'  # now {}", c.knob, c.new, c.old)), 4);
        }
    }
}

/// The changes as lines that `tune plan` reads.
pub fn lines(d: &PlacementDocument) -> String {
    let mut out = String::new();
    for c in &d.changes {
        out += &format!("{}={}\n", crate::clean(&c.knob), crate::clean(&c.new));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::golden;

    /// The twelve OSDs of `diagnose`'s test.
    fn twelve() -> PlacementDocument {
        serde_json::from_str(include_str!("golden/place.json")).unwrap()
    }

    #[test]
    fn services_interrupts_and_nodes_are_shown() {
        let answer = "Placement of 12 services on 4 nodes: 27 changes";
        golden!("place", answer, |style| text(&twelve(), style));
    }

    #[test]
    fn lines_are_what_tune_reads() {
        let lines = lines(&twelve());
        assert_eq!(lines.lines().count(), 27);
        assert!(lines.contains("process.1000.cpuset=8-15 mems 0\n"), "{lines}");
        assert!(lines.contains("irq.101.affinity="), "{lines}");
    }

    #[test]
    fn a_hostile_name_prints_no_escape() {
        let mut d = twelve();
        d.services[0].name = "a\x1b[31mb".into();
        d.services[0].disks[0].known_by = "/dev/\u{202e}x".into();
        let text = text(&d, TextStyle { verbose: true, ..TextStyle::default() });
        assert!(!text.contains(['\x1b', '\u{202e}']), "{text}");
    }
}
