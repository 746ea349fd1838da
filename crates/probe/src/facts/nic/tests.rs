//! NICs read from trees of files, as a directory root gives them.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use crate::ask::ethtool::answers;
use model::{BitsPerSec, Bytes, NumaNode, QueueId, Reading};
use tempfile::TempDir;

use super::*;

/// A tree that is built file by file.
struct Tree(TempDir);

impl Tree {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, path: &str) -> PathBuf {
        let full = self.0.path().join(path.trim_start_matches('/'));
        fs::create_dir_all(full.parent().unwrap()).unwrap();
        full
    }

    fn file(&self, path: &str, text: impl AsRef<[u8]>) -> &Self {
        fs::write(self.path(path), text).unwrap();
        self
    }

    fn link(&self, path: &str, target: &str) -> &Self {
        symlink(target, self.path(path)).unwrap();
        self
    }

    fn dir(&self, path: &str) -> &Self {
        fs::create_dir_all(self.path(path)).unwrap();
        self
    }

    /// An interface whose folder is `device`/net/NAME, linked from the class.
    fn nic(&self, name: &str, device: &str) -> String {
        let dir = format!("/sys/devices/{device}/net/{name}");
        self.file(&format!("{dir}/ifindex"), "2\n")
            .file(&format!("{dir}/uevent"), format!("INTERFACE={name}\nIFINDEX=2\n"))
            .file(&format!("{dir}/flags"), "0x1003\n")
            .link(&format!("/sys/class/net/{name}"), &format!("../../devices/{device}/net/{name}"));
        if !device.starts_with("virtual") {
            let up =
                format!("../../../{}", Path::new(device).file_name().unwrap().to_str().unwrap());
            self.link(&format!("{dir}/device"), &up);
        }
        dir
    }

    fn bus(&self, device: &str, bus: &str) -> &Self {
        self.link(&format!("/sys/devices/{device}/subsystem"), &format!("/sys/bus/{bus}"))
    }

    fn read(&self) -> Vec<Nic> {
        read(&Root::open(self.0.path()).unwrap())
    }

    fn only(&self) -> Nic {
        let mut nics = self.read();
        assert_eq!(nics.len(), 1);
        nics.remove(0)
    }
}

/// 256 bytes with one PCI Express capability at 0x40 whose DevCtl is `control`.
fn config(control: u16) -> Vec<u8> {
    let mut bytes = vec![0u8; 256];
    bytes[..4].copy_from_slice(&[0xb3, 0x15, 0x17, 0x10]);
    bytes[6] = 0x10;
    bytes[0x34] = 0x40;
    bytes[0x40] = 0x10;
    bytes[0x48..0x4a].copy_from_slice(&control.to_le_bytes());
    bytes
}

const PORT: &str = "pci0000:17/0000:17:02.0/0000:18:00.1";

fn port(tree: &Tree) -> String {
    let dir = tree.nic("ens1f1", PORT);
    tree.bus(PORT, "pci");
    for (file, text) in [
        ("vendor", "0x15b3\n"),
        ("device_id", ""),
        ("device", "0x1017\n"),
        ("class", "0x020000\n"),
        ("numa_node", "1\n"),
        ("current_link_speed", "8.0 GT/s PCIe\n"),
        ("max_link_speed", "16.0 GT/s PCIe\n"),
        ("current_link_width", "8\n"),
        ("max_link_width", "16\n"),
    ] {
        tree.file(&format!("/sys/devices/{PORT}/{file}"), text);
    }
    tree.link(&format!("/sys/devices/{PORT}/driver"), "../../../../bus/pci/drivers/mlx5_core");
    dir
}

