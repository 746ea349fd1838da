//! Storage controllers: NVMe, SCSI host adapters, virtio disks.

use model::{IrqId, NumaNode, Reading, storage::StorageController};

use crate::Root;

/// Every controller, ascending by kind, then by name's number.
pub fn read(root: &Root) -> Vec<StorageController> {
    let disks = disks(root);
    let mut all = nvme(root);
    all.extend(scsi(root, &disks));
    all.extend(virtio_blk(root, &disks));
    all.sort_by(|a, b| {
        (&a.kind, number_in(&a.name), &a.name).cmp(&(&b.kind, number_in(&b.name), &b.name))
    });
    all
}

/// A block device and where it hangs: the components of its real path.
struct Disk {
    name: String,
    path: String,
}

impl Disk {
    fn hangs_on(&self, component: &str) -> bool {
        self.path.split('/').any(|c| c == component)
    }
}

fn disks(root: &Root) -> Vec<Disk> {
    let names = root.entries("/sys/block").unwrap_or_default();
    let disk = |name: String| {
        let path = root.link(&format!("/sys/block/{name}")).ok()?;
        Some(Disk { name, path })
    };
    names.into_iter().filter_map(disk).collect()
}

fn nvme(root: &Root) -> Vec<StorageController> {
    let names = root.entries("/sys/class/nvme").unwrap_or_default();
    names
        .into_iter()
        .map(|name| {
            let class = format!("/sys/class/nvme/{name}");
            let place = ControllerLocation::of(root, &class);
            let transport = root.word(&format!("{class}/transport")).into_known();
            let driver = match transport.as_deref() {
                None | Some("pcie") => place.driver(root),
                Some(fabric) => Reading::Known(format!("nvme_{fabric}")),
            };
            let mut disks: Vec<String> = root
                .entries(&class)
                .unwrap_or_default()
                .iter()
                .filter_map(|entry| namespace_disk(entry))
                .collect();
            disks.sort();
            StorageController {
                kind: "nvme".into(),
                driver,
                model: root.word(&format!("{class}/model")),
                bus_address: place.bus_address(),
                numa_node: place.numa_node(root),
                disks,
                irqs: place.irqs(root),
                name,
            }
        })
        .collect()
}

/// The disk of a controller's entry: `nvme0n1` itself, or with several paths to one disk
/// (`nvme0c1n1`: subsystem 0, controller 1, namespace 1) the disk that stands for all.
fn namespace_disk(entry: &str) -> Option<String> {
    let (subsystem, rest) = digits(entry.strip_prefix("nvme")?)?;
    let rest = match rest.strip_prefix('c') {
        Some(controller) => digits(controller)?.1,
        None => rest,
    };
    let (namespace, rest) = digits(rest.strip_prefix('n')?)?;
    rest.is_empty().then(|| format!("nvme{subsystem}n{namespace}"))
}

fn scsi(root: &Root, disks: &[Disk]) -> Vec<StorageController> {
    let names = root.entries("/sys/class/scsi_host").unwrap_or_default();
    names
        .into_iter()
        .map(|name| {
            let class = format!("/sys/class/scsi_host/{name}");
            let place = ControllerLocation::of(root, &class);
            let file = |f: &str| root.word(&format!("{class}/{f}"));
            // Drivers choose their own name for it: qla2xxx, lpfc, mpt3sas.
            let model =
                file("model_name").or_else(|| file("modelname")).or_else(|| file("board_name"));
            // A driver that registers none has "<NULL>" or "(null)" there.
            let driver = match file("proc_name") {
                Reading::Known(n) if !n.starts_with(['<', '(']) => Reading::Known(n),
                _ => place.driver(root),
            };
            StorageController {
                kind: "scsi".into(),
                driver,
                model,
                bus_address: place.bus_address(),
                numa_node: place.numa_node(root),
                disks: on(disks, &name),
                irqs: place.irqs(root),
                name,
            }
        })
        .collect()
}

fn virtio_blk(root: &Root, disks: &[Disk]) -> Vec<StorageController> {
    const DRIVER: &str = "/sys/bus/virtio/drivers/virtio_blk";
    let names = root.entries(DRIVER).unwrap_or_default();
    names
        .into_iter()
        .filter(|n| n.starts_with("virtio"))
        .map(|name| {
            let place = ControllerLocation::of(root, &format!("{DRIVER}/{name}"));
            StorageController {
                kind: "virtio_blk".into(),
                driver: Reading::Known("virtio_blk".into()),
                model: Reading::absent("virtio disks have no model"),
                bus_address: place.bus_address(),
                numa_node: place.numa_node(root),
                disks: on(disks, &name),
                irqs: place.irqs(root),
                name,
            }
        })
        .collect()
}

