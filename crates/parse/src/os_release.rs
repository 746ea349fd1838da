//! `/etc/os-release`: shell assignments. **Source**: `os-release(5)`.

/// The value of `key`, unquoted and with shell escapes undone; the last assignment counts, as
/// in a shell.
pub fn value(bytes: &[u8], key: &str) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    text.lines()
        .filter_map(|line| line.trim().split_once('='))
        .filter(|(k, _)| *k == key)
        .map(|(_, v)| unquote(v.trim()))
        .rfind(|v| !v.is_empty())
}

/// The name for people: `PRETTY_NAME`, else `NAME` and `VERSION`.
pub fn pretty_name(bytes: &[u8]) -> Option<String> {
    value(bytes, "PRETTY_NAME").or_else(|| {
        let name = value(bytes, "NAME")?;
        Some(match value(bytes, "VERSION") {
            Some(version) => format!("{name} {version}"),
            None => name,
        })
    })
}

fn unquote(text: &str) -> String {
    let inner =
        ['"', '\''].iter().find_map(|&q| text.strip_prefix(q)?.strip_suffix(q)).unwrap_or(text);
    if text.starts_with('\'') {
        return inner.to_owned();
    }
    let mut out = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => out.extend(chars.next()),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pretty_name_comes_before_the_name() {
        let debian = b"PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nNAME=\"Debian GNU/Linux\"\n";
        assert_eq!(pretty_name(debian).as_deref(), Some("Debian GNU/Linux 12 (bookworm)"));
        assert_eq!(pretty_name(b"NAME=Void\n").as_deref(), Some("Void"));
        assert_eq!(
            pretty_name(b"NAME='a $b'\nVERSION=\"1 \\\"x\\\"\"\n").as_deref(),
            Some("a $b 1 \"x\"")
        );
        assert_eq!(pretty_name(b"# nothing\n"), None);
        assert_eq!(pretty_name(b"PRETTY_NAME=\"\n").as_deref(), Some("\""), "half a quote is text");
    }
}
