//! The common header of ACPI tables. **Source**: ACPI specification 6.5, table 5.4.

use crate::ParseError;

/// The vendor of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableHeader {
    /// Four characters that name the table: `FACP`, `APIC`.
    pub signature: String,
    /// Six characters: `FIRECK`, `BOCHS`, `AMAZON`.
    pub oem_id: String,
    pub oem_table_id: String,
}

/// Parses the first 36 bytes of a table.
///
/// # Errors
/// When it is shorter.
pub fn header(bytes: &[u8]) -> Result<TableHeader, ParseError> {
    let short = || ParseError::new(1, "an ACPI table of at least 36 bytes", bytes);
    bytes.get(..36).ok_or_else(short)?;
    let text = |range| bytes.get(range).map(crate::text::word).ok_or_else(short);
    Ok(TableHeader { signature: text(0..4)?, oem_id: text(10..16)?, oem_table_id: text(16..24)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_firecracker_table() {
        let mut table = b"APICH\0\0\0\x06VFIRECKFCVMMADT\0\0\0\0FCAT\x19\x01\x24\x20".to_vec();
        let h = header(&table).unwrap();
        assert_eq!((h.signature.as_str(), h.oem_id.as_str()), ("APIC", "FIRECK"));
        assert_eq!(h.oem_table_id, "FCVMMADT");
        table.truncate(35);
        assert!(header(&table).is_err());
    }
}
