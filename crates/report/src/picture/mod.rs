//! `inspect --picture`: one self-contained SVG of packages, nodes, L3s and cores. It has the NICs
//! at their node, and interrupts and chosen processes on their CPUs.

mod draw;
mod layout;
mod legend;
mod marks;
mod scale;
mod svg;
mod tree;

use model::{Facts, nic::Nic};

use crate::{inspect::is_physical, places::CpuPlaces, words::many};
use draw::{FAINT, INK, Scene};
use layout::{arrange, lay};
use scale::Scale;
use svg::{Font, Svg, fit};
use tree::{Block, BoxKind};

const MARGIN: f64 = 24.0;
/// Title and two lines below it.
const HEAD: f64 = 74.0;
/// The least width of a page that holds the title and legend.
const NARROWEST: f64 = 620.0;

/// The picture of a host.
pub fn svg(facts: &Facts) -> String {
    let mut blocks = tree::blocks(facts);
    let homeless = put_nics(facts, &mut blocks);
    let marks = marks::of(facts);
    let drawn = nics_with_marks(facts);
    let highest = facts.cpus.iter().map(|c| c.id.0).max().unwrap_or(0);
    let scale = Scale::for_cpus(facts.cpus.len(), highest);
    let scene = Scene { facts, places: CpuPlaces::new(facts), marks, drawn, scale };
    // Nodes without CPUs (accelerators' memory, persistent memory) go below, side by side.
    let (with, without): (Vec<&Block>, Vec<&Block>) =
        blocks.iter().partition(|b| !b.inside.is_empty());
    let lay_all = |list: Vec<_>| list.into_iter().map(|b| lay(b, &scene.scale)).collect();
    let parts = [arrange(lay_all(with), 16.0, 1.7), arrange(lay_all(without), 16.0, 12.0)];
    let width = parts.iter().map(|(_, size)| size.0).fold(NARROWEST, f64::max);
    let mut out = Svg::default();
    title(facts, width, &mut out);
    let mut y = HEAD + MARGIN;
    y = unplaced(&scene, &homeless, (y, width), &mut out);
    for (boxes, (_, height)) in &parts {
        for ((x, top), laid) in boxes {
            scene.block(laid, (MARGIN + x, y + top), &mut out);
        }
        y += if *height > 0.0 { height + 18.0 } else { 0.0 };
    }
    y = legend::draw(&scene, (MARGIN, y), width, &mut out);
    out.finish((width + 2.0 * MARGIN, y + MARGIN), &name(facts))
}

fn name(facts: &Facts) -> String {
    facts.host.name.get().unwrap_or_else(|| "unnamed host".into())
}

fn title(facts: &Facts, width: f64, out: &mut Svg) {
    out.text((MARGIN, MARGIN + 18.0), Font::new(20.0, INK).bold(), &fit(&name(facts), 20.0, width));
    let software = [
        facts.host.kernel.get().map(|k| format!("Linux {k}")),
        facts.host.arch.get(),
        facts.host.hypervisor.get().filter(|h| h != "none").map(|h| format!("{h} guest")),
    ];
    let lines = [hardware(facts), software.into_iter().flatten().collect()];
    for (i, parts) in lines.into_iter().enumerate() {
        let text = fit(&parts.join(" · "), 12.0, width);
        out.text((MARGIN, MARGIN + 38.0 + 17.0 * i as f64), Font::new(12.0, FAINT), &text);
    }
}

fn hardware(facts: &Facts) -> Vec<String> {
    let p = CpuPlaces::new(facts);
    let count = |n: usize, what: &str| (n > 0).then(|| many(n, what));
    let unknown = match (p.packages(), facts.numa_nodes.len()) {
        (0, 0) => Some("topology not known".to_owned()),
        (0, _) => Some("packages not known".to_owned()),
        _ => None,
    };
    let parts = [
        count(p.packages(), "package"),
        count(facts.numa_nodes.len(), "node"),
        count(p.l3_count(), "L3"),
        p.cores().and_then(|n| count(n, "core")),
        count(facts.cpus.len(), "CPU"),
        unknown.filter(|_| !facts.cpus.is_empty()),
        facts.memory_bytes.get().map(|b| b.to_string()),
        facts.host.cpu_model.get(),
    ];
    parts.into_iter().flatten().collect()
}

/// Puts every NIC with a device at its node; returns those without a known node.
fn put_nics(facts: &Facts, blocks: &mut [Block]) -> Vec<usize> {
    let physical = facts.nics.iter().enumerate().filter(|(_, n)| is_physical(n));
    physical.filter(|(i, nic)| !put(*i, nic, blocks)).map(|(i, _)| i).collect()
}

fn put(at: usize, nic: &Nic, blocks: &mut [Block]) -> bool {
    let Some(home) = nic.numa_node.get() else { return false };
    blocks.iter_mut().any(|b| {
        if b.kind == BoxKind::Node(Some(home)) {
            b.nics.push(at);
            return true;
        }
        put(at, nic, &mut b.inside)
    })
}

/// NICs with interrupts first, as the order sets the colours.
fn nics_with_marks(facts: &Facts) -> Vec<usize> {
    let physical: Vec<(usize, &Nic)> =
        facts.nics.iter().enumerate().filter(|(_, n)| is_physical(n)).collect();
    let (with, without): (Vec<_>, Vec<_>) =
        physical.into_iter().partition(|(_, n)| !n.irqs.is_empty());
    with.into_iter().chain(without).map(|(i, _)| i).collect()
}

/// NICs without a known node, in rows above the CPUs.
fn unplaced(scene: &Scene<'_>, nics: &[usize], (y, width): (f64, f64), out: &mut Svg) -> f64 {
    if nics.is_empty() {
        return y;
    }
    let why = if scene.facts.numa_nodes.len() > 1 { "NICs (node not known)" } else { "NICs" };
    out.text((MARGIN, y + 4.0), Font::new(12.0, INK).bold(), why);
    let (w, h) = scene.scale.nic;
    let step = w + scene.scale.nic_gap;
    let per_row = ((width + scene.scale.nic_gap) / step).floor().max(1.0) as usize;
    for (i, nic) in nics.iter().enumerate() {
        let at = ((i % per_row) as f64 * step, (i / per_row) as f64 * (h + 6.0));
        scene.nic(*nic, (MARGIN + at.0, y + 12.0 + at.1), out);
    }
    y + 12.0 + nics.len().div_ceil(per_row) as f64 * (h + 6.0) + 12.0
}

#[cfg(test)]
mod tests;
