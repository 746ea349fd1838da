//! `/proc/net/vlan/config`: the VLAN devices of a network namespace.
//!
//! **Shape**: two lines of heading, then `NAME | ID | DEVICE BELOW`. Absent without the 8021q
//! module. **Source**: `vlan_seq_show` in `net/8021q/vlanproc.c`.

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VlanLine {
    pub name: String,
    pub id: u16,
    pub lower: String,
}

/// Parses the file; lines that are no device (the headings) are skipped.
pub fn parse(bytes: &[u8]) -> Vec<VlanLine> {
    String::from_utf8_lossy(bytes)
        .lines()
        .filter_map(|line| {
            let mut parts = line.split('|').map(str::trim);
            let (name, id, lower) = (parts.next()?, parts.next()?, parts.next()?);
            let id = id.parse().ok()?;
            let whole = !name.is_empty() && !lower.is_empty() && parts.next().is_none();
            whole.then(|| VlanLine { name: name.into(), id, lower: lower.into() })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_but_not_the_headings() {
        let text = "VLAN Dev name    | VLAN ID\nName-Type: VLAN_NAME_TYPE_RAW_PLUS_VID_NO_PAD\neth0.100       | 100  | eth0\nstorage        | 4094  | bond0\n";
        assert_eq!(
            parse(text.as_bytes()),
            [
                VlanLine { name: "eth0.100".into(), id: 100, lower: "eth0".into() },
                VlanLine { name: "storage".into(), id: 4094, lower: "bond0".into() },
            ]
        );
        assert_eq!(parse(b"a | 70000 | b\n| 5 | b\na | 5 |\n"), []);
    }
}
