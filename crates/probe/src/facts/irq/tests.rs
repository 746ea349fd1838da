use std::{fs, os::unix::fs::symlink, path::Path};

use model::{CpuId, QueueId, irq::Mapping, napi::Napi};
use serde_json::{Value, json};

use super::*;

/// A host's tree, made of a list of interrupts.
struct Tree {
    dir: tempfile::TempDir,
    rows: String,
}

impl Tree {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), rows: String::new() }
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A PCI function with its MSI interrupts.
    fn pci(&self, address: &str, irqs: std::ops::Range<u32>) {
        for irq in irqs {
            self.write(&format!("sys/devices/pci0000:00/{address}/msi_irqs/{irq}"), "msix\n");
        }
        let devices = self.dir.path().join("sys/bus/pci/devices");
        fs::create_dir_all(&devices).unwrap();
        symlink(Path::new("../../../devices/pci0000:00").join(address), devices.join(address))
            .unwrap();
    }

    /// An interface on `device`, a path below the PCI root.
    fn nic(&self, name: &str, device: &str, queues: u32) -> Nic {
        let folder = format!("sys/devices/pci0000:00/{device}/net/{name}");
        self.write(&format!("{folder}/ifindex"), "2\n");
        symlink("../..", self.dir.path().join(&folder).join("device")).unwrap();
        let class = self.dir.path().join("sys/class/net");
        fs::create_dir_all(&class).unwrap();
        symlink(Path::new("../../../").join(&folder), class.join(name)).unwrap();
        let mut nic = bare(name);
        let (rx, tx) = ((0..queues).map(QueueId::rx), (0..queues).map(QueueId::tx));
        nic.queues = rx.chain(tx).map(queue).collect();
        nic
    }

    fn irq(&mut self, irq: u32, chip: &str, name: &str) {
        self.rows += &format!("{irq:4}: {:>10} {:>10} {chip}  {name}\n", 0, irq);
        self.write(&format!("proc/irq/{irq}/smp_affinity_list"), "0-2\n");
        self.write(&format!("proc/irq/{irq}/effective_affinity_list"), "2\n");
        self.write(&format!("proc/irq/{irq}/node"), "1\n");
    }

    fn read(&self, nics: &[Nic]) -> Vec<Irq> {
        self.write(
            "proc/interrupts",
            &format!("            CPU0       CPU2       \n{}", self.rows),
        );
        read(&Root::open(self.dir.path()).unwrap(), nics).into_known().unwrap()
    }

    /// `nic queue` by interrupt.
    fn reported(&self, nics: &[Nic]) -> Vec<String> {
        let word = |r: &Reading<String>| r.get().unwrap_or_else(|| "-".into());
        self.read(nics).iter().map(|i| format!("{} {}", word(&i.nic), word(&i.queue))).collect()
    }
}

/// A NIC of which nothing is known; whatever the model asks for is absent.
fn bare(name: &str) -> Nic {
    let mut nic = json!({"name": name, "kind": "physical", "details": {"type": "none"},
        "queues": [], "irqs": []});
    loop {
        match serde_json::from_value(nic.clone()) {
            Ok(nic) => return nic,
            Err(e) => {
                let text = e.to_string();
                let field = text.split('`').nth(1).unwrap_or_else(|| panic!("{text}"));
                nic[field] = json!({"absent": "test"});
            }
        }
    }
}

fn queue(id: QueueId) -> Queue {
    let mut queue: Value = json!({"id": id});
    for key in ["napi_id", "irq", "rps_cpus", "rfs_flows", "xps_cpus", "xps_rxqs"] {
        queue[key] = json!({"absent": "test"});
    }
    serde_json::from_value(queue).unwrap()
}

const MSIX: &str = "PCI-MSIX   1-edge    ";

#[test]
fn virtio_is_found_through_its_parent_and_not_confused_with_its_neighbours() {
    let mut tree = Tree::new();
    tree.pci("0000:00:03.0", 37..40);
    tree.pci("0000:00:04.0", 40..43);
    let eth0 = tree.nic("eth0", "0000:00:03.0/virtio2", 1);
    tree.irq(9, "IO-APIC   9-fasteoi  ", "acpi");
    tree.irq(37, MSIX, "virtio2-config");
    tree.irq(38, MSIX, "virtio2-input.0");
    tree.irq(39, MSIX, "virtio2-output.0");
    tree.irq(40, MSIX, "virtio3-config");
    tree.irq(41, MSIX, "virtio3-rx");
    let mut nics = [eth0];
    assert_eq!(tree.reported(&nics), ["- -", "eth0 -", "eth0 rx-0", "eth0 tx-0", "- -", "- -"]);
    let irqs = tree.read(&nics);
    attach(&mut nics, &irqs);
    assert_eq!(nics[0].irqs, [37, 38, 39].map(IrqId));
    let of: Vec<_> = nics[0].queues.iter().map(|q| q.irq.get()).collect();
    assert_eq!(of, [Some(IrqId(38)), Some(IrqId(39))]);
    assert_eq!(irqs[2].mapped_by, Reading::Known(Mapping::MsiIrqs));
    assert_eq!(irqs[2].device, Reading::Known("0000:00:03.0".into()));
    assert_eq!(irqs[4].device, Reading::Known("0000:00:04.0".into()));
    assert!(!irqs[0].device.is_known());
}

