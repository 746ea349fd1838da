//! `/proc/meminfo` and `/sys/devices/system/node/nodeN/meminfo`, which puts `Node N` before
//! each line.

use model::Bytes;

use crate::ParseError;

/// The value of `key` (`MemTotal`, `MemFree`), in bytes.
///
/// **Unit**: the kernel prints KiB and calls them kB.
///
/// # Errors
/// When the key is missing or its value is no number of kB.
pub fn value(bytes: &[u8], key: &'static str) -> Result<Bytes, ParseError> {
    let text = String::from_utf8_lossy(bytes);
    for (i, line) in text.lines().enumerate() {
        let line = match line.trim_start().strip_prefix("Node ") {
            Some(rest) => rest.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start(),
            None => line,
        };
        let Some(rest) = line.strip_prefix(key).and_then(|r| r.strip_prefix(':')) else { continue };
        let mut words = rest.split_whitespace();
        let number = words.next().and_then(|n| n.parse::<u64>().ok());
        return match (number, words.next()) {
            (Some(n), Some("kB")) => n.checked_mul(1024).map(Bytes),
            _ => None,
        }
        .ok_or_else(|| ParseError::new(i + 1, "a number of kB", line.as_bytes()));
    }
    Err(ParseError::new(1, key, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_the_host_and_of_a_node() {
        let host =
            b"MemTotal:       24601212 kB\nMemFree:          905708 kB\nMemAvailable:   11 kB\n";
        assert_eq!(value(host, "MemTotal"), Ok(Bytes(24_601_212 * 1024)));
        assert_eq!(value(host, "MemFree"), Ok(Bytes(905_708 * 1024)));
        let node =
            b"\nNode 252 MemTotal:       33554432 kB\nNode 252 MemFree:               0 kB\n";
        assert_eq!(value(node, "MemTotal"), Ok(Bytes(33_554_432 * 1024)));
        assert_eq!(value(node, "MemFree"), Ok(Bytes(0)), "a node without free memory");
    }

    #[test]
    fn what_is_missing_or_strange_is_no_zero() {
        assert!(value(b"", "MemTotal").is_err());
        assert!(value(b"MemTotalX: 5 kB\n", "MemTotal").is_err());
        assert!(value(b"MemTotal: -5 kB\n", "MemTotal").is_err());
        assert!(value(b"MemTotal: 5 MB\n", "MemTotal").is_err());
        assert!(value(b"MemTotal: 18446744073709551615 kB\n", "MemTotal").is_err());
    }
}
