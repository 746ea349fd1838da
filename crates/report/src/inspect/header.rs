//! The first lines: the host, and its topology.

use model::{CpuSet, reading::Known};

use super::{View, dotted};
use crate::{
    text::{Ink, Line, Page},
    words::{cpus, many},
};

pub fn show(v: &View<'_>, page: &mut Page) {
    let h = &v.facts.host;
    let or_nothing = |r: &model::Reading<String>| r.get().map(Line::plain).unwrap_or_default();
    let name = h.name.get().unwrap_or_else(|| "unnamed host".into());
    let runs_in = match &h.hypervisor {
        Known(x) if x == "none" => Line::plain("bare metal"),
        Known(x) => Line::plain(format!("{x} guest")),
        _ => Line::new(),
    };
    let container = match &h.container {
        Known(x) if x != "none" => Line::plain(format!("in a {x} container")),
        _ => Line::new(),
    };
    let mut parts = [
        Line::new().ink(Ink::Strong, name),
        h.kernel.get().map(|k| Line::plain(format!("Linux {k}"))).unwrap_or_default(),
        or_nothing(&h.arch),
        runs_in,
        container,
        or_nothing(&h.distribution),
        or_nothing(&h.machine),
    ];
    // Without room for one line, what `inspect host` also has is left out.
    for part in (2..parts.len()).rev() {
        if dotted(parts.to_vec()).width() > page.look().width
            && let Some(part) = parts.get_mut(part)
        {
            *part = Line::new();
        }
    }
    page.line(dotted(parts), 2);
    page.line(dotted(shape(v)), 2);
    page.line(dotted(exceptions(v)), 2);
}

fn shape(v: &View<'_>) -> Vec<Line> {
    let f = v.facts;
    let count = |n: usize, what: &str| {
        if n == 0 { Line::new() } else { Line::plain(many(n, what)) }
    };
    if f.cpus.is_empty() {
        return vec![Line::plain("CPUs not known")];
    }
    let online = v.places.online(None);
    let threads = match v.places.cores() {
        Some(cores) => many(cores, "core"),
        None => "cores not known".into(),
    };
    vec![
        count(v.places.packages(), "package"),
        count(f.numa_nodes.len(), "NUMA node"),
        count(v.places.l3_count(), "L3 cache"),
        Line::plain(threads),
        Line::plain(format!("{} ({online})", many(online.len(), "CPU"))),
        f.host.cpu_model.get().map(Line::plain).unwrap_or_default(),
        f.memory_bytes.get().map(|b| Line::plain(format!("{b} memory"))).unwrap_or_default(),
    ]
}

/// CPUs that are not like the others.
fn exceptions(v: &View<'_>) -> Vec<Line> {
    let set = |pick: &dyn Fn(&model::cpu::Cpu) -> bool| -> CpuSet {
        v.facts.cpus.iter().filter(|c| pick(c)).map(|c| c.id).collect()
    };
    let say = |set: CpuSet, what: &str| {
        if set.is_empty() {
            Line::new()
        } else {
            Line::new().ink(Ink::Warn, format!("{} {what}", cpus(&set)))
        }
    };
    vec![
        say(set(&|c| c.online == Known(false)), "offline"),
        say(set(&|c| c.isolated == Known(true)), "isolated"),
        say(set(&|c| c.nohz_full == Known(true)), "nohz_full"),
    ]
}
