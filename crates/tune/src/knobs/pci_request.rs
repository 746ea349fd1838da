//! `pci.ADDRESS.read_request` and `.mmrbc`: the largest memory read request of a device, in bytes.

use model::{
    knob::Target,
    tune::{Disruption, Impact},
};
use parse::pci_config::{self, ListEnd, PciConfig};

use crate::{
    Host, TuneError,
    knob::{Kind, Knob, PlanContext, Refusal, Undone, cannot, usage},
    need::Need,
    phase::Phase,
};

/// **Source**: `/sys/bus/pci/devices/ADDRESS/config`: DevCtl 14:12 of the PCI Express capability (PCI
/// Express Base 4.0 §7.5.3.4), command 3:2 of the PCI-X capability (PCI-X 2.0 §7.2). The capability is
/// found by its list, and nothing but the field is changed: its 16-bit register is read, and
/// written with all its other bits as they were. An exact value is the device's identity and
/// the bytes.
pub const KIND: Kind = Kind {
    name: "pci_request",
    spelling: "pci.ADDRESS.read_request=BYTES or .mmrbc=BYTES",
    parse: |target| match target {
        Target::Pci(address, name) if is_address(address) => {
            Some(Box::new(PciRequest { address, field: FIELDS.iter().find(|f| f.name == name)? }))
        }
        _ => None,
    },
};

struct PciRequest<'k> {
    address: &'k str,
    field: &'static Field,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Field {
    name: &'static str,
    /// Identifier of the capability, as in its list.
    capability: u8,
    /// Offset of the register within the capability.
    at: u8,
    shift: u32,
    mask: u16,
    /// Bytes that code 0 stands for; each further code doubles them.
    least: u32,
    most: u32,
}

const FIELDS: [Field; 2] = [
    Field {
        name: "read_request",
        capability: 0x10,
        at: 8,
        shift: 12,
        mask: 0x7000,
        least: 128,
        most: 4096,
    },
    Field {
        name: "mmrbc",
        capability: 0x07,
        at: 2,
        shift: 2,
        mask: 0x000c,
        least: 512,
        most: 4096,
    },
];

/// Length of the configuration space that holds the capability list.
const CONFIG_BYTES: usize = 256;

/// Whether the text is a PCI address such as `0000:81:00.0`.
fn is_address(address: &str) -> bool {
    let hex = |s: &str, n: usize| s.len() >= n && s.bytes().all(|b| b.is_ascii_hexdigit());
    let Some((place, function)) = address.rsplit_once('.') else { return false };
    match place.split(':').collect::<Vec<_>>()[..] {
        [domain, bus, slot] => hex(domain, 4) && hex(bus, 2) && hex(slot, 2) && hex(function, 1),
        _ => false,
    }
}

/// The configuration space, and the offset of the field's register in it.
fn register(it: &PciRequest<'_>, host: &Host) -> Result<(PciConfig, u16, u8), TuneError> {
    let PciRequest { address, field } = it;
    let path = it.path();
    let bytes = host.root().read_head(&path, CONFIG_BYTES).map_err(|e| TuneError::read(&e))?;
    let config =
        pci_config::parse(&bytes).map_err(|e| TuneError::Environment(format!("{path}: {e}")))?;
    let wrong = |what: &str| Err(TuneError::Environment(format!("{path}: {what}")));
    match config.end {
        ListEnd::Complete => {}
        ListEnd::Truncated if bytes.len() <= 64 => {
            return Err(TuneError::Denied(format!(
                "{path}: only the first 64 bytes; CAP_SYS_ADMIN (or root) would show the rest"
            )));
        }
        ListEnd::Truncated | ListEnd::Broken => return wrong("its capability list breaks off"),
    }
    let Some((_, start)) = config.capabilities.iter().find(|c| c.0 == field.capability) else {
        let other = FIELDS.iter().find(|f| config.capabilities.iter().any(|c| c.0 == f.capability));
        let instead = other.map(|f| {
            let kind = if f.name == "mmrbc" { "PCI-X" } else { "PCI Express" };
            format!(": it is {kind}, whose setting is pci.{address}.{}", f.name)
        });
        return Err(TuneError::Absent(format!(
            "{path}: the device has no such capability{}",
            instead.unwrap_or_default()
        )));
    };
    let Some(at) = start.checked_add(field.at).filter(|at| at % 2 == 0) else {
        return wrong("its capability list breaks off");
    };
    let word = bytes.get(usize::from(at)..usize::from(at) + 2).and_then(|b| b.try_into().ok());
    match word {
        Some(word) => Ok((config, u16::from_le_bytes(word), at)),
        None => wrong("its capability list breaks off"),
    }
}

