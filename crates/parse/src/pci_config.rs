//! PCI configuration space, as `/sys/bus/pci/devices/*/config` gives it: the header and the
//! list of capabilities in the first 256 bytes.
//!
//! **Source**: PCI Local Bus 3.0 §6 (header, capability list), PCI Express Base 4.0 §7.5.3
//! (Device Capabilities and Device Control), PCI-X 2.0 §7.2 (command register); numbers as in
//! the kernel's `include/uapi/linux/pci_regs.h`. Registers are little-endian on every machine.

use crate::ParseError;

/// The part of a configuration space that a network device is judged by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PciConfig {
    pub vendor_id: u16,
    pub device_id: u16,
    /// Class, subclass, interface in 24 bits.
    pub class: u32,
    /// Capabilities in list order: identifier and offset.
    pub capabilities: Vec<(u8, u8)>,
    /// How the list ended.
    pub end: ListEnd,
    /// The PCI Express capability, if there and whole.
    pub express: Option<Express>,
    /// Most bytes a PCI-X memory read asks for (512 to 4096), for a function with that
    /// capability.
    pub pcix_mmrbc_bytes: Option<u32>,
}

/// How a capability list ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListEnd {
    /// Properly: everything there is was seen (also when there is no list).
    Complete,
    /// It goes on beyond the bytes given: an unprivileged reader gets 64.
    Truncated,
    /// It comes back to itself, or points where no capability can be.
    Broken,
}

/// Sizes of the PCI Express capability; `None` where the register holds a reserved value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Express {
    /// Largest payload the function can take (DevCap 2:0).
    pub payload_supported_bytes: Option<u32>,
    /// Payload in force (DevCtl 7:5).
    pub max_payload_bytes: Option<u32>,
    /// Largest read request (DevCtl 14:12).
    pub read_request_bytes: Option<u32>,
}

const STATUS: usize = 0x06;
const STATUS_CAPABILITIES: u16 = 0x10;
const HEADER_TYPE: usize = 0x0e;
const FIRST_CAPABILITY: usize = 0x34;
const FIRST_CAPABILITY_CARDBUS: usize = 0x14;
/// Where capabilities may stand.
const CAPABILITIES_FROM: u8 = 0x40;
const PCIX: u8 = 0x07;
const EXPRESS: u8 = 0x10;

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2)?.try_into().ok().map(u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes)
}

/// 128 bytes shifted by a three-bit code; 6 and 7 are reserved.
fn size(code: u32) -> Option<u32> {
    (code & 7 <= 5).then(|| 128 << (code & 7))
}

/// Parses a configuration space of 64 bytes or more; bytes beyond 256 are ignored.
///
/// # Errors
/// There are fewer than 64 bytes, or all are ones: the function is gone.
pub fn parse(bytes: &[u8]) -> Result<PciConfig, ParseError> {
    let bytes = bytes.get(..256).unwrap_or(bytes);
    let bad = |expected| ParseError::new(1, expected, bytes.get(..8).unwrap_or(bytes));
    if bytes.len() < 64 {
        return Err(bad("64 bytes of PCI configuration space or more"));
    }
    let short = || bad("a PCI configuration header");
    let vendor_id = u16_at(bytes, 0).ok_or_else(short)?;
    if vendor_id == 0xffff {
        return Err(bad("a PCI function that answers (all ones: it is gone)"));
    }
    let (capabilities, end) = walk(bytes);
    let at = |wanted: u8| capabilities.iter().find(|c| c.0 == wanted).map(|c| usize::from(c.1));
    let bridge = bytes.get(HEADER_TYPE).is_some_and(|h| h & 0x7f != 0);
    // A PCI-X bridge keeps another register at this place.
    let pcix = at(PCIX).filter(|_| !bridge).and_then(|at| u16_at(bytes, at + 2));
    Ok(PciConfig {
        vendor_id,
        device_id: u16_at(bytes, 2).ok_or_else(short)?,
        class: u32_at(bytes, 8).ok_or_else(short)? >> 8,
        express: at(EXPRESS).and_then(|at| express(bytes, at)),
        pcix_mmrbc_bytes: pcix.map(|command| 512 << (command >> 2 & 3)),
        capabilities,
        end,
    })
}

