//! A NIC's device: its bus address and its PCI function.

use model::Reading;

use crate::{Root, error::reading};

/// The device behind an interface.
pub struct BusLocation {
    /// Folder of the device, links followed.
    pub device: String,
    /// Folder of the PCI function it is or hangs on.
    pub pci: Option<String>,
    /// What a person calls it by: a PCI address, else the device's own name on its bus.
    pub bus_address: String,
}

/// Follows the `device` link. For virtio and auxiliary devices, which only exist within a
/// PCI function, that function is the place; a USB or platform device is its own, whatever
/// PCI controller it is reached through.
pub fn of(root: &Root, nic: &str) -> Reading<BusLocation> {
    let link = format!("/sys/class/net/{nic}/device");
    let followed = reading(root.resolve(&link));
    followed.or_else(|| by_target(root, nic, &link)).map(|device| {
        let parts: Vec<&str> = device.split('/').collect();
        let own = parts.last().copied().unwrap_or_default();
        let bus = bus(root, &device, own);
        let inside = ["pci", "virtio", "auxiliary"].contains(&bus.as_str());
        let function = parts.iter().rposition(|p| is_pci_address(p)).filter(|_| inside);
        let (bus_address, pci) = match function {
            Some(at) => (
                parts.get(at).copied().unwrap_or(own),
                parts.get(..=at).map(|up_to| up_to.join("/")),
            ),
            // virtio over MMIO: the platform device is the one with an address.
            None if bus == "virtio" => (parts.iter().rev().nth(1).copied().unwrap_or(own), None),
            None => (own, None),
        };
        BusLocation { bus_address: bus_address.to_owned(), pci, device }
    })
}

/// The device by the target of the interface's own link, which names it also where the target is
/// not in the tree (a support archive): `../../devices/pci0000:00/0000:00:03.0/virtio0/net/ens3`.
fn by_target(root: &Root, nic: &str, link: &str) -> Reading<String> {
    let target = match root.link(&format!("/sys/class/net/{nic}")) {
        Ok(target) if !root.is_whole() => target,
        _ => return Reading::Absent(format!("{link}: not there")),
    };
    let path = target.split_once("devices/").map_or("", |t| t.1);
    match path.split_once("/net/") {
        Some((device, name)) if name == nic && !path.starts_with("virtual/") => {
            Reading::Known(format!("/sys/devices/{device}"))
        }
        _ => Reading::Absent(format!("{link}: not there")),
    }
}

/// Whether the tree shows that an interface has no device: its link points to a virtual device. On
/// the running host every interface with a device has a `device` link.
pub(super) fn is_virtual(root: &Root, nic: &str) -> bool {
    let target = root.link(&format!("/sys/class/net/{nic}"));
    root.is_whole() || target.is_ok_and(|t| t.contains("devices/virtual/"))
}

/// The bus, from the device's `subsystem` link, else from how its name looks.
fn bus(root: &Root, device: &str, own: &str) -> String {
    match root.link(&format!("{device}/subsystem")) {
        Ok(target) => target.rsplit('/').next().unwrap_or_default().to_owned(),
        Err(_) if own.starts_with("virtio") => "virtio".into(),
        Err(_) if is_pci_address(own) => "pci".into(),
        Err(_) => String::new(),
    }
}

/// `0000:03:00.0`; domains of virtual machines (VMD, Hyper-V) are longer than four digits.
fn is_pci_address(part: &str) -> bool {
    let hex = |t: &str, digits: std::ops::RangeInclusive<usize>| {
        digits.contains(&t.len()) && t.bytes().all(|b| b.is_ascii_hexdigit())
    };
    let mut fields = part.split([':', '.']);
    let mut next = |digits| fields.next().is_some_and(|f| hex(f, digits));
    part.split_once('.').is_some_and(|(_, function)| function.len() == 1)
        && next(4..=8)
        && next(2..=2)
        && next(2..=2)
        && next(1..=1)
        && fields.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn linked(target: &str) -> tempfile::TempDir {
        let tree = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(tree.path().join("sys/class/net")).unwrap();
        std::os::unix::fs::symlink(target, tree.path().join("sys/class/net/ens3")).unwrap();
        tree
    }

    #[test]
    fn a_link_whose_target_was_not_copied_still_names_the_device() {
        for (target, bus_address, pci) in [
            (
                "../../devices/pci0000:00/0000:00:03.0/virtio0/net/ens3",
                "0000:00:03.0",
                Some("/sys/devices/pci0000:00/0000:00:03.0"),
            ),
            (
                "../../devices/pci0000:3a/0000:3a:00.0/0000:3b:00.1/net/ens3",
                "0000:3b:00.1",
                Some("/sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.1"),
            ),
            ("../../devices/platform/soc/30be0000.ethernet/net/ens3", "30be0000.ethernet", None),
        ] {
            let tree = linked(target);
            let root = Root::open(tree.path()).unwrap();
            let place = of(&root, "ens3").into_known().unwrap();
            assert_eq!(place.bus_address, bus_address, "{target}");
            assert_eq!(place.pci.as_deref(), pci, "{target}");
            assert!(!is_virtual(&root, "ens3"));
        }
        let tree = linked("../../devices/virtual/net/ens3");
        let root = Root::open(tree.path()).unwrap();
        assert!(!of(&root, "ens3").is_known());
        assert!(is_virtual(&root, "ens3"));
    }

    #[test]
    fn a_pci_address_is_domain_bus_device_function() {
        for good in ["0000:03:00.0", "10000:e1:00.1", "abcd:ff:1f.7"] {
            assert!(is_pci_address(good), "{good}");
        }
        for bad in ["pci0000:00", "03:00.0", "0000:03:00", "virtio2", "1-1:1.0", "0000.03.00:0", ""]
        {
            assert!(!is_pci_address(bad), "{bad}");
        }
    }
}