#[test]
fn a_pci_port_with_its_function() {
    let tree = Tree::new();
    let dir = port(&tree);
    tree.file(&format!("/sys/devices/{PORT}/config"), config(0x5020))
        .file(&format!("{dir}/speed"), "25000\n")
        .file(&format!("{dir}/duplex"), "full\n")
        .file(&format!("{dir}/carrier"), "1\n");
    let nic = tree.only();
    assert_eq!(nic.kind, "physical");
    assert_eq!(nic.driver, Reading::Known("mlx5_core".into()));
    assert_eq!(nic.bus_address, Reading::Known("0000:18:00.1".into()));
    assert_eq!(nic.numa_node, Reading::Known(NumaNode(1)));
    assert_eq!(nic.speed_bps, Reading::Known(BitsPerSec(25_000_000_000)));
    assert_eq!(nic.duplex, Reading::Known("full".into()));
    assert_eq!((nic.up, nic.carrier), (Reading::Known(true), Reading::Known(true)));
    let pci = nic.pci.into_known().unwrap();
    assert_eq!(pci.vendor_id, Reading::Known("15b3".into()));
    assert_eq!(pci.device_id, Reading::Known("1017".into()));
    assert_eq!(pci.class, Reading::Known("020000".into()));
    assert_eq!((pci.link_speed_mts, pci.max_link_speed_mts), (8_000.into(), 16_000.into()));
    assert_eq!((pci.link_width, pci.max_link_width), (8.into(), 16.into()));
    assert_eq!(pci.read_request_bytes, Reading::Known(Bytes(4096)));
    assert_eq!(pci.max_payload_bytes, Reading::Known(Bytes(256)));
    assert!(matches!(pci.pcix_mmrbc_bytes, Reading::Absent(_)));
    assert_eq!(pci.usable_bps, Reading::Known(facts_pci_usable()));
}

/// 8 GT/s × 8 lanes × 128/130.
fn facts_pci_usable() -> BitsPerSec {
    BitsPerSec(64_000_000_000 / 130 * 128)
}

#[test]
fn sixty_four_bytes_of_configuration_space_are_a_denial_with_its_capability() {
    let tree = Tree::new();
    port(&tree);
    tree.file(&format!("/sys/devices/{PORT}/config"), &config(0x5020)[..64]);
    let nics = tree.read();
    let pci = nics[0].pci.known().unwrap();
    for sizes in [&pci.read_request_bytes, &pci.max_payload_bytes, &pci.pcix_mmrbc_bytes] {
        let Reading::Denied(why) = sizes else { panic!("{sizes:?}") };
        assert!(why.contains("CAP_SYS_ADMIN"), "{why}");
    }
    let lines = no_access(&nics);
    assert_eq!(lines.len(), 1);
    assert!(lines[0].remedy.contains("CAP_SYS_ADMIN"));
}

#[test]
fn a_link_that_the_kernel_does_not_know_is_absent() {
    let tree = Tree::new();
    port(&tree);
    for (file, text) in [("current_link_speed", "Unknown\n"), ("max_link_width", "255\n")] {
        tree.file(&format!("/sys/devices/{PORT}/{file}"), text);
    }
    let pci = tree.only().pci.into_known().unwrap();
    assert!(matches!(pci.link_speed_mts, Reading::Absent(_)));
    assert!(matches!(pci.usable_bps, Reading::Absent(_)));
    assert!(matches!(pci.max_link_width, Reading::Absent(_)));
    assert!(matches!(pci.read_request_bytes, Reading::Absent(_)), "no config at all");
}

#[test]
fn a_virtual_function_is_judged_by_its_physical_one() {
    let tree = Tree::new();
    port(&tree);
    const VF: &str = "pci0000:17/0000:17:02.0/0000:18:04.0";
    tree.nic("ens1f1v0", VF);
    tree.bus(VF, "pci")
        .file(&format!("/sys/devices/{VF}/device"), "0x1018\n")
        .file(&format!("/sys/devices/{VF}/current_link_width"), "0\n")
        .file(&format!("/sys/devices/{VF}/config"), config(0x0000))
        .link(&format!("/sys/devices/{VF}/physfn"), "../0000:18:00.1")
        .file(&format!("/sys/devices/{PORT}/config"), config(0x5020));
    let nics = tree.read();
    let vf = nics[1].pci.known().unwrap();
    assert_eq!(nics[1].bus_address, Reading::Known("0000:18:04.0".into()));
    assert_eq!(vf.device_id, Reading::Known("1018".into()));
    assert_eq!(vf.link_width, 8.into());
    assert_eq!(vf.read_request_bytes, Reading::Known(Bytes(4096)));
}

