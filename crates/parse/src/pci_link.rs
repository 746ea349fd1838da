//! `current_link_speed`, `max_link_speed`, `current_link_width` and `max_link_width` of a PCI
//! device. **Source**: `pci_speed_string` and the attributes in the kernel's
//! `drivers/pci/pci-sysfs.c`; since 4.17.

use crate::{ParseError, text};

/// Mega-transfers a second per lane: `8.0 GT/s PCIe` and the older `8 GT/s` are 8000. `None`
/// where the kernel does not know (`Unknown`).
///
/// # Errors
/// When it is neither; a bus without lanes (`66 MHz PCI`) has no such speed.
pub fn speed_mts(bytes: &[u8]) -> Result<Option<u32>, ParseError> {
    let bad = || ParseError::new(1, "a link speed such as 8.0 GT/s PCIe", bytes);
    let word = text::word(bytes);
    if word.starts_with("Unknown") {
        return Ok(None);
    }
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
        mts => Ok(Some(mts)),
    }
}

/// Lanes. `None` for 0 (no link) and 255 (the kernel could not read the register).
///
/// # Errors
/// When it is none of these nor 1 to 32 lanes.
pub fn lanes(bytes: &[u8]) -> Result<Option<u32>, ParseError> {
    match text::number(bytes) {
        Ok(0 | 255) => Ok(None),
        Ok(n) if (1..=32).contains(&n) => Ok(Some(n)),
        _ => Err(ParseError::new(1, "1 to 32 lanes", bytes)),
    }
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
            assert_eq!(speed_mts(text), Ok(Some(mts)));
        }
    }

    #[test]
    fn an_unknown_speed_is_none() {
        assert_eq!(speed_mts(b"Unknown\n"), Ok(None));
        assert_eq!(speed_mts(b"Unknown speed\n"), Ok(None));
        for text in [
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
        assert_eq!(lanes(b"8\n"), Ok(Some(8)));
        assert_eq!(lanes(b"16\n"), Ok(Some(16)));
        assert_eq!(lanes(b"0\n"), Ok(None));
        assert_eq!(lanes(b"255\n"), Ok(None));
        for text in ["63", "", "-1", "x8"] {
            assert!(lanes(text.as_bytes()).is_err(), "{text:?} was taken");
        }
    }
}
