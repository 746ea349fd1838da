//! Tests on trees like a support archive: some files of `/proc`, the interfaces' links without
//! their targets, no `/sys/devices`.

use std::{fs, path::Path};

use model::{Facts, QueueId, Reading};

use super::{Request, collect};
use crate::Root;

const SOFTNET: &str = "00000011 00000000 00000000 00000000 00000000 00000000 00000000 00000000 \
                       00000000 00000000 00000000\n";

fn put(tree: &Path, path: &str, text: &str) {
    let at = tree.join(path);
    fs::create_dir_all(at.parent().unwrap()).unwrap();
    fs::write(at, text).unwrap();
}

/// A link of `/sys/class/net`.
fn interface(tree: &Path, name: &str, device: &str) {
    let folder = tree.join("sys/class/net");
    fs::create_dir_all(&folder).unwrap();
    std::os::unix::fs::symlink(format!("../../devices/{device}/net/{name}"), folder.join(name))
        .unwrap();
}

fn read(tree: &Path) -> Facts {
    collect(&Root::open(tree).unwrap(), &Request::default())
}

/// Two CPUs, a virtio NIC, an Intel one, a bridge.
fn archive() -> tempfile::TempDir {
    let tree = tempfile::tempdir().unwrap();
    let t = tree.path();
    interface(t, "ens3", "pci0000:00/0000:00:03.0/virtio0");
    interface(t, "eno12399", "pci0000:3a/0000:3a:00.0/0000:3b:00.0");
    interface(t, "cni0", "virtual");
    put(
        t,
        "proc/cpuinfo",
        "processor\t: 0\nvendor_id\t: GenuineIntel\n\nprocessor\t: 1\nvendor_id\t: GenuineIntel\n",
    );
    put(t, "proc/cmdline", "root=/dev/vda isolcpus=domain,managed_irq,1 nohz_full=1\n");
    put(t, "proc/net/softnet_stat", &SOFTNET.repeat(2));
    put(
        t,
        "proc/interrupts",
        "           CPU0       CPU1\n \
         25:         10          0  PCI-MSIX-0000:00:03.0   1-edge  virtio0-input.0\n \
         26:          0         10  PCI-MSIX-0000:00:03.0   2-edge  virtio0-output.0\n \
         40:          5          0  IR-PCI-MSIX-0000:3b:00.0   1-edge  i40e-eno12399-TxRx-0\n \
         41:          0          5  IR-PCI-MSIX-0000:3b:00.0   2-edge  i40e-eno12399-TxRx-1\n",
    );
    tree
}

#[test]
fn a_nic_whose_files_were_not_copied_has_its_device_and_interrupts() {
    let tree = archive();
    let facts = read(tree.path());
    let kinds: Vec<_> = facts.nics.iter().map(|n| (n.name.as_str(), n.kind.as_str())).collect();
    assert_eq!(kinds, [("cni0", "virtual"), ("eno12399", "physical"), ("ens3", "physical")]);
    assert_eq!(facts.nics[2].bus_address, Reading::Known("0000:00:03.0".into()));
    assert!(facts.nics.iter().all(|n| !n.up.is_known()), "nothing tells whether they are up");
    let irqs = facts.irqs.known().unwrap();
    let owners: Vec<_> = irqs.iter().map(|i| i.nic.get().unwrap_or_default()).collect();
    assert_eq!(owners, ["ens3", "ens3", "eno12399", "eno12399"]);
    assert_eq!(irqs[3].queues, [QueueId::rx(1), QueueId::tx(1)]);
}

#[test]
fn cpus_come_from_what_there_is() {
    let tree = archive();
    let facts = read(tree.path());
    let ids: Vec<u32> = facts.cpus.iter().map(|c| c.id.0).collect();
    assert_eq!(ids, [0, 1]);
    assert!(facts.cpus.iter().all(|c| c.online == Reading::Known(true)));
    let of = |pick: fn(&model::cpu::Cpu) -> Option<bool>| -> Vec<Option<bool>> {
        facts.cpus.iter().map(pick).collect()
    };
    assert_eq!(of(|c| c.isolated.get()), [Some(false), Some(true)]);
    assert_eq!(of(|c| c.nohz_full.get()), [Some(false), Some(true)]);
    assert_eq!(facts.softnet.known().map(Vec::len), Some(2), "{:?}", facts.softnet);

    fs::remove_file(tree.path().join("proc/cpuinfo")).unwrap();
    assert_eq!(read(tree.path()).cpus.len(), 2, "the columns of interrupts");
    // Only managed interrupts keep off them: the scheduler does not.
    put(tree.path(), "proc/cmdline", "isolcpus=managed_irq,1");
    assert_eq!(read(tree.path()).cpus[1].isolated, Reading::Known(false));
    fs::remove_file(tree.path().join("proc/cmdline")).unwrap();
    assert!(!read(tree.path()).cpus[1].isolated.is_known());
}

#[test]
fn an_interface_of_which_nothing_tells_has_no_known_kind() {
    let tree = tempfile::tempdir().unwrap();
    fs::create_dir_all(tree.path().join("sys/class/net/eth7/statistics")).unwrap();
    put(tree.path(), "sys/class/net/eth7/statistics/rx_packets", "12\n");
    let facts = read(tree.path());
    assert_eq!(facts.nics[0].kind, model::nic::UNKNOWN_KIND);
}
