//! `/proc/interrupts` in the kernel's own layout, and `/proc/irq`.

use std::{
    fs::File,
    io::{self, BufWriter, Write},
};

use super::{Dice, Tree, TreeShape, list, mask};

pub struct Irq {
    pub number: usize,
    /// PCI address; empty for those of the chipset.
    pub device: String,
    pub node: Option<usize>,
    /// Vector of the device.
    pub vector: usize,
    pub name: String,
    /// CPUs that counted; `None` for all.
    pub cpus: Option<Vec<usize>>,
}

/// The address of a NIC.
pub fn nic_address(nic: usize) -> String {
    format!("0000:{:02x}:00.0", 0x41 + nic)
}

/// The node of a NIC.
pub fn nic_node(shape: &TreeShape, nic: usize) -> usize {
    nic * shape.nodes / shape.nics
}

/// The node of an NVMe controller.
pub fn nvme_node(shape: &TreeShape, n: usize) -> usize {
    n % shape.nodes
}

/// The address of an NVMe controller.
pub fn nvme_address(n: usize) -> String {
    format!("0000:{:02x}:{:02x}.0", 0xc1 + n / 32, n % 32)
}

/// Vectors of an NVMe controller, its administration queue's included.
pub const NVME_VECTORS: usize = 65;

/// A few of the chipset, then each NIC's event and queue vectors, then NVMe controllers.
pub fn plan(shape: &TreeShape) -> Vec<Irq> {
    let mut dice = Dice::new(shape.cpus as u64);
    let mut all: Vec<Irq> = Vec::with_capacity(shape.irqs);
    for (number, name) in [
        (0, "timer"),
        (4, "ttyS0"),
        (8, "rtc0"),
        (9, "acpi"),
        (16, "xhci_hcd:usb1, ahci[0000:00:17.0]"),
    ] {
        let cpus = (number != 0).then(|| vec![dice.below(shape.cpus)]);
        let device = String::new();
        all.push(Irq { number, device, node: None, vector: number, name: name.into(), cpus });
    }
    let mut number = 24;
    let mut add = |(device, node): (String, usize), vector: usize, name: String| {
        // One to three CPUs: the present one, and earlier ones. One interrupt in 200 has been
        // everywhere.
        let places = 1 + dice.below(3);
        let mut cpus: Vec<usize> = (0..places).map(|_| dice.below(shape.cpus)).collect();
        cpus.sort_unstable();
        cpus.dedup();
        let cpus = (number % 200 != 0).then_some(cpus);
        all.push(Irq { number, device, node: Some(node), vector, name, cpus });
        number += 1;
        all.len() < shape.irqs
    };
    for nic in 0..shape.nics {
        let place = (nic_address(nic), nic_node(shape, nic));
        add(place.clone(), 0, format!("ice-{}:misc", place.0));
        for queue in 0..shape.queues {
            add(place.clone(), queue + 1, format!("ice-eth{nic}-TxRx-{queue}"));
        }
    }
    let mut nvme = 0;
    'full: loop {
        for vector in 0..NVME_VECTORS {
            let place = (nvme_address(nvme), nvme_node(shape, nvme));
            if !add(place, vector, format!("nvme{nvme}q{vector}")) {
                break 'full;
            }
        }
        nvme += 1;
    }
    all
}

pub fn write(tree: &Tree, shape: &TreeShape, irqs: &[Irq]) -> io::Result<()> {
    tree.dir("proc/irq")?;
    table(tree, shape, irqs)?;
    let everywhere: Vec<usize> = (0..shape.cpus).collect();
    for irq in irqs {
        let dir = format!("proc/irq/{}", irq.number);
        let effective: Vec<usize> = irq.cpus.iter().flatten().take(1).copied().collect();
        let node = irq.node.map_or("-1".into(), |n| n.to_string());
        tree.files(
            &dir,
            &[
                ("smp_affinity", &mask(&everywhere, shape.cpus)),
                ("smp_affinity_list", &list(&everywhere)),
                ("effective_affinity", &mask(&effective, shape.cpus)),
                ("effective_affinity_list", &list(&effective)),
                ("affinity_hint", &mask(&[], shape.cpus)),
                ("node", &node),
                ("spurious", "count 0\nunhandled 0\nlast_unhandled 0 ms"),
            ],
        )?;
    }
    Ok(())
}

/// In the format of `show_interrupts`; written row by row, never held as a whole.
fn table(tree: &Tree, shape: &TreeShape, irqs: &[Irq]) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(tree.path("proc/interrupts"))?);
    let mut dice = Dice::new(7);
    let width = 4; // up to 9,999 interrupts
    write!(out, "{:1$}", "", width + 8)?;
    (0..shape.cpus).try_for_each(|cpu| write!(out, "CPU{cpu:<8}"))?;
    out.write_all(b"\n")?;
    for irq in irqs {
        write!(out, "{:>width$}:", irq.number)?;
        let mut counted = irq.cpus.iter().flatten().peekable();
        for cpu in 0..shape.cpus {
            let count = match &irq.cpus {
                None => dice.count(),
                Some(_) if counted.next_if(|&&c| c == cpu).is_some() => dice.count(),
                Some(_) => 0,
            };
            write!(out, " {count:>10}")?;
        }
        let chip = if irq.device.is_empty() {
            "IR-IO-APIC".to_owned()
        } else {
            format!("IR-PCI-MSIX-{}", irq.device)
        };
        writeln!(out, " {chip:>8} {:>width$}-{:<8}  {}", irq.vector, "edge", irq.name)?;
    }
    for (name, title) in [
        ("NMI", "Non-maskable interrupts"),
        ("LOC", "Local timer interrupts"),
        ("RES", "Rescheduling interrupts"),
        ("CAL", "Function call interrupts"),
        ("TLB", "TLB shootdowns"),
    ] {
        write!(out, "{name:>width$}:")?;
        (0..shape.cpus).try_for_each(|_| write!(out, " {:>10}", dice.count()))?;
        writeln!(out, "   {title}")?;
    }
    for name in ["ERR", "MIS"] {
        writeln!(out, "{name:>width$}: {:>10}", 0)?;
    }
    out.flush()
}
