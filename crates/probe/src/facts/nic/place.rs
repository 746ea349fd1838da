//! Where a NIC sits: the device behind it, its bus address and its PCI function.

use model::Reading;

use crate::{Root, error::reading};

/// The device behind an interface.
pub struct Place {
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
pub fn of(root: &Root, nic: &str) -> Reading<Place> {
    let link = format!("/sys/class/net/{nic}/device");
    reading(root.resolve(&link)).map(|device| {
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
        Place { bus_address: bus_address.to_owned(), pci, device }
    })
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
