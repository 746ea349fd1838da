//! NUMA nodes with their CPUs, memory and distances.

use super::View;
use crate::{
    text::{Ink, Line, Page, Table},
    words::reading,
};

pub fn show(v: &View<'_>, page: &mut Page) {
    page.heading("NUMA NODES");
    if v.facts.numa_nodes.is_empty() {
        page.line(Line::plain("  the kernel describes none"), 4);
        return;
    }
    let mut t =
        Table::new().right("NODE").wrapping("CPUS").right("MEMORY").right("FREE").wrapping("NICS");
    for n in &v.facts.numa_nodes {
        let at = |node: &model::Reading<model::NumaNode>| node.known() == Some(&n.id);
        let nics: Vec<&str> =
            v.facts.nics.iter().filter(|x| at(&x.numa_node)).map(|x| x.name.as_str()).collect();
        t.row([
            Line::plain(n.id),
            if n.cpus.is_empty() {
                Line::new().ink(Ink::Faint, "none")
            } else {
                Line::plain(&n.cpus)
            },
            reading(&n.memory_bytes),
            reading(&n.memory_free_bytes),
            Line::plain(nics.join(" ")),
        ]);
    }
    page.table(&t, 2);
    distances(v, page);
}

fn distances(v: &View<'_>, page: &mut Page) {
    if v.facts.numa_nodes.len() < 2 {
        return;
    }
    page.heading("DISTANCES");
    let mut t = Table::new().right("FROM");
    for n in &v.facts.numa_nodes {
        t = t.right(&n.id.to_string());
    }
    for n in &v.facts.numa_nodes {
        let mut row = vec![Line::plain(n.id)];
        for m in &v.facts.numa_nodes {
            let d = n.distances.as_ref().and_then(|d| {
                d.get(&m.id)
                    .copied()
                    .map_or_else(|| model::Reading::absent("not reported"), model::Reading::Known)
            });
            row.push(reading(&d));
        }
        t.row(row);
    }
    page.table(&t, 2);
}