fn on(disks: &[Disk], controller: &str) -> Vec<String> {
    disks.iter().filter(|d| d.hangs_on(controller)).map(|d| d.name.clone()).collect()
}

/// The PCI function that a device is or hangs on.
struct ControllerLocation {
    /// `/sys/devices/pci0000:00/0000:00:02.0`; `None` for devices on another bus.
    pci: Option<String>,
    class: String,
}

impl ControllerLocation {
    /// Follows a class's link to the device and goes up to the last PCI function on the way.
    fn of(root: &Root, class: &str) -> Self {
        // A class's link leads straight to the device; only in trees without links is it asked
        // where the folder really is.
        let real = match root.link(class) {
            Ok(target) => from(class, &target),
            Err(_) => root.resolve(class).unwrap_or_default(),
        };
        let mut end = 0;
        let mut pci = None;
        for part in real.split('/') {
            end += part.len() + 1;
            if is_pci_address(part) {
                pci = real.get(..end - 1).map(str::to_owned);
            }
        }
        Self { pci, class: class.to_owned() }
    }

    fn pci(&self) -> Reading<&str> {
        match self.pci.as_deref() {
            Some(path) => Reading::Known(path),
            None => Reading::Absent(format!("{}: on no PCI device", self.class)),
        }
    }

    fn bus_address(&self) -> Reading<String> {
        self.pci().map(|p| p.rsplit('/').next().unwrap_or_default().to_owned())
    }

    fn driver(&self, root: &Root) -> Reading<String> {
        self.pci().and_then(|p| match root.link(&format!("{p}/driver")) {
            Ok(target) => Reading::Known(target.rsplit('/').next().unwrap_or_default().to_owned()),
            Err(e) => e.into_reading(),
        })
    }

    fn numa_node(&self, root: &Root) -> Reading<NumaNode> {
        self.pci().and_then(|p| {
            let path = format!("{p}/numa_node");
            root.number::<i64>(&path).and_then(|n| match u32::try_from(n) {
                Ok(n) => Reading::Known(NumaNode(n)),
                Err(_) => Reading::Absent(format!("{path}: {n}, the firmware names no node")),
            })
        })
    }

    /// Message-signalled interrupts, else the one wire.
    fn irqs(&self, root: &Root) -> Vec<IrqId> {
        let Some(pci) = &self.pci else { return vec![] };
        let mut irqs: Vec<IrqId> = root
            .entries(&format!("{pci}/msi_irqs"))
            .unwrap_or_default()
            .iter()
            .filter_map(|n| parse::text::id(n).map(IrqId))
            .collect();
        if irqs.is_empty() {
            let wire = root.number::<u32>(&format!("{pci}/irq")).get().filter(|&n| n > 0);
            irqs.extend(wire.map(IrqId));
        }
        irqs.sort();
        irqs
    }
}

