//! `/sys/class/net` with PCI functions, queues and statistics.

use std::io;

use super::{
    Tree, TreeShape,
    irq::{Irq, nic_address, nic_node},
    list, mask,
};

pub fn write(tree: &Tree, shape: &TreeShape, irqs: &[Irq]) -> io::Result<()> {
    for dir in ["sys/class/net", "sys/bus/pci/devices", "sys/bus/pci/drivers/ice"] {
        tree.dir(dir)?;
    }
    for nic in 0..shape.nics {
        let node = nic_node(shape, nic);
        pci(tree, shape, &nic_address(nic), node, ["0x8086", "0x1592", "0x020000", "ice"], irqs)?;
        interface(tree, shape, nic)?;
    }
    loopback(tree)
}

/// A PCI function behind a bridge of its own, with its MSI-X interrupts. `ids` are vendor,
/// device, class and driver.
pub fn pci(
    tree: &Tree,
    shape: &TreeShape,
    address: &str,
    node: usize,
    ids: [&str; 4],
    irqs: &[Irq],
) -> io::Result<()> {
    let [vendor, device, class, driver] = ids;
    let dir = format!("sys/devices/pci0000:40/0000:40:01.1/{address}");
    let cpus = shape.cpus_where(|c| shape.node_of_core(c) == node);
    tree.files(
        &dir,
        &[
            ("vendor", vendor),
            ("device", device),
            ("class", class),
            ("subsystem_vendor", vendor),
            ("subsystem_device", "0x0002"),
            ("revision", "0x02"),
            ("irq", "0"),
            ("numa_node", &node.to_string()),
            ("local_cpulist", &list(&cpus)),
            ("local_cpus", &mask(&cpus, shape.cpus)),
            ("current_link_speed", "16.0 GT/s PCIe"),
            ("max_link_speed", "16.0 GT/s PCIe"),
            ("current_link_width", "16"),
            ("max_link_width", "16"),
            ("uevent", &format!("DRIVER={driver}\nPCI_SLOT_NAME={address}")),
        ],
    )?;
    tree.file(&format!("{dir}/config"), config_space())?;
    tree.link(&format!("{dir}/driver"), &format!("../../../../bus/pci/drivers/{driver}"))?;
    tree.link(&format!("{dir}/subsystem"), "../../../../bus/pci")?;
    tree.dir(&format!("{dir}/msi_irqs"))?;
    for irq in irqs.iter().filter(|i| i.device == address) {
        tree.file(&format!("{dir}/msi_irqs/{}", irq.number), "msix\n")?;
    }
    tree.link(
        &format!("sys/bus/pci/devices/{address}"),
        &format!("../../../devices/pci0000:40/0000:40:01.1/{address}"),
    )
}

/// 256 bytes with a PCI Express capability: 256 bytes payload, 512 bytes read requests.
fn config_space() -> Vec<u8> {
    let mut bytes = vec![0u8; 256];
    for (at, value) in
        [(0x06, 0x10), (0x34, 0x40), (0x40, 0x10), (0x42, 0x02), (0x48, 0x30), (0x49, 0x29)]
    {
        if let Some(b) = bytes.get_mut(at) {
            *b = value;
        }
    }
    bytes
}

fn interface(tree: &Tree, shape: &TreeShape, nic: usize) -> io::Result<()> {
    let at = format!("devices/pci0000:40/0000:40:01.1/{}/net/eth{nic}", nic_address(nic));
    let dir = format!("sys/{at}");
    let (index, mac) = ((nic + 2).to_string(), format!("b4:96:91:00:00:{nic:02x}"));
    tree.files(
        &dir,
        &[
            ("address", &mac),
            ("addr_assign_type", "0"),
            ("broadcast", "ff:ff:ff:ff:ff:ff"),
            ("carrier", "1"),
            ("carrier_changes", "2"),
            ("dev_id", "0x0"),
            ("dev_port", "0"),
            ("duplex", "full"),
            ("flags", "0x1003"),
            ("gro_flush_timeout", "0"),
            ("ifindex", &index),
            ("iflink", &index),
            ("link_mode", "0"),
            ("mtu", "1500"),
            ("napi_defer_hard_irqs", "0"),
            ("operstate", "up"),
            ("speed", "100000"),
            ("threaded", "0"),
            ("tx_queue_len", "1000"),
            ("type", "1"),
            ("uevent", &format!("INTERFACE=eth{nic}\nIFINDEX={index}")),
        ],
    )?;
    statistics(tree, &dir)?;
    for queue in 0..shape.queues {
        tree.files(
            &format!("{dir}/queues/rx-{queue}"),
            &[("rps_cpus", &mask(&[], shape.cpus)), ("rps_flow_cnt", "0")],
        )?;
        let xps: Vec<usize> = (0..shape.cpus).filter(|c| c % shape.queues == queue).collect();
        tree.files(
            &format!("{dir}/queues/tx-{queue}"),
            &[
                ("xps_cpus", &mask(&xps, shape.cpus)),
                ("xps_rxqs", &mask(&[], shape.queues)),
                ("traffic_class", "0"),
                ("tx_maxrate", "0"),
                ("tx_timeout", "0"),
            ],
        )?;
    }
    tree.link(&format!("{dir}/device"), "../..")?;
    tree.link(&format!("{dir}/subsystem"), "../../../../../../class/net")?;
    tree.link(&format!("sys/class/net/eth{nic}"), &format!("../../{at}"))
}

fn loopback(tree: &Tree) -> io::Result<()> {
    let dir = "sys/devices/virtual/net/lo";
    tree.files(
        dir,
        &[
            ("address", "00:00:00:00:00:00"),
            ("flags", "0x9"),
            ("ifindex", "1"),
            ("iflink", "1"),
            ("mtu", "65536"),
            ("operstate", "unknown"),
            ("tx_queue_len", "1000"),
            ("type", "772"),
            ("uevent", "INTERFACE=lo\nIFINDEX=1"),
        ],
    )?;
    statistics(tree, dir)?;
    tree.files(&format!("{dir}/queues/rx-0"), &[("rps_cpus", "0"), ("rps_flow_cnt", "0")])?;
    tree.files(&format!("{dir}/queues/tx-0"), &[("xps_cpus", "0")])?;
    tree.link("sys/class/net/lo", "../../devices/virtual/net/lo")
}

fn statistics(tree: &Tree, dir: &str) -> io::Result<()> {
    let names = [
        "collisions",
        "multicast",
        "rx_bytes",
        "rx_compressed",
        "rx_crc_errors",
        "rx_dropped",
        "rx_errors",
        "rx_fifo_errors",
        "rx_frame_errors",
        "rx_length_errors",
        "rx_missed_errors",
        "rx_nohandler",
        "rx_over_errors",
        "rx_packets",
        "tx_aborted_errors",
        "tx_bytes",
        "tx_carrier_errors",
        "tx_compressed",
        "tx_dropped",
        "tx_errors",
        "tx_fifo_errors",
        "tx_heartbeat_errors",
        "tx_packets",
        "tx_window_errors",
    ];
    let zero: Vec<(&str, &str)> = names.iter().map(|n| (*n, "0")).collect();
    tree.files(&format!("{dir}/statistics"), &zero)
}