#[test]
fn every_field_of_an_interrupt() {
    let mut tree = Tree::new();
    tree.irq(38, "PCI-MSIX-0000:00:03.0   1-edge    ", "virtio2-input.0");
    let irq = tree.read(&[]).remove(0);
    assert_eq!(irq.name, "virtio2-input.0");
    assert_eq!(irq.chip, Reading::Known("PCI-MSIX-0000:00:03.0".into()));
    assert_eq!(irq.hwirq, Reading::Known("1-edge".into()));
    assert_eq!(irq.affinity, Reading::Known("0-2".parse().unwrap()));
    assert_eq!(irq.effective_affinity, Reading::Known("2".parse().unwrap()));
    assert_eq!(irq.numa_node, Reading::Known(NumaNode(1)));
    let counts: Vec<_> = irq.counts.known().unwrap().iter().map(|c| (c.cpu, c.count)).collect();
    assert_eq!(counts, [(CpuId(2), 38)], "the second column is CPU 2's, zeros are left out");
    assert_eq!(irq.device, Reading::Known("0000:00:03.0".into()), "by the chip's name alone");
    assert_eq!(irq.managed, Reading::absent("/sys/kernel/debug/irq/irqs: not there"));
    assert!(no_access(&[irq]).unwrap().remedy.contains("CONFIG_GENERIC_IRQ_DEBUGFS"));
}

#[test]
fn missing_files_and_no_node_are_absent() {
    let mut tree = Tree::new();
    tree.irq(5, MSIX, "x");
    tree.irq(6, MSIX, "y");
    tree.write("proc/irq/5/node", "-1\n");
    fs::remove_dir_all(tree.dir.path().join("proc/irq/6")).unwrap();
    tree.write("sys/kernel/debug/irq/irqs/5", "flags:\nIRQD_AFFINITY_MANAGED\n");
    tree.write("sys/kernel/debug/irq/irqs/6", "flags:\nIRQD_AFFINITY_SET\n");
    let irqs = tree.read(&[]);
    assert_eq!(irqs[0].numa_node, Reading::absent("/proc/irq/5/node: -1, no node"));
    assert_eq!(irqs[1].affinity, Reading::absent("/proc/irq/6/smp_affinity_list: not there"));
    assert_eq!(irqs[0].managed, Reading::Known(true));
    assert_eq!(irqs[1].managed, Reading::Known(false));
}

#[test]
fn the_node_is_the_functions_or_else_the_interrupts() {
    let mut tree = Tree::new();
    tree.pci("0000:03:00.0", 60..61);
    tree.pci("0000:04:00.0", 61..62);
    tree.pci("0000:05:00.0", 62..63);
    for irq in 60..64 {
        tree.irq(irq, MSIX, "x");
    }
    tree.write("sys/devices/pci0000:00/0000:03:00.0/numa_node", "7\n");
    tree.write("sys/devices/pci0000:00/0000:04:00.0/numa_node", "-1\n");
    let nodes: Vec<_> = tree.read(&[]).iter().map(|i| i.numa_node.get().map(|n| n.0)).collect();
    assert_eq!(nodes, [Some(7), Some(1), Some(1), Some(1)]);
}

#[test]
fn the_kernels_word_goes_before_names() {
    let mut tree = Tree::new();
    tree.pci("0000:03:00.0", 60..62);
    let mut nic = tree.nic("eth0", "0000:03:00.0", 2);
    nic.napis = Reading::Known(vec![Napi {
        id: 8193,
        irq: Reading::Known(IrqId(60)),
        pid: Reading::absent("test"),
        threaded: Reading::absent("test"),
        gro_flush_timeout_ns: Reading::absent("test"),
        defer_hard_irqs: Reading::absent("test"),
        irq_suspend_timeout_ns: Reading::absent("test"),
        queues: vec![QueueId::rx(1), QueueId::tx(1)],
    }]);
    tree.irq(60, MSIX, "eth0-TxRx-0");
    tree.irq(61, MSIX, "eth0-TxRx-1");
    let irqs = tree.read(&[nic]);
    assert_eq!(irqs[0].queue, Reading::Known("rx-1+tx-1".into()));
    assert_eq!(irqs[0].mapped_by, Reading::Known(Mapping::NetdevNetlink));
    assert_eq!(irqs[1].mapped_by, Reading::Known(Mapping::MsiIrqs));
}