/// Where a link at `path` leads, by its text: `..` taken out, nothing followed.
fn from(path: &str, target: &str) -> String {
    let mut parts: Vec<&str> = if target.starts_with('/') {
        vec![]
    } else {
        path.split('/').filter(|p| !p.is_empty()).collect()
    };
    if !target.starts_with('/') {
        parts.pop();
    }
    for part in target.split('/').filter(|p| !matches!(*p, "" | ".")) {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    format!("/{}", parts.join("/"))
}

/// `0000:3b:00.0`; the domain may be longer (`10000:e1:00.0` behind Intel's VMD).
fn is_pci_address(part: &str) -> bool {
    let hex = |s: &str, n: std::ops::RangeInclusive<usize>| {
        n.contains(&s.len()) && s.bytes().all(|b| b.is_ascii_hexdigit())
    };
    let mut fields = part.split(':');
    let (Some(domain), Some(bus), Some(slot), None) =
        (fields.next(), fields.next(), fields.next(), fields.next())
    else {
        return false;
    };
    let Some((device, function)) = slot.split_once('.') else { return false };
    hex(domain, 4..=8) && hex(bus, 2..=2) && hex(device, 2..=2) && hex(function, 1..=1)
}

fn digits(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// The number in a name, so that `host10` comes after `host9`.
fn number_in(name: &str) -> Option<u32> {
    parse::text::id(name.trim_start_matches(|c: char| !c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disks_of_a_controller() {
        assert_eq!(namespace_disk("nvme0n1").as_deref(), Some("nvme0n1"));
        assert_eq!(namespace_disk("nvme2c5n1").as_deref(), Some("nvme2n1"));
        for other in ["nvme0", "nvme0n", "nvme0n1p2", "ng0n1", "power", "nvmen1", "nvme0cn1"] {
            assert_eq!(namespace_disk(other), None, "{other}");
        }
    }

    #[test]
    fn links_by_their_text() {
        let class = "/sys/class/nvme/nvme0";
        let device = "../../devices/pci0000:c0/0000:c1:00.0/nvme/nvme0";
        assert_eq!(from(class, device), "/sys/devices/pci0000:c0/0000:c1:00.0/nvme/nvme0");
        assert_eq!(from(class, "/a/./b/../c"), "/a/c");
        assert_eq!(from(class, "../../../../../x"), "/x", "never above the root");
    }

    #[test]
    fn only_whole_pci_addresses_are_taken_for_one() {
        assert!(is_pci_address("0000:3b:00.0") && is_pci_address("10000:e1:00.7"));
        for other in ["pci0000:00", "2:0:0:0", "0000:3b:00", "0000:3b:0.0", "0:0:0.0", ""] {
            assert!(!is_pci_address(other), "{other}");
        }
    }

    #[test]
    fn controllers_of_three_kinds() {
        const NVME: &str = "sys/devices/pci0000:80/0000:81:00.0";
        const HBA: &str = "sys/devices/pci0000:00/0000:02:00.0";
        const VIRTIO: &str = "sys/devices/platform/LNRO0005:01/virtio1";
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            path
        };
        let file = |path: &str, text: &str| std::fs::write(at(path), text).unwrap();
        let link = |path: &str, to: &str| std::os::unix::fs::symlink(to, at(path)).unwrap();
        for (path, text) in [
            (format!("{NVME}/numa_node"), "1\n"),
            (format!("{NVME}/msi_irqs/131"), "msix\n"),
            (format!("{NVME}/msi_irqs/30"), "msix\n"),
            (format!("{NVME}/nvme/nvme0/model"), "SAMSUNG MZQL21T9HCJR-00A07              \n"),
            (format!("{NVME}/nvme/nvme0/transport"), "pcie\n"),
            (format!("{NVME}/nvme/nvme0/nvme0c0n1/size"), "1\n"),
            (format!("{HBA}/numa_node"), "-1\n"),
            (format!("{HBA}/irq"), "17\n"),
            (format!("{HBA}/host10/scsi_host/host10/proc_name"), "mpt3sas\n"),
            (format!("{HBA}/host9/scsi_host/host9/proc_name"), "(null)\n"),
            (format!("{VIRTIO}/device"), "0x0002\n"),
        ] {
            file(&path, text);
        }
        link(&format!("{NVME}/driver"), "../../../bus/pci/drivers/nvme");
        link(&format!("{HBA}/driver"), "../../../bus/pci/drivers/ahci");
        link("sys/class/nvme/nvme0", "../../devices/pci0000:80/0000:81:00.0/nvme/nvme0");
        for host in ["host9", "host10"] {
            let to = format!("../../devices/pci0000:00/0000:02:00.0/{host}/scsi_host/{host}");
            link(&format!("sys/class/scsi_host/{host}"), &to);
        }
        link("sys/block/sda", &format!("../../{HBA}/host10/target10:0:0/10:0:0:0/block/sda"));
        link("sys/block/vda", &format!("../../{VIRTIO}/block/vda"));
        link("sys/bus/virtio/drivers/virtio_blk/virtio1", &format!("../../../../../{VIRTIO}"));

        let all = read(&Root::open(dir.path()).unwrap());
        let names: Vec<_> = all.iter().map(|c| (c.kind.as_str(), c.name.as_str())).collect();
        let expected =
            [("nvme", "nvme0"), ("scsi", "host9"), ("scsi", "host10"), ("virtio_blk", "virtio1")];
        assert_eq!(names, expected);
        let [nvme, sata, sas, virtio] = all.try_into().unwrap();
        assert_eq!(nvme.driver, Reading::Known("nvme".into()));
        assert_eq!(nvme.model, Reading::Known("SAMSUNG MZQL21T9HCJR-00A07".into()));
        assert_eq!(nvme.bus_address, Reading::Known("0000:81:00.0".into()));
        assert_eq!(nvme.numa_node, Reading::Known(NumaNode(1)));
        assert_eq!((nvme.disks, nvme.irqs), (vec!["nvme0n1".into()], vec![IrqId(30), IrqId(131)]));
        assert_eq!(
            sata.driver,
            Reading::Known("ahci".into()),
            "the PCI driver's where it has no name"
        );
        assert!(sata.disks.is_empty());
        assert_eq!(sas.driver, Reading::Known("mpt3sas".into()));
        assert_eq!((sas.disks, sas.irqs), (vec!["sda".to_owned()], vec![IrqId(17)]));
        assert!(!sas.numa_node.is_known(), "−1 is no node");
        assert_eq!(virtio.disks, ["vda"]);
        assert!(!virtio.bus_address.is_known() && virtio.irqs.is_empty(), "not on PCI");
    }
}
