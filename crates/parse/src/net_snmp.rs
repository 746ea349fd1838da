//! `/proc/net/snmp` and `/proc/net/netstat`: pairs of lines, names above values.
//! **Source**: `net/ipv4/proc.c`; names are those of RFC 2011/2012/2013 MIBs and, under
//! `TcpExt`, the kernel's own (`Documentation/networking/snmp_counter.rst`).

use std::collections::BTreeMap;

use crate::{ParseError, text};

/// Values by `Protocol.Name` (`Tcp.RetransSegs`). Negative ones (`Tcp.MaxConn` −1: no limit)
/// are no counters and left out. Where names and values differ in number, those that have
/// both are taken.
///
/// # Errors
/// When there is no pair of lines at all.
pub fn parse(bytes: &[u8]) -> Result<BTreeMap<String, u64>, ParseError> {
    let mut values = BTreeMap::new();
    let mut names: Option<(&str, &str)> = None;
    for (_, line) in text::lines(bytes) {
        let Some((prefix, columns)) = line.split_once(':') else { continue };
        match names.take() {
            Some((p, n)) if p == prefix => {
                for (name, value) in
                    n.split_ascii_whitespace().zip(columns.split_ascii_whitespace())
                {
                    if let Ok(v) = value.parse() {
                        values.insert(format!("{prefix}.{name}"), v);
                    }
                }
            }
            // A header without values is dropped; this line may be the next header.
            _ => names = Some((prefix, columns)),
        }
    }
    if values.is_empty() {
        Err(ParseError::new(1, "a line of names and one of values", bytes))
    } else {
        Ok(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_pairs() {
        let v = parse(
            b"Ip: Forwarding DefaultTTL InReceives\nIp: 1 64 123\n\
              Tcp: RtoMax MaxConn RetransSegs\nTcp: 120000 -1 7\n",
        )
        .unwrap();
        assert_eq!(v.get("Tcp.RetransSegs"), Some(&7));
        assert_eq!(v.get("Ip.InReceives"), Some(&123));
        assert_eq!(v.get("Tcp.MaxConn"), None, "-1 is no counter");
    }

    #[test]
    fn counts_that_differ_and_lines_out_of_step_are_tolerated() {
        let v = parse(b"TcpExt: A B C\nTcpExt: 1 2\nIpExt: X Y\nIpExt: 3 4 5\n").unwrap();
        assert_eq!(v.len(), 4);
        assert_eq!(v.get("IpExt.Y"), Some(&4));
        let v = parse(b"Lost: A\nTcp: B\nTcp: 9\n").unwrap();
        assert_eq!(v.into_iter().collect::<Vec<_>>(), [("Tcp.B".to_owned(), 9)]);
    }

    #[test]
    fn nothing_of_it_is_an_error() {
        for bad in ["", "Tcp: A B\n", "Tcp: A\nUdp: 1\n", "1 2 3\n"] {
            assert!(parse(bad.as_bytes()).is_err(), "{bad:?}");
        }
    }
}
