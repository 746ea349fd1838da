//! Interrupts from `/proc/interrupts` and `/proc/irq`, with the NIC and queue that each serves.

mod files;
mod owner;
#[cfg(test)]
mod tests;

pub use files::whole_list;
use std::collections::HashMap;

use model::{
    CpuSet, IrqId, NumaNode, Reading,
    facts::NoAccess,
    irq::Irq,
    nic::{Nic, Queue},
};
use parse::{
    interrupts::{Interrupts, IrqRow, Parser},
    irq_name::is_pci_address,
};

use crate::{ReadError, Root};

const INTERRUPTS: &str = "/proc/interrupts";
/// How often a file is read again when a CPU came or went while the kernel was writing it.
const TRIES: usize = 3;

/// Reads every numbered interrupt, ascending, and ties it to one of `nics`: first by the NAPI
/// instances they were given by netdev netlink, then by `msi_irqs` of their PCI devices, then
/// by the action names alone.
///
/// **Source**: `/proc/interrupts`, `/proc/irq/N/`, `msi_irqs/` and `numa_node` of
/// `/sys/bus/pci/devices/*`, debugfs `irq/irqs/N`. An interrupt that vanishes in between has absent affinities.
pub fn read(root: &Root, nics: &[Nic]) -> Reading<Vec<Irq>> {
    let table = match interrupts(root) {
        Ok(table) => table,
        Err(e) => return e.into_reading(),
    };
    let devices = msi_devices(root, nics, &table.irqs);
    let device = |r: &IrqRow| devices.get(&r.irq.0).cloned().or_else(|| address_of_chip(&r.chip));
    let of: Vec<Option<String>> = table.irqs.iter().map(device).collect();
    let raised: Vec<files::Raised> =
        table.irqs.iter().zip(&of).map(|(r, d)| (r.irq, d.as_deref())).collect();
    let files = files::read(root, &raised);
    let mut irqs: Vec<Irq> =
        table.irqs.into_iter().zip(files).zip(of).map(|((r, f), d)| irq(r, f, d)).collect();
    irqs.sort_by_key(|i| i.irq);
    owner::find(root, nics, &mut irqs);
    Reading::Known(irqs)
}

/// What could not be seen of interrupts.
pub fn no_access(irqs: &[Irq]) -> Option<NoAccess> {
    let why = irqs.first()?.managed.why_not()?;
    Some(NoAccess {
        what: "which interrupts the kernel alone places (managed)".into(),
        why: why.to_owned(),
        remedy: "debugfs mounted, a kernel with CONFIG_GENERIC_IRQ_DEBUGFS, and root".into(),
    })
}

/// Gives each NIC its interrupts and each queue the one that serves it, where netdev netlink
/// has not said it already.
pub fn attach(nics: &mut [Nic], irqs: &[Irq]) {
    for nic in nics.iter_mut() {
        let own: Vec<&Irq> = irqs
            .iter()
            .filter(|i| i.nic.known() == Some(&nic.name) || i.also_nics.contains(&nic.name))
            .collect();
        nic.irqs = own.iter().map(|i| i.irq).collect();
        let driver = nic.driver.known().map(String::as_str);
        for queue in nic.queues.iter_mut().filter(|q| !q.irq.is_known()) {
            queue.irq = irq_of(queue, &own, driver);
        }
    }
}

fn irq_of(queue: &Queue, own: &[&Irq], driver: Option<&str>) -> Reading<IrqId> {
    match own.iter().find(|i| i.queues.contains(&queue.id)) {
        Some(irq) => Reading::Known(irq.irq),
        None if driver == Some("hv_netvsc") => {
            Reading::absent("hv_netvsc is interrupted through the hypervisor callback (HYP)")
        }
        None if own.is_empty() => Reading::absent("this NIC has no interrupt"),
        None => Reading::absent("none of this NIC's interrupts names this queue"),
    }
}

/// `/proc/interrupts`, without holding it whole.
pub(crate) fn interrupts(root: &Root) -> Result<Interrupts, ReadError> {
    let mut tries = 0;
    loop {
        let mut parser = Parser::default();
        root.pieces(INTERRUPTS, &mut |piece| parser.feed(piece))?;
        let table = parser
            .finish()
            .map_err(|error| ReadError::Unparsable { path: INTERRUPTS.into(), error })?;
        tries += 1;
        if !table.is_torn() || tries == TRIES || !root.is_live() {
            return Ok(table);
        }
        root.forget(INTERRUPTS);
    }
}

/// PCI address by MSI or MSI-X interrupt: for the NICs' functions; for all functions where the chip
/// names (before 6.2) do not include it.
fn msi_devices(root: &Root, nics: &[Nic], rows: &[IrqRow]) -> HashMap<u32, String> {
    const PCI: &str = "/sys/bus/pci/devices";
    let nameless = |r: &IrqRow| r.chip.contains("MSI") && address_of_chip(&r.chip).is_none();
    let addresses = if rows.iter().any(nameless) {
        root.entries(PCI).unwrap_or_default()
    } else {
        let mut own: Vec<String> = nics.iter().filter_map(|n| n.bus_address.get()).collect();
        own.dedup();
        own
    };
    let mut found = HashMap::new();
    for address in addresses {
        for irq in root.entries(&format!("{PCI}/{address}/msi_irqs")).unwrap_or_default() {
            if let Ok(n) = irq.parse() {
                found.insert(n, address.clone());
            }
        }
    }
    found
}

fn irq(row: IrqRow, files: files::Files, device: Option<String>) -> Irq {
    let reported = |text: String, what: &str| {
        if text.is_empty() {
            Reading::Absent(format!("{INTERRUPTS} tells no {what}"))
        } else {
            Reading::Known(text)
        }
    };
    Irq {
        irq: row.irq,
        name: row.name,
        chip: reported(row.chip, "chip"),
        hwirq: reported(row.hwirq, "hardware number"),
        affinity: files.affinity,
        effective_affinity: files.effective_affinity,
        numa_node: files.numa_node,
        managed: files.managed,
        counts: row.counts.map_or_else(
            || Reading::Absent(format!("{INTERRUPTS}: its row has not a column for each CPU")),
            Reading::Known,
        ),
        device: device.map_or_else(|| Reading::absent("no MSI device names it"), Reading::Known),
        nic: Reading::absent("no NIC's"),
        also_nics: vec![],
        queues: vec![],
        queue: Reading::absent("no NIC's"),
        mapped_by: Reading::absent("no NIC's"),
    }
}

/// `0000:00:03.0` of `PCI-MSIX-0000:00:03.0`, since 6.2.
fn address_of_chip(chip: &str) -> Option<String> {
    let (_, address) = chip.rsplit_once('-')?;
    is_pci_address(address).then(|| address.to_owned())
}