#[test]
fn names_of_nobody_and_old_names_are_found_by_the_device() {
    let mut tree = Tree::new();
    tree.pci("0000:03:00.0", 60..63);
    tree.pci("0000:04:00.0", 63..65);
    let nics = [tree.nic("ens1np0", "0000:03:00.0", 2), tree.nic("ens2", "0000:04:00.0", 1)];
    tree.irq(60, MSIX, "mlx5_async0@pci:0000:03:00.0");
    tree.irq(61, MSIX, "mlx5_comp0@pci:0000:03:00.0");
    tree.irq(62, MSIX, "mlx5_comp1@pci:0000:03:00.0");
    // udev renamed it after the driver had asked.
    tree.irq(63, MSIX, "eth1");
    tree.irq(64, MSIX, "eth1-TxRx-0");
    assert_eq!(
        tree.reported(&nics),
        ["ens1np0 -", "ens1np0 rx-0+tx-0", "ens1np0 rx-1+tx-1", "ens2 -", "ens2 rx-0+tx-0"]
    );
}

#[test]
fn several_ports_of_one_function_are_distinguished_or_share() {
    let mut tree = Tree::new();
    tree.pci("0000:04:00.4", 70..72);
    tree.pci("7870:00:00.0", 80..82);
    let mut nics = [
        tree.nic("enp4s0f4", "0000:04:00.4", 1),
        tree.nic("enp4s0f4d1", "0000:04:00.4", 1),
        tree.nic("eth1", "7870:00:00.0", 1),
        tree.nic("eth2", "7870:00:00.0", 1),
    ];
    tree.irq(70, MSIX, "enp4s0f4-Rx0");
    tree.irq(71, MSIX, "enp4s0f4d1-Rx0");
    tree.irq(80, MSIX, "mana_hwc@pci:7870:00:00.0");
    tree.irq(81, MSIX, "mana_q0@pci:7870:00:00.0");
    assert_eq!(
        tree.reported(&nics),
        ["enp4s0f4 rx-0", "enp4s0f4d1 rx-0", "eth1 -", "eth1 rx-0+tx-0"]
    );
    let irqs = tree.read(&nics);
    assert_eq!(irqs[3].also_nics, ["eth2"]);
    attach(&mut nics, &irqs);
    assert_eq!(nics[1].irqs, [IrqId(71)]);
    assert_eq!(nics[3].irqs, [80, 81].map(IrqId));
    assert_eq!(nics[3].queues[0].irq, Reading::Known(IrqId(81)));
}

#[test]
fn one_interrupt_serves_all_queues_and_a_legacy_line_is_shared() {
    let mut tree = Tree::new();
    tree.pci("0000:00:05.0", 0..0);
    tree.pci("0000:00:06.0", 90..91);
    let nics = [tree.nic("eth0", "0000:00:05.0", 1), tree.nic("eth1", "0000:00:06.0", 1)];
    tree.irq(11, "IO-APIC  11-fasteoi  ", "uhci_hcd:usb1, eth0");
    tree.irq(90, MSIX, "eth1");
    assert_eq!(tree.reported(&nics), ["eth0 rx-0+tx-0", "eth1 rx-0+tx-0"]);
    assert_eq!(tree.read(&nics)[0].mapped_by, Reading::Known(Mapping::Name));
}

#[test]
fn thousands_of_interrupts_keep_their_order() {
    let mut tree = Tree::new();
    for irq in 0..600 {
        tree.irq(irq, MSIX, "x");
        tree.write(&format!("proc/irq/{irq}/effective_affinity_list"), &format!("{irq}\n"));
    }
    for (n, irq) in tree.read(&[]).iter().enumerate() {
        assert_eq!(irq.irq, IrqId(n as u32));
        assert_eq!(irq.effective_affinity.known().unwrap().first(), Some(CpuId(n as u32)));
    }
}

#[test]
fn no_file_no_interrupts() {
    let tree = tempfile::tempdir().unwrap();
    let irqs = read(&Root::open(tree.path()).unwrap(), &[]);
    assert_eq!(irqs.why_not(), Some("/proc/interrupts: not there"));
}
