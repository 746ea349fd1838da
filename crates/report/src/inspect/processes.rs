//! The chosen processes: where their threads and memory are.

use std::collections::BTreeMap;

use model::{
    CpuSet,
    process::{Process, SocketSummary, Thread},
    reading::Known,
};

use super::{View, dotted, fact};
use crate::{
    text::{Ink, Line, Page, Table},
    words::{cpus, grouped, many, ranges, reading, reading_as},
};

/// A few lines each.
pub fn brief(v: &View<'_>, page: &mut Page) {
    if v.facts.processes.is_empty() {
        return;
    }
    page.heading("PROCESSES");
    for p in &v.facts.processes {
        page.line(Line::plain("  ").also(head(p)), 4);
        page.line(Line::plain("    ").also(placement(v, p)), 6);
    }
}

pub fn show(v: &View<'_>, page: &mut Page) {
    page.heading("PROCESSES");
    if v.facts.processes.is_empty() {
        page.line(
            Line::plain("  none asked for; choose by --pid, --name, --port, --unit, --container"),
            4,
        );
    }
    for p in &v.facts.processes {
        page.line(Line::plain("  ").also(head(p)), 4);
        page.line(Line::plain("    ").also(placement(v, p)), 6);
        page.line(Line::plain("    ").also(more(p)), 6);
        let mut t = Table::new()
            .right("TID")
            .left("NAME")
            .right("LAST CPU")
            .left("NODE")
            .wrapping("MAY RUN ON")
            .right("MIGRATIONS")
            .right("CPU TIME");
        let hz = v.facts.host.clock_ticks_per_s.get().filter(|&hz| hz > 0);
        for th in &p.threads {
            let node = th.last_cpu.get().and_then(|c| v.places.cpu(c)?.numa_node.get());
            t.row([
                Line::plain(th.tid),
                Line::plain(&th.name),
                reading(&th.last_cpu),
                node.map_or_else(|| Line::new().ink(Ink::Faint, "-"), Line::plain),
                reading(&th.affinity),
                reading_as(&th.migrations, |m| grouped(*m)),
                reading_as(&th.cpu_ticks, |ticks| match hz {
                    Some(hz) => format!("{:.1} s", *ticks as f64 / hz as f64),
                    None => format!("{ticks} ticks"),
                }),
            ]);
        }
        page.table(&t, 4);
    }
}

fn head(p: &Process) -> Line {
    let unit = p.unit.get().filter(|u| !u.is_empty());
    let container = p.container.get().filter(|c| c != "none");
    dotted([
        Line::new().ink(Ink::Strong, format!("{}[{}]", p.name, p.pid)),
        Line::new().ink(Ink::Faint, format!("selected by {}", p.chosen_by)),
        Line::plain(many(p.threads.len(), "thread")),
        unit.map(Line::plain).unwrap_or_default(),
        container.map(|c| Line::plain(format!("container {c}"))).unwrap_or_default(),
        p.sockets.known().map(|s| Line::plain(sockets(s))).unwrap_or_default(),
    ])
}

fn sockets(s: &SocketSummary) -> String {
    let mut parts = vec![];
    if !s.listening_ports.is_empty() {
        parts.push(format!("listens on {}", ranges(s.listening_ports.iter().map(|&p| p.into()))));
    }
    if s.established > 0 {
        parts.push(many(s.established as usize, "connection"));
    }
    if s.udp > 0 {
        parts.push(many(s.udp as usize, "UDP socket"));
    }
    parts.join(", ")
}

/// Where it ran, where it may run, where its memory is.
fn placement(v: &View<'_>, p: &Process) -> Line {
    let last: CpuSet = p.threads.iter().filter_map(|t| t.last_cpu.get()).collect();
    let nodes = v.places.nodes(&last);
    let mut may: BTreeMap<CpuSet, usize> = BTreeMap::new();
    for t in &p.threads {
        if let Known(set) = &t.affinity {
            *may.entry(set.clone()).or_default() += 1;
        }
    }
    let memory = p
        .memory_by_node
        .as_ref()
        .map(|m| m.iter().map(|(n, b)| format!("node {n} {b}")).collect::<Vec<_>>().join(", "));
    dotted([
        if last.is_empty() {
            Line::new()
        } else {
            Line::plain(format!("last ran on {}", cpus(&last))).text(if nodes.is_empty() {
                String::new()
            } else {
                {
                    let s = if nodes.len() == 1 { "" } else { "s" };
                    format!(" (node{s} {})", ranges(nodes.iter().map(|n| n.0)))
                }
            })
        },
        match may.len() {
            0 => Line::new(),
            1 => Line::plain(format!(
                "may run on {}",
                may.keys().next().map(cpus).unwrap_or_default()
            )),
            n => Line::plain(format!("{n} different affinities")),
        },
        fact("memory", &memory, String::clone),
        migrations(&p.threads),
    ])
}

fn migrations(threads: &[Thread]) -> Line {
    let known: Option<Vec<u64>> = threads.iter().map(|t| t.migrations.get()).collect();
    match known {
        Some(all) if !all.is_empty() => {
            Line::plain(many(all.iter().sum::<u64>() as usize, "migration"))
        }
        _ => Line::new(),
    }
}

fn more(p: &Process) -> Line {
    dotted([
        fact("cpuset", &p.cpuset_cpus, ToString::to_string),
        fact("memory nodes", &p.cpuset_mems, ToString::to_string),
        fact("cgroup", &p.cgroup, String::clone),
        fact("net namespace", &p.net_namespace, ToString::to_string),
        fact("command", &p.arguments, |a| a.join(" ")),
    ])
}
