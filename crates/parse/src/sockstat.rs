//! `/proc/net/sockstat` and `sockstat6`: socket gauges of this network namespace (memory
//! and orphans: of the whole host). **Source**: `net/ipv4/proc.c`, `net/ipv6/proc.c`.

use std::collections::BTreeMap;

use crate::{ParseError, text};

/// Gauges by `Protocol.name`: `TCP.tw` (sockets), `TCP.mem` (pages), `FRAG.memory` (bytes).
///
/// # Errors
/// When there is no such line.
pub fn parse(bytes: &[u8]) -> Result<BTreeMap<String, u64>, ParseError> {
    let mut values = BTreeMap::new();
    for (_, line) in text::lines(bytes) {
        let Some((protocol, pairs)) = line.split_once(':') else { continue };
        let mut words = pairs.split_ascii_whitespace();
        while let (Some(name), Some(value)) = (words.next(), words.next()) {
            // A negative gauge is a race between CPUs in the kernel, not a value.
            if let Ok(v) = value.parse() {
                values.insert(format!("{protocol}.{name}"), v);
            }
        }
    }
    if values.is_empty() { Err(ParseError::new(1, "TCP: inuse 0 …", bytes)) } else { Ok(values) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_pairs() {
        let v = parse(
            b"sockets: used 294\nTCP: inuse 5 orphan 0 tw 17 alloc 6 mem 312\nUDP: inuse -1 mem 2\n",
        )
        .unwrap();
        assert_eq!(v.get("TCP.tw"), Some(&17));
        assert_eq!(v.get("TCP.mem"), Some(&312));
        assert_eq!(v.get("sockets.used"), Some(&294));
        assert_eq!(v.get("UDP.inuse"), None);
        assert!(parse(b"nothing\n").is_err());
    }
}
