//! `inspect`: the host's topology, its NICs, and where their interrupts went.

use model::Facts;

use super::{
    Part, Written,
    shared::{many, remarks},
};
use crate::{
    block::{Block, Cell, Chapter, Table, Text},
    chart::Heat,
    document::Document,
    unit::Unit,
};

/// The most interrupts on the map.
const MOST_ROWS: usize = 40;

/// The most CPUs on the map.
const MOST_CPUS: usize = 128;

pub fn write(d: &Document, facts: &Facts) -> Written {
    let host = facts.host.name.get().unwrap_or_else(|| "a host without a name".into());
    let mut w =
        Written { chapter: Chapter::new("", format!("The host {host}")), ..Written::default() };
    let kernel = facts.host.kernel.get().map(|k| format!("Linux {k}"));
    let parts = [
        kernel,
        facts.host.distribution.get(),
        facts.host.cpu_model.get(),
        Some(many(facts.cpus.len(), "CPU")),
        Some(many(facts.numa_nodes.len(), "NUMA node")),
        Some(many(facts.nics.len(), "network interface")),
    ];
    let text = parts.into_iter().flatten().collect::<Vec<_>>().join(" · ");
    w.tell(Part::Measured, Text::strong(format!("The host {host}: ")).and(format!("{text}.")));
    let chapter = &mut w.chapter;
    chapter.say(Text::plain(text));
    chapter.heading("Topology");
    chapter.blocks.push(Block::Picture {
        svg: report::picture::svg(facts),
        about: format!("{host}: packages, NUMA nodes, caches and cores, with NICs at their node and interrupts on their CPUs."),
    });
    nics(d, facts, chapter);
    interrupts(facts, chapter);
    let line = |n: &model::facts::NoAccess| format!("{}: {}", n.what, n.why);
    remarks("Not read", facts.no_access.iter().map(line).collect(), chapter);
    w
}

fn nics(d: &Document, facts: &Facts, chapter: &mut Chapter) {
    chapter.heading("Network interfaces");
    let mut table = Table::new("Network interfaces of this network namespace")
        .words("interface")
        .words("driver")
        .figures("speed")
        .figures("MTU")
        .figures("NUMA node")
        .figures("channels")
        .figures("of at most")
        .figures("rx ring");
    for (n, nic) in facts.nics.iter().enumerate() {
        let at = |key: &str| format!("/nics/{n}/{key}");
        // A channel that is not there is no missing figure.
        let count = |key: &str| {
            d.number(&at(key)).map_or_else(Cell::none, |x| Cell::figure(&at(key), x, Unit::Count))
        };
        table.row([
            Cell::text(&nic.name),
            Cell::text(nic.driver.get().unwrap_or_else(|| nic.kind.clone())),
            d.number(&at("speed_bps")).map_or_else(Cell::none, |x| {
                Cell::figure(&at("speed_bps"), x, Unit::BitsPerSecond)
            }),
            count("mtu"),
            count("numa_node"),
            count("channels/combined"),
            count("channels/max_combined"),
            count("rings/rx"),
        ]);
    }
    chapter.table(table.without_empty_columns());
}

/// Interrupts of NICs by CPU, since boot.
fn interrupts(facts: &Facts, chapter: &mut Chapter) {
    let cpus: Vec<_> = facts.cpus.iter().map(|c| c.id).collect();
    let Some(irqs) = facts.irqs.known() else {
        return chapter.say(Text::plain(format!(
            "Interrupts: {}.",
            facts.irqs.why_not().unwrap_or_default()
        )));
    };
    let title = "Interrupts of network interfaces by CPU since boot";
    let mut table = cpus
        .iter()
        .fold(Table::new(title).words("interrupt"), |t, cpu| t.figures(format!("CPU {cpu}")));
    let mut rows = vec![];
    for (n, irq) in irqs.iter().enumerate() {
        let (Some(nic), Some(counts)) = (irq.nic.known(), irq.counts.known()) else { continue };
        let queue = irq.queue.get().unwrap_or_else(|| irq.name.clone());
        let label = format!("{nic} {queue}");
        let position = |cpu| counts.iter().position(|c| c.cpu == cpu);
        let cell = |cpu: &model::CpuId| match position(*cpu) {
            Some(k) => {
                let count = counts.get(k).map_or(0, |c| c.count);
                Cell::figure(&format!("/irqs/{n}/counts/{k}/count"), count as f64, Unit::Count)
            }
            // The document has the counts above zero.
            None => Cell::zero(),
        };
        table.row([Cell::text(&label)].into_iter().chain(cpus.iter().map(cell)));
        let count =
            |cpu: &model::CpuId| position(*cpu).and_then(|k| counts.get(k)).map(|c| c.count as f64);
        rows.push((label, cpus.iter().take(MOST_CPUS).map(count).collect()));
    }
    chapter.heading("Interrupts");
    if rows.is_empty() {
        return chapter.say(Text::plain("No interrupt is known to be a network interface's."));
    }
    let mut about = "Share of each interrupt's count since boot by CPU; darker is more".to_owned();
    if rows.len() > MOST_ROWS {
        about += &format!("; the first {MOST_ROWS} of {} interrupts", rows.len());
        rows.truncate(MOST_ROWS);
    }
    if cpus.len() > MOST_CPUS {
        about += &format!("; the first {MOST_CPUS} of {} CPUs", cpus.len());
    }
    let columns = cpus.iter().take(MOST_CPUS).map(ToString::to_string).collect();
    chapter.figure(Heat { about: format!("{about}."), across: "CPU".into(), columns, rows }, table);
}
