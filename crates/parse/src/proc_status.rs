//! `/proc/PID/status` and alike: `Cpus_allowed_list:\t0-3`. **Source**: proc_pid_status(5).

/// The value of the first line `key:`, blanks around taken off.
pub fn value<'a>(text: &'a [u8], key: &str) -> Option<&'a str> {
    text.split(|&b| b == b'\n').find_map(|line| {
        let (k, v) = line.split_at_checked(key.len())?;
        let v = v.strip_prefix(b":").filter(|_| k == key.as_bytes())?;
        std::str::from_utf8(v).ok().map(str::trim)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_by_its_key() {
        let text =
            b"Name:\tpostgres\nUid:\t26\t26\t26\t26\nCpus_allowed:\tf\nCpus_allowed_list:\t0-3\n";
        assert_eq!(value(text, "Cpus_allowed_list"), Some("0-3"));
        assert_eq!(value(text, "Cpus_allowed"), Some("f"));
        assert_eq!(value(text, "Cpus"), None);
        assert_eq!(value(b"", "Name"), None);
    }
}
