//! `current_link_speed`, `max_link_speed`, `current_link_width` and `max_link_width` of a PCI
//! device. **Source**: `pci_speed_string` and the attributes in the kernel's
//! `drivers/pci/pci-sysfs.c`; since 4.17.

use crate::{ParseError, text};

/// Mega-transfers a second per lane: `8.0 GT/s PCIe` and the older `8 GT/s` are 8000.
///
/// # Errors
/// When the kernel does not know (`Unknown`), or the bus has no lanes (`66 MHz PCI`).
pub fn speed_mts(bytes: &[u8]) -> Result<u32, ParseError> {
    let bad = || ParseError::new(1, "a link speed such as 8.0 GT/s PCIe", bytes);
    let word = text::word(bytes);
    let (number, rest) = word.split_once(' ').ok_or_else(bad)?;
    if !rest.starts_with("GT/s") {
        return Err(bad());
    }
    let (whole, tenths) = number.split_once('.').unwrap_or((number, "0"));
    if tenths.len() != 1 || whole.len() > 4 {
        return Err(bad());
    }
    let digits = |t: &str| t.bytes().all(|b| b.is_ascii_digit()).then(|| t.parse::<u32>().ok());
    let (Some(Some(whole)), Some(Some(tenths))) = (digits(whole), digits(tenths)) else {
        return Err(bad());
    };
    match whole * 1000 + tenths * 100 {
        0 => Err(bad()),
        mts => Ok(mts),
    }
}

/// Lanes. 0 (no link) and 255 (the device answered all ones) are not known.
///
/// # Errors
/// When it is none of 1 to 32 lanes.
pub fn lanes(bytes: &[u8]) -> Result<u32, ParseError> {
    text::number(bytes)
        .ok()
        .filter(|n| (1..=32).contains(n))
        .ok_or_else(|| ParseError::new(1, "1 to 32 lanes", bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_generation_in_both_spellings() {
        let known: [(&[u8], u32); 9] = [
            (b"2.5 GT/s PCIe\n", 2_500),
            (b"2.5 GT/s\n", 2_500),
            (b"5 GT/s\n", 5_000),
            (b"5.0 GT/s PCIe\n", 5_000),
            (b"8.0 GT/s PCIe\n", 8_000),
            (b"16.0 GT/s\n", 16_000),
            (b"16.0 GT/s PCIe\n", 16_000),
            (b"32.0 GT/s PCIe\n", 32_000),
            (b"64.0 GT/s PCIe\n", 64_000),
        ];
        for (text, mts) in known {
            assert_eq!(speed_mts(text), Ok(mts));
        }
    }

    #[test]
    fn an_unknown_speed_is_none() {
        for text in [
            "Unknown\n",
            "Unknown speed\n",
            "",
            "66 MHz PCI\n",
            "133 MHz PCI-X 266",
            "0.0 GT/s",
            "8",
            ".5 GT/s",
            "8. GT/s",
            "8.00 GT/s",
            "-8.0 GT/s",
            "99999 GT/s",
        ] {
            assert!(speed_mts(text.as_bytes()).is_err(), "{text:?} was taken");
        }
    }

    #[test]
    fn no_lanes_are_not_a_width() {
        assert_eq!(lanes(b"8\n"), Ok(8));
        assert_eq!(lanes(b"16\n"), Ok(16));
        for text in ["0\n", "255\n", "63", "", "-1", "x8"] {
            assert!(lanes(text.as_bytes()).is_err(), "{text:?} was taken");
        }
    }
}