#[test]
fn virtio_is_placed_at_its_pci_function_and_takes_its_node() {
    let tree = Tree::new();
    const VIRTIO: &str = "pci0000:00/0000:00:03.0/virtio2";
    tree.nic("eth0", VIRTIO);
    tree.bus(VIRTIO, "virtio")
        .file("/sys/devices/pci0000:00/0000:00:03.0/numa_node", "0\n")
        .file("/sys/devices/pci0000:00/0000:00:03.0/vendor", "0x1af4\n");
    let nic = tree.only();
    assert_eq!(nic.bus_address, Reading::Known("0000:00:03.0".into()));
    assert_eq!(nic.numa_node, Reading::Known(NumaNode(0)));
    assert_eq!(nic.pci.known().unwrap().vendor_id, Reading::Known("1af4".into()));
}

#[test]
fn without_a_subsystem_link_the_names_tell_the_bus() {
    let tree = Tree::new();
    tree.nic("eth0", "pci0000:00/0000:00:03.0/virtio2");
    assert_eq!(tree.only().bus_address, Reading::Known("0000:00:03.0".into()));
}

#[test]
fn other_buses_keep_their_own_address() {
    for (device, bus, address) in [
        ("pci0000:00/0000:00:14.0/usb2/2-1/2-1:1.0", "usb", "2-1:1.0"),
        ("platform/fe300000.ethernet", "platform", "fe300000.ethernet"),
        ("platform/a003e00.virtio_mmio/virtio1", "virtio", "a003e00.virtio_mmio"),
        ("vif-0", "xen", "vif-0"),
        ("pci0000:00/0000:00:05.0/mlx5_core.sf.4", "auxiliary", "0000:00:05.0"),
    ] {
        let tree = Tree::new();
        tree.nic("eth0", device);
        tree.bus(device, bus);
        let nic = tree.only();
        assert_eq!(nic.bus_address, Reading::Known(address.into()));
        assert_eq!(nic.pci.is_known(), bus == "auxiliary", "{bus}");
    }
}

#[test]
fn minus_one_is_no_node_and_no_speed() {
    let tree = Tree::new();
    let dir = port(&tree);
    tree.file(&format!("/sys/devices/{PORT}/numa_node"), "-1\n");
    for unknown in ["-1\n", "4294967295\n", "0\n"] {
        tree.file(&format!("{dir}/speed"), unknown).file(&format!("{dir}/duplex"), "unknown\n");
        let nic = tree.only();
        assert!(matches!(nic.speed_bps, Reading::Absent(_)), "{:?}", nic.speed_bps);
        assert!(matches!(nic.duplex, Reading::Absent(_)));
        assert!(matches!(nic.numa_node, Reading::Absent(_)));
    }
}

#[test]
fn what_is_no_folder_is_no_interface() {
    let tree = Tree::new();
    tree.nic("bond0", "virtual");
    tree.file("/sys/class/net/bonding_masters", "bond0\n")
        .link("/sys/class/net/gone", "nowhere")
        .dir("/sys/devices/virtual/net/bond0/bonding");
    let nic = tree.only();
    assert_eq!((nic.name.as_str(), nic.kind.as_str()), ("bond0", "bond"));
    assert!(matches!(nic.bus_address, Reading::Absent(_)));
}

#[test]
fn queues_are_in_numeric_order_with_gaps_and_wide_masks() {
    let tree = Tree::new();
    let dir = port(&tree);
    for (queue, file, text) in [
        ("rx-10", "rps_cpus", "00000001,00000000\n"),
        ("rx-2", "rps_flow_cnt", "4096\n"),
        ("tx-0", "xps_cpus", "3\n"),
        ("tx-0", "xps_rxqs", "00000400\n"),
    ] {
        tree.file(&format!("{dir}/queues/{queue}/{file}"), text);
    }
    tree.dir(&format!("{dir}/queues/power"));
    let nic = tree.only();
    let ids: Vec<QueueId> = nic.queues.iter().map(|q| q.id).collect();
    assert_eq!(ids, [QueueId::rx(2), QueueId::rx(10), QueueId::tx(0)]);
    assert_eq!(nic.queues[0].rfs_flows, 4096.into());
    assert!(matches!(nic.queues[0].rps_cpus, Reading::Absent(_)));
    assert_eq!(nic.queues[1].rps_cpus.known().unwrap().to_string(), "32");
    assert_eq!(nic.queues[2].xps_cpus.known().unwrap().to_string(), "0-1");
    assert_eq!(nic.queues[2].xps_rxqs.known().unwrap().to_string(), "10");
}

