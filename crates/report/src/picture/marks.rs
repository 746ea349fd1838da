//! The marks of a CPU: interrupts that go there, threads that last ran there.

use std::collections::BTreeMap;

use model::{CpuId, Facts, IrqId, reading::Known};

use crate::words::queues;

/// Colours that people with any colour vision tell apart (Okabe and Ito, "Color Universal
/// Design", 2008), dark enough for white figures on them.
pub const COLOURS: [&str; 6] = ["#0072b2", "#c04a00", "#00795a", "#a3477a", "#8a6100", "#4b5563"];

/// An interrupt with more target CPUs than this is listed in text, not drawn.
const WIDE: usize = 16;
/// The most process names with their own letter; the rest share one.
const LETTERS: usize = 8;

/// One interrupt on one CPU.
#[derive(Debug, Clone, PartialEq)]
pub struct Landing {
    pub irq: IrqId,
    /// Its NIC, by position in `Facts::nics`.
    pub nic: usize,
    /// Whether it may go to other CPUs too.
    pub shared: bool,
    /// Whether the CPU is on another node than the NIC.
    pub away: bool,
    pub title: String,
}

/// All marks of a picture.
#[derive(Debug, Default)]
pub struct Marks {
    pub landings: BTreeMap<CpuId, Vec<Landing>>,
    /// Threads by CPU: how many of which group.
    pub threads: BTreeMap<CpuId, BTreeMap<usize, usize>>,
    /// Groups of processes: letter, name, processes, threads.
    pub groups: Vec<Group>,
    /// What could not be drawn, as text.
    pub left_out: Vec<String>,
}

/// Processes of one name.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    pub letter: char,
    pub name: String,
    pub processes: usize,
    pub threads: usize,
}

/// The colour of a NIC's interrupts.
pub fn colour(nic: usize, drawn: &[usize]) -> &'static str {
    let at = drawn.iter().position(|n| *n == nic).unwrap_or(COLOURS.len());
    COLOURS.get(at).or(COLOURS.last()).copied().unwrap_or("#4b5563")
}

pub fn of(facts: &Facts) -> Marks {
    let mut m = Marks::default();
    interrupts(facts, &mut m);
    threads(facts, &mut m);
    m
}

fn interrupts(facts: &Facts, m: &mut Marks) {
    let by_name: BTreeMap<&str, usize> =
        facts.nics.iter().enumerate().map(|(i, n)| (n.name.as_str(), i)).collect();
    let nodes: BTreeMap<CpuId, _> =
        facts.cpus.iter().filter_map(|c| Some((c.id, c.numa_node.get()?))).collect();
    let mut wide: BTreeMap<&str, usize> = BTreeMap::new();
    for irq in facts.irqs.known().into_iter().flatten() {
        let Some((name, nic)) = irq.nic.known().and_then(|n| by_name.get_key_value(n.as_str()))
        else {
            continue;
        };
        let Known(target) = irq.target() else { continue };
        if target.len() > WIDE {
            *wide.entry(name).or_default() += 1;
            continue;
        }
        let home = facts.nics.get(*nic).and_then(|n| n.numa_node.get());
        let serves = if irq.queues.is_empty() { irq.name.clone() } else { queues(&irq.queues) };
        for cpu in target.iter() {
            let here = nodes.get(&cpu).copied();
            m.landings.entry(cpu).or_default().push(Landing {
                irq: irq.irq,
                nic: *nic,
                shared: target.len() > 1,
                away: home.is_some() && here.is_some() && home != here,
                title: format!("IRQ {} {name} {serves}", irq.irq),
            });
        }
    }
    for (name, n) in wide {
        m.left_out.push(format!(
            "{n} interrupt{} of {name} may go to more than {WIDE} CPUs and {} not drawn",
            if n == 1 { "" } else { "s" },
            if n == 1 { "is" } else { "are" },
        ));
    }
}

fn threads(facts: &Facts, m: &mut Marks) {
    for p in &facts.processes {
        let known = m.groups.iter().position(|g| g.name == p.name);
        let at = known.unwrap_or_else(|| {
            if m.groups.len() < LETTERS {
                let letter = char::from(b'A' + m.groups.len() as u8);
                m.groups.push(Group { letter, name: p.name.clone(), processes: 0, threads: 0 });
            } else if m.groups.len() == LETTERS {
                let name = "other processes".into();
                m.groups.push(Group { letter: '*', name, processes: 0, threads: 0 });
            }
            m.groups.len() - 1
        });
        if let Some(g) = m.groups.get_mut(at) {
            g.processes += 1;
            g.threads += p.threads.len();
        }
        for cpu in p.threads.iter().filter_map(|t| t.last_cpu.get()) {
            *m.threads.entry(cpu).or_default().entry(at).or_default() += 1;
        }
    }
}
