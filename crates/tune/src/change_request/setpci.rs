//! `setpci -d VENDOR:DEVICE e6.b=2e` (or `-s ADDRESS`) from an old recipe: sets the burst size of
//! one PCI-X card by that card's register offset.

use model::{Facts, nic::Nic};

use crate::knob::{Refusal, cannot, harmful, usage};

const OFFSET: &str = "e6.b";
/// That card's register without the size: data parity recovery and relaxed ordering on.
const REST: u8 = 0x22;
const SIZE: u8 = 0x0c;

/// The knob and value that the line means; `None` for any other line.
pub fn expand(knob: &str, value: &str, facts: &Facts) -> Option<Result<(String, String), Refusal>> {
    let words: Vec<&str> = knob.split_whitespace().collect();
    let ["setpci", by @ ("-d" | "-s"), which, OFFSET] = words.as_slice() else { return None };
    Some(meant(*by == "-d", which, value, facts))
}

fn meant(
    by_id: bool,
    which: &str,
    value: &str,
    facts: &Facts,
) -> Result<(String, String), Refusal> {
    let code = u8::from_str_radix(value, 16).ok().filter(|code| code & !SIZE == REST);
    let Some(code) = code else {
        return usage(format!("{value:?} is none of 22, 26, 2a, 2e (512, 1024, 2048, 4096 bytes)"));
    };
    let bytes = 512u32 << (code >> 2 & 3);
    let is_it = |n: &&Nic| match by_id {
        true => id(n).is_some_and(|id| id.eq_ignore_ascii_case(which)),
        false => n.bus_address.known().is_some_and(|a| a.ends_with(which)),
    };
    let Some(nic) = facts.nics.iter().find(is_it) else {
        let others: Vec<String> = facts.nics.iter().filter_map(instead).collect();
        return cannot(match others.is_empty() {
            true => format!("no NIC here is {which}, and none shows a PCI request size"),
            false => format!("no NIC here is {which}; {}", others.join("; ")),
        });
    };
    let address = nic.bus_address.known().cloned().unwrap_or_default();
    match nic.pci.known().map(|p| p.pcix_mmrbc_bytes.is_known()) {
        Some(true) => Ok((format!("pci.{address}.mmrbc"), bytes.to_string())),
        _ => harmful(format!(
            "offset e6 is the MMRBC of one PCI-X card and something else on this device; {}",
            instead(nic).unwrap_or_else(|| "its own setting is not known".into())
        )),
    }
}

fn id(nic: &Nic) -> Option<String> {
    let pci = nic.pci.known()?;
    Some(format!("{}:{}", pci.vendor_id.known()?, pci.device_id.known()?))
}

/// The corresponding setting of this NIC, and its current value.
fn instead(nic: &Nic) -> Option<String> {
    let (pci, address) = (nic.pci.known()?, nic.bus_address.known()?);
    let (kind, knob, now) = match (pci.pcix_mmrbc_bytes.get(), pci.read_request_bytes.get()) {
        (Some(now), _) => ("PCI-X", "mmrbc", now),
        (None, Some(now)) => ("PCI Express", "read_request", now),
        (None, None) => return None,
    };
    let id = id(nic).unwrap_or_default();
    Some(format!("{} ({id}) is {kind}, with pci.{address}.{knob} ({} bytes now)", nic.name, now.0))
}

#[cfg(test)]
mod tests {
    use probe::{Root, facts};

    use super::*;
    use model::tune::RefusedAs;

    /// A NIC with these capabilities in its configuration space, one register word for each.
    fn host(capabilities: &[(u8, u8, usize, u16)]) -> Facts {
        let tree = tempfile::tempdir().unwrap();
        let device = tree.path().join("sys/devices/pci0000:00/0000:02:00.0");
        std::fs::create_dir_all(device.join("net/eth0")).unwrap();
        let put = |file: &str, bytes: &[u8]| std::fs::write(device.join(file), bytes).unwrap();
        let mut space = vec![0u8; 256];
        space[..4].copy_from_slice(&[0x86, 0x80, 0x48, 0x10]);
        space[6] = 0x10;
        let mut last = 0x34;
        for (id, at, register, word) in capabilities {
            space[last] = *at;
            space[usize::from(*at)] = *id;
            space[*register..register + 2].copy_from_slice(&word.to_le_bytes());
            last = usize::from(*at) + 1;
        }
        put("config", &space);
        put("vendor", b"0x8086\n");
        put("device", b"0x1048\n");
        put("net/eth0/ifindex", b"2\n");
        put("net/eth0/type", b"1\n");
        let link = |from: &str, to: &str| {
            let from = tree.path().join(from);
            std::fs::create_dir_all(from.parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(to, from).unwrap();
        };
        link("sys/class/net/eth0", "../../devices/pci0000:00/0000:02:00.0/net/eth0");
        std::os::unix::fs::symlink("../../../0000:02:00.0", device.join("net/eth0/device"))
            .unwrap();
        link("sys/bus/pci/devices/0000:02:00.0", "../../../devices/pci0000:00/0000:02:00.0");
        let request = facts::Request { processes: vec![] };
        facts::collect(&Root::open(tree.path()).unwrap(), &request)
    }

    #[test]
    fn the_recipes_line_is_the_knob_that_the_device_has() {
        let line = |facts: &Facts, which: &str, value: &str| {
            expand(&format!("setpci {which} e6.b"), value, facts).unwrap()
        };
        let pcix = host(&[(7, 0xe4, 0xe6, 0x0022)]);
        for (value, bytes) in [("22", "512"), ("26", "1024"), ("2a", "2048"), ("2e", "4096")] {
            let meant = ("pci.0000:02:00.0.mmrbc".to_owned(), bytes.to_owned());
            assert_eq!(line(&pcix, "-d 8086:1048", value), Ok(meant.clone()));
            assert_eq!(line(&pcix, "-s 02:00.0", value), Ok(meant));
        }
        assert_eq!(line(&pcix, "-d 8086:1048", "2f").unwrap_err().kind, RefusedAs::Usage);
        let other = line(&pcix, "-d 8086:10fb", "2e").unwrap_err();
        assert!(
            other.why.contains("no NIC here is 8086:10fb; eth0 (8086:1048) is PCI-X"),
            "{other:?}"
        );

        let express = host(&[(0x10, 0x70, 0x78, 0x2810)]);
        let refused = line(&express, "-d 8086:1048", "2e").unwrap_err();
        assert_eq!(refused.kind, RefusedAs::Harmful);
        let instead = "is PCI Express, with pci.0000:02:00.0.read_request (512 bytes now)";
        assert!(refused.why.contains(instead), "{refused:?}");
        assert_eq!(expand("setpci -d 8086:1048 40.b", "2e", &express), None);
    }
}
