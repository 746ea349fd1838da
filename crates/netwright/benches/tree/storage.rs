//! Writes NVMe controllers, which have most of the interrupts of a large host.

use std::io;

use super::{
    Tree, TreeShape,
    irq::{Irq, NVME_VECTORS, nvme_address, nvme_node},
    nic::pci,
};

pub fn write(tree: &Tree, shape: &TreeShape, irqs: &[Irq]) -> io::Result<()> {
    tree.dir("sys/bus/pci/drivers/nvme")?;
    tree.dir("sys/class/nvme")?;
    let count = irqs.iter().filter(|i| i.name.starts_with("nvme")).count().div_ceil(NVME_VECTORS);
    for n in 0..count {
        let (address, node) = (nvme_address(n), nvme_node(shape, n));
        pci(tree, shape, &address, node, ["0x144d", "0xa80a", "0x010802", "nvme"], irqs)?;
        let at = format!("devices/pci0000:40/0000:40:01.1/{address}/nvme/nvme{n}");
        let node = node.to_string();
        tree.files(
            &format!("sys/{at}"),
            &[
                ("model", "SAMSUNG MZQL2960HCJR-00A07"),
                ("serial", "S64FNE0R000000"),
                ("firmware_rev", "GDC5602Q"),
                ("transport", "pcie"),
                ("state", "live"),
                ("address", &address),
                ("numa_node", &node),
                ("queue_count", "65"),
            ],
        )?;
        tree.link(&format!("sys/{at}/device"), "../..")?;
        tree.link(&format!("sys/class/nvme/nvme{n}"), &format!("../../{at}"))?;
    }
    Ok(())
}
