//! `/proc/net/snmp6`: one name and value a line. **Source**: `net/ipv6/proc.c`.

use std::collections::BTreeMap;

use crate::{ParseError, text};

/// Values by `Protocol.Name`, cut after the protocol's `6`: `Udp6RcvbufErrors` is
/// `Udp6.RcvbufErrors`, as its sister in `/proc/net/snmp` is `Udp.RcvbufErrors`.
///
/// # Errors
/// When there is no such line.
pub fn parse(bytes: &[u8]) -> Result<BTreeMap<String, u64>, ParseError> {
    let values: BTreeMap<_, _> = text::lines(bytes)
        .filter_map(|(_, line)| {
            let mut words = line.split_ascii_whitespace();
            let (name, value) = (words.next()?, words.next()?.parse().ok()?);
            let (protocol, counter) = name.split_at_checked(name.find('6')? + 1)?;
            (!counter.is_empty()).then(|| (format!("{protocol}.{counter}"), value))
        })
        .collect();
    if values.is_empty() { Err(ParseError::new(1, "Ip6InReceives 0", bytes)) } else { Ok(values) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_cuts_names() {
        let v = parse(
            b"Ip6InReceives                   \t12\nIcmp6OutType143                 \t3\n\
              Udp6RcvbufErrors                \t4\nUdpLite6InDatagrams 5\nodd line\nIp6X y\n",
        )
        .unwrap();
        let v: Vec<_> = v.iter().map(|(k, n)| (k.as_str(), *n)).collect();
        assert_eq!(
            v,
            [
                ("Icmp6.OutType143", 3),
                ("Ip6.InReceives", 12),
                ("Udp6.RcvbufErrors", 4),
                ("UdpLite6.InDatagrams", 5)
            ]
        );
        assert!(parse(b"").is_err());
        assert!(parse(b"6 6\n").is_err());
    }
}
