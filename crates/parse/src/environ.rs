//! `/proc/PID/environ`: `KEY=value`, each ended by a zero byte.

/// The value of `key`; the first one counts, as in `getenv(3)`.
pub fn value(bytes: &[u8], key: &str) -> Option<String> {
    bytes
        .split(|&b| b == 0)
        .find_map(|entry| entry.strip_prefix(key.as_bytes())?.strip_prefix(b"="))
        .map(|v| String::from_utf8_lossy(v).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_value_of_a_whole_name_counts() {
        let env = b"PATH=/bin\0container=podman\0X=\0container=later\0";
        assert_eq!(value(env, "container").as_deref(), Some("podman"));
        assert_eq!(value(env, "X").as_deref(), Some(""));
        assert_eq!(value(env, "PAT"), None);
        assert_eq!(value(b"", "PATH"), None);
    }
}