#[test]
fn recorded_answers_of_ethtool_are_read_by_key() {
    let tree = Tree::new();
    port(&tree);
    let answers = "/netwright/answers/ethtool/ens1f1";
    tree.file(
        &format!("{answers}/channels.json"),
        r#"{"value":{"max_rx":0,"max_tx":0,"max_other":1,"max_combined":63,"rx_count":0,
            "tx_count":0,"other_count":1,"combined_count":32}}"#,
    )
    .file(&format!("{answers}/rings.json"), r#"{"denied":"ethtool/ens1f1/rings"}"#)
    .file(
        &format!("{answers}/features.json"),
        r#"{"value":[{"name":"rx-gro","available":true,"requested":true,"active":true,
            "never_changed":false},{"name":"highdma","available":true,"requested":false,
            "active":true,"never_changed":true}]}"#,
    )
    .file(
        &format!("{answers}/link.json"),
        r#"{"value":{"speed":10000,"duplex":1,"autoneg":0,"port":3}}"#,
    )
    .file(&format!("{answers}/stats.json"), "{garbage");
    let nics = tree.read();
    let nic = &nics[0];
    let channels = nic.channels.known().unwrap();
    assert_eq!((channels.combined, channels.max_combined, channels.other), (32, 63, 1));
    let Reading::Denied(why) = &nic.rings else { panic!("{:?}", nic.rings) };
    assert!(why.contains("CAP_NET_ADMIN"), "{why}");
    let features = nic.features.known().unwrap();
    assert!(!features["rx-gro"].fixed && features["highdma"].fixed);
    assert_eq!(nic.speed_bps, Reading::Known(BitsPerSec(10_000_000_000)), "no sysfs speed here");
    assert!(matches!(nic.driver_stats, Reading::Absent(_)));
    assert!(matches!(nic.coalesce, Reading::Absent(_)), "never asked of this machine");
    assert_eq!(no_access(&nics).len(), 1);
}

#[test]
fn a_member_names_its_master() {
    let tree = Tree::new();
    let dir = port(&tree);
    assert_eq!(tree.only().master, Reading::Known(String::new()));
    tree.link(&format!("{dir}/master"), "../../../../../virtual/net/bond0");
    assert_eq!(tree.only().master, Reading::Known("bond0".into()));
}

#[test]
fn a_parameter_that_the_driver_lacks_is_distinguished_from_one_that_is_off() {
    let words = |rx_usecs: u32| answers::Coalesce {
        rx_coalesce_usecs: rx_usecs,
        ..answers::WordStruct::from_words(std::iter::repeat(0)).unwrap()
    };
    let tree = Tree::new();
    port(&tree);
    let value = serde_json::to_string(&words(8)).unwrap();
    let answers = "/netwright/answers";
    tree.file(
        &format!("{answers}/ethtool/ens1f1/coalesce.json"),
        format!(r#"{{"value":{value}}}"#),
    );
    let old_kernel = tree.only().coalesce.into_known().unwrap();
    assert_eq!((old_kernel.rx_usecs, old_kernel.adaptive_rx), (8.into(), false.into()));
    tree.file(
        &format!("{answers}/netlink/coalesce.json"),
        r#"{"value":{"entries":[{"nic":"ens1f1","parameters":{"2":8,"11":0}}],"interrupted":false}}"#,
    )
    .file(
        &format!("{answers}/netlink/rss.json"),
        r#"{"value":{"entries":[{"nic":"other","context":0}],"interrupted":false}}"#,
    );
    let coalesce = tree.only().coalesce.into_known().unwrap();
    assert_eq!((coalesce.rx_usecs, coalesce.adaptive_rx), (8.into(), false.into()));
    assert!(matches!(coalesce.adaptive_tx, Reading::Absent(_)));
    assert!(matches!(coalesce.tx_usecs, Reading::Absent(_)));
}