/// The capability list; every place is visited once at most.
fn walk(bytes: &[u8]) -> (Vec<(u8, u8)>, ListEnd) {
    let mut found = Vec::new();
    if u16_at(bytes, STATUS).is_none_or(|s| s & STATUS_CAPABILITIES == 0) {
        return (found, ListEnd::Complete);
    }
    let first = match bytes.get(HEADER_TYPE).map(|h| h & 0x7f) {
        Some(2) => FIRST_CAPABILITY_CARDBUS,
        _ => FIRST_CAPABILITY,
    };
    let mut next = bytes.get(first).copied().unwrap_or(0) & 0xfc;
    while next != 0 {
        if next < CAPABILITIES_FROM || found.iter().any(|c: &(u8, u8)| c.1 == next) {
            return (found, ListEnd::Broken);
        }
        let Some([id, following]) = u16_at(bytes, next.into()).map(u16::to_le_bytes) else {
            return (found, ListEnd::Truncated);
        };
        if id == 0xff {
            return (found, ListEnd::Broken);
        }
        found.push((id, next));
        next = following & 0xfc;
    }
    (found, ListEnd::Complete)
}

fn express(bytes: &[u8], at: usize) -> Option<Express> {
    let capabilities = u32_at(bytes, at + 4)?;
    let control = u32::from(u16_at(bytes, at + 8)?);
    Some(Express {
        payload_supported_bytes: size(capabilities),
        max_payload_bytes: size(control >> 5),
        read_request_bytes: size(control >> 12),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A function's space with these capabilities, each 0x10 bytes, the first at 0x40.
    fn space(capabilities: &[(u8, &[u8])]) -> Vec<u8> {
        let mut bytes = vec![0u8; 256];
        bytes[..4].copy_from_slice(&[0x86, 0x80, 0xfb, 0x10]); // 82599ES
        bytes[8..12].copy_from_slice(&[1, 0x00, 0x00, 0x02]); // Ethernet controller
        if !capabilities.is_empty() {
            bytes[STATUS] = 0x10;
            bytes[FIRST_CAPABILITY] = 0x40;
        }
        for (i, (id, body)) in capabilities.iter().enumerate() {
            let at = 0x40 + 0x10 * i;
            bytes[at] = *id;
            bytes[at + 1] = if i + 1 < capabilities.len() { at as u8 + 0x10 } else { 0 };
            bytes[at + 2..at + 2 + body.len()].copy_from_slice(body);
        }
        bytes
    }

    /// Express capability body: flags, DevCap (payload up to 512), DevCtl.
    fn express_body(control: u16) -> [u8; 8] {
        let [low, high] = control.to_le_bytes();
        [0x02, 0x00, 0xc2, 0x8c, 0x00, 0x10, low, high]
    }

    #[test]
    fn read_request_and_payload_of_an_express_function() {
        // DevCtl 0x2830: MRRS code 2, MPS code 1, relaxed ordering and so on around them.
        let bytes = space(&[(0x01, &[]), (0x05, &[]), (0x10, &express_body(0x2830))]);
        let config = parse(&bytes).unwrap();
        assert_eq!((config.vendor_id, config.device_id, config.class), (0x8086, 0x10fb, 0x020000));
        assert_eq!(config.capabilities, [(0x01, 0x40), (0x05, 0x50), (0x10, 0x60)]);
        assert_eq!(config.end, ListEnd::Complete);
        let express = config.express.unwrap();
        assert_eq!(express.read_request_bytes, Some(512));
        assert_eq!(express.max_payload_bytes, Some(256));
        assert_eq!(express.payload_supported_bytes, Some(512));
        assert_eq!(config.pcix_mmrbc_bytes, None);
    }

    #[test]
    fn every_read_request_size_and_the_reserved_codes() {
        let sizes =
            [Some(128), Some(256), Some(512), Some(1024), Some(2048), Some(4096), None, None];
        for (code, size) in (0u16..).zip(sizes) {
            let config = parse(&space(&[(0x10, &express_body(code << 12 | code << 5))])).unwrap();
            let express = config.express.unwrap();
            assert_eq!((express.read_request_bytes, express.max_payload_bytes), (size, size));
        }
    }

    /// The field case: `setpci … e6.b` 22, 26, 2a, 2e mean 512, 1024, 2048, 4096.
    #[test]
    fn memory_read_byte_count_of_a_pcix_function() {
        for (command, bytes) in [(0x22, 512), (0x26, 1024), (0x2a, 2048), (0x2e, 4096)] {
            let mut space = space(&[(0x07, &[command, 0])]);
            assert_eq!(parse(&space).unwrap().pcix_mmrbc_bytes, Some(bytes));
            space[HEADER_TYPE] = 1;
            assert_eq!(parse(&space).unwrap().pcix_mmrbc_bytes, None, "a bridge has none");
        }
    }

    #[test]
    fn without_privilege_there_are_64_bytes() {
        let bytes = space(&[(0x10, &express_body(0x2830))]);
        let config = parse(&bytes[..64]).unwrap();
        assert_eq!((config.end, config.express), (ListEnd::Truncated, None));
        let config = parse(&space(&[])[..64]).unwrap();
        assert_eq!(config.end, ListEnd::Complete, "no list, so nothing is hidden");
    }

    #[test]
    fn a_list_that_loops_ends() {
        let mut bytes = space(&[(0x01, &[]), (0x05, &[])]);
        bytes[0x51] = 0x40;
        let config = parse(&bytes).unwrap();
        assert_eq!(config.capabilities, [(0x01, 0x40), (0x05, 0x50)]);
        assert_eq!(config.end, ListEnd::Broken);
        bytes[0x51] = 0x10; // into the header
        assert_eq!(parse(&bytes).unwrap().end, ListEnd::Broken);
    }

    #[test]
    fn low_bits_of_a_pointer_are_reserved() {
        let mut bytes = space(&[(0x01, &[]), (0x10, &express_body(0x5000))]);
        bytes[FIRST_CAPABILITY] |= 3;
        bytes[0x41] |= 1;
        assert_eq!(parse(&bytes).unwrap().express.unwrap().read_request_bytes, Some(4096));
    }

    #[test]
    fn an_express_capability_at_the_very_end_is_not_read_beyond_it() {
        let mut bytes = space(&[(0x10, &[])]);
        bytes[FIRST_CAPABILITY] = 0xfc;
        bytes[0xfc] = 0x10;
        assert_eq!(parse(&bytes).unwrap().express, None);
    }

    #[test]
    fn a_function_that_is_gone_is_an_error() {
        assert!(parse(&[0xff; 256]).is_err());
        assert!(parse(&[0; 63]).is_err());
        assert!(parse(&[]).is_err());
    }

    proptest! {
        #[test]
        fn the_walk_ends_within_its_places(
            mut bytes in proptest::collection::vec(any::<u8>(), 64..300),
            first in 0u8..=255,
        ) {
            bytes[STATUS] |= 0x10;
            bytes[FIRST_CAPABILITY] = first;
            if let Ok(config) = parse(&bytes) {
                prop_assert!(config.capabilities.len() <= 48, "dwords from 0x40 to 0xfc");
                let mut places: Vec<u8> = config.capabilities.iter().map(|c| c.1).collect();
                places.sort_unstable();
                places.dedup();
                prop_assert_eq!(places.len(), config.capabilities.len());
            }
        }
    }
}
