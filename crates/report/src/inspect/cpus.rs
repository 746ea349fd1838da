//! CPUs, caches, idle states.

use std::collections::BTreeMap;

use model::{CpuSet, cpu::Cpu};

use super::{View, fact};
use crate::{
    text::{Ink, Line, Page, Table},
    words::{reading, yes_no},
};

pub fn show(v: &View<'_>, page: &mut Page) {
    page.heading("CPUS");
    let mut t = Table::new()
        .right("CPU")
        .left("ONLINE")
        .right("PACKAGE")
        .right("DIE")
        .right("CLUSTER")
        .right("CORE")
        .right("NODE")
        .right("L3")
        .left("SIBLINGS")
        .left("ISOLATED")
        .left("NOHZ");
    for c in &v.facts.cpus {
        t.row([
            Line::plain(c.id),
            yes_no(&c.online),
            reading(&c.package_id),
            reading(&c.die_id),
            reading(&c.cluster_id),
            reading(&c.core_id),
            reading(&c.numa_node),
            reading(&c.l3_id),
            reading(&c.smt_siblings),
            yes_no(&c.isolated),
            yes_no(&c.nohz_full),
        ]);
    }
    page.table(&t, 2);
    page.line(Line::new().ink(Ink::Faint, "  An L3 is named by the lowest CPU that uses it."), 2);
    frequency(v, page);
    caches(v, page);
    idle(v, page);
}

/// CPUs with the same answer in one row.
fn frequency(v: &View<'_>, page: &mut Page) {
    let mut groups: BTreeMap<[String; 5], (CpuSet, Vec<Line>)> = BTreeMap::new();
    for c in &v.facts.cpus {
        let cells = frequency_cells(c);
        let key = cells.clone().map(|l| l.bare());
        groups.entry(key).or_insert_with(|| (CpuSet::new(), cells.to_vec())).0.insert(c.id);
    }
    page.heading("FREQUENCY");
    let mut t = Table::new()
        .wrapping("CPUS")
        .left("GOVERNOR")
        .left("DRIVER")
        .left("RANGE")
        .left("THROTTLED")
        .left("PREFERENCE");
    for (set, cells) in groups.into_values() {
        t.row([Line::plain(set)].into_iter().chain(cells));
    }
    page.table(&t, 2);
    if let Some(why) = v.facts.cpus.first().and_then(|c| c.frequency.governor.why_not()) {
        page.line(Line::plain("  ").ink(Ink::Faint, why), 4);
    }
}

fn frequency_cells(c: &Cpu) -> [Line; 5] {
    let f = &c.frequency;
    let mhz = |khz: &u64| format!("{} MHz", khz / 1000);
    let mut range = crate::words::reading_as(&f.min_khz, mhz);
    if f.max_khz.is_known() {
        range = range.text(" to ").also(crate::words::reading_as(&f.max_khz, mhz));
    }
    if let (Some(now), Some(most)) = (f.max_khz.get(), f.hardware_max_khz.get())
        && now < most
    {
        range.push(Ink::Warn, format!(" of {}", mhz(&most)));
    }
    [
        reading(&f.governor),
        reading(&f.driver),
        range,
        reading(&c.core_throttle_count),
        reading(&f.energy_preference),
    ]
}

fn caches(v: &View<'_>, page: &mut Page) {
    if v.facts.caches.is_empty() {
        return;
    }
    page.heading("CACHES");
    let mut groups: BTreeMap<(u32, String, String, usize), Vec<&CpuSet>> = BTreeMap::new();
    for c in &v.facts.caches {
        let size = reading(&c.size_bytes).bare();
        groups.entry((c.level, c.kind.clone(), size, c.cpus.len())).or_default().push(&c.cpus);
    }
    let mut t =
        Table::new().left("LEVEL").left("KIND").right("SIZE").right("NUMBER").wrapping("SHARED BY");
    for ((level, kind, size, _), sets) in groups {
        let shared: Vec<String> = sets.iter().map(|s| s.to_string()).collect();
        t.row([
            Line::plain(format!("L{level}")),
            Line::plain(kind),
            Line::plain(size),
            Line::plain(sets.len()),
            Line::plain(shared.join("  ")),
        ]);
    }
    page.table(&t, 2);
}

fn idle(v: &View<'_>, page: &mut Page) {
    let Some(first) = v.facts.idle_states.first() else { return };
    page.heading("IDLE STATES");
    page.line(
        Line::plain("  ")
            .also(fact("driver", &first.driver, String::clone))
            .ink(Ink::Faint, " · ")
            .also(fact("governor", &first.governor, String::clone)),
        4,
    );
    let mut t = Table::new()
        .left("STATE")
        .right("EXIT")
        .right("TARGET RESIDENCY")
        .wrapping("CPUS")
        .wrapping("DISABLED ON")
        .wrapping("DESCRIPTION");
    for s in &v.facts.idle_states {
        t.row([
            Line::plain(&s.name),
            reading(&s.exit_latency_ns),
            reading(&s.residency_ns),
            Line::plain(&s.cpus),
            if s.disabled_cpus.is_empty() {
                Line::new().ink(Ink::Faint, "-")
            } else {
                Line::plain(&s.disabled_cpus)
            },
            reading(&s.description),
        ]);
    }
    page.table(&t, 2);
}