/// The field's current value, in bytes.
fn size(config: &PciConfig, field: &Field) -> Option<u32> {
    match field.name {
        "mmrbc" => config.pcix_mmrbc_bytes,
        _ => config.express.and_then(|e| e.read_request_bytes),
    }
}

/// Bytes of an exact or a typed value.
fn bytes(text: &str) -> Option<u32> {
    text.split_whitespace().last()?.parse().ok()
}

impl PciRequest<'_> {
    fn path(&self) -> String {
        format!("/sys/bus/pci/devices/{}/config", self.address)
    }
}

impl Knob for PciRequest<'_> {
    fn target(&self) -> Target<'_> {
        Target::Pci(self.address, self.field.name)
    }

    fn phase(&self) -> Phase {
        Phase::Pci
    }

    fn danger(&self) -> Option<&'static str> {
        Some("writing a register of a working device can wedge it or corrupt what it transfers")
    }

    fn read(&self, host: &Host) -> Result<String, TuneError> {
        let (config, _, _) = register(self, host)?;
        let size = size(&config, self.field).ok_or_else(|| {
            TuneError::Environment(format!("{}: holds a reserved size", self.target()))
        })?;
        Ok(format!("{:04x}:{:04x} {size}", config.vendor_id, config.device_id))
    }

    fn show(&self, exact: &str) -> String {
        bytes(exact).map_or_else(|| exact.trim().to_owned(), |b| b.to_string())
    }

    fn validate(
        &self,
        context: &PlanContext<'_>,
        _: &str,
        wanted: &str,
    ) -> Result<String, Refusal> {
        let field = self.field;
        let fits = |n: &u32| n.is_power_of_two() && (field.least..=field.most).contains(n);
        let Some(size) = wanted.parse().ok().filter(fits) else {
            return usage(format!(
                "{wanted:?} is no power of two from {} to {} bytes",
                field.least, field.most
            ));
        };
        let nic = context
            .facts
            .nics
            .iter()
            .find(|n| n.bus_address.known().is_some_and(|a| a == self.address));
        let pci = nic.and_then(|n| n.pci.known());
        if let Some(payload) = pci.and_then(|p| p.max_payload_bytes.known())
            && u64::from(size) < payload.0
        {
            return cannot(format!("its payload is {} bytes: less makes no sense", payload.0));
        }
        Ok(size.to_string())
    }

    fn needs(&self, _: &Host) -> Vec<Need> {
        vec![Need::File(self.path()), Need::SysAdmin]
    }

    fn write(&self, host: &Host, value: &str) -> Result<(), TuneError> {
        let (_, word, at) = register(self, host)?;
        let field = self.field;
        let size = bytes(value).filter(|n| n.is_power_of_two() && *n >= field.least);
        let size =
            size.ok_or_else(|| TuneError::Usage(format!("{}: {value:?}: no size", self.target())))?;
        let code = (size / field.least).trailing_zeros();
        let code = u16::try_from(code << field.shift).unwrap_or(u16::MAX);
        if code & !field.mask != 0 {
            return Err(TuneError::Usage(format!(
                "{}: {value:?} does not fit the field",
                self.target()
            )));
        }
        let word = word & !field.mask | code;
        host.write_at(&self.path(), u64::from(at), &word.to_le_bytes())
    }

    fn undo(&self, host: &Host, old: &str, _: &str) -> Result<Undone, TuneError> {
        let now = match self.read(host) {
            Err(TuneError::Absent(why)) => return Ok(Undone::Gone(why)),
            now => now?,
        };
        let device = |exact: &str| exact.split(' ').next().map(str::to_owned);
        if device(&now) != device(old) {
            return Ok(Undone::Lost(format!("another device is at this address: {now}")));
        }
        if now != old {
            self.write(host, old)?;
        }
        self.came_back(host, old)
    }

    fn undo_text(&self) -> String {
        "the field is written back, the register's other bits as they are then".into()
    }

    fn impact(&self, context: &PlanContext<'_>, _: &str, _: &str) -> Impact {
        let why = "a device that does not bear it hangs until it is reset";
        let on = |n: &&model::nic::Nic| n.bus_address.known().is_some_and(|a| a == self.address);
        match context.facts.nics.iter().find(on) {
            Some(nic) => context.nic_impact(&nic.name, Disruption::ConnectionLoss, why),
            None => Impact::of(Disruption::ConnectionLoss, why),
        }
    }

    fn unit(&self) -> &'static str {
        "bytes"
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::knobs::find;

    /// PM at 0x40, PCI-X at 0x50, PCI Express at 0x70; every other byte is 0xa5.
    fn device(tree: &Path) -> std::path::PathBuf {
        let mut space = vec![0xa5u8; 256];
        space[..4].copy_from_slice(&[0x86, 0x80, 0x48, 0x10]);
        space[6] = 0x10;
        space[0x0e] = 0;
        space[0x34] = 0x40;
        for (at, id, next) in [(0x40, 1, 0x50), (0x50, 7, 0x70), (0x70, 0x10, 0)] {
            space[at] = id;
            space[at + 1] = next;
        }
        space[0x78..0x7a].copy_from_slice(&0x2810u16.to_le_bytes()); // 512 bytes
        space[0x52..0x54].copy_from_slice(&0x0022u16.to_le_bytes()); // 512 bytes
        let folder = tree.join("sys/bus/pci/devices/0000:02:00.0");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("config"), space).unwrap();
        folder.join("config")
    }

    #[test]
    fn nothing_but_the_field_is_changed_and_it_is_found_by_the_list() {
        let tree = tempfile::tempdir().unwrap();
        let file = device(tree.path());
        let before = std::fs::read(&file).unwrap();
        let host = Host::tree(tree.path()).unwrap();
        for (name, new, at, word) in [
            ("pci.0000:02:00.0.read_request", "4096", 0x78, 0x5810u16),
            ("pci.0000:02:00.0.mmrbc", "4096", 0x52, 0x002e),
        ] {
            let knob = find(name).unwrap();
            let old = knob.read(&host).unwrap();
            assert_eq!(old, "8086:1048 512");
            knob.write(&host, new).unwrap();
            assert!(knob.verify(new, &knob.read(&host).unwrap()));
            let mut expected = before.clone();
            expected[at..at + 2].copy_from_slice(&word.to_le_bytes());
            assert_eq!(std::fs::read(&file).unwrap(), expected, "{name}");
            knob.undo(&host, &old, new).unwrap();
            assert_eq!(std::fs::read(&file).unwrap(), before, "{name}");
        }
    }

    #[test]
    fn a_list_that_breaks_off_or_lacks_it_is_no_place_to_write() {
        let tree = tempfile::tempdir().unwrap();
        let file = device(tree.path());
        let whole = std::fs::read(&file).unwrap();
        let knob = find("pci.0000:02:00.0.read_request").unwrap();
        let tries = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut space = whole.clone();
            change(&mut space);
            std::fs::write(&file, &space).unwrap();
            let host = Host::tree(tree.path()).unwrap();
            assert!(knob.write(&host, "4096").is_err());
            assert_eq!(std::fs::read(&file).unwrap(), space);
        };
        tries(&|s| s.truncate(64));
        tries(&|s| s.truncate(0x79));
        tries(&|s| s[0x51] = 0x40); // in a circle
        tries(&|s| s[0x51] = 0); // without PCI Express
        let why = knob.read(&Host::tree(tree.path()).unwrap()).unwrap_err().to_string();
        assert!(why.contains("it is PCI-X, whose setting is pci.0000:02:00.0.mmrbc"), "{why}");
        tries(&|s| s[..2].fill(0xff)); // gone
        tries(&|s| s[6] = 0); // no list at all
    }

    #[test]
    fn an_address_is_whole() {
        for bad in ["pci.2:0.0.mmrbc", "pci.0000:02:00.0.e6", "pci.0000:02:00.mmrbc", "pci..mmrbc"]
        {
            assert!(find(bad).is_none(), "{bad:?} was taken");
        }
    }
}
